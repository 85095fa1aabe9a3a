// Operators that change the shape, the order of axes or the element type. Most of them are views.
#include <numeric>

#include "import/pytorch/operators.h"
#include "import/pytorch/views.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

int64_t count_of_self(Call& c) { return ir::element_count(c.dims()); }

// --- reshape
Result<Value> reshape(Call& c) {
  ORKNN_TRY_ASSIGN(Dims dims, resolve_shape(c.ints("shape"), count_of_self(c)));
  return view_reshaped(c, c.handle(), std::move(dims));
}
Result<Value> view_as(Call& c) {
  ORKNN_TRY_ASSIGN(Dims dims, resolve_shape(c.dims("other"), count_of_self(c)));
  return view_reshaped(c, c.handle(), std::move(dims));
}
Result<Value> flatten(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t first, c.axis("start_dim"));
  ORKNN_TRY_ASSIGN(const int64_t last, c.axis("end_dim"));
  if (c.rank() == 0) return view_reshaped(c, c.handle(), {1});
  if (first > last) return invalid_model("flatten begins after its end");
  if (first == last) return c.value("self");
  Dims dims = c.dims();
  for (int64_t i = first + 1; i <= last; ++i) dims[first] *= dims[i];
  dims.erase(dims.begin() + first + 1, dims.begin() + last + 1);
  return view_reshaped(c, c.handle(), std::move(dims));
}
Result<Value> ravel(Call& c) { return view_reshaped(c, c.handle(), {count_of_self(c)}); }
Result<Value> unflatten(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be unflattened"));
  ORKNN_TRY_ASSIGN(const Dims parts, resolve_shape(c.ints("sizes"), c.dims()[axis]));
  Dims dims = c.dims();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, parts.begin(), parts.end());
  return view_reshaped(c, c.handle(), std::move(dims));
}
Result<Value> squeeze(Call& c) {
  ORKNN_TRY_ASSIGN(const auto axes, Emitter::axes_of({}, c.rank()));
  return view_squeezed(c, c.handle(), axes);
}
Result<Value> squeeze_axes(Call& c) {
  std::vector<int64_t> axes;
  for (int64_t a : c.ints("dim")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(a, c.rank()));
    axes.push_back(axis);
  }
  return view_squeezed(c, c.handle(), axes);
}
Result<Value> unsqueeze(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), c.rank() + 1));
  return view_unsqueezed(c, c.handle(), static_cast<size_t>(axis));
}
// A third axis is added at the end, the others in front.
template <int64_t Rank>
Result<Value> at_least(Call& c) {
  Value v = c.value("self");
  for (int64_t have = c.rank(); have < Rank; ++have) {
    ORKNN_TRY_ASSIGN(v, view_unsqueezed(c, v.tensor(), have == 2 ? 2 : 0));
  }
  return v;
}

