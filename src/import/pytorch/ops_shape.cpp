// Operators that change the shape, the order of axes or the element type. Most of them are views.
#include <numeric>

#include "import/pytorch/ops.h"
#include "import/pytorch/views.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// --- reshape
Result<Value> reshape(Call& c) {
  ORKNN_TRY_ASSIGN(Dims dims, resolve_shape(c.ints("shape"), ir::element_count(c.dims("self"))));
  return view_reshaped(c, c.handle("self"), std::move(dims));
}
Result<Value> view_as(Call& c) {
  ORKNN_TRY_ASSIGN(Dims dims, resolve_shape(c.dims("other"), ir::element_count(c.dims("self"))));
  return view_reshaped(c, c.handle("self"), std::move(dims));
}
Result<Value> flatten(Call& c) {
  const int64_t rank = c.rank("self");
  ORKNN_TRY_ASSIGN(const size_t first, c.axis("start_dim", rank));
  ORKNN_TRY_ASSIGN(const size_t last, c.axis("end_dim", rank));
  if (rank == 0) return view_reshaped(c, c.handle("self"), {1});
  if (first > last) return invalid_model("flatten begins behind its end");
  if (first == last) return c.value("self");
  Dims dims(c.dims("self").begin(), c.dims("self").begin() + static_cast<ptrdiff_t>(first) + 1);
  for (size_t i = first + 1; i < c.dims("self").size(); ++i) {
    if (i <= last)
      dims.back() *= c.dims("self")[i];
    else
      dims.push_back(c.dims("self")[i]);
  }
  return view_reshaped(c, c.handle("self"), std::move(dims));
}
Result<Value> ravel(Call& c) { return view_reshaped(c, c.handle("self"), {ir::element_count(c.dims("self"))}); }
Result<Value> unflatten(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes cannot be unflattened");
  ORKNN_TRY_ASSIGN(const Dims parts, resolve_shape(c.ints("sizes"), c.dims("self")[axis]));
  Dims dims = c.dims("self");
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), parts.begin(), parts.end());
  return view_reshaped(c, c.handle("self"), std::move(dims));
}
Result<Value> squeeze(Call& c) {
  std::vector<int64_t> axes(static_cast<size_t>(c.rank("self")));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return view_squeezed(c, c.handle("self"), axes);
}
Result<Value> squeeze_axes(Call& c) {
  std::vector<int64_t> axes;
  for (int64_t a : c.ints("dim")) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(a, c.rank("self")));
    axes.push_back(static_cast<int64_t>(axis));
  }
  return view_squeezed(c, c.handle("self"), axes);
}
Result<Value> unsqueeze(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(c.integer("dim"), c.rank("self") + 1));
  return view_unsqueezed(c, c.handle("self"), axis);
}
Result<Value> at_least(Call& c, int64_t rank) {
  Value v = c.value("self");
  for (int64_t have = c.rank("self"); have < rank; ++have) {
    // A third axis is added behind, the others in front.
    ORKNN_TRY_ASSIGN(v, view_unsqueezed(c, v.tensor(), have == 2 ? 2 : 0));
  }
  return v;
}
Result<Value> at_least_1d(Call& c) { return at_least(c, 1); }
Result<Value> at_least_2d(Call& c) { return at_least(c, 2); }
Result<Value> at_least_3d(Call& c) { return at_least(c, 3); }

