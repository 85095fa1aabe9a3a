// How the elements of a tensor lie in memory while a program runs.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace orknn::sim {

enum class Form : uint8_t {
  Rows,     // dense, row-major
  Blocked,  // NC1HWC2 with C2 = kBlock; bytes are unsigned: int8 values are offset by 128
};

// Channels that lie next to each other. Those after the last one of a tensor are there, with any value.
constexpr int64_t kBlock = 16;

// Feature maps of bytes or floats: what blocked kernels read and write.
inline bool can_be_blocked(DType dtype, std::span<const int64_t> dims) {
  return (dtype == DType::Int8 || dtype == DType::UInt8 || dtype == DType::Float32) && dims.size() == 4;
}
constexpr int64_t blocks_of(int64_t channels) { return (channels + kBlock - 1) / kBlock; }
inline int64_t blocked_bytes(std::span<const int64_t> dims) { return dims[0] * blocks_of(dims[1]) * kBlock * dims[2] * dims[3]; }
// The same of any type.
inline int64_t blocked_bytes(DType dtype, std::span<const int64_t> dims) {
  return blocked_bytes(dims) * static_cast<int64_t>(dtype_bytes(dtype));
}

}  // namespace orknn::sim