// --- order of axes
Result<Value> permute(Call& c) {
  ORKNN_TRY_ASSIGN(auto permutation, c.ordered_axes("dims"));
  if (static_cast<int64_t>(permutation.size()) != c.rank()) return invalid_model("a permutation does not name every axis");
  return view_permuted(c, c.handle(), std::move(permutation));
}
Result<Value> with_swapped_axes(Call& c, int64_t a, int64_t b) {
  if (c.rank() == 0) return c.value("self");
  ORKNN_TRY_ASSIGN(const int64_t first, c.axis_of(a, c.rank()));
  ORKNN_TRY_ASSIGN(const int64_t second, c.axis_of(b, c.rank()));
  ORKNN_TRY_ASSIGN(auto permutation, Emitter::axes_of({}, c.rank()));
  std::swap(permutation[first], permutation[second]);
  return view_permuted(c, c.handle(), std::move(permutation));
}
Result<Value> transpose(Call& c) { return with_swapped_axes(c, c.integer("dim0"), c.integer("dim1")); }
Result<Value> t(Call& c) {
  if (c.rank() > 2) return invalid_model("t() works on matrices").found(ir::to_string(c.dims()));
  return c.rank() < 2 ? Result<Value>(c.value("self")) : with_swapped_axes(c, 0, 1);
}
Result<Value> matrix_transpose(Call& c) { return c.rank() < 2 ? Result<Value>(c.value("self")) : with_swapped_axes(c, -2, -1); }
Result<Value> reversed_axes(Call& c) {
  ORKNN_TRY_ASSIGN(auto permutation, Emitter::axes_of({}, c.rank()));
  std::ranges::reverse(permutation);
  return view_permuted(c, c.handle(), std::move(permutation));
}
Result<Value> move_axes(Call& c) {
  if (c.ints("source").size() != c.ints("destination").size())
    return invalid_model("movedim needs as many sources as destinations");
  ORKNN_TRY_ASSIGN(const auto from, c.ordered_axes("source"));
  ORKNN_TRY_ASSIGN(const auto to, c.ordered_axes("destination"));
  std::vector<int64_t> permutation(static_cast<size_t>(c.rank()), -1), others;
  for (size_t i = 0; i < from.size(); ++i) permutation[to[i]] = from[i];
  for (int64_t i = 0; i < c.rank(); ++i)
    if (std::ranges::find(from, i) == from.end()) others.push_back(i);
  auto next = others.begin();
  for (int64_t& p : permutation)
    if (p < 0) p = *next++;
  return view_permuted(c, c.handle(), std::move(permutation));
}

// --- parts
Result<Value> slice(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be sliced"));
  const int64_t extent = c.dims()[axis], step = c.integer("step");
  if (step < 1) return invalid_model("a slice needs a positive step").found(std::to_string(step));
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const int64_t v = c.integer_or(name, fallback);
    return std::clamp<int64_t>(v < 0 && v >= -extent ? v + extent : v, 0, extent);
  };
  const int64_t start = bound("start", 0), end = std::max(bound("end", extent), start);
  const int64_t count = step >= end - start ? (end > start ? 1 : 0) : (end - start + step - 1) / step;
  return view_sliced(c, c.handle(), static_cast<size_t>(axis), start, count, count <= 1 ? 1 : step);
}
Result<Value> narrow(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be narrowed"));
  const int64_t extent = c.dims()[axis], length = c.integer("length");
  const int64_t start = c.integer("start") < 0 ? c.integer("start") + extent : c.integer("start");
  if (start < 0 || length < 0 || start > extent || length > extent - start)
    return invalid_model("a part is outside its axis")
        .found("start " + std::to_string(start) + ", length " + std::to_string(length));
  return view_sliced(c, c.handle(), static_cast<size_t>(axis), start, length, 1);
}
Result<Value> select(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("has no elements to select"));
  return view_selected(c, c.handle(), static_cast<size_t>(axis), c.integer("index"));
}
// The index is computed by the network.
Result<TensorId> select_computed(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  return c.gather(c.tensor("self"), c.reshape(index, {}), axis);
}

