// Reading and writing elements by index, sorting, embeddings.
#include <limits>
#include <numeric>

#include "import/pytorch/ops.h"

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
Status add_mask_positions(Call& c, const ir::TensorData& mask, int64_t first_axis, Index& index) {
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
  return {};
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
      if (rank > c.rank("self") - axis || !std::equal(t.dims.begin(), t.dims.end(), c.dims("self").begin() + axis))
        return invalid_model("a mask does not fit the tensor").found(ir::to_string(t.dims));
      if (const ir::TensorData* mask = c.constant_of(t.id)) {
        ORKNN_TRY(add_mask_positions(c, *mask, axis, index));
      } else if (axis == 0 && items.size() == 1) {
        index.mask = c.cast(t.id, DType::Bool);
        return index;
      } else {
        return c.fail("a mask whose contents are not known while importing cannot be combined with other indices");
      }
      axis += rank;
      continue;
    }
    ORKNN_TRY_ASSIGN(const TensorId id, c.as_index(t));
    index.axes.push_back(axis++);
    index.tensors.push_back(id);
  }
  if (axis > c.rank("self")) return invalid_model("there are more indices than axes");
  for (TensorId t : index.tensors) {
    const auto dims = c.dims_of(t);
    if (!dims) return c.fail("the shape of an index is not known");
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

// The indexed axes first, the others behind.
std::vector<int64_t> indexed_first(const Index& index, int64_t rank) {
  std::vector<int64_t> permutation = index.axes;
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(index.axes.begin(), index.axes.end(), i) == index.axes.end()) permutation.push_back(i);
  return permutation;
}
std::vector<int64_t> inverse_of(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

Result<Value> index(Call& c) {
  ORKNN_TRY_ASSIGN(const Index index, read_index(c));
  if (index.mask)
    return c.fail("the shape of the result depends on a mask that is only known when the network runs")
        .hint("use torch.where or masked_fill instead of selecting by a mask");
  if (index.axes.empty()) return c.copy_of(c.handle("self"));
  if (index.axes.size() == 1) return c.made(c.gather(c.tensor("self"), index.tensors[0], index.axes[0]));
  const int64_t rank = c.rank("self");
  const TensorId picked = c.emit("GatherND", {c.transpose(c.tensor("self"), indexed_first(index, rank)), tuples(c, index)});
  if (!are_adjacent(index) || index.axes.front() == 0) return c.made(picked);
  // Adjacent indices leave their axes where they were.
  const int64_t made = static_cast<int64_t>(index.shape.size()), before = index.axes.front();
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < before; ++i) permutation.push_back(made + i);
  for (int64_t i = 0; i < made; ++i) permutation.push_back(i);
  for (int64_t i = made + before; i < made + rank - static_cast<int64_t>(index.axes.size()); ++i) permutation.push_back(i);
  return c.made(c.transpose(picked, permutation));
}

Result<Value> index_put(Call& c) {
  ORKNN_TRY_ASSIGN(const Index index, read_index(c));
  const DType t = c.dtype("self");
  const TensorId values = c.cast(c.tensor("values"), t);
  if (index.mask) {
    if (ir::element_count(c.dims("values")) != 1)
      return c.fail("values written under a mask must be a single one").hint("use torch.where instead");
    const auto mask_dims = c.dims_of(index.mask);
    Dims shape = *mask_dims;
    shape.resize(static_cast<size_t>(c.rank("self")), 1);
    const TensorId one = c.reshape(values, {});
    return c.made(
        c.where(c.reshape(index.mask, shape), c.flag("accumulate") ? c.add(c.tensor("self"), one) : one, c.tensor("self")));
  }
  if (index.axes.empty()) return c.made(c.expand(values, c.dims("self")));
  const int64_t rank = c.rank("self");
  const std::vector<int64_t> permutation = indexed_first(index, rank);
  // Values have the shape of x[indices]; in our order the index axes come first.
  Dims picked = index.shape, shown;
  std::vector<int64_t> to_ours;
  const int64_t made = static_cast<int64_t>(index.shape.size()), before = are_adjacent(index) ? index.axes.front() : 0;
  const int64_t others = rank - static_cast<int64_t>(index.axes.size());
  for (size_t i = index.axes.size(); i < permutation.size(); ++i)
    picked.push_back(c.dims("self")[static_cast<size_t>(permutation[i])]);
  for (int64_t i = 0; i < before; ++i) shown.push_back(picked[static_cast<size_t>(made + i)]);
  shown.insert(shown.end(), index.shape.begin(), index.shape.end());
  for (int64_t i = made + before; i < made + others; ++i) shown.push_back(picked[static_cast<size_t>(i)]);
  for (int64_t i = 0; i < made; ++i) to_ours.push_back(before + i);
  for (int64_t i = 0; i < before; ++i) to_ours.push_back(i);
  for (int64_t i = made + before; i < made + others; ++i) to_ours.push_back(i);
  const TensorId updates = c.transpose(c.expand(values, shown), to_ours);
  const TensorId written = c.emit("ScatterND", {c.transpose(c.tensor("self"), permutation), tuples(c, index), updates},
                                  {{"reduction", std::string(c.flag("accumulate") ? "add" : "none")}});
  return c.made(c.transpose(written, inverse_of(permutation)));
}

