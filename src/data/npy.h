// NumPy .npy files: plain arrays of numbers, little-endian.
#pragma once

#include <string>

#include "ir/tensor_data.h"

namespace orknn::data {

// Fortran-ordered files are brought to row-major order. Object arrays and big-endian files are refused.
Result<ir::TensorData> read_npy(const std::string& path);
// bfloat16 is written as float32, int4 as int8: NumPy has no such types.
Status write_npy(const std::string& path, const ir::TensorData& value);

}  // namespace orknn::data