// --- splits: the sizes of the parts along an axis
using Sizes = std::vector<int64_t>;
Result<Value> parts(Call& c, int64_t axis, const Sizes& sizes) {
  const int64_t extent = c.dims()[axis];
  c.heap().charge(sizes.size() * 4);
  std::vector<Value> list;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - start)
      return invalid_model("the parts of a split do not fit the axis").found(ir::to_string(sizes));
    ORKNN_TRY_ASSIGN(const Value part, view_sliced(c, c.handle(), static_cast<size_t>(axis), start, size, 1));
    list.push_back(part);
    start += size;
  }
  if (start != extent) return invalid_model("the parts of a split do not fill the axis");
  return c.list(std::move(list));
}
template <Result<Sizes> (*SizesOf)(Call&, int64_t extent)>
Result<Value> split_into(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be split"));
  ORKNN_TRY_ASSIGN(const Sizes sizes, SizesOf(c, c.dims()[axis]));
  return parts(c, axis, sizes);
}
// Along columns; a vector along its only axis.
template <Result<Sizes> (*SizesOf)(Call&, int64_t extent)>
Result<Value> split_across(Call& c) {
  if (c.rank() == 0) return invalid_model("a tensor without axes cannot be split");
  const int64_t axis = c.rank() == 1 ? 0 : 1;
  ORKNN_TRY_ASSIGN(const Sizes sizes, SizesOf(c, c.dims()[axis]));
  return parts(c, axis, sizes);
}
Result<Sizes> of_one_size(int64_t size, int64_t extent) {
  if (size < 1 && extent > 0) return invalid_model("a tensor is split into parts of no size");
  Sizes sizes;
  if (extent == 0) sizes.push_back(0);
  for (int64_t start = 0; start < extent; start += sizes.back()) sizes.push_back(std::min(size, extent - start));
  return sizes;
}
Result<Sizes> by_size(Call& c, int64_t extent) { return of_one_size(c.integer("split_size"), extent); }
Result<Sizes> by_sizes(Call& c, int64_t) { return c.ints("sizes"); }
Result<Sizes> by_chunks(Call& c, int64_t extent) {
  const int64_t count = c.integer("chunks");
  if (count < 1) return invalid_model("a tensor is split into no parts");
  return of_one_size(count > extent ? 1 : (extent + count - 1) / count, extent);
}
// The first parts are one longer when the axis does not divide evenly.
Result<Sizes> by_sections(Call& c, int64_t extent) {
  const int64_t count = c.integer("sections");
  if (count < 1 || count > 65536)
    return invalid_model("the number of parts of a split is out of range").found(std::to_string(count));
  Sizes sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(extent / count + (i < extent % count));
  return sizes;
}
Result<Sizes> by_places(Call& c, int64_t extent) {
  Sizes sizes;
  int64_t start = 0;
  for (int64_t at : c.ints("indices")) {
    const int64_t end = std::clamp<int64_t>(at < 0 ? at + extent : at, start, extent);
    sizes.push_back(end - start);
    start = end;
  }
  sizes.push_back(extent - start);
  return sizes;
}
Result<Value> unbind(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be split"));
  std::vector<Value> list;
  c.heap().charge(static_cast<uint64_t>(c.dims()[axis]));
  if (c.heap().is_exhausted()) return invalid_model("a tensor is split into too many parts");
  for (int64_t i = 0; i < c.dims()[axis]; ++i) {
    ORKNN_TRY_ASSIGN(const Value part, view_selected(c, c.handle(), static_cast<size_t>(axis), i));
    list.push_back(part);
  }
  return c.list(std::move(list));
}

// --- repetition
Result<Value> expand(Call& c) { return view_expanded(c, c.handle(), c.ints("size")); }
Result<Value> expand_as(Call& c) { return view_expanded(c, c.handle(), c.dims("other")); }
Result<Value> broadcast_tensors(Call& c) {
  ORKNN_TRY(c.tensors("tensors").status());
  Dims dims;
  for (const Value& v : c.items("tensors")) {
    ORKNN_TRY_ASSIGN(dims, ir::broadcast(dims, v.tensor().dims));
  }
  std::vector<Value> list;
  for (const Value& v : c.items("tensors")) {
    ORKNN_TRY_ASSIGN(const Value wide, view_expanded(c, v.tensor(), dims));
    list.push_back(wide);
  }
  return c.list(std::move(list));
}

