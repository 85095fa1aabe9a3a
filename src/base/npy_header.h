// The beginning of a NumPy .npy file, for everything that writes one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace orknn {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// NumPy's name of an element type without byte order, "f4"; empty for types that NumPy does not have (bfloat16, 4-bit integers).
std::string_view npy_type_name(DType dtype);
// The type with this name; Undefined when there is none.
DType npy_type_of_name(std::string_view name);
// Magic and header of a row-major little-endian array; the elements follow. `dtype` is one that NumPy has.
std::string npy_header(DType dtype, std::span<const int64_t> dims);

}  // namespace orknn
