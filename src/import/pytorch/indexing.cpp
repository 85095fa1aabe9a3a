// Reading and writing elements by index, sorting, embeddings.
#include <limits>
#include <numeric>

#include "import/lower/quantile.h"
#include "import/pytorch/operators.h"
#include "import/pytorch/views.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// x[i, :, j]: which axes are indexed by what.
struct Index {
  std::vector<int64_t> axes;      // indexed axes, ascending
  std::vector<TensorId> tensors;  // int64, broadcast against each other
  Dims shape;                     // their common shape
  TensorId mask;                  // instead of all that: one mask over the first axes whose contents are not known
};

// A constant mask is the list of positions where it is true, one index per axis.
void add_mask_positions(Call& c, const ir::TensorData& mask, int64_t first_axis, Index& index) {
  const auto values = ir::to_ints(mask.view());
  const Dims& dims = mask.dims();
  std::vector<std::vector<int64_t>> positions(dims.size());
  for (size_t n = 0; n < values.size(); ++n) {
    if (values[n] == 0) continue;
    int64_t rest = static_cast<int64_t>(n);
    for (size_t i = dims.size(); i-- > 0;) {
      positions[i].push_back(rest % dims[i]);
      rest /= dims[i];
    }
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    index.axes.push_back(first_axis + static_cast<int64_t>(i));
    index.tensors.push_back(c.add_ints("positions", positions[i]));
  }
}

Result<Index> read_index(Call& c) {
  Index index;
  int64_t axis = 0;
  const auto& items = c.items("indices");
  for (const Value& v : items) {
    if (v.is_none()) {
      ++axis;
      continue;
    }
    TensorValue& t = v.tensor();
    const DType dtype = c.dtype_of(t.id);
    if (dtype == DType::Bool || dtype == DType::UInt8) {
      const int64_t rank = static_cast<int64_t>(t.dims.size());
      if (rank > c.rank() - axis || !std::equal(t.dims.begin(), t.dims.end(), c.dims().begin() + axis))
        return invalid_model("a mask does not fit the tensor").found(ir::to_string(t.dims));
      if (const ir::TensorData* mask = c.constant_of(t.id)) {
        add_mask_positions(c, *mask, axis, index);
      } else if (axis == 0 && items.size() == 1) {
        index.mask = c.cast(t.id, DType::Bool);
        return index;
      } else {
        return unsupported("a mask whose contents are not known while importing cannot be combined with other indices");
      }
      axis += rank;
      continue;
    }
    ORKNN_TRY_ASSIGN(const TensorId id, c.as_index(t));
    index.axes.push_back(axis++);
    index.tensors.push_back(id);
  }
  if (axis > c.rank()) return invalid_model("there are more indices than axes");
  for (TensorId t : index.tensors) {
    const auto dims = c.dims_of(t);
    if (!dims) return unsupported("the shape of an index is not known");
    ORKNN_TRY_ASSIGN(index.shape, ir::broadcast(index.shape, *dims));
  }
  return index;
}

// Index tuples as the last axis of one tensor.
TensorId tuples(Call& c, const Index& index) {
  std::vector<TensorId> parts;
  for (TensorId t : index.tensors) parts.push_back(c.unsqueeze(c.expand(t, index.shape), {-1}));
  return c.concat(std::move(parts), static_cast<int64_t>(index.shape.size()));
}

bool are_adjacent(const Index& index) {
  return index.axes.back() - index.axes.front() + 1 == static_cast<int64_t>(index.axes.size());
}

// The indexed axes first, then the others.
std::vector<int64_t> indexed_first(const Index& index, int64_t rank) {
  std::vector<int64_t> permutation = index.axes;
  for (int64_t i = 0; i < rank; ++i)
    if (std::ranges::find(index.axes, i) == index.axes.end()) permutation.push_back(i);
  return permutation;
}

Status unknown_mask() {
  return unsupported("the shape of the result depends on a mask that is only known when the network runs")
      .hint("use torch.where or masked_fill instead of selecting by a mask");
}

