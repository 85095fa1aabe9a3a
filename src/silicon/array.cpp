#include "silicon/array.h"

#include <cstring>

#include "base/half.h"
#include "silicon/dpu.h"
#include "silicon/sums.h"

namespace orknn::silicon {
namespace {
// Input pixels as the array is fed with them: rows and columns of the whole window range, padding included, channels innermost.
template <class T>
struct Field2d {
  int64_t rows = 0, columns = 0, channels = 0;
  std::vector<T> values;

  const T* at(int64_t row, int64_t column) const { return values.data() + (row * columns + column) * channels; }
  T* at(int64_t row, int64_t column) { return values.data() + (row * columns + column) * channels; }
};

// In depthwise mode odd channels among the first 32 of every 64 are padded with the second byte.
int8_t pad_byte(const ConvTask& c, int64_t channel) {
  const bool second = c.depthwise && channel % 64 < 32 && channel % 2 != 0;
  return static_cast<int8_t>(c.pad_value >> (second ? 8 : 0));
}
void read_atom(const ConvTask&, const std::byte* atom, int16_t* to) {
  for (int i = 0; i < 16; ++i) to[i] = reinterpret_cast<const int8_t*>(atom)[i];
}
void read_atom(const ConvTask&, const std::byte* atom, float* to) {
  for (int i = 0; i < 8; ++i) to[i] = half_to_float(reinterpret_cast<const uint16_t*>(atom)[i]);
}
void read_pad(const ConvTask& c, int64_t channel, int16_t& to) { to = pad_byte(c, channel); }
void read_pad(const ConvTask& c, int64_t, float& to) { to = half_to_float(static_cast<uint16_t>(c.pad_value)); }

template <class T>
Field2d<T> load_features(const ConvTask& c, const std::byte* features, ThreadPool& pool) {
  Field2d<T> f;
  f.rows = (c.out_height - 1) * c.stride_y + (c.kernel_height - 1) * c.dilation_y + 1;
  f.columns = (c.out_width - 1) * c.stride_x + (c.kernel_width - 1) * c.dilation_x + 1;
  f.channels = c.channels;
  f.values.resize(static_cast<size_t>(f.rows * f.columns * f.channels));
  const int64_t lanes = lanes_of(c.precision);
  pool.parallel_for(f.rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < f.columns; ++column) {
        const int64_t y = row - c.pad_top, x = column - c.pad_left;
        T* to = f.at(row, column);
        if (y >= 0 && y < c.height && x >= 0 && x < c.width) {
          const std::byte* from = features + y * c.line_bytes + x * kAtomBytes;
          for (int64_t plane = 0; plane < c.planes(); ++plane) read_atom(c, from + plane * c.plane_bytes, to + plane * lanes);
        } else {
          for (int64_t channel = 0; channel < c.channels; ++channel) read_pad(c, channel, to[channel]);
        }
      }
  });
  return f;
}

// Offset of each tap's pixel from a window's first, in elements.
template <class T>
std::vector<int64_t> tap_offsets(const ConvTask& c, const Field2d<T>& f) {
  std::vector<int64_t> offsets;
  for (int64_t y = 0; y < c.kernel_height; ++y)
    for (int64_t x = 0; x < c.kernel_width; ++x)
      offsets.push_back((y * c.dilation_y * f.columns + x * c.dilation_x) * f.channels);
  return offsets;
}

// Sum of the whole window, all channels, per output pixel of a row.
void window_sums(const ConvTask& c, const Field2d<int16_t>& f, std::span<const int64_t> taps, int64_t y,
                 std::vector<int64_t>& sums) {
  sums.assign(static_cast<size_t>(c.out_width), 0);
  for (int64_t x = 0; x < c.out_width; ++x)
    for (const int64_t tap : taps) {
      const int16_t* pixel = f.at(y * c.stride_y, x * c.stride_x) + tap;
      for (int64_t channel = 0; channel < f.channels; ++channel) sums[static_cast<size_t>(x)] += pixel[channel];
    }
}

// Weights of 32 kernels as sums.h wants them: [tap][channel / 2][32 kernels][2].
std::vector<int16_t> load_group(const ConvTask& c, const int8_t* weights, int64_t first) {
  const KernelShape shape = c.kernel();
  std::vector<int16_t> group(static_cast<size_t>(shape.taps() * c.channels * kSumLanes));
  const int64_t used = std::min(kSumLanes, c.kernels - first);
  for (int64_t tap = 0; tap < shape.taps(); ++tap)
    for (int64_t k = 0; k < used; ++k)
      for (int64_t channel = 0; channel < c.channels; channel += 16) {  // slices are 16 or 32 wide
        const int8_t* from = weights + weight_offset(shape, first + k, tap, channel);
        int16_t* to = group.data() + (tap * c.channels + channel) * kSumLanes + k * 2;
        for (int64_t i = 0; i < 16; ++i) to[i / 2 * 2 * kSumLanes + i % 2] = from[i];
      }
  return group;
}