// --- order of axes
Result<Value> permute(Call& c) {
  std::vector<int64_t> permutation;
  for (int64_t a : c.ints("dims")) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(a, c.rank("self")));
    if (std::find(permutation.begin(), permutation.end(), static_cast<int64_t>(axis)) != permutation.end())
      return invalid_model("a permutation names an axis twice");
    permutation.push_back(static_cast<int64_t>(axis));
  }
  if (static_cast<int64_t>(permutation.size()) != c.rank("self")) return invalid_model("a permutation does not name every axis");
  return view_permuted(c, c.handle("self"), std::move(permutation));
}
Result<Value> swapped(Call& c, int64_t a, int64_t b) {
  if (c.rank("self") == 0) return c.value("self");
  ORKNN_TRY_ASSIGN(const size_t first, c.axis_of(a, c.rank("self")));
  ORKNN_TRY_ASSIGN(const size_t second, c.axis_of(b, c.rank("self")));
  std::vector<int64_t> permutation(static_cast<size_t>(c.rank("self")));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  std::swap(permutation[first], permutation[second]);
  return view_permuted(c, c.handle("self"), std::move(permutation));
}
Result<Value> transpose(Call& c) { return swapped(c, c.integer("dim0"), c.integer("dim1")); }
Result<Value> t(Call& c) {
  if (c.rank("self") > 2) return invalid_model("t() works on matrices").found(ir::to_string(c.dims("self")));
  return c.rank("self") < 2 ? Result<Value>(c.value("self")) : swapped(c, 0, 1);
}
Result<Value> matrix_transpose(Call& c) { return c.rank("self") < 2 ? Result<Value>(c.value("self")) : swapped(c, -2, -1); }
Result<Value> reversed_axes(Call& c) {
  std::vector<int64_t> permutation(static_cast<size_t>(c.rank("self")));
  std::iota(permutation.rbegin(), permutation.rend(), int64_t{0});
  return view_permuted(c, c.handle("self"), std::move(permutation));
}
Result<Value> move_axes(Call& c) {
  const int64_t rank = c.rank("self");
  const auto from = c.ints("source"), to = c.ints("destination");
  if (from.size() != to.size()) return invalid_model("movedim needs as many sources as destinations");
  std::vector<int64_t> permutation(static_cast<size_t>(rank), -1);
  std::vector<char> taken(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    ORKNN_TRY_ASSIGN(const size_t source, c.axis_of(from[i], rank));
    ORKNN_TRY_ASSIGN(const size_t target, c.axis_of(to[i], rank));
    if (rank == 0) return c.value("self");
    if (taken[source] || permutation[target] >= 0) return invalid_model("movedim names an axis twice");
    permutation[target] = static_cast<int64_t>(source);
    taken[source] = 1;
  }
  size_t next = 0;
  for (int64_t& p : permutation) {
    if (p >= 0) continue;
    while (taken[next]) ++next;
    p = static_cast<int64_t>(next++);
  }
  return view_permuted(c, c.handle("self"), std::move(permutation));
}

// --- parts
Result<Value> slice(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes cannot be sliced");
  const int64_t extent = c.dims("self")[axis], step = c.integer("step");
  if (step < 1) return invalid_model("a slice needs a positive step").found(std::to_string(step));
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const int64_t v = c.integer_or(name, fallback);
    return std::clamp<int64_t>(v < 0 && v >= -extent ? v + extent : v, 0, extent);
  };
  const int64_t start = bound("start", 0), end = std::max(bound("end", extent), start);
  const int64_t count = step >= end - start ? (end > start ? 1 : 0) : (end - start + step - 1) / step;
  return view_sliced(c, c.handle("self"), axis, start, count, count <= 1 ? 1 : step);
}
Result<Value> narrow(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes cannot be narrowed");
  const int64_t extent = c.dims("self")[axis], length = c.integer("length");
  const int64_t start = c.integer("start") < 0 ? c.integer("start") + extent : c.integer("start");
  if (start < 0 || length < 0 || start > extent || length > extent - start)
    return invalid_model("a part lies outside of its axis")
        .found("start " + std::to_string(start) + ", length " + std::to_string(length));
  return view_sliced(c, c.handle("self"), axis, start, length, 1);
}
Result<Value> select(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes has no elements to select");
  return view_selected(c, c.handle("self"), axis, c.integer("index"));
}
// The index is computed by the network.
Result<Value> select_computed(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  return c.made(c.gather(c.tensor("self"), c.reshape(index, {}), static_cast<int64_t>(axis)));
}

