#include "silicon/weight_plan.h"

#include <cstring>

#include "base/assert.h"

namespace orknn::silicon {
namespace {
// Kernels of a group and channels of a slice have this length but for the last ones; stated so that copies are unrolled.
constexpr int64_t kSlice = 32;

template <class T, class Count>
void gather(const T* from, int64_t step, Count count, T* to) {
  if (step == 1)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  else
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

template <class T>
struct Values {
  const WeightPlan& plan;
  const T* first;

  // `count` neighbours from the element at `offset` on, `step` apart.
  void copy(int64_t offset, int64_t step, int64_t count, T* to) const {
    if (!first)
      std::fill_n(to, count, static_cast<T>(plan.value));
    else if (count == kSlice)
      gather(first + offset, step, std::integral_constant<int64_t, kSlice>(), to);
    else
      gather(first + offset, step, count, to);
  }
};

// Kernels from `first` on that stand together, of `kernels` with values; the first one's values are at `offset`.
template <class T>
void pack_kernels(const Values<T>& values, const KernelShape& shape, int64_t kernels, int64_t first, int64_t offset, T* to) {
  const WeightPlan& plan = values.plan;
  const WeightGroups groups = weight_groups(shape.precision);
  const int64_t together = std::min(groups.kernels, shape.kernels - first), taps = shape.taps();
  const T zero = static_cast<T>(plan.zero_point);
  for (int64_t channel = 0; channel < shape.channels; channel += groups.channels) {
    const int64_t slice = std::min(groups.channels, shape.channels - channel);
    for (int64_t k = 0; k < together; ++k) {
      const int64_t kernel = first + k, own = kernel / plan.kernels_together * plan.own_channels,
                    begin = std::clamp<int64_t>(own - channel, 0, slice),
                    end = std::clamp<int64_t>(own + plan.own_channels - channel, begin, slice);
      for (int64_t tap = 0; tap < taps; ++tap) {
        T* run = to + (tap * together + k) * slice;
        if (kernel >= kernels) {
          std::fill_n(run, slice, T{0});
          continue;
        }
        std::fill(run, run + begin, zero);
        if (begin < end)
          values.copy(offset + k * plan.kernel_step + tap * plan.tap_step + (channel + begin - own) * plan.channel_step,
                      plan.channel_step, end - begin, run + begin);
        std::fill(run + end, run + slice, zero);
      }
    }
    to += together * taps * slice;
  }
}

template <class T>
void pack_depthwise(const Values<T>& values, const KernelShape& shape, int64_t first, T* to) {
  const WeightPlan& plan = values.plan;
  const int64_t count = std::min(depthwise_group(shape.precision), shape.channels - first),
                real = std::clamp<int64_t>(plan.channels - first, 0, count);
  for (int64_t tap = 0; tap < shape.taps(); ++tap, to += count) {
    values.copy(first * plan.kernel_step + tap * plan.tap_step, plan.kernel_step, real, to);
    std::fill(to + real, to + count, static_cast<T>(plan.zero_point));
  }
}
}  // namespace

KernelShape WeightPlan::stored(int64_t own_kernels, int64_t own_inputs) const {
  const bool whole = grouping == Grouping::Whole;
  return {.kernels = depthwise ? 1 : round_up(own_kernels, whole ? weight_groups(precision).kernels : 2),
          .channels = round_up(own_inputs, depthwise && whole ? depthwise_group(precision) : kStoredChannels),
          .height = height,
          .width = width,
          .depthwise = depthwise,
          .precision = precision};
}

uint64_t WeightPlan::bytes() const {
  if (block == 0) return static_cast<uint64_t>(stored().bytes());
  const int64_t whole = kernels / block, rest = kernels % block;
  return static_cast<uint64_t>(whole * stored(block, block).bytes() + (rest ? stored(rest, rest).bytes() : 0));
}

bool WeightPlan::fits(int64_t elements) const {
  constexpr int64_t kMostExtent = 1 << 20, kMostStep = int64_t{1} << 40;
  if ((precision != Precision::Int8 && precision != Precision::Half) || grouping > Grouping::Short) return false;
  for (const int64_t extent : {kernels, channels, height, width, own_channels, kernels_together})
    if (extent < 1 || extent > kMostExtent) return false;
  if (taps() > kMostExtent) return false;
  for (const int64_t step : {kernel_step, tap_step, channel_step})
    if (step < 0 || step > kMostStep) return false;
  if (depthwise && (block != 0 || kernels != channels)) return false;
  if (block != 0 && (block % kSlice != 0 || block < 1 || block > kMostExtent || kernels != channels || own_channels != 1 ||
                     kernels_together != 1))
    return false;
  if (!depthwise && (kernels - 1) / kernels_together * own_channels + own_channels > channels) return false;
  const int64_t last = (kernels - 1) * kernel_step + (taps() - 1) * tap_step + (depthwise ? 0 : own_channels - 1) * channel_step;
  return last < elements;
}

template <class T>
void WeightPlan::pack_groups(const T* values, T* to, ThreadPool& pool) const {
  constexpr int64_t kBytesOfATask = 1 << 16;
  const Values<T> source{*this, values};
  const int64_t in_block = block ? block : kernels;
  const KernelShape shape = stored(in_block, block ? block : channels);
  if (depthwise) {
    const int64_t group = depthwise_group(precision);
    pool.parallel_for(ceil_divide(shape.channels, group), ceil_divide(kBytesOfATask, group * taps() * int64_t{sizeof(T)}),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t g = begin; g < end; ++g) pack_depthwise(source, shape, g * group, to + g * group * taps());
                      });
    return;
  }
  const int64_t together = weight_groups(precision).kernels, groups = ceil_divide(shape.kernels, together);
  const int64_t blocks = ceil_divide(kernels, in_block), grain = ceil_divide(kBytesOfATask, together * shape.kernel_bytes());
  pool.parallel_for(blocks * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t before = i / groups * in_block, first = i % groups * together, count = std::min(in_block, kernels - before);
      const KernelShape own = block ? stored(count, count) : shape;
      if (first < own.kernels)
        pack_kernels(source, own, count, first, (before + first) * kernel_step,
                     to + i / groups * (shape.bytes() / int64_t{sizeof(T)}) + first * own.taps() * own.channels);
    }
  });
}

