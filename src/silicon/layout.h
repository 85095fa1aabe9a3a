// How tensors, weights and biases lie in the unit's memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace orknn::silicon {

constexpr int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr int64_t ceil_divide(int64_t value, int64_t by) { return (value + by - 1) / by; }

// The precision codes of the registers.
enum class Precision : uint8_t { Int8 = 0, Int16 = 1, Half = 2, BFloat16 = 3, Int32 = 4, Float = 5 };
constexpr int64_t bytes_of(Precision p) {
  return p == Precision::Int8 ? 1 : p == Precision::Int32 || p == Precision::Float ? 4 : 2;
}
DType dtype_of_precision(Precision p);

inline constexpr int64_t kAtomBytes = 16;
// Channels of one 16-byte atom.
constexpr int64_t lanes_of(Precision p) { return kAtomBytes / bytes_of(p); }

// A feature cube: planes of 16-byte atoms, one atom per pixel, rows first.
struct Cube {
  int64_t height = 0, width = 0, channels = 0;
  Precision precision = Precision::Int8;

  int64_t lanes() const { return lanes_of(precision); }
  int64_t planes() const { return ceil_divide(channels, lanes()); }
  int64_t plane_bytes() const { return height * width * kAtomBytes; }
  int64_t bytes() const { return planes() * plane_bytes(); }
};
// Order of a plain tensor's axes.
enum class TensorOrder : uint8_t { Hwc, Chw };
// Between a plain tensor (elements of the cube's precision) and a cube. Lanes without a channel get `fill`, an element's bytes.
// `rows`: of the tensor where the cube has more, which are left alone; 0 = as many.
void pack_cube(const Cube& cube, TensorOrder order, const void* tensor, std::span<std::byte> to, int64_t fill, int64_t rows = 0);
void unpack_cube(const Cube& cube, TensorOrder order, std::span<const std::byte> from, void* tensor, int64_t rows = 0);

// How many kernels stand together in packed weights, and how many input channels.
struct WeightGroups {
  int64_t kernels = 32, channels = 32;
};
constexpr WeightGroups weight_groups(Precision p) { return p == Precision::Int8 ? WeightGroups{32, 32} : WeightGroups{16, 32}; }
constexpr int64_t depthwise_group(Precision p) { return p == Precision::Int8 ? 64 : 32; }

inline constexpr int64_t kStoredChannels = 16;

// The numbers of a convolution's kernel.
struct KernelShape {
  int64_t kernels = 0;   // stored ones; those without values are zero
  int64_t channels = 0;  // stored ones, a multiple of kStoredChannels
  int64_t height = 1, width = 1;
  bool depthwise = false;
  Precision precision = Precision::Int8;

  int64_t taps() const { return height * width; }
  int64_t kernel_bytes() const { return taps() * channels * bytes_of(precision); }
  int64_t bytes() const { return kernel_bytes() * (depthwise ? 1 : kernels); }
};
// Where the element (kernel, tap, channel) stands in packed weights, in elements.
int64_t weight_offset(const KernelShape& shape, int64_t kernel, int64_t tap, int64_t channel);

// Bias blocks. `multipliers` empty: dense int32; else groups of eight channels {int32 bias[8], int16 zero[8], int16
// multiplier[8]}.
inline constexpr int64_t kBiasGroup = 8, kBiasGroupBytes = 64;
std::vector<std::byte> pack_bias(std::span<const int32_t> bias, std::span<const int32_t> multipliers, int64_t channels);

}  // namespace orknn::silicon