Result<Value> parts(Call& c, size_t axis, std::span<const int64_t> sizes) {
  std::vector<Value> list;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > c.dims("self")[axis] - start)
      return invalid_model("the parts of a split do not fit the axis").found(ir::to_string(Dims(sizes.begin(), sizes.end())));
    ORKNN_TRY_ASSIGN(const Value part, view_sliced(c, c.handle("self"), axis, start, size, 1));
    list.push_back(part);
    start += size;
  }
  if (start != c.dims("self")[axis]) return invalid_model("the parts of a split do not fill the axis");
  return c.list(std::move(list));
}
Result<Value> parts_of_size(Call& c, size_t axis, int64_t size) {
  const int64_t extent = c.dims("self")[axis];
  if (size < 1 && extent > 0) return invalid_model("a tensor is split into parts of no size");
  std::vector<int64_t> sizes;
  if (extent == 0) sizes.push_back(0);
  for (int64_t start = 0; start < extent; start += sizes.back()) sizes.push_back(std::min(size, extent - start));
  c.heap().charge(sizes.size() * 4);
  return parts(c, axis, sizes);
}
Result<size_t> split_axis(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes cannot be split");
  return axis;
}
Result<Value> split(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  return parts_of_size(c, axis, c.integer("split_size"));
}
Result<Value> split_with_sizes(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  return parts(c, axis, c.ints("sizes"));
}
Result<Value> chunk(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  const int64_t count = c.integer("chunks"), extent = c.dims("self")[axis];
  if (count < 1) return invalid_model("a tensor is split into no parts");
  const int64_t size = count > extent ? 1 : (extent + count - 1) / count;
  return parts_of_size(c, axis, size);
}
// The first parts are one longer when the axis does not divide evenly.
Result<Value> tensor_split(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  const int64_t count = c.integer("sections"), extent = c.dims("self")[axis];
  if (count < 1 || count > 65536)
    return invalid_model("a tensor is split into a strange number of parts").found(std::to_string(count));
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(extent / count + (i < extent % count));
  return parts(c, axis, sizes);
}
Result<Value> tensor_split_at(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  std::vector<int64_t> sizes;
  int64_t start = 0;
  for (int64_t at : c.ints("indices")) {
    const int64_t end = std::clamp<int64_t>(at < 0 ? at + c.dims("self")[axis] : at, start, c.dims("self")[axis]);
    sizes.push_back(end - start);
    start = end;
  }
  sizes.push_back(c.dims("self")[axis] - start);
  return parts(c, axis, sizes);
}
Result<Value> unbind(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, split_axis(c));
  std::vector<Value> list;
  c.heap().charge(static_cast<uint64_t>(c.dims("self")[axis]));
  if (c.heap().is_exhausted()) return invalid_model("a tensor is split into too many parts");
  for (int64_t i = 0; i < c.dims("self")[axis]; ++i) {
    ORKNN_TRY_ASSIGN(const Value part, view_selected(c, c.handle("self"), axis, i));
    list.push_back(part);
  }
  return c.list(std::move(list));
}