Output index(Call& c) {
  ORKNN_TRY_ASSIGN(const Index index, read_index(c));
  if (index.mask) return unknown_mask();
  if (index.axes.empty()) return c.copy_of();
  if (index.axes.size() == 1) return c.gather(c.tensor("self"), index.tensors[0], index.axes[0]);
  const int64_t rank = c.rank();
  const TensorId picked = c.emit("GatherND", {c.transpose(c.tensor("self"), indexed_first(index, rank)), tuples(c, index)});
  if (!are_adjacent(index) || index.axes.front() == 0) return picked;
  // Adjacent indices leave their axes where they were.
  const int64_t made = static_cast<int64_t>(index.shape.size()), before = index.axes.front();
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < before; ++i) permutation.push_back(made + i);
  for (int64_t i = 0; i < made; ++i) permutation.push_back(i);
  for (int64_t i = made + before; i < made + rank - static_cast<int64_t>(index.axes.size()); ++i) permutation.push_back(i);
  return c.transpose(picked, permutation);
}

Result<TensorId> index_put(Call& c) {
  ORKNN_TRY_ASSIGN(const Index index, read_index(c));
  const DType t = c.dtype();
  const TensorId values = c.cast(c.tensor("values"), t);
  if (index.mask) {
    if (ir::element_count(c.dims("values")) != 1)
      return unsupported("values written under a mask must be a single one").hint("use torch.where instead");
    const auto mask_dims = c.dims_of(index.mask);
    Dims shape = *mask_dims;
    shape.resize(static_cast<size_t>(c.rank()), 1);
    const TensorId one = c.reshape(values, {});
    return c.where(c.reshape(index.mask, shape), c.flag("accumulate") ? c.add(c.tensor("self"), one) : one, c.tensor("self"));
  }
  if (index.axes.empty()) return c.expand(values, c.dims());
  const int64_t rank = c.rank();
  const std::vector<int64_t> permutation = indexed_first(index, rank);
  // Values have the shape of x[indices]; in our order the index axes come first.
  Dims picked = index.shape, shown;
  std::vector<int64_t> to_ours;
  const int64_t made = static_cast<int64_t>(index.shape.size()), before = are_adjacent(index) ? index.axes.front() : 0;
  const int64_t others = rank - static_cast<int64_t>(index.axes.size());
  for (size_t i = index.axes.size(); i < permutation.size(); ++i) picked.push_back(c.dims()[permutation[i]]);
  for (int64_t i = 0; i < before; ++i) shown.push_back(picked[made + i]);
  shown.insert(shown.end(), index.shape.begin(), index.shape.end());
  for (int64_t i = made + before; i < made + others; ++i) shown.push_back(picked[i]);
  for (int64_t i = 0; i < made; ++i) to_ours.push_back(before + i);
  for (int64_t i = 0; i < before; ++i) to_ours.push_back(i);
  for (int64_t i = made + before; i < made + others; ++i) to_ours.push_back(i);
  const TensorId updates = c.transpose(c.expand(values, shown), to_ours);
  const TensorId written = c.emit("ScatterND", {c.transpose(c.tensor("self"), permutation), tuples(c, index), updates},
                                  {{"reduction", std::string(c.flag("accumulate") ? "add" : "none")}});
  return c.transpose(written, inverse_of(permutation));
}

Output index_select(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  if (c.rank() == 0) return c.copy_of();
  return c.gather(c.tensor("self"), c.reshape(index, {-1}), axis);
}
Result<TensorId> take(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  return c.gather(c.reshape(x, {-1}), index, 0);
}

// Elements of the tensor, counted from its first, replaced or added to.
Result<TensorId> put(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  const TensorId written =
      c.emit("ScatterElements", {c.reshape(x, {-1}), c.reshape(index, {-1}), c.reshape(c.as("source", c.dtype()), {-1})},
             {{"axis", int64_t{0}}, {"reduction", std::string(c.flag("accumulate") ? "add" : "none")}});
  return c.reshape(written, c.dims());
}

