// Tensors that follow from a few numbers.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// `count` numbers from `first` to `last`, both included.
Result<ir::TensorId> evenly_spaced(Emitter& e, double first, double last, int64_t count, DType dtype);
// Ones on a diagonal, which is so many columns to the right of the main one; zeros elsewhere.
Result<ir::TensorId> identity_matrix(Emitter& e, int64_t rows, int64_t columns, int64_t shift, DType dtype);

}  // namespace orknn::importer