// --- repetition
Result<Value> expand(Call& c) { return view_expanded(c, c.handle("self"), c.ints("size")); }
Result<Value> expand_as(Call& c) { return view_expanded(c, c.handle("self"), c.dims("other")); }
Result<Value> broadcast_tensors(Call& c) {
  Dims dims;
  for (const Value& v : c.items("tensors")) {
    if (!v.is_tensor()) return invalid_model("a list of tensors holds None");
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
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dimension", c.rank("self")));
  const int64_t size = c.integer("size"), step = c.integer("step");
  const int64_t extent = c.rank("self") == 0 ? 1 : c.dims("self")[axis];
  if (size < 0 || size > extent || step < 1)
    return invalid_model("windows do not fit the axis").found("size " + std::to_string(size) + ", step " + std::to_string(step));
  const int64_t count = (extent - size) / step + 1;
  if (count > (int64_t{1} << 24) / std::max<int64_t>(size, 1)) return c.fail("there are too many windows");
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < size; ++k) positions.push_back(i * step + k);
  const int64_t a = static_cast<int64_t>(axis), rank = std::max<int64_t>(c.rank("self"), 1);
  const TensorId base = c.rank("self") == 0 ? c.reshape(c.tensor("self"), {1}) : c.tensor("self");
  const TensorId index = c.add_constant("windows", ir::TensorData::from<int64_t>({count, size}, positions));
  // The window axis follows the axis it came from; it belongs behind all others.
  const TensorId windows = c.gather(base, index, a);
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != a + 1) permutation.push_back(i);
  permutation.push_back(a + 1);
  return c.made(c.transpose(windows, permutation));
}
Result<Value> diagonal(Call& c) {
  const int64_t rank = c.rank("self");
  ORKNN_TRY_ASSIGN(const size_t first, c.axis("dim1", rank));
  ORKNN_TRY_ASSIGN(const size_t second, c.axis("dim2", rank));
  if (rank < 2 || first == second) return invalid_model("a diagonal needs two axes");
  const int64_t offset = c.integer("offset"), rows = c.dims("self")[first], columns = c.dims("self")[second];
  if (offset < -rows || offset > columns) return c.fail("the diagonal lies outside of the matrix");
  const int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0),
                count = std::max<int64_t>(std::min(rows - row, columns - column), 0);
  if (count > (int64_t{1} << 24)) return c.fail("the diagonal is too long");
  // Both axes go to the end and become one, of which the diagonal is every (columns + 1)-th element.
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < rank; ++i)
    if (i != static_cast<int64_t>(first) && i != static_cast<int64_t>(second)) permutation.push_back(i);
  Dims shape;
  for (int64_t i : permutation) shape.push_back(c.dims("self")[static_cast<size_t>(i)]);
  shape.push_back(rows * columns);
  permutation.push_back(static_cast<int64_t>(first));
  permutation.push_back(static_cast<int64_t>(second));
  const TensorId flat = c.reshape(c.transpose(c.tensor("self"), permutation), shape);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back((row + i) * columns + column + i);
  return c.made(c.gather(flat, c.add_ints("diagonal", positions), rank - 2));
}
Result<Value> as_strided(Call& c) {
  const Dims dims = c.ints("size"), strides = c.ints("stride");
  TensorValue& self = c.handle("self");
  const int64_t offset = c.integer_or("offset", 0);
  if (dims.size() != strides.size()) return invalid_model("as_strided needs one stride per axis");
  if (!is_contiguous(self.dims, self.strides)) return c.fail("as_strided of a tensor that is not contiguous is not supported");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || strides[i] < 0 || strides[i] > (int64_t{1} << 34))
      return invalid_model("as_strided has impossible extents");
  const auto count = ir::checked_element_count(dims, int64_t{1} << 24);
  if (!count || offset < 0) return c.fail("as_strided makes too many elements");
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < *count; ++n) {
    int64_t rest = n, at = offset;
    for (size_t i = dims.size(); i-- > 0;) {
      at += rest % dims[i] * strides[i];
      rest /= dims[i];
    }
    if (at >= ir::element_count(self.dims)) return invalid_model("as_strided leaves its tensor");
    positions.push_back(at);
  }
  const TensorId index = c.add_constant("positions", ir::TensorData::from<int64_t>(dims, positions));
  return c.made(c.gather(c.reshape(self.id, {-1}), index, 0));
}

// --- copies and types
Result<Value> alias(Call& c) { return c.value("self"); }
Result<Value> copy(Call& c) { return c.copy_of(c.handle("self")); }
Result<Value> contiguous(Call& c) {
  return is_contiguous(c.dims("self"), c.handle("self").strides) ? Result<Value>(c.value("self")) : c.copy_of(c.handle("self"));
}
Result<Value> converted(Call& c, DType dtype) {
  TensorValue& self = c.handle("self");
  if (dtype == c.dtype("self")) return c.value("self");
  ORKNN_TRY_ASSIGN(const Value v, c.made(c.cast(self.id, dtype)));
  v.tensor().strides = self.strides;
  return v;
}
Result<Value> to(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, c.dtype_argument("dtype", c.dtype("self")));
  if (c.has("copy") && c.flag("copy") && dtype == c.dtype("self")) return c.copy_of(c.handle("self"));
  return converted(c, dtype);
}
Result<Value> to_other(Call& c) { return converted(c, c.dtype("other")); }
template <DType To>
Result<Value> cast(Call& c) {
  return converted(c, To);
}

Result<Value> write_copy(Call& c) {
  ORKNN_TRY(c.write(c.handle("self"), c.tensor("source")));
  return c.value("self");
}
Result<Value> copy_source(Call& c) { return c.made(c.expand(c.cast(c.tensor("source"), c.dtype("self")), c.dims("self"))); }
Result<Value> write_value(Call& c) {
  ORKNN_TRY(c.write(c.handle("self"), c.as(c.value("value"), c.dtype("self"))));
  return c.value("self");
}
Result<Value> write_zero(Call& c) {
  ORKNN_TRY(c.write(c.handle("self"), c.scalar(0, c.dtype("self"))));
  return c.value("self");
}
Result<Value> fill(Call& c) { return c.made(c.expand(c.as(c.value("value"), c.dtype("self")), c.dims("self"))); }