// The axis and the index of operators that need an index of the tensor's rank.
struct IndexAlong {
  int64_t axis;
  TensorId index;
};
Result<IndexAlong> index_along(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  if (c.rank() == 0 || c.rank("index") != c.rank()) return invalid_model(c.op() + " needs an index of the tensor's rank");
  return IndexAlong{axis, index};
}
// The index may be smaller than the tensor along the other axes: only that part is looked at.
TensorId covered_part(Call& c, TensorId x, const Dims& dims, const Dims& index, size_t except) {
  for (size_t i = 0; i < dims.size() && i < index.size(); ++i)
    if (i != except && index[i] < dims[i]) x = c.slice(x, static_cast<int64_t>(i), 0, index[i]);
  return x;
}
Output gather(Call& c) {
  if (c.rank() == 0) return c.copy_of();
  ORKNN_TRY_ASSIGN(const IndexAlong a, index_along(c));
  const TensorId part = covered_part(c, c.tensor("self"), c.dims(), c.dims("index"), static_cast<size_t>(a.axis));
  return c.gather_elements(part, a.index, a.axis);
}
Result<TensorId> take_along_dim(Call& c, TensorId x) {
  if (!c.has("dim")) {
    ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
    return c.gather(c.reshape(x, {-1}), c.reshape(index, {-1}), 0);
  }
  ORKNN_TRY_ASSIGN(const IndexAlong a, index_along(c));
  Dims wide_self = c.dims(), wide_index = c.dims("index");
  for (size_t i = 0; i < wide_self.size(); ++i)
    if (static_cast<int64_t>(i) != a.axis) wide_self[i] = wide_index[i] = std::max(wide_self[i], wide_index[i]);
  x = c.expand(x, wide_self);
  return c.gather_elements(x, c.expand(a.index, wide_index), a.axis);
}

Result<TensorId> scattered(Call& c, TensorId target, TensorId source, const std::string& reduction) {
  ORKNN_TRY_ASSIGN(const IndexAlong a, index_along(c));
  const auto dims = c.dims_of(source);
  if (!dims) return unsupported("the shape of the source is not known");
  source = dims->empty() ? c.expand(source, c.dims("index")) : covered_part(c, source, *dims, c.dims("index"), dims->size());
  return c.emit("ScatterElements", {target, a.index, source}, {{"axis", a.axis}, {"reduction", reduction}});
}
Result<std::string> reduction_of(Call& c) {
  if (!c.has("reduce")) return std::string("none");
  static constexpr std::string_view kNames[][2] = {{"add", "add"},  {"sum", "add"},  {"multiply", "mul"}, {"prod", "mul"},
                                                   {"amax", "max"}, {"amin", "min"}, {"mean", "add"}};
  for (const auto& [name, ours] : kNames)
    if (c.text("reduce") == name) return std::string(ours);
  return unsupported("reduction '" + std::string(c.text("reduce")) + "' is not supported");
}
Result<TensorId> scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const std::string reduction, reduction_of(c));
  return scattered(c, c.tensor("self"), c.as("src", c.dtype()), reduction);
}
Result<TensorId> scatter_add(Call& c) { return scattered(c, c.tensor("self"), c.as("src", c.dtype()), "add"); }

