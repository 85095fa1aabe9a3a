// Attention, written out as products and a softmax.
#pragma once

#include <optional>

#include "import/lower/emitter.h"

namespace orknn::importer {

struct AttentionOptions {
  ir::TensorId mask;            // added to the scores, or of truth values: true where to look; none without one
  bool is_causal = false;       // no row looks at later columns
  bool shares_heads = false;    // each head of keys and values serves several heads of queries (axis -3)
  std::optional<double> scale;  // 1 / sqrt(width) by default
};
struct Attended {
  ir::TensorId values;   // [..., L, V]
  ir::TensorId weights;  // [..., L, S]: how much each row looks at each column
};
// q [..., L, E], k [..., S, E], v [..., S, V]
Result<Attended> attend(Emitter& e, ir::TensorId q, ir::TensorId k, ir::TensorId v, const AttentionOptions& options);
// Its values.
Result<ir::TensorId> attention(Emitter& e, ir::TensorId q, ir::TensorId k, ir::TensorId v, const AttentionOptions& options);
// True on and below the diagonal.
ir::TensorId causal_mask(Emitter& e, int64_t rows, int64_t columns);
// Scores under a mask. Truth values say where to look, or with `hides` where not to.
ir::TensorId masked_scores(Emitter& e, ir::TensorId scores, ir::TensorId mask, bool hides = false);

}  // namespace orknn::importer
