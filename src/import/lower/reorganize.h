// Layers of Darknet that ports of its networks to other frameworks kept.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// Works on the memory of `x` as if it were pictures of shape `view` [N,C,H,W]. Gather: output (k,y,x) comes from plane k mod C',
// C' = C / stride^2, of a picture `stride` times as high and wide, at the place in its block that k / C' tells. Scatter is the
// inverse. `out` is the shape the result gets.
ir::TensorId reorganize(Emitter& emitter, ir::TensorId x, const ir::Dims& view, int64_t stride, bool scatter,
                        const ir::Dims& out);

// The reorg layer: blocks of `stride` x `stride` pixels [N,C,H,W] become channels, or with `reverse` channels become blocks.
inline constexpr int64_t kMaxReorgStride = 64;
Result<ir::Dims> reorganized_dims(Emitter& emitter, ir::TensorId x, int64_t stride, bool reverse);
Result<ir::TensorId> reorganize_pixels(Emitter& emitter, ir::TensorId x, int64_t stride, bool reverse);

// Pictures enlarged by repeating each pixel.
ir::TensorId repeat_pixels(Emitter& emitter, ir::TensorId x, int64_t factor_y, int64_t factor_x);

}  // namespace orknn::importer