Result<Value> index_select(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  if (c.rank("self") == 0) return c.copy_of(c.handle("self"));
  return c.made(c.gather(c.tensor("self"), c.reshape(index, {-1}), static_cast<int64_t>(axis)));
}
Result<Value> take(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  return c.made(c.gather(c.reshape(c.tensor("self"), {-1}), index, 0));
}

// The index may be smaller than the tensor along the other axes: only that part is looked at.
TensorId covered_part(Call& c, TensorId x, const Dims& dims, const Dims& index, size_t except) {
  for (size_t i = 0; i < dims.size() && i < index.size(); ++i)
    if (i != except && index[i] < dims[i]) x = c.slice(x, static_cast<int64_t>(i), 0, index[i]);
  return x;
}
Result<Value> gather(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  if (c.rank("self") == 0 || c.rank("index") != c.rank("self"))
    return c.rank("self") == 0 ? c.copy_of(c.handle("self"))
                               : Result<Value>(invalid_model("gather needs an index of the tensor's rank"));
  const TensorId part = covered_part(c, c.tensor("self"), c.dims("self"), c.dims("index"), axis);
  return c.made(c.emit("GatherElements", {part, index}, {{"axis", static_cast<int64_t>(axis)}}));
}
Result<Value> take_along_dim(Call& c) {
  ORKNN_TRY_ASSIGN(TensorId index, c.as_index(c.handle("index")));
  if (!c.has("dim")) return c.made(c.gather(c.reshape(c.tensor("self"), {-1}), c.reshape(index, {-1}), 0));
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("index") != c.rank("self") || c.rank("self") == 0)
    return invalid_model("take_along_dim needs an index of the tensor's rank");
  Dims wide_self = c.dims("self"), wide_index = c.dims("index");
  for (size_t i = 0; i < wide_self.size(); ++i) {
    if (i == axis) continue;
    wide_self[i] = wide_index[i] = std::max(wide_self[i], wide_index[i]);
  }
  return c.made(c.emit("GatherElements", {c.expand(c.tensor("self"), wide_self), c.expand(index, wide_index)},
                       {{"axis", static_cast<int64_t>(axis)}}));
}

Result<Value> scattered(Call& c, TensorId target, TensorId source, const std::string& reduction) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  if (c.rank("self") == 0 || c.rank("index") != c.rank("self"))
    return invalid_model("scatter needs an index of the tensor's rank");
  const auto dims = c.dims_of(source);
  if (!dims) return c.fail("the shape of the source is not known");
  if (dims->empty())
    source = c.expand(source, c.dims("index"));
  else
    source = covered_part(c, source, *dims, c.dims("index"), dims->size());
  return c.made(
      c.emit("ScatterElements", {target, index, source}, {{"axis", static_cast<int64_t>(axis)}, {"reduction", reduction}}));
}
Result<std::string> reduction_of(Call& c) {
  if (!c.has("reduce")) return std::string("none");
  const std::string_view name = c.text("reduce");
  if (name == "add" || name == "sum") return std::string("add");
  if (name == "multiply" || name == "prod") return std::string("mul");
  if (name == "amax") return std::string("max");
  if (name == "amin") return std::string("min");
  return c.fail("reduction '" + std::string(name) + "' is not supported");
}
Result<Value> scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const std::string reduction, reduction_of(c));
  return scattered(c, c.tensor("self"), c.as(c.value("src"), c.dtype("self")), reduction);
}
Result<Value> scatter_add(Call& c) { return scattered(c, c.tensor("self"), c.cast(c.tensor("src"), c.dtype("self")), "add"); }

