// Reductions, sorting and searching. Results that are one number have shape [1]; indices are floats unless asked for otherwise.
#include <algorithm>

#include "import/lower/functions.h"
#include "import/lower/quantile.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// The axes to reduce: stated, all when nothing is, the others with `exclude`.
struct Reduced {
  std::vector<int64_t> axes;
  bool are_all = false;
};
Result<Reduced> reduced_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reduce it"));
  const std::vector<int64_t> stated = l.integers(l.has("axes") ? "axes" : "axis");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> chosen, Emitter::axes_of(stated, rank));
  const bool exclude = l.flag("exclude", false) && !stated.empty();
  Reduced r;
  for (int64_t a = 0; a < rank; ++a)
    if (std::ranges::binary_search(chosen, a) != exclude) r.axes.push_back(a);
  r.are_all = std::ssize(r.axes) == rank;
  return r;
}

TensorId reduced(Layer& l, std::string_view op, TensorId x, const Reduced& r) {
  const bool keep = l.flag("keepdims", false);
  const TensorId y = l.reduce(op, x, r.axes, keep);
  return !keep && r.are_all && !r.axes.empty() ? l.reshape(y, {1}) : y;
}

Result<TensorId> reduce_as(Layer& l, std::string_view op, TensorId x) {
  ORKNN_TRY_ASSIGN(const Reduced axes, reduced_axes(l, x));
  return reduced(l, op, l.cast(x, l.dtype("dtype", l.dtype_of(x))), axes);
}
template <OpName Op>
Result<TensorId> reduce(Layer& l, TensorId x) {
  return reduce_as(l, Op.chars, x);
}
// With a number in place of what is none.
template <OpName Op, int Instead>
Result<TensorId> nan_reduce(Layer& l, TensorId x) {
  return reduce_as(l, Op.chars, l.where(l.unary("IsNaN", x), l.scalar_like(x, Instead), x));
}

Result<TensorId> norm(Layer& l, TensorId x) {
  const int64_t order = l.integer("ord", 2);
  if (order != 1 && order != 2) return unsupported("unknown order").expected("1 or 2").found(std::to_string(order));
  return reduce_as(l, order == 1 ? "ReduceL1" : "ReduceL2", x);
}

Result<std::vector<TensorId>> moments(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Reduced r, reduced_axes(l, x));
  const TensorId squares = squared_difference(l, x, l.reduce("ReduceMean", x, r.axes, true));
  return std::vector{reduced(l, "ReduceMean", x, r), reduced(l, "ReduceMean", squares, r)};
}

TensorId cumulative_sum(Layer& l, TensorId x) {
  if (!l.has("axis")) x = l.reshape(x, {-1});
  x = l.cast(x, l.dtype("dtype", l.dtype_of(x)));
  return l.binary("CumSum", x, l.add_int_scalar("axis", l.integer("axis", 0)));
}

// --- searching

TensorId index_along(Layer& l, std::string_view op, TensorId x, int64_t axis, bool keep) {
  const TensorId y = l.emit(std::string(op), {x}, {{"axis", axis}, {"keepdims", int64_t{keep}}});
  const auto rank = l.rank_of(y);
  return rank && *rank == 0 ? l.reshape(y, {1}) : y;
}

template <OpName Op, DType Type>
Result<TensorId> arg_extreme(Layer& l, TensorId x) {
  const bool keep = l.flag("keepdims", false);
  if (l.has("axis")) return l.cast(index_along(l, Op.chars, x, l.integer("axis", 0), keep), Type);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to search it"));
  const TensorId y = index_along(l, Op.chars, l.reshape(x, {-1}), 0, false);
  return l.cast(l.reshape(y, Dims(static_cast<size_t>(keep ? rank : 1), 1)), Type);
}

TensorId argmax_channel(Layer& l, TensorId x) {
  return l.cast(index_along(l, "ArgMax", x, 1, l.flag("keepdims", false)), DType::Float32);
}