void WeightPlan::pack(const void* values, std::span<std::byte> to, ThreadPool& pool) const {
  ORKNN_ASSERT(to.size() == bytes(), "the buffer holds the weights");
  if (bytes_of(precision) == 1)
    pack_groups(static_cast<const uint8_t*>(values), reinterpret_cast<uint8_t*>(to.data()), pool);
  else
    pack_groups(static_cast<const uint16_t*>(values), reinterpret_cast<uint16_t*>(to.data()), pool);
}

std::vector<int64_t> WeightPlan::sums(const int8_t* values) const {
  const int64_t own = depthwise ? 1 : own_channels, each = own * taps();
  std::vector<int64_t> sums(static_cast<size_t>(kernels), -zero_point * each);
  const bool is_dense = each == 1 || (tap_step == 1 && (own == 1 || channel_step == taps())) ||
                        (channel_step == 1 && (taps() == 1 || tap_step == own));
  for (int64_t k = 0; k < kernels; ++k) {
    int64_t& sum = sums[static_cast<size_t>(k)];
    if (!values) {
      sum += each * static_cast<int8_t>(value);
    } else if (is_dense) {
      constexpr int64_t kPart = 1 << 16;  // whose sum fits 32 bits, so that more are added at once
      const int8_t* from = values + k * kernel_step;
      for (int64_t at = 0; at < each; at += kPart) {
        int32_t part = 0;
        for (int64_t i = at; i < std::min(each, at + kPart); ++i) part += from[i];
        sum += part;
      }
    }
  }
  if (!values || is_dense) return sums;
  for (int64_t c = 0; c < own; ++c)
    for (int64_t t = 0; t < taps(); ++t) {
      const int8_t* from = values + c * channel_step + t * tap_step;
      for (int64_t k = 0; k < kernels; ++k) sums[static_cast<size_t>(k)] += from[k * kernel_step];
    }
  return sums;
}

}  // namespace orknn::silicon