// What takes part in a reduction without changing it.
double neutral_value(const std::string& reduction, DType t) {
  if (reduction == "add") return 0;
  if (reduction == "mul") return 1;
  const bool is_largest = reduction == "max";
  if (is_float(t)) return is_largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return is_largest ? static_cast<double>(dtype_min(t)) : static_cast<double>(dtype_max(t));
}
Result<TensorId> scatter_reduced(Call& c, int64_t axis, TensorId index, TensorId source) {
  const DType t = c.dtype();
  const bool is_mean = c.text("reduce") == "mean", include_self = c.flag("include_self");
  ORKNN_TRY_ASSIGN(const std::string reduction, reduction_of(c));
  const auto dims = c.dims_of(index);
  if (!dims) return unsupported("the shape of the index is not known");
  const auto onto = [&](TensorId target, TensorId values, const std::string& how) {
    return c.emit("ScatterElements", {target, index, values}, {{"axis", axis}, {"reduction", how}});
  };
  // Places that are written begin without their own value when that does not count.
  TensorId target = c.tensor("self");
  if (!include_self) target = onto(target, c.full(*dims, neutral_value(reduction, t), t), "none");
  const TensorId total = onto(target, source, reduction);
  if (!is_mean) return total;
  if (!is_float(t)) return unsupported("the mean of integers is not supported");
  const TensorId counted = onto(c.full(c.dims(), include_self ? 1 : 0, t), c.full(*dims, 1, t), "add");
  return c.div(total, c.binary("Max", counted, c.scalar(1, t)));
}
Result<TensorId> scatter_reduce(Call& c) {
  ORKNN_TRY_ASSIGN(const IndexAlong a, index_along(c));
  const Dims& dims = c.dims("src");
  return scatter_reduced(c, a.axis, a.index, covered_part(c, c.as("src", c.dtype()), dims, c.dims("index"), dims.size()));
}

// Rows of an axis replaced or added to.
Result<TensorId> index_write(Call& c, TensorId source, bool add) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  if (c.rank() == 0) return unsupported("a tensor without axes has no rows");
  Dims rows = c.dims();
  rows[axis] = ir::element_count(c.dims("index"));
  source = c.expand(source, rows);
  ORKNN_TRY_ASSIGN(auto permutation, Emitter::axes_of({}, c.rank()));
  std::rotate(permutation.begin(), permutation.begin() + axis, permutation.begin() + axis + 1);
  const TensorId written = c.emit(
      "ScatterND", {c.transpose(c.tensor("self"), permutation), c.reshape(index, {-1, 1}), c.transpose(source, permutation)},
      {{"reduction", std::string(add ? "add" : "none")}});
  return c.transpose(written, inverse_of(permutation));
}
Result<TensorId> index_copy(Call& c) { return index_write(c, c.as("source", c.dtype()), false); }
Result<TensorId> index_fill(Call& c) { return index_write(c, c.as("value", c.dtype()), false); }
Result<TensorId> index_add(Call& c) {
  TensorId source = c.as("source", c.dtype());
  if (c.number("alpha") != 1) source = c.mul(source, c.as("alpha", c.dtype()));
  return index_write(c, source, true);
}

// Rows of an axis reduced with those of `source`.
Result<TensorId> index_reduce(Call& c) {
  if (c.rank() == 0) return unsupported("a tensor without axes has no rows");
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("index"));
  Dims along(static_cast<size_t>(c.rank()), 1);
  along[axis] = ir::element_count(c.dims("index"));
  return scatter_reduced(c, axis, c.expand(c.reshape(index, along), c.dims("source")), c.as("source", c.dtype()));
}

