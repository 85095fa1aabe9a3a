// The reorg layer of Darknet, which ports of its networks to other frameworks kept.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// Works on the memory of `x` as if it were pictures of shape `view` [N,C,H,W]. Gather: output (k,y,x) comes from plane k mod C',
// C' = C / stride^2, of a picture `stride` times as high and wide, at the place in its block that k / C' tells. Scatter is the
// inverse. `out` is the shape the result gets.
ir::TensorId reorganize(Emitter& emitter, ir::TensorId x, const ir::Dims& view, int64_t stride, bool scatter,
                        const ir::Dims& out);

}  // namespace orknn::importer