// What takes part in a reduction without changing it.
double neutral_value(const std::string& reduction, DType t) {
  if (reduction == "add") return 0;
  if (reduction == "mul") return 1;
  const bool is_largest = reduction == "max";
  if (is_float(t)) return is_largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return is_largest ? static_cast<double>(dtype_min(t)) : static_cast<double>(dtype_max(t));
}
Result<Value> scatter_reduce(Call& c) {
  const DType t = c.dtype("self");
  const bool is_mean = c.text("reduce") == "mean", include_self = c.flag("include_self");
  std::string reduction = "add";
  if (!is_mean) {
    ORKNN_TRY_ASSIGN(reduction, reduction_of(c));
  }
  // Places that are written begin without their own value when that does not count.
  TensorId target = c.tensor("self");
  if (!include_self) {
    ORKNN_TRY_ASSIGN(const Value cleared, scattered(c, target, c.scalar(neutral_value(reduction, t), t), "none"));
    target = cleared.tensor().id;
  }
  ORKNN_TRY_ASSIGN(const Value total, scattered(c, target, c.cast(c.tensor("src"), t), reduction));
  if (!is_mean) return total;
  if (!is_float(t)) return c.fail("the mean of integers is not supported by scatter_reduce");
  const TensorId one = c.scalar(1, t);
  ORKNN_TRY_ASSIGN(const Value counted, scattered(c, c.full(c.dims("self"), include_self ? 1 : 0, t), one, "add"));
  return c.made(c.div(total.tensor().id, c.emit("Max", {counted.tensor().id, one})));
}

// Rows of an axis replaced or added to.
Result<Value> index_write(Call& c, TensorId source, bool add) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("index")));
  if (c.rank("self") == 0) return c.fail("a tensor without axes has no rows");
  Dims rows = c.dims("self");
  rows[axis] = ir::element_count(c.dims("index"));
  source = c.expand(source, rows);
  std::vector<int64_t> permutation(rows.size());
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  permutation.erase(permutation.begin() + static_cast<ptrdiff_t>(axis));
  permutation.insert(permutation.begin(), static_cast<int64_t>(axis));
  const TensorId written = c.emit(
      "ScatterND", {c.transpose(c.tensor("self"), permutation), c.reshape(index, {-1, 1}), c.transpose(source, permutation)},
      {{"reduction", std::string(add ? "add" : "none")}});
  return c.made(c.transpose(written, inverse_of(permutation)));
}
Result<Value> index_copy(Call& c) { return index_write(c, c.cast(c.tensor("source"), c.dtype("self")), false); }
Result<Value> index_fill(Call& c) { return index_write(c, c.as(c.value("value"), c.dtype("self")), false); }
Result<Value> index_add(Call& c) {
  TensorId source = c.cast(c.tensor("source"), c.dtype("self"));
  if (c.number("alpha") != 1) source = c.mul(source, c.as(c.value("alpha"), c.dtype("self")));
  return index_write(c, source, true);
}