// Overlapping windows of one axis, as a new last axis.
Result<Value> unfold(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis("dimension"));
  const int64_t size = c.integer("size"), step = c.integer("step"), extent = c.rank() == 0 ? 1 : c.dims()[axis];
  if (size < 0 || size > extent || step < 1)
    return invalid_model("windows do not fit the axis").found("size " + std::to_string(size) + ", step " + std::to_string(step));
  const int64_t count = (extent - size) / step + 1;
  if (count > (int64_t{1} << 24) / std::max<int64_t>(size, 1)) return unsupported("there are too many windows");
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < size; ++k) positions.push_back(i * step + k);
  Dims shape = c.dims(), strides = c.handle().strides;
  if (shape.empty()) shape = strides = {1};
  strides.insert(strides.begin() + axis + 1, strides[axis]);
  strides[axis] = stride_times(strides[axis], step);
  ORKNN_TRY_ASSIGN(auto permutation, Emitter::axes_of({}, c.rank()));
  ORKNN_TRY_ASSIGN(
      const Value windows,
      view_picked(c, c.handle(), {std::move(permutation), shape, axis, ir::TensorData::from<int64_t>({count, size}, positions)},
                  std::move(strides)));
  if (c.rank() == 0) return view_reshaped(c, windows.tensor(), {size});
  // The window axis follows the axis it came from; it belongs after all others.
  ORKNN_TRY_ASSIGN(auto order, Emitter::axes_of({}, static_cast<int64_t>(shape.size()) + 1));
  std::rotate(order.begin() + axis + 1, order.begin() + axis + 2, order.end());
  return view_permuted(c, windows.tensor(), std::move(order));
}
Result<Value> diagonal(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t first, c.axis("dim1"));
  ORKNN_TRY_ASSIGN(const int64_t second, c.axis("dim2"));
  if (c.rank() < 2 || first == second) return invalid_model("a diagonal needs two axes");
  const int64_t offset = c.integer("offset"), rows = c.dims()[first], columns = c.dims()[second];
  if (offset < -rows || offset > columns) return unsupported("the diagonal is outside the matrix");
  // Both axes go to the end and become one, of which the diagonal is every (columns + 1)-th element.
  const Dims& old = c.handle().strides;
  std::vector<int64_t> permutation;
  Dims shape, strides;
  for (int64_t i = 0; i < c.rank(); ++i) {
    if (i == first || i == second) continue;
    permutation.push_back(i);
    shape.push_back(c.dims()[i]);
    strides.push_back(old[i]);
  }
  shape.push_back(rows * columns);
  strides.push_back(stride_sum(old[first], old[second]));
  permutation.insert(permutation.end(), {first, second});
  ORKNN_TRY_ASSIGN(const auto positions, diagonal_positions(rows, columns, offset));
  return view_picked(c, c.handle(),
                     {std::move(permutation), shape, c.rank() - 2,
                      ir::TensorData::from<int64_t>({static_cast<int64_t>(positions.size())}, positions)},
                     std::move(strides));
}

// Elements of the whole tensor, counted from its first.
Result<Value> view_of_elements(Call& c, const Dims& dims, const std::vector<int64_t>& positions, Dims strides) {
  ORKNN_TRY_ASSIGN(auto permutation, Emitter::axes_of({}, c.rank()));
  return view_picked(c, c.handle(),
                     {std::move(permutation), {count_of_self(c)}, 0, ir::TensorData::from<int64_t>(dims, positions)},
                     std::move(strides));
}
// Whether the tensor begins where its storage does, from which offsets are counted.
bool begins_storage(const TensorValue& t) {
  const TensorValue* root = &t;
  while (root->parent) root = root->parent;
  return root->storage_offset == 0 && ir::element_count(root->dims) == ir::element_count(t.dims);
}
Result<Value> as_strided(Call& c) {
  const Dims dims = c.ints("size"), strides = c.ints("stride");
  const int64_t offset = c.integer_or("offset", 0);
  if (dims.size() != strides.size()) return invalid_model("as_strided needs one stride per axis");
  if (!is_contiguous(c.dims(), c.handle().strides))
    return unsupported("as_strided of a tensor that is not contiguous is not supported");
  if (c.has("offset") && !begins_storage(c.handle()))
    return unsupported("as_strided with an offset is not supported for a part of another tensor");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || strides[i] < 0 || strides[i] > (int64_t{1} << 34))
      return invalid_model("as_strided has impossible extents");
  const auto count = ir::checked_element_count(dims, int64_t{1} << 24);
  if (!count || offset < 0) return unsupported("as_strided makes too many elements");
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < *count; ++n) {
    int64_t rest = n, at = offset;
    for (size_t i = dims.size(); i-- > 0;) {
      at += rest % dims[i] * strides[i];
      rest /= dims[i];
    }
    if (at >= count_of_self(c)) return invalid_model("as_strided reads beyond the end of its tensor");
    positions.push_back(at);
  }
  return view_of_elements(c, dims, positions, strides);
}
Result<Value> write_diagonal(Call& c) {
  const Dims& dims = c.dims();
  if (dims.size() < 2 || (dims.size() > 2 && !std::ranges::all_of(dims, [&](int64_t d) { return d == dims[0]; })))
    return invalid_model("fill_diagonal_ needs two axes, or more of the same extent").found(ir::to_string(dims));
  const Dims dense = ir::strides_of(dims);
  const int64_t step = std::accumulate(dense.begin(), dense.end(), int64_t{0});
  const bool goes_on = c.flag("wrap") && dims.size() == 2;
  const int64_t count = goes_on ? (count_of_self(c) + step - 1) / step : *std::ranges::min_element(dims);
  if (count > (int64_t{1} << 24)) return unsupported("the diagonal is too long");
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back(i * step);
  ORKNN_TRY_ASSIGN(const Value part, view_of_elements(c, {count}, positions, {step}));
  ORKNN_TRY(c.write(part.tensor(), c.as("value", c.dtype())));
  return c.value("self");
}

