#include "import/lower/attention.h"

#include <cmath>
#include <limits>

namespace orknn::importer {
using namespace ir;

TensorId masked_scores(Emitter& e, TensorId scores, TensorId mask, bool hides) {
  if (e.dtype_of(mask) != DType::Bool) return e.add(scores, e.cast(mask, e.dtype_of(scores)));
  const TensorId never = e.scalar_like(scores, -std::numeric_limits<double>::infinity());
  return hides ? e.where(mask, never, scores) : e.where(mask, scores, never);
}

TensorId causal_mask(Emitter& e, int64_t rows, int64_t columns) {
  return e.cast(e.emit("Trilu", {e.full(Dims{rows, columns}, 1, DType::Int32)}, {{"upper", int64_t{0}}}), DType::Bool);
}

Result<Attended> attend(Emitter& e, TensorId q, TensorId k, TensorId v, const AttentionOptions& options) {
  ORKNN_TRY_ASSIGN(const Dims rows, e.need_dims(q, "to attend"));
  ORKNN_TRY_ASSIGN(const Dims columns, e.need_dims(k, "to attend"));
  ORKNN_TRY_ASSIGN(const int64_t value_rank, e.need_rank(v, "to attend"));
  if (rows.size() < 2 || columns.size() < 2 || value_rank < 2) return invalid_model("attention needs sequences of vectors");
  if (options.shares_heads && rows.size() >= 3 && columns.size() == rows.size()) {
    const size_t heads = rows.size() - 3;
    const int64_t own = columns[heads], wanted = rows[heads];
    if (own < 1 || wanted % own != 0) return invalid_model("the heads of attention do not divide");
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < std::min<int64_t>(wanted, 1 << 16); ++i) positions.push_back(i / (wanted / own));
    const TensorId index = e.add_ints("heads", positions);
    k = e.gather(k, index, static_cast<int64_t>(heads));
    v = e.gather(v, index, static_cast<int64_t>(heads));
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(rows.back(), 1))));
  TensorId scores = e.mul(e.matmul(q, e.swap_axes(k, -2, -1)), scale);
  if (options.is_causal) scores = masked_scores(e, scores, causal_mask(e, rows[rows.size() - 2], columns[columns.size() - 2]));
  if (options.mask) scores = masked_scores(e, scores, options.mask);
  const TensorId weights = e.softmax(scores, -1);
  return Attended{e.matmul(weights, v), weights};
}

Result<TensorId> attention(Emitter& e, TensorId q, TensorId k, TensorId v, const AttentionOptions& options) {
  ORKNN_TRY_ASSIGN(const Attended made, attend(e, q, k, v, options));
  return made.values;
}

}  // namespace orknn::importer