Result<TensorId> masked_select(Call& c, TensorId x, TensorId mask) {
  if (!c.constant_of(mask)) return unknown_mask();
  ORKNN_TRY_ASSIGN(const Dims dims, ir::broadcast(c.dims(), c.dims("mask")));
  const ir::TensorData* known = c.constant_of(c.expand(mask, dims));
  if (!known) return unsupported("the mask is too large");
  std::vector<int64_t> positions;
  const auto values = ir::to_ints(known->view());
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) positions.push_back(static_cast<int64_t>(i));
  return c.gather(c.reshape(c.expand(x, dims), {-1}), c.add_ints("positions", positions), 0);
}
// The elements of `source`, one after the other, where the mask is set.
Output masked_scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const Dims dims, ir::broadcast(c.dims(), c.dims("mask")));
  ORKNN_TRY_ASSIGN(TensorId mask, c.as_bool("mask"));
  const int64_t count = ir::element_count(c.dims("source"));
  if (count == 0) return c.copy_of();
  mask = c.expand(mask, dims);
  const TensorId flat = c.cast(c.reshape(mask, {-1}), DType::Int64);
  const TensorId place = c.with_scalar("Max", c.sub(c.binary("CumSum", flat, c.add_int_scalar("axis", 0)), 1), 0);
  const TensorId source = c.cast(c.reshape(c.tensor("source"), {-1}), c.dtype());
  const TensorId taken = c.gather(source, c.binary("Min", place, c.int_scalar(count - 1)), 0);
  return c.where(mask, c.reshape(taken, dims), c.expand(c.tensor("self"), dims));
}
TensorId nonzero(Call& c, TensorId x) { return c.transpose(c.unary("NonZero", x), {1, 0}); }
Result<Value> nonzero_numpy(Call& c) {
  const TensorId all = c.unary("NonZero", c.tensor("self"));
  std::vector<Value> list;
  for (int64_t i = 0; i < std::max<int64_t>(c.rank(), 1); ++i) {
    ORKNN_TRY_ASSIGN(const Value v, c.made(c.gather(all, c.int_scalar(i), 0)));
    list.push_back(v);
  }
  return c.list(std::move(list));
}

// --- sorting: values and positions
using ValuesAndPlaces = std::vector<TensorId>;
ValuesAndPlaces top(Call& c, int64_t axis, int64_t count, bool largest) {
  TensorId x = c.tensor("self");
  if (c.rank() == 0) return {x, c.int_scalar(0)};
  const bool is_bool = c.dtype() == DType::Bool;
  if (is_bool) x = c.cast(x, DType::Int32);
  ValuesAndPlaces results = c.emit_all("TopK", {x, c.add_ints("k", {count})},
                                       {{"axis", axis}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}}, 2);
  if (is_bool) results[0] = c.cast(results[0], DType::Bool);
  return results;
}
Result<ValuesAndPlaces> topk(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  const int64_t k = c.integer("k");
  if (c.rank() > 0 && (k < 0 || k > c.dims()[axis]))
    return invalid_model("topk asks for more elements than there are").found(std::to_string(k));
  return top(c, axis, k, c.flag("largest"));
}
Result<ValuesAndPlaces> sort(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return top(c, axis, c.rank() == 0 ? 1 : c.dims()[axis], c.flag("descending"));
}
Result<TensorId> argsort(Call& c) {
  ORKNN_TRY_ASSIGN(const ValuesAndPlaces results, sort(c));
  return results[1];
}
TensorId msort(Call& c) { return top(c, 0, c.rank() == 0 ? 1 : c.dims()[0], false)[0]; }
Result<ValuesAndPlaces> kthvalue(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  const int64_t k = c.integer("k");
  if (c.rank() == 0 || k < 1 || k > c.dims()[axis])
    return invalid_model("kthvalue: k is not between 1 and the number of elements");
  const Ranked found = nth_smallest(c, c.tensor("self"), axis, k - 1);
  if (c.flag("keepdim")) return ValuesAndPlaces{found.value, found.place};
  return ValuesAndPlaces{c.squeeze(found.value, {axis}), c.squeeze(found.place, {axis})};
}
// How many boundaries lie below each value.
TensorId bucketize(Call& c) {
  const std::string_view boundaries = c.op() == "bucketize" ? "boundaries" : "sorted_sequence";
  const bool has_rows = c.rank(boundaries) > 1;  // one list per row of values
  const TensorId x = c.unsqueeze(c.as("self", DType::Float32), {-1}), all = c.as(boundaries, DType::Float32);
  const TensorId below = c.binary(c.flag("right") ? "LessOrEqual" : "Less", has_rows ? c.unsqueeze(all, {-2}) : all, x);
  const TensorId count = c.reduce("ReduceSum", c.cast(below, DType::Int64), {-1}, false);
  return c.flag("out_int32") ? c.cast(count, DType::Int32) : count;
}