// In-place forms that change the shape of the tensor itself: it becomes a view of what it was.
template <Result<Value> (*View)(Call&)>
Result<Value> in_place(Call& c) {
  ORKNN_TRY_ASSIGN(const Value view, View(c));
  TensorValue& self = c.handle("self");
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
Result<Value> select_scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const Value whole, c.copy_of(c.handle("self")));
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return invalid_model("a tensor without axes has no elements to select");
  ORKNN_TRY_ASSIGN(const Value part, view_selected(c, whole.tensor(), axis, c.integer("index")));
  ORKNN_TRY(c.write(part.tensor(), c.tensor("src")));
  return whole;
}
Result<Value> slice_scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const Value part, slice(c));
  ORKNN_TRY_ASSIGN(const Value whole, c.copy_of(c.handle("self")));
  part.tensor().parent = &whole.tensor();
  part.tensor().parent_version = whole.tensor().version;
  ORKNN_TRY(c.write(part.tensor(), c.tensor("src")));
  return whole;
}
}  // namespace

std::span<const Row> shape_rows() {
  static constexpr Row kRows[] = {
      {"view(Tensor self, int[] shape)", reshape},
      {"reshape(Tensor self, int[] shape)", reshape},
      {"_unsafe_view(Tensor self, int[] shape)", reshape},
      {"view_copy(Tensor self, int[] shape)", reshape},
      {"_reshape_alias(Tensor self, int[] shape, any stride=None)", reshape},
      {"view_as(Tensor self, Tensor other)", view_as},
      {"reshape_as(Tensor self, Tensor other)", view_as},
      {"flatten(Tensor self, int start_dim=0, int end_dim=-1)", flatten},
      {"ravel(Tensor self)", ravel},
      {"unflatten(Tensor self, int dim, int[] sizes)", unflatten},
      {"unflatten(Tensor self, int dim, int[] sizes, any names)", unflatten},
      {"squeeze(Tensor self)", squeeze},
      {"squeeze(Tensor self, int dim)", squeeze_axes},
      {"squeeze(Tensor self, int[] dim)", squeeze_axes},
      {"squeeze_(Tensor self)", in_place<squeeze>},
      {"squeeze_(Tensor self, int dim)", in_place<squeeze_axes>},
      {"unsqueeze(Tensor self, int dim)", unsqueeze},
      {"unsqueeze_(Tensor self, int dim)", in_place<unsqueeze>},
      {"atleast_1d(Tensor self)", at_least_1d},
      {"atleast_2d(Tensor self)", at_least_2d},
      {"atleast_3d(Tensor self)", at_least_3d},
      {"permute(Tensor self, int[] dims)", permute},
      {"permute_copy(Tensor self, int[] dims)", permute},
      {"transpose(Tensor self, int dim0, int dim1)", transpose},
      {"transpose_(Tensor self, int dim0, int dim1)", in_place<transpose>},
      {"swapaxes(Tensor self, int dim0, int dim1)", transpose},
      {"swapdims(Tensor self, int dim0, int dim1)", transpose},
      {"t(Tensor self)", t},
      {"t_(Tensor self)", in_place<t>},
      {"numpy_T(Tensor self)", reversed_axes},
      {"mT(Tensor self)", matrix_transpose},
      {"mH(Tensor self)", matrix_transpose},
      {"adjoint(Tensor self)", matrix_transpose},
      {"adjoint(Tensor self)", matrix_transpose},
      {"prim::T(Tensor self)", reversed_axes},
      {"movedim(Tensor self, int[] source, int[] destination)", move_axes},
      {"moveaxis(Tensor self, int[] source, int[] destination)", move_axes},
      {"movedim(Tensor self, int source, int destination)", move_axes},
      {"moveaxis(Tensor self, int source, int destination)", move_axes},
      {"slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)", slice},
      {"slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)", slice},
      {"slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)", slice_scatter},
      {"narrow(Tensor self, int dim, int start, int length)", narrow},
      {"narrow_copy(Tensor self, int dim, int start, int length)", narrow},
      {"select(Tensor self, int dim, int index)", select},
      {"select(Tensor self, int dim, Tensor index)", select_computed},
      {"select_copy(Tensor self, int dim, int index)", select},
      {"select_scatter(Tensor self, Tensor src, int dim, int index)", select_scatter},
      {"split(Tensor self, int split_size, int dim=0)", split},
      {"split(Tensor self, int[] sizes, int dim=0)", split_with_sizes},
      {"unsafe_split(Tensor self, int split_size, int dim=0)", split},
      {"split_with_sizes(Tensor self, int[] sizes, int dim=0)", split_with_sizes},
      {"unsafe_split_with_sizes(Tensor self, int[] sizes, int dim=0)", split_with_sizes},
      {"chunk(Tensor self, int chunks, int dim=0)", chunk},
      {"unsafe_chunk(Tensor self, int chunks, int dim=0)", chunk},
      {"tensor_split(Tensor self, int sections, int dim=0)", tensor_split},
      {"tensor_split(Tensor self, int[] indices, int dim=0)", tensor_split_at},
      {"vsplit(Tensor self, int sections, int dim=0)", tensor_split},
      {"vsplit(Tensor self, int[] indices, int dim=0)", tensor_split_at},
      {"hsplit(Tensor self, int sections, int dim=1)", tensor_split},
      {"hsplit(Tensor self, int[] indices, int dim=1)", tensor_split_at},
      {"dsplit(Tensor self, int sections, int dim=2)", tensor_split},
      {"dsplit(Tensor self, int[] indices, int dim=2)", tensor_split_at},
      {"unbind(Tensor self, int dim=0)", unbind},
      {"expand(Tensor self, int[] size, *, bool implicit=False)", expand},
      {"broadcast_to(Tensor self, int[] size)", expand},
      {"expand_copy(Tensor self, int[] size, *, bool implicit=False)", expand},
      {"expand_as(Tensor self, Tensor other)", expand_as},
      {"broadcast_tensors(Tensor[] tensors)", broadcast_tensors},
      {"unfold(Tensor self, int dimension, int size, int step)", unfold},
      {"diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal},
      {"linalg_diagonal(Tensor self, *, int offset=0, int dim1=-2, int dim2=-1)", diagonal},
      {"as_strided(Tensor self, int[] size, int[] stride, int? offset=None)", as_strided},
      {"alias(Tensor self)", alias},
      {"detach(Tensor self)", alias},
      {"detach_(Tensor self)", alias},
      {"requires_grad_(Tensor self, bool requires_grad=True)", alias},
      {"lift_fresh(Tensor self)", alias},
      {"lift(Tensor self)", alias},
      {"lift_fresh_copy(Tensor self)", copy},
      {"resolve_conj(Tensor self)", alias},
      {"resolve_neg(Tensor self)", alias},
      {"conj(Tensor self)", alias},
      {"real(Tensor self)", alias},
      {"positive(Tensor self)", alias},
      {"pin_memory(Tensor self, any device=None)", alias},
      {"cpu(Tensor self)", alias},
      {"cuda(Tensor self)", alias},
      {"numpy(Tensor self)", alias},
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
      {"float(Tensor self)", cast<DType::Float32>},
      {"double(Tensor self)", cast<DType::Float64>},
      {"half(Tensor self)", cast<DType::Float16>},
      {"bfloat16(Tensor self)", cast<DType::BFloat16>},
      {"int(Tensor self)", cast<DType::Int32>},
      {"long(Tensor self)", cast<DType::Int64>},
      {"short(Tensor self)", cast<DType::Int16>},
      {"char(Tensor self)", cast<DType::Int8>},
      {"byte(Tensor self)", cast<DType::UInt8>},
      {"bool(Tensor self)", cast<DType::Bool>},
      {"_cast_Float(Tensor self, any non_blocking=None)", cast<DType::Float32>},
      {"_cast_Long(Tensor self, any non_blocking=None)", cast<DType::Int64>},
      {"_cast_Int(Tensor self, any non_blocking=None)", cast<DType::Int32>},
      {"_cast_Double(Tensor self, any non_blocking=None)", cast<DType::Float64>},
      {"_cast_Half(Tensor self, any non_blocking=None)", cast<DType::Float16>},
      {"_autocast_to_full_precision(Tensor self, any cuda=None, any cpu=None)", alias},
      {"_autocast_to_reduced_precision(Tensor self, any cuda=None, any cpu=None, any a=None, any b=None)", alias},
      {"copy_(Tensor self, Tensor source, any non_blocking=None)", write_copy},
      {"copy(Tensor self, Tensor source, any non_blocking=None)", copy_source},
      {"fill_(Tensor self, operand value)", write_value},
      {"zero_(Tensor self)", write_zero},
      {"fill(Tensor self, operand value)", fill},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
