// Arbitrary weights for descriptions that have none.
#pragma once

#include "ir/tensor_data.h"

namespace orknn::importer {

// Float32 values close to a normal distribution: the same for the same seed on every machine.
ir::TensorData near_normal(uint64_t seed, double mean, double deviation, ir::Dims dims);

}  // namespace orknn::importer