void run_direct(const ConvTask& c, const Dpu& dpu, const std::byte* features, const int8_t* weights, ThreadPool& pool) {
  const Field2d<int16_t> f = load_features<int16_t>(c, features, pool);
  const std::vector<int64_t> taps = tap_offsets(c, f);
  const bool has_zero = !dpu.task().skips_weight_zero && (dpu.task().weight_zero_from_memory || dpu.task().weight_zero != 0);
  const int64_t groups = ceil_divide(dpu.task().real_channels, kSumLanes);
  std::vector<std::vector<int16_t>> packed(static_cast<size_t>(groups));
  pool.parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) packed[static_cast<size_t>(g)] = load_group(c, weights, g * kSumLanes);
  });
  pool.parallel_for(groups * c.out_height, 2, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> sums(static_cast<size_t>(c.out_width * kSumLanes));
    std::vector<int64_t> windows;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item / c.out_height, y = item % c.out_height;
      product_row({f.at(y * c.stride_y, 0), c.stride_x * f.channels, taps, f.channels, packed[static_cast<size_t>(g)].data()},
                  c.out_width, sums.data());
      if (has_zero) window_sums(c, f, taps, y, windows);
      const int64_t used = std::min(kSumLanes, round_up(dpu.task().real_channels, 16) - g * kSumLanes);
      for (int64_t x = 0; x < c.out_width; ++x)
        for (int64_t k = 0; k < used; ++k) {
          const int64_t channel = g * kSumLanes + k;
          int64_t v = sums[static_cast<size_t>(x * kSumLanes + k)];
          if (has_zero && channel < dpu.task().real_channels) v += dpu.weight_zero(channel) * windows[static_cast<size_t>(x)];
          dpu.write(v >> c.truncate, channel, y * c.out_width + x);
        }
    }
  });
}

void run_depthwise(const ConvTask& c, const Dpu& dpu, const std::byte* features, const int8_t* weights, ThreadPool& pool) {
  const Field2d<int16_t> f = load_features<int16_t>(c, features, pool);
  const std::vector<int64_t> taps = tap_offsets(c, f);
  const KernelShape shape = c.kernel();
  const int64_t channels = std::min(c.channels, round_up(dpu.task().real_channels, 16));
  std::vector<int16_t> by_tap(static_cast<size_t>(shape.taps() * channels));
  for (int64_t tap = 0; tap < shape.taps(); ++tap)
    for (int64_t channel = 0; channel < channels; ++channel)
      by_tap[static_cast<size_t>(tap * channels + channel)] = weights[weight_offset(shape, 0, tap, channel)];
  const bool has_zero = !dpu.task().skips_weight_zero;
  pool.parallel_for(c.out_height, 1, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> sums(static_cast<size_t>(channels)), windows(static_cast<size_t>(channels));
    for (int64_t y = begin; y < end; ++y)
      for (int64_t x = 0; x < c.out_width; ++x) {
        std::ranges::fill(sums, 0);
        std::ranges::fill(windows, 0);
        for (size_t tap = 0; tap < taps.size(); ++tap) {
          const int16_t* pixel = f.at(y * c.stride_y, x * c.stride_x) + taps[tap];
          const int16_t* w = by_tap.data() + static_cast<int64_t>(tap) * channels;
          for (int64_t i = 0; i < channels; ++i) sums[static_cast<size_t>(i)] += pixel[i] * w[i];
          if (has_zero)
            for (int64_t i = 0; i < channels; ++i) windows[static_cast<size_t>(i)] += pixel[i];
        }
        for (int64_t channel = 0; channel < channels; ++channel) {
          int64_t v = sums[static_cast<size_t>(channel)];
          if (has_zero && channel < dpu.task().real_channels)
            v += dpu.weight_zero(channel) * windows[static_cast<size_t>(channel)];
          dpu.write(v >> c.truncate, channel, y * c.out_width + x);
        }
      }
  });
}

// Weights of 16 kernels as sums.h wants them.
std::vector<float> load_half_group(const ConvTask& c, const uint16_t* weights, int64_t first) {
  const KernelShape shape = c.kernel();
  std::vector<float> group;
  group.reserve(static_cast<size_t>(shape.taps() * c.channels * kHalfLanes));
  for (int64_t slice = 0; slice < c.channels; slice += kHalfSlice)
    for (int64_t tap = 0; tap < shape.taps(); ++tap)
      for (int64_t channel = slice; channel < std::min(slice + kHalfSlice, c.channels); ++channel)
        for (int64_t k = first; k < first + kHalfLanes; ++k)
          group.push_back(k < c.kernels ? half_to_float(weights[weight_offset(shape, k, tap, channel)]) : 0.0f);
  return group;
}

