// Operators that gather one number from many: sums and extremes along axes, positions, running sums, segments.
#include "import/lower/cumulative.h"
#include "import/lower/gather.h"
#include "import/lower/segments.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// An axis may be named twice; none reduces nothing.
template <OpName Op>
Result<TensorId> reduction(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> axes, l.ints(1, "to reduce along them"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reduce it"));
  if (axes.empty()) return x;
  ORKNN_TRY_ASSIGN(axes, l.axes_of(axes, rank));
  return l.reduce(Op.chars, x, axes, l.options().flag(0));
}

template <OpName Op>
Result<TensorId> place_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "to search along it"));
  return l.emit(Op.string(), {x}, {{"axis", axis}, {"keepdims", int64_t{0}}});
}

Result<TensorId> cumsum(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "to sum along it"));
  return cumulative(l, "CumSum", x, axis, l.options().flag(0), l.options().flag(1));
}

Result<std::vector<TensorId>> top_k(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t k, l.integer(1, "to size the outputs"));
  if (k < 0) return invalid_model("the number of elements is negative").found(std::to_string(k));
  return l.top_k(x, k, -1);
}

TensorId buckets(Layer& l, TensorId x) {
  const Numbers<float> boundaries = l.options().numbers<float>(0);
  std::vector<float> values(boundaries.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = boundaries[i];
  return bucketize(l, x, values);
}

template <Combination How>
Result<TensorId> segments(Layer& l, TensorId x, TensorId ids) {
  std::optional<int64_t> count;
  if (l.has_input(2)) {
    ORKNN_TRY_ASSIGN(count, l.integer(2, "to size the output"));
  }
  return combine_segments(l, x, ids, count, How);
}
}  // namespace

std::span<const Row> reduction_rows() {
  static const Row rows[] = {
      {"MEAN", reduction<"ReduceMean">},
      {"SUM", reduction<"ReduceSum">},
      {"REDUCE_MAX|REDUCE_ANY", reduction<"ReduceMax">},
      {"REDUCE_MIN|REDUCE_ALL", reduction<"ReduceMin">},
      {"REDUCE_PROD", reduction<"ReduceProd">},
      {"ARG_MAX", place_of<"ArgMax">},
      {"ARG_MIN", place_of<"ArgMin">},
      {"CUMSUM", cumsum},
      {"TOPK_V2", top_k},
      {"BUCKETIZE", buckets},
      {"SEGMENT_SUM|UNSORTED_SEGMENT_SUM", segments<Combination::Sum>},
      {"UNSORTED_SEGMENT_PROD", segments<Combination::Product>},
      {"UNSORTED_SEGMENT_MAX", segments<Combination::Maximum>},
      {"UNSORTED_SEGMENT_MIN", segments<Combination::Minimum>},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