// --- copies and types
Result<Value> copy(Call& c) { return c.copy_of(); }
Result<Value> contiguous(Call& c) {
  return is_contiguous(c.dims(), c.handle().strides) ? Result<Value>(c.value("self")) : c.copy_of();
}
Result<Value> converted(Call& c, DType dtype) {
  if (dtype == c.dtype()) return c.value("self");
  ORKNN_TRY_ASSIGN(const Value v, c.made(c.cast(c.tensor("self"), dtype)));
  v.tensor().strides = c.handle().strides;
  return v;
}
Result<Value> to(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, c.dtype_argument(c.dtype()));
  return c.flag("copy") && dtype == c.dtype() ? c.copy_of() : converted(c, dtype);
}
Result<Value> to_other(Call& c) { return converted(c, c.dtype("other")); }
template <DType To>
Result<Value> cast(Call& c) {
  return converted(c, To);
}

Result<Value> written(Call& c, TensorId value) {
  ORKNN_TRY(c.write(c.handle(), value));
  return c.value("self");
}
Result<Value> write_copy(Call& c) { return written(c, c.tensor("source")); }
Result<Value> write_value(Call& c) { return written(c, c.as("value", c.dtype())); }
Result<Value> write_zero(Call& c) { return written(c, c.scalar(0, c.dtype())); }
TensorId copy_source(Call& c) { return c.expand(c.as("source", c.dtype()), c.dims()); }
TensorId fill(Call& c) { return c.expand(c.as("value", c.dtype()), c.dims()); }

// In-place forms that change the shape of the tensor itself: it becomes a view of what it was.
template <Result<Value> (*View)(Call&)>
Result<Value> in_place(Call& c) {
  ORKNN_TRY_ASSIGN(const Value view, View(c));
  TensorValue& self = c.handle();
  if (&view.tensor() == &self) return view;
  TensorValue* before = c.heap().tensor();
  *before = self;
  self = TensorValue(view.tensor());
  // Whoever was a view of the tensor, itself included now, is a view of what it was.
  for (TensorValue& t : c.heap().tensors())
    if (t.parent == &self) t.parent = before;
  return c.value("self");
}

// What the functional forms of writes into views give: a copy with the part replaced.
template <Result<Value> (*View)(Call&)>
Result<Value> scattered_view(Call& c) {
  ORKNN_TRY_ASSIGN(const Value part, View(c));
  ORKNN_TRY_ASSIGN(const Value whole, c.copy_of());
  part.tensor().parent = &whole.tensor();
  part.tensor().parent_version = whole.tensor().version;
  ORKNN_TRY(c.write(part.tensor(), c.tensor("src")));
  return whole;
}
}  // namespace