// Values and places of the `k` first in order, of all when k is less than 1.
struct Sorted {
  TensorId data;
  int64_t axis = 0;
  std::vector<TensorId> found;
};
Result<Sorted> sorted(Layer& l, TensorId x, int64_t k, bool is_ascending) {
  Sorted s;
  s.data = l.node().find("axis") && !l.has("axis") ? l.reshape(x, {-1}) : x;  // axis = None
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(s.data, "to sort it"));
  ORKNN_TRY_ASSIGN(s.axis, l.axis("axis", -1, std::ssize(dims)));
  const int64_t extent = dims[static_cast<size_t>(s.axis)], count = k < 1 ? extent : std::min(k, extent);
  s.found = l.emit_all("TopK", {s.data, l.add_ints("k", {count})}, {{"axis", s.axis}, {"largest", int64_t{!is_ascending}}}, 2);
  return s;
}

Result<std::vector<TensorId>> top_k(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sorted s, sorted(l, x, l.integer("k", 1), l.flag("is_ascend", false)));
  const std::string kind = l.text("ret_typ", "indices");
  if (kind == "mask") {
    const TensorId zeros = zeros_like(l, s.data), ones = ones_like(l, s.found[0]);
    return std::vector{l.emit("ScatterElements", {zeros, s.found[1], ones}, {{"axis", s.axis}})};
  }
  const TensorId indices = l.cast(s.found[1], l.dtype("dtype", DType::Float32));
  if (kind == "indices") return std::vector{indices};
  if (kind == "value" || kind == "both") return std::vector{s.found[0], indices};
  return unsupported("unknown ret_typ").expected("value, indices, mask or both").found(kind);
}

Result<TensorId> sort(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sorted s, sorted(l, x, 0, l.flag("is_ascend", true)));
  return s.found[0];
}
Result<TensorId> argsort(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sorted s, sorted(l, x, 0, l.flag("is_ascend", true)));
  return l.cast(s.found[1], l.dtype("dtype", DType::Float32));
}

// A list of percentiles is a new first axis.
Result<TensorId> percentile(Layer& l, TensorId x) {
  TensorId percents = l.scalar_like(x, l.number("q_scalar", 50));
  if (l.operand_count() > 1) {
    ORKNN_TRY_ASSIGN(percents, l.operand(1));
  }
  const DType type = is_float(l.dtype_of(x)) ? l.dtype_of(x) : DType::Float32;
  ORKNN_TRY_ASSIGN(const Reduced r, reduced_axes(l, x));
  return quantiles(l, {.x = l.cast(x, type),
                       .share = l.div(l.cast(percents, type), 100.0),
                       .axes = r.axes,
                       .keeps_axes = l.flag("keepdims", false),
                       .interpolation = l.text("interpolation", "linear")});
}
}  // namespace

std::span<const Row> reduction_rows() {
  static const Row rows[] = {
      {"sum|sum_axis|_np_sum", reduce<"ReduceSum">},
      {"nansum", nan_reduce<"ReduceSum", 0>},
      {"mean|_npi_mean", reduce<"ReduceMean">},
      {"prod|_np_prod", reduce<"ReduceProd">},
      {"nanprod", nan_reduce<"ReduceProd", 1>},
      {"max|max_axis|_np_max", reduce<"ReduceMax">},
      {"min|min_axis|_np_min", reduce<"ReduceMin">},
      {"norm", norm},
      {"moments", moments},
      {"cumsum|_np_cumsum", cumulative_sum},
      {"argmax", arg_extreme<"ArgMax", DType::Float32>},
      {"argmin", arg_extreme<"ArgMin", DType::Float32>},
      {"argmax_channel", argmax_channel},
      {"_npi_argmax", arg_extreme<"ArgMax", DType::Int64>},
      {"_npi_argmin", arg_extreme<"ArgMin", DType::Int64>},
      {"_npi_percentile", percentile, {.inputs = {1, 2}}},
      {"topk", top_k},
      {"sort", sort},
      {"argsort", argsort},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
