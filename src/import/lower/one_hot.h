// Numbers as rows that are `on` at one place.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// 0, 1, ... count - 1 along `axis` of a tensor of this rank, int64.
ir::TensorId positions(Emitter& e, int64_t count, int64_t axis = 0, int64_t rank = 1);
// `axis` is that of the result. A number outside of [0, depth) gives a row of `off`; our own operator would count negative ones
// from the end.
Result<ir::TensorId> one_hot(Emitter& e, ir::TensorId numbers, int64_t depth, int64_t axis, ir::TensorId on, ir::TensorId off);

}  // namespace orknn::importer
