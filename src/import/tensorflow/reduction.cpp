// Reductions, running sums, extremes and sums by segment.
#include "import/lower/cumulative.h"
#include "import/lower/quantile.h"
#include "import/lower/segments.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// No axis reduces nothing.
template <OpName Op>
Result<TensorId> reduction(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, l.ints(1, "to reduce"));
  return l.reduce(Op.chars, x, axes, l.bool_or("keep_dims", l.bool_or("keepdims", false)));
}
template <OpName Op>
Result<TensorId> logical_reduction(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId y, reduction<Op>(l, l.cast(x, DType::Int32)));
  return l.cast(y, DType::Bool);
}

Result<TensorId> place_of_extreme(Layer& l, TensorId x) {
  int64_t axis = 0;
  if (l.operand_count() > 1) {
    ORKNN_TRY_ASSIGN(axis, l.integer(1, "to know the axis"));
  }
  if (l.dtype_of(x) == DType::Bool) x = l.cast(x, DType::Int32);
  const TensorId y = l.emit(std::string(l.op()), {x}, {{"axis", axis}, {"keepdims", int64_t{0}}});
  return l.cast(y, l.dtype_or("output_type", DType::Int64));
}

template <OpName Op>
Result<TensorId> running(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "to know the axis"));
  return cumulative(l, Op.chars, x, axis, l.bool_or("exclusive", false), l.bool_or("reverse", false));
}

// The older forms have k as an attribute.
Result<TensorId> k_of(Layer& l, size_t input, DType dtype) {
  if (l.operand_count() <= input) return l.add_scalar("k", static_cast<double>(l.int_or("k", 1)), dtype);
  ORKNN_TRY_ASSIGN(const TensorId k, l.operand(input));
  return l.cast(k, dtype);
}

Result<std::vector<TensorId>> top_k(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId k, k_of(l, 1, DType::Int64));
  const bool sorted = l.bool_or("sorted", true);
  const auto results = l.emit_all("TopK", {x, l.reshape(k, {1})}, {{"axis", int64_t{-1}}, {"sorted", int64_t{sorted}}}, 2);
  return std::vector{results[0], l.cast(results[1], l.dtype_or("index_type", DType::Int32))};
}

// The element of each row with n smaller ones, or n greater ones.
Result<TensorId> nth_element(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(int64_t n, l.integer(1, "to know which element is wanted"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort its rows"));
  if (dims.empty() || n < 0 || n >= dims.back())
    return invalid_model("the rows have fewer elements than the place that is asked for")
        .found(std::to_string(n) + " of " + ir::to_string(dims));
  if (l.bool_or("reverse", false)) n = dims.back() - 1 - n;
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  return l.squeeze(nth_smallest(l, x, axis, n).value, {axis});
}

// True for the k best of each row; ties at the border all count, so ranks decide.
Result<TensorId> in_top_k(Layer& l, TensorId predictions, TensorId targets) {
  ORKNN_TRY_ASSIGN(const TensorId k, k_of(l, 2, DType::Int32));
  const TensorId places = l.unsqueeze(l.cast(targets, DType::Int64), {1});
  const TensorId own = l.gather_elements(predictions, places, 1);
  const TensorId better = l.cast(l.binary("Greater", predictions, own), DType::Int32);
  return l.binary("Less", l.reduce("ReduceSum", better, {1}, false), k);
}

template <Combination How>
Result<TensorId> segments(Layer& l, TensorId x, TensorId ids) {
  return combine_segments(l, x, ids, std::nullopt, How);
}
template <Combination How>
Result<TensorId> unsorted_segments(Layer& l, TensorId x, TensorId ids) {
  ORKNN_TRY_ASSIGN(const int64_t count, l.integer(2, "to know the number of segments"));
  return combine_segments(l, x, ids, count, How);
}
}  // namespace

std::span<const Row> reduction_rows() {
  static const Row rows[] = {
      {"Sum", reduction<"ReduceSum">},
      {"Mean", reduction<"ReduceMean">},
      {"Max", reduction<"ReduceMax">},
      {"Min", reduction<"ReduceMin">},
      {"Prod", reduction<"ReduceProd">},
      {"EuclideanNorm", reduction<"ReduceL2">},
      {"All", logical_reduction<"ReduceMin">},
      {"Any", logical_reduction<"ReduceMax">},
      {"ArgMax|ArgMin", place_of_extreme},
      {"Cumsum", running<"CumSum">},
      {"Cumprod", running<"CumProd">},
      {"CumulativeLogsumexp", running<"LogCumSumExp">},
      {"TopK|TopKV2", top_k},
      {"InTopK|InTopKV2", in_top_k},
      {"NthElement", nth_element},
      {"SegmentSum", segments<Combination::Sum>},
      {"SegmentMean", segments<Combination::Mean>},
      {"SegmentProd", segments<Combination::Product>},
      {"UnsortedSegmentSum", unsorted_segments<Combination::Sum>},
      {"UnsortedSegmentProd", unsorted_segments<Combination::Product>},
      {"UnsortedSegmentMax", unsorted_segments<Combination::Maximum>},
      {"UnsortedSegmentMin", unsorted_segments<Combination::Minimum>},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
