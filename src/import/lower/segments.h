// Rows combined by the segment they belong to.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

enum class Combination { Sum, Mean, Product, Maximum, Minimum };

// `ids` number the leading axes of `x`; rows whose number is outside [0, count) are left out. Without a count there are as
// many segments as the constant numbers say. A segment without rows is 0, 1 for products, the extreme of its type for extremes.
Result<ir::TensorId> combine_segments(Emitter& e, ir::TensorId x, ir::TensorId ids, std::optional<int64_t> count,
                                      Combination how);

}  // namespace orknn::importer