Result<Value> masked_select(Call& c) {
  const ir::TensorData* mask = c.constant_of(c.tensor("mask"));
  if (!mask)
    return c.fail("the shape of the result depends on a mask that is only known when the network runs")
        .hint("use torch.where or masked_fill instead of selecting by a mask");
  ORKNN_TRY_ASSIGN(const Dims dims, ir::broadcast(c.dims("self"), c.dims("mask")));
  const TensorId wide = c.expand(c.tensor("mask"), dims);
  const ir::TensorData* known = c.constant_of(wide);
  if (!known) return c.fail("the mask is too large");
  std::vector<int64_t> positions;
  const auto values = ir::to_ints(known->view());
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) positions.push_back(static_cast<int64_t>(i));
  return c.made(c.gather(c.reshape(c.expand(c.tensor("self"), dims), {-1}), c.add_ints("positions", positions), 0));
}
// The elements of `source`, one after the other, where the mask is set.
Result<Value> masked_scatter(Call& c) {
  ORKNN_TRY_ASSIGN(const Dims dims, ir::broadcast(c.dims("self"), c.dims("mask")));
  ORKNN_TRY_ASSIGN(TensorId mask, c.as_bool(c.handle("mask")));
  mask = c.expand(mask, dims);
  const TensorId flat = c.cast(c.reshape(mask, {-1}), DType::Int64);
  const TensorId place =
      c.emit("Max", {c.sub(c.emit("CumSum", {flat, c.add_int_scalar("axis", 0)}), c.int_scalar(1, DType::Int64)),
                     c.int_scalar(0, DType::Int64)});
  const TensorId source = c.cast(c.reshape(c.tensor("source"), {-1}), c.dtype("self"));
  const TensorId last = c.int_scalar(ir::element_count(c.dims("source")) - 1, DType::Int64);
  if (ir::element_count(c.dims("source")) == 0) return c.copy_of(c.handle("self"));
  return c.made(
      c.where(mask, c.reshape(c.gather(source, c.emit("Min", {place, last}), 0), dims), c.expand(c.tensor("self"), dims)));
}
Result<Value> nonzero(Call& c) { return c.made(c.swap_axes(c.emit("NonZero", {c.tensor("self")}), 0, 1)); }
Result<Value> nonzero_numpy(Call& c) {
  const TensorId all = c.emit("NonZero", {c.tensor("self")});
  std::vector<Value> list;
  for (int64_t i = 0; i < std::max<int64_t>(c.rank("self"), 1); ++i) {
    ORKNN_TRY_ASSIGN(const Value v, c.made(c.gather(all, c.int_scalar(i, DType::Int64), 0)));
    list.push_back(v);
  }
  return c.list(std::move(list));
}

// --- sorting
Result<std::vector<Value>> top(Call& c, int64_t axis, int64_t count, bool largest) {
  if (c.rank("self") == 0) {
    ORKNN_TRY_ASSIGN(const Value zero, c.made(c.int_scalar(0, DType::Int64)));
    return std::vector<Value>{c.value("self"), zero};
  }
  TensorId x = c.tensor("self");
  const bool is_bool = c.dtype("self") == DType::Bool;
  if (is_bool) x = c.cast(x, DType::Int32);
  auto ids = c.emit_all("TopK", {x, c.add_ints("k", {count})},
                        {{"axis", axis}, {"largest", static_cast<int64_t>(largest)}, {"sorted", int64_t{1}}}, 2);
  if (is_bool) ids[0] = c.cast(ids[0], DType::Bool);
  std::vector<Value> results;
  for (TensorId id : ids) {
    ORKNN_TRY_ASSIGN(const Value v, c.made(id));
    results.push_back(v);
  }
  return results;
}
Result<Value> topk(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") > 0 && (c.integer("k") < 0 || c.integer("k") > c.dims("self")[axis]))
    return invalid_model("topk asks for more elements than there are").found(std::to_string(c.integer("k")));
  ORKNN_TRY_ASSIGN(auto results, top(c, static_cast<int64_t>(axis), c.integer("k"), c.flag("largest")));
  return c.tuple(std::move(results));
}
Result<std::vector<Value>> sorted(Call& c, bool descending) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return top(c, static_cast<int64_t>(axis), c.rank("self") == 0 ? 1 : c.dims("self")[axis], descending);
}
Result<Value> sort(Call& c) {
  ORKNN_TRY_ASSIGN(auto results, sorted(c, c.flag("descending")));
  return c.tuple(std::move(results));
}
Result<Value> argsort(Call& c) {
  ORKNN_TRY_ASSIGN(const auto results, sorted(c, c.flag("descending")));
  return results[1];
}
Result<Value> msort(Call& c) {
  ORKNN_TRY_ASSIGN(const auto results, top(c, 0, c.rank("self") == 0 ? 1 : c.dims("self")[0], false));
  return results[0];
}
Result<Value> kthvalue(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  const int64_t k = c.integer("k"), a = static_cast<int64_t>(axis);
  if (c.rank("self") == 0 || k < 1 || k > c.dims("self")[axis])
    return invalid_model("kthvalue asks for an element that is not there");
  ORKNN_TRY_ASSIGN(const auto results, top(c, a, k, false));
  std::vector<Value> picked;
  for (const Value& v : results) {
    TensorId x = c.slice(v.tensor().id, a, k - 1, k);
    if (!c.flag("keepdim")) x = c.squeeze(x, {a});
    ORKNN_TRY_ASSIGN(const Value one, c.made(x));
    picked.push_back(one);
  }
  return c.tuple(std::move(picked));
}
// How many boundaries lie below each value.
Result<Value> searched(Call& c, std::string_view values, std::string_view boundaries) {
  const DType t = DType::Float32;
  const TensorId x = c.unsqueeze(c.as(c.value(values), t), {-1});
  TensorId edges = c.cast(c.tensor(boundaries), t);
  if (c.rank(boundaries) > 1) edges = c.unsqueeze(edges, {-2});  // one list per row of values
  const TensorId below = c.emit(c.flag("right") ? "LessOrEqual" : "Less", {edges, x});
  const TensorId count = c.emit("ReduceSum", {c.cast(below, DType::Int64), c.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}});
  return c.made(c.flag("out_int32") ? c.cast(count, DType::Int32) : count);
}
Result<Value> bucketize(Call& c) { return searched(c, "self", "boundaries"); }
Result<Value> searchsorted(Call& c) { return searched(c, "self", "sorted_sequence"); }

