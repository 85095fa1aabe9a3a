// Pooling to a given size: window i of an axis is [floor(i * in / out), ceil((i + 1) * in / out)).
#pragma once

#include <span>

#include "import/lower/emitter.h"

namespace orknn::importer {

// x is [N, C, spatial...]; `size` has one positive extent per spatial axis.
Result<ir::TensorId> adaptive_average_pool(Emitter& e, ir::TensorId x, std::span<const int64_t> size);

// Values, and positions counted within the plane of a channel.
struct PooledMax {
  ir::TensorId values, positions;
};
// The positions are none where windows of unequal size hold too many elements.
Result<PooledMax> adaptive_max_pool(Emitter& e, ir::TensorId x, std::span<const int64_t> size);
// Our MaxPool, whose positions count through the whole tensor.
Result<PooledMax> max_pool_with_positions(Emitter& e, ir::TensorId x, ir::Attributes attributes);

}  // namespace orknn::importer