Result<std::vector<int64_t>> diagonal_positions(int64_t rows, int64_t columns, int64_t offset) {
  std::vector<int64_t> positions;
  for (int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0); row < rows && column < columns;
       ++row, ++column) {
    if (positions.size() >= (size_t{1} << 24)) return unsupported("the diagonal is too long");
    positions.push_back(row * columns + column);
  }
  return positions;
}

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"view|reshape|_unsafe_view|view_copy(Tensor self, int[] shape)", reshape},
      {"_reshape_alias(Tensor self, int[] shape, any stride=None)", reshape},
      {"view_as|reshape_as(Tensor self, Tensor other)", view_as},
      {"flatten(Tensor self, int start_dim=0, int end_dim=-1)", flatten},
      {"ravel(Tensor self)", ravel},
      {"unflatten(Tensor self, int dim, int[] sizes)", unflatten},
      {"unflatten(Tensor self, int dim, int[] sizes, any names)", unflatten},
      {"squeeze|squeeze_copy(Tensor self)", squeeze},
      {"squeeze|squeeze_copy(Tensor self, int dim)", squeeze_axes},
      {"squeeze|squeeze_copy(Tensor self, int[] dim)", squeeze_axes},
      {"squeeze_(Tensor self)", in_place<squeeze>},
      {"squeeze_(Tensor self, int dim)", in_place<squeeze_axes>},
      {"unsqueeze|unsqueeze_copy(Tensor self, int dim)", unsqueeze},
      {"unsqueeze_(Tensor self, int dim)", in_place<unsqueeze>},
      {"atleast_1d(Tensor self)", at_least<1>},
      {"atleast_2d(Tensor self)", at_least<2>},
      {"atleast_3d(Tensor self)", at_least<3>},
      {"permute|permute_copy(Tensor self, int[] dims)", permute},
      {"transpose|swapaxes|swapdims|transpose_copy(Tensor self, int dim0, int dim1)", transpose},
      {"transpose_(Tensor self, int dim0, int dim1)", in_place<transpose>},
      {"t|t_copy(Tensor self)", t},
      {"t_(Tensor self)", in_place<t>},
      {"numpy_T|prim::T(Tensor self)", reversed_axes},
      {"mT|mH|matrix_H|adjoint(Tensor self)", matrix_transpose},
      {"movedim|moveaxis(Tensor self, int[] source, int[] destination)", move_axes},
      {"movedim|moveaxis(Tensor self, int source, int destination)", move_axes},
      {"slice|slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)", slice},
      {"slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)", scattered_view<slice>},
      {"narrow|narrow_copy(Tensor self, int dim, int start, int length)", narrow},
      {"select|select_copy(Tensor self, int dim, int index)", select},
      {"select(Tensor self, int dim, Tensor index)", select_computed},
      {"select_scatter(Tensor self, Tensor src, int dim, int index)", scattered_view<select>},
      {"split|unsafe_split|split_copy(Tensor self, int split_size, int dim=0)", split_into<by_size>},
      {"split|split_with_sizes|unsafe_split_with_sizes|split_with_sizes_copy(Tensor self, int[] sizes, int dim=0)",
       split_into<by_sizes>},
      {"chunk|unsafe_chunk(Tensor self, int chunks, int dim=0)", split_into<by_chunks>},
      {"tensor_split|vsplit(Tensor self, int sections, int dim=0)", split_into<by_sections>},
      {"tensor_split|vsplit(Tensor self, int[] indices, int dim=0)", split_into<by_places>},
      {"hsplit(Tensor self, int sections)", split_across<by_sections>},
      {"hsplit(Tensor self, int[] indices)", split_across<by_places>},
      {"dsplit(Tensor self, int sections, int dim=2)", split_into<by_sections>},
      {"dsplit(Tensor self, int[] indices, int dim=2)", split_into<by_places>},
      {"unbind|unbind_copy(Tensor self, int dim=0)", unbind},
      {"expand|expand_copy(Tensor self, int[] size, *, bool implicit=False)", expand},
      {"broadcast_to(Tensor self, int[] size)", expand},
      {"expand_as(Tensor self, Tensor other)", expand_as},
      {"broadcast_tensors(Tensor[] tensors)", broadcast_tensors},
      {"unfold|unfold_copy(Tensor self, int dimension, int size, int step)", unfold},
      {"diagonal|diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal},
      {"linalg_diagonal(Tensor self, *, int offset=0, int dim1=-2, int dim2=-1)", diagonal},
      {"as_strided|as_strided_copy(Tensor self, int[] size, int[] stride, int? offset=None)", as_strided},
      {"as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? offset=None)", scattered_view<as_strided>},
      {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)", scattered_view<diagonal>},
      {"fill_diagonal_(Tensor self, operand value, bool wrap=False)", write_diagonal},
      {"alias|alias_copy|detach|detach_|detach_copy|lift_fresh|lift|resolve_conj|resolve_neg|conj|conj_physical|real|positive|"
       "cpu|cuda|"
       "numpy(Tensor self)",
       itself},
      {"requires_grad_(Tensor self, bool requires_grad=True)", itself},
      {"pin_memory(Tensor self, any device=None)", itself},
      {"_autocast_to_full_precision(Tensor self, any cuda=None, any cpu=None)", itself},
      {"_autocast_to_reduced_precision(Tensor self, any cuda=None, any cpu=None, any a=None, any b=None)", itself},
      {"lift_fresh_copy(Tensor self)", copy},
      {"clone(Tensor self, *, any memory_format=None)", copy},
      {"_to_copy(Tensor self, *, int? dtype=None, any layout=None, any device=None, any pin_memory=None, any non_blocking=None, "
       "any memory_format=None, bool? copy=True)",
       to},
      {"contiguous(Tensor self, *, any memory_format=None)", contiguous},
      {"to(Tensor self, int dtype, bool non_blocking=False, bool copy=False, any memory_format=None)", to},
      {"to(Tensor self, Device device, int? dtype=None, bool non_blocking=False, bool copy=False, any memory_format=None)", to},
      {"to(Tensor self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False, any memory_format=None)", to},
      {"to(Tensor self, *, int? dtype=None, any layout=None, any device=None, any pin_memory=None, any non_blocking=None, bool "
       "copy=False, any memory_format=None)",
       to},
      {"to(Tensor self, Tensor other, any non_blocking=None, any copy=None, any memory_format=None)", to_other},
      {"type_as(Tensor self, Tensor other)", to_other},
      {"float|_cast_Float(Tensor self, any non_blocking=None)", cast<DType::Float32>},
      {"double|_cast_Double(Tensor self, any non_blocking=None)", cast<DType::Float64>},
      {"half|_cast_Half(Tensor self, any non_blocking=None)", cast<DType::Float16>},
      {"bfloat16(Tensor self)", cast<DType::BFloat16>},
      {"int|_cast_Int(Tensor self, any non_blocking=None)", cast<DType::Int32>},
      {"long|_cast_Long(Tensor self, any non_blocking=None)", cast<DType::Int64>},
      {"short(Tensor self)", cast<DType::Int16>},
      {"char(Tensor self)", cast<DType::Int8>},
      {"byte(Tensor self)", cast<DType::UInt8>},
      {"bool(Tensor self)", cast<DType::Bool>},
      {"copy_(Tensor self, Tensor source, any non_blocking=None)", write_copy},
      {"copy(Tensor self, Tensor source, any non_blocking=None)", copy_source},
      {"fill_(Tensor self, operand value)", write_value},
      {"zero_(Tensor self)", write_zero},
      {"fill(Tensor self, operand value)", fill},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