// --- embeddings
Result<Value> embedding(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("indices")));
  return c.made(c.gather(c.tensor("weight"), index, 0));
}
Result<Value> one_hot(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("self")));
  int64_t classes = c.integer("num_classes");
  if (classes < 0) {
    ORKNN_TRY_ASSIGN(const auto values, c.need_ints(index, "to count the classes of one_hot; give num_classes"));
    classes = values.empty() ? 1 : *std::max_element(values.begin(), values.end()) + 1;
  }
  return c.made(c.emit("OneHot", {index, c.int_scalar(classes, DType::Int64), c.add_ints("values", {0, 1})}));
}
// Bags of equal length given as rows of a matrix, or as constant offsets into a list.
Result<Value> embedding_bag(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("indices")));
  const int64_t mode = c.integer("mode");
  if (c.rank("indices") != 1) return c.fail("embedding_bag needs a list of indices");
  ORKNN_TRY_ASSIGN(auto offsets, c.constant_ints("offsets", "to find the bags"));
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
  if (bags.empty()) return c.fail("embedding_bag has no bags");
  ORKNN_TRY_ASSIGN(const Value result, c.made(c.concat(std::move(bags), 0)));
  return c.tuple({result, Value(), Value(), Value()});
}
}  // namespace

std::span<const Row> index_rows() {
  static constexpr Row kRows[] = {
      {"index(Tensor self, Tensor[] indices)", index},
      {"_unsafe_index(Tensor self, Tensor[] indices)", index},
      {"index_put(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)", index_put},
      {"_index_put_impl_(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False, bool unsafe=False)", index_put},
      {"index_select(Tensor self, int dim, Tensor index)", index_select},
      {"take(Tensor self, Tensor index)", take},
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)", gather},
      {"take_along_dim(Tensor self, Tensor index, int? dim=None)", take_along_dim},
      {"scatter(Tensor self, int dim, Tensor index, operand src, *, str? reduce=None)", scatter},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src)", scatter_add},
      {"scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)", scatter_reduce},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source)", index_copy},
      {"index_fill(Tensor self, int dim, Tensor index, operand value)", index_fill},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", index_add},
      {"masked_select(Tensor self, Tensor mask)", masked_select},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source)", masked_scatter},
      {"nonzero(Tensor self)", nonzero},
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
       searchsorted},
      {"embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
       embedding},
      {"one_hot(Tensor self, int num_classes=-1)", one_hot},
      {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, "
       "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)",
       embedding_bag},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
