// Reads NumPy .npy files: dense, little-endian, C order.
#pragma once

#include <string>

#include "ir/tensor_data.h"

namespace orknn::tests {

Result<ir::TensorData> read_npy(const std::string& path);

}  // namespace orknn::tests
