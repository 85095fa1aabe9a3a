// Reductions, places of extremes, orders, running sums.
#include "import/lower/cumulative.h"
#include "import/lower/quantile.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// The axes of a reduction; all of them without any.
Result<std::vector<int64_t>> reduced_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axes"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> axes, l.ints(1, "axis", "to reduce along them"));
  if (l.flag("reduce_all", false)) axes.clear();
  return Emitter::axes_of(axes, rank);
}
template <OpName Op>
Result<TensorId> reduced(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x));
  const DType own = l.dtype_of(x);
  DType to = l.dtype(l.op().attributes.contains("out_dtype") ? "out_dtype" : "dtype", own);
  if (own == DType::Bool && to == DType::Bool) to = DType::Int64;  // sums of truth values count them
  return l.reduce(Op.chars, l.cast(x, to), axes, l.flag("keepdim", false));
}
template <OpName Op>
Result<TensorId> truth_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x));
  const TensorId bits = l.cast(l.cast(x, DType::Bool), DType::Int32);
  return l.cast(l.reduce(Op.chars, bits, axes, l.flag("keepdim", false)), DType::Bool);
}
TensorId mean_of_all(Layer& l, TensorId x) { return l.emit("ReduceMean", {x}, {{"keepdims", int64_t{0}}}); }

void flatten_when_asked(Layer& l, TensorId& x, int64_t& axis) {
  if (!l.flag("flatten", false)) return;
  x = l.reshape(x, {-1});
  axis = 0;
}

template <OpName Op>
Result<TensorId> place_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(int64_t axis, l.integer(1, "axis", -1, "to find the place along it"));
  flatten_when_asked(l, x, axis);
  const bool keep = l.flag("keepdims", false) && !l.flag("flatten", false);
  return l.cast(l.emit(Op.chars, {x}, {{"axis", axis}, {"keepdims", int64_t{keep}}}), l.dtype("dtype", DType::Int64));
}
template <OpName Op>
Result<TensorId> running(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(int64_t axis, l.integer(1, "dim", -1, "to run along it"));
  flatten_when_asked(l, x, axis);
  ORKNN_TRY_ASSIGN(axis, l.axis(axis, x));
  return cumulative(l, Op.chars, x, axis, l.flag("exclusive", false), l.flag("reverse", false));
}

Result<std::vector<TensorId>> topk(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(TensorId count, l.vector(1));
  if (!count) count = l.add_ints("k", {l.integer("k", 1)});
  return l.emit_all("TopK", {x, count},
                    {{"axis", l.integer("axis", -1)}, {"largest", int64_t{l.flag("largest", true)}}, {"sorted", int64_t{1}}}, 2);
}
Result<std::vector<TensorId>> argsort(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", -1), x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort it"));
  return l.emit_all("TopK", {x, l.add_ints("k", {dims[static_cast<size_t>(axis)]})},
                    {{"axis", axis}, {"largest", int64_t{l.flag("descending", false)}}, {"sorted", int64_t{1}}}, 2);
}
Result<std::vector<TensorId>> kthvalue(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", -1), x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort it"));
  const int64_t k = l.integer("k", 1);
  if (k < 1 || k > dims[static_cast<size_t>(axis)])
    return invalid_model("kthvalue: k is not between 1 and the number of elements");
  const Ranked found = nth_smallest(l, x, axis, k - 1);
  if (l.flag("keepdim", false)) return std::vector{found.value, found.place};
  return std::vector{l.squeeze(found.value, {axis}), l.squeeze(found.place, {axis})};
}

// The mean of both where two lie in the middle, or the smaller one. `nanmedian` counts numbers only.
template <bool SkipsNan>
Result<TensorId> median(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x));
  const DType type = is_float(l.dtype_of(x)) ? l.dtype_of(x) : DType::Float32;
  return quantiles(l, {.x = l.cast(x, type),
                       .share = l.add_scalar("half", 0.5, type),
                       .axes = axes,
                       .keeps_axes = l.flag("keepdim", false),
                       .interpolation = l.text("mode", "avg") == "min" ? "lower" : "midpoint",
                       .skips_nan = SkipsNan});
}
}  // namespace

std::span<const Row> reduction_rows() {
  static const Row rows[] = {
      {"sum", reduced<"ReduceSum">},
      {"mean", reduced<"ReduceMean">},
      {"max|amax", reduced<"ReduceMax">},
      {"min|amin", reduced<"ReduceMin">},
      {"prod", reduced<"ReduceProd">},
      {"logsumexp", reduced<"ReduceLogSumExp">},
      {"any", truth_of<"ReduceMax">},
      {"all", truth_of<"ReduceMin">},
      {"mean_all", mean_of_all},
      {"argmax", place_of<"ArgMax">},
      {"argmin", place_of<"ArgMin">},
      {"cumsum", running<"CumSum">},
      {"cumprod", running<"CumProd">},
      {"topk", topk},
      {"argsort", argsort},
      {"kthvalue", kthvalue},
      {"median", median<false>},
      {"nanmedian", median<true>},
      {"numel", same<"Size">},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