// --- embeddings
Result<TensorId> embedding(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("indices"));
  return c.gather(c.tensor("weight"), index, 0);
}
Result<TensorId> one_hot(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("self"));
  int64_t classes = c.integer("num_classes");
  if (classes < 0) {
    ORKNN_TRY_ASSIGN(const auto values, c.need_ints(index, "to count the classes of one_hot; give num_classes"));
    classes = values.empty() ? 1 : *std::ranges::max_element(values) + 1;
  }
  return c.emit("OneHot", {index, c.int_scalar(classes), c.add_ints("values", {0, 1})});
}
// Bags given as constant offsets into a list.
Result<TensorId> embedding_bag(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("indices"));
  const int64_t mode = c.integer("mode");
  if (c.rank("indices") != 1) return unsupported("embedding_bag needs a list of indices");
  if (c.integer_or("padding_idx", -1) >= 0) return unsupported("embedding_bag that leaves out padding is not supported");
  ORKNN_TRY_ASSIGN(auto offsets, c.need_ints(c.tensor("offsets"), "to find the bags"));
  const int64_t count = c.dims("indices")[0];
  if (!c.flag("include_last_offset")) offsets.push_back(count);
  std::vector<TensorId> bags;
  TensorId rows = c.gather(c.tensor("weight"), index, 0);
  if (c.has("per_sample_weights")) rows = c.mul(rows, c.unsqueeze(c.tensor("per_sample_weights"), {-1}));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > count)
      return invalid_model("the offsets of embedding_bag do not fit its indices");
    const TensorId bag = c.slice(rows, 0, offsets[i], offsets[i + 1]);
    bags.push_back(c.reduce(mode == 0 ? "ReduceSum" : mode == 1 ? "ReduceMean" : "ReduceMax", bag, {0}, true));
  }
  if (bags.empty()) return unsupported("embedding_bag has no bags");
  return c.concat(std::move(bags), 0);
}
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"index|_unsafe_index(Tensor self, Tensor[] indices)", index},
      {"index_put(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)", index_put},
      {"_index_put_impl_(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False, bool unsafe=False)", index_put},
      {"index_select(Tensor self, int dim, Tensor index)", index_select},
      {"take(Tensor self, Tensor index)", take},
      {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False)", put},
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)", gather},
      {"take_along_dim(Tensor self, Tensor index, int? dim=None)", take_along_dim},
      {"scatter(Tensor self, int dim, Tensor index, operand src, *, str? reduce=None)", scatter},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src)", scatter_add},
      {"scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)", scatter_reduce},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source)", index_copy},
      {"index_fill(Tensor self, int dim, Tensor index, operand value)", index_fill},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", index_add},
      {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)", index_reduce},
      {"masked_select(Tensor self, Tensor mask)", masked_select},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source)", masked_scatter},
      {"nonzero|argwhere(Tensor self)", nonzero},
      {"nonzero_numpy(Tensor self)", nonzero_numpy},
      {"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)", topk},
      {"sort(Tensor self, int dim=-1, bool descending=False)", sort},
      {"sort(Tensor self, *, bool? stable, int dim=-1, bool descending=False)", sort},
      {"argsort(Tensor self, int dim=-1, bool descending=False)", argsort},
      {"argsort(Tensor self, *, bool stable, int dim=-1, bool descending=False)", argsort},
      {"msort(Tensor self)", msort},
      {"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)", kthvalue},
      {"bucketize(operand self, Tensor boundaries, *, bool out_int32=False, bool right=False)", bucketize},
      {"searchsorted(Tensor sorted_sequence, operand self, *, bool out_int32=False, bool right=False, any side=None, any "
       "sorter=None)",
       bucketize},
      {"embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
       embedding},
      {"one_hot(Tensor self, int num_classes=-1)", one_hot},
      {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, "
       "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)",
       with_unused<embedding_bag, 3>},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
