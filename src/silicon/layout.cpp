#include "silicon/layout.h"

#include <cstring>

#include "base/assert.h"

namespace orknn::silicon {
namespace {
int64_t plain_offset(const Cube& cube, TensorOrder order, int64_t pixels, int64_t channel, int64_t pixel) {
  return order == TensorOrder::Hwc ? pixel * cube.channels + channel : channel * pixels + pixel;
}

// Calls f with a value of an unsigned type as wide as an element.
template <class F>
void visit_width(int64_t bytes, F&& f) {
  if (bytes == 1)
    f(uint8_t{});
  else if (bytes == 2)
    f(uint16_t{});
  else
    f(uint32_t{});
}
}  // namespace

DType dtype_of_precision(Precision p) {
  switch (p) {
    case Precision::Int8: return DType::Int8;
    case Precision::Int16: return DType::Int16;
    case Precision::Half: return DType::Float16;
    case Precision::BFloat16: return DType::BFloat16;
    case Precision::Int32: return DType::Int32;
    case Precision::Float: return DType::Float32;
  }
  return DType::Undefined;
}

void pack_cube(const Cube& cube, TensorOrder order, const void* tensor, std::span<std::byte> to, int64_t fill, int64_t rows) {
  ORKNN_ASSERT(static_cast<int64_t>(to.size()) >= cube.bytes(), "the buffer holds the cube");
  visit_width(bytes_of(cube.precision), [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(tensor);
    const int64_t lanes = cube.lanes(), pixels = (rows ? rows : cube.height) * cube.width;
    for (int64_t plane = 0; plane < cube.planes(); ++plane) {
      T* out = reinterpret_cast<T*>(to.data() + plane * cube.plane_bytes());
      const int64_t used = std::min(lanes, cube.channels - plane * lanes);
      for (int64_t pixel = 0; pixel < pixels; ++pixel, out += lanes)
        for (int64_t lane = 0; lane < lanes; ++lane)
          out[lane] = lane < used ? from[plain_offset(cube, order, pixels, plane * lanes + lane, pixel)] : static_cast<T>(fill);
    }
  });
}

void unpack_cube(const Cube& cube, TensorOrder order, std::span<const std::byte> from, void* tensor, int64_t rows) {
  ORKNN_ASSERT(static_cast<int64_t>(from.size()) >= cube.bytes(), "the buffer holds the cube");
  visit_width(bytes_of(cube.precision), [&](auto tag) {
    using T = decltype(tag);
    T* to = static_cast<T*>(tensor);
    const int64_t lanes = cube.lanes(), pixels = (rows ? rows : cube.height) * cube.width;
    for (int64_t plane = 0; plane < cube.planes(); ++plane) {
      const T* in = reinterpret_cast<const T*>(from.data() + plane * cube.plane_bytes());
      const int64_t used = std::min(lanes, cube.channels - plane * lanes);
      for (int64_t pixel = 0; pixel < pixels; ++pixel, in += lanes)
        for (int64_t lane = 0; lane < used; ++lane) to[plain_offset(cube, order, pixels, plane * lanes + lane, pixel)] = in[lane];
    }
  });
}

int64_t weight_offset(const KernelShape& shape, int64_t kernel, int64_t tap, int64_t channel) {
  if (shape.depthwise) {
    const int64_t group = depthwise_group(shape.precision), first = channel / group * group;
    return first * shape.taps() + tap * std::min(group, shape.channels - first) + channel - first;
  }
  const WeightGroups groups = weight_groups(shape.precision);
  const int64_t first_kernel = kernel / groups.kernels * groups.kernels, first = channel / groups.channels * groups.channels;
  const int64_t together = std::min(groups.kernels, shape.kernels - first_kernel),
                slice = std::min(groups.channels, shape.channels - first);
  return first_kernel * shape.taps() * shape.channels + together * shape.taps() * first +
         (tap * together + kernel - first_kernel) * slice + channel - first;
}

std::vector<std::byte> pack_bias(std::span<const int32_t> bias, std::span<const int32_t> multipliers, int64_t channels) {
  const int64_t real = static_cast<int64_t>(bias.size());
  if (multipliers.empty()) {
    std::vector<std::byte> packed(static_cast<size_t>(channels) * 4);
    std::memcpy(packed.data(), bias.data(), bias.size_bytes());
    return packed;
  }
  std::vector<std::byte> packed(static_cast<size_t>(ceil_divide(channels, kBiasGroup) * kBiasGroupBytes));
  for (int64_t c = 0; c < real; ++c) {
    std::byte* group = packed.data() + c / kBiasGroup * kBiasGroupBytes;
    const auto factor = static_cast<int16_t>(multipliers[static_cast<size_t>(c)]);
    std::memcpy(group + c % kBiasGroup * 4, &bias[static_cast<size_t>(c)], 4);
    std::memcpy(group + 48 + c % kBiasGroup * 2, &factor, 2);
  }
  return packed;
}

}  // namespace orknn::silicon