// float16: products of 32 channels are summed exactly and rounded once, such sums are added in float in the order of the weights.
void run_half(const ConvTask& c, const Dpu& dpu, const std::byte* features, const uint16_t* weights, ThreadPool& pool) {
  const Field2d<float> f = load_features<float>(c, features, pool);
  const std::vector<int64_t> taps = tap_offsets(c, f);
  const int64_t channels = dpu.task().real_channels, groups = ceil_divide(channels, kHalfLanes);
  pool.parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    float sums[kHalfLanes];
    for (int64_t g = begin; g < end; ++g) {
      const std::vector<float> group = load_half_group(c, weights, g * kHalfLanes);
      const int64_t used = std::min(kHalfLanes, channels - g * kHalfLanes);
      for (int64_t pixel = 0; pixel < c.out_width * c.out_height; ++pixel) {
        const float* window = f.at(pixel / c.out_width * c.stride_y, pixel % c.out_width * c.stride_x);
        half_window({window, taps, c.channels, group.data()}, sums);
        for (int64_t k = 0; k < used; ++k) dpu.write(sums[k], g * kHalfLanes + k, pixel);
      }
    }
  });
}

// A product of two float16 numbers is a float: the taps are added in float.
void run_half_depthwise(const ConvTask& c, const Dpu& dpu, const std::byte* features, const uint16_t* weights, ThreadPool& pool) {
  const Field2d<float> f = load_features<float>(c, features, pool);
  const std::vector<int64_t> taps = tap_offsets(c, f);
  const KernelShape shape = c.kernel();
  pool.parallel_for(dpu.task().real_channels, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> kernel(taps.size());
    for (int64_t k = begin; k < end; ++k) {
      for (size_t tap = 0; tap < taps.size(); ++tap)
        kernel[tap] = half_to_float(weights[weight_offset(shape, 0, static_cast<int64_t>(tap), k)]);
      for (int64_t pixel = 0; pixel < c.out_width * c.out_height; ++pixel) {
        const float* window = f.at(pixel / c.out_width * c.stride_y, pixel % c.out_width * c.stride_x) + k;
        float sum = 0;
        for (size_t tap = 0; tap < taps.size(); ++tap) sum += window[taps[tap]] * kernel[tap];
        dpu.write(sum, k, pixel);
      }
    }
  });
}
}  // namespace

Status run_convolution(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool) {
  const ConvTask c = conv_task(task.registers);
  ORKNN_TRY_ASSIGN(const Dpu dpu, Dpu::create(task, memory));
  ORKNN_TRY_ASSIGN(const std::byte* features, memory.at(c.features, static_cast<uint64_t>(c.feature_bytes()), "the input"));
  ORKNN_TRY_ASSIGN(const std::byte* weights, memory.at(c.weights, static_cast<uint64_t>(c.kernel().bytes()), "the weights"));
  if (c.precision == Precision::Half)
    (c.depthwise ? run_half_depthwise : run_half)(c, dpu, features, reinterpret_cast<const uint16_t*>(weights), pool);
  else if (c.depthwise)
    run_depthwise(c, dpu, features, reinterpret_cast<const int8_t*>(weights), pool);
  else
    run_direct(c, dpu, features, reinterpret_cast<const int8_t*>(weights), pool);
  dpu.write_beyond_real_channels();
  return {};
}

Status run_flying(const DecodedTask& task, const DeviceMemory& memory) {
  ORKNN_TRY_ASSIGN(const Dpu dpu, Dpu::create(task, memory));
  const DpuTask& d = dpu.task();
  const int64_t lanes = lanes_of(d.in), plane = d.pixels() * kAtomBytes;
  ORKNN_TRY_ASSIGN(const std::byte* from,
                   memory.at(d.even_address, static_cast<uint64_t>(ceil_divide(d.channels, lanes) * plane), "the input"));
  for (int64_t channel = 0; channel < d.real_channels; ++channel)
    for (int64_t pixel = 0; pixel < d.pixels(); ++pixel) {
      uint16_t bits;
      std::memcpy(&bits, from + channel / lanes * plane + pixel * kAtomBytes + channel % lanes * 2, sizeof bits);
      dpu.write(half_to_float(bits), channel, pixel);
    }
  return {};
}

}  // namespace orknn::silicon
