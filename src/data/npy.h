// NumPy .npy files: plain arrays of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ir/tensor_data.h"

namespace orknn::data {

// Fortran-ordered files are brought to row-major order, big-endian ones to the machine's. Arrays of anything but real numbers are
// refused.
Result<ir::TensorData> read_npy(const std::string& path);
Result<ir::TensorData> parse_npy(std::span<const std::byte> bytes);
// True when the bytes begin like an .npy file.
bool is_npy(std::span<const std::byte> bytes);
Result<bool> is_npy_file(const std::string& path);
// The element type that the header states; Undefined when it is not a usable one.
DType npy_type(std::span<const std::byte> bytes);
// bfloat16 is written as float32, int4 as int8: NumPy has no such types.
Status write_npy(const std::string& path, const ir::TensorData& value);

}  // namespace orknn::data
