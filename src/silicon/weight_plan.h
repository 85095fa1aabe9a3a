// A layer's weights: where their values lie in a plain tensor, and how they stand in the unit's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.h"
#include "silicon/layout.h"

namespace orknn::silicon {

// Whether packed weights are filled up to whole groups (32 kernels, 64 depthwise channels), which every board accepts, or a last
// group stays short, as one generator packs them.
enum class Grouping : uint8_t { Whole, Short };

struct WeightPlan {
  Precision precision = Precision::Int8;
  bool depthwise = false;
  Grouping grouping = Grouping::Whole;
  int64_t kernels = 0, channels = 0;  // those with values; depthwise: kernels = channels
  int64_t height = 1, width = 1;
  // > 0: channels and kernels in blocks of so many, one packed after the other; kernels read the channels of their own block.
  int64_t block = 0;
  int64_t zero_point = 0;  // an element's bits: of channels without a value

  // Value (kernel, tap, channel) is so many elements from the first one; depthwise: (channel, tap) by the kernel's step.
  int64_t kernel_step = 0, tap_step = 0, channel_step = 0;
  // `kernels_together` neighbours have values for the same `own_channels` channels, the next ones for those that follow.
  int64_t own_channels = 0, kernels_together = 1;
  int64_t value = 0;  // an element's bits: of every weight where there is no tensor of values

  int64_t taps() const { return height * width; }
  KernelShape stored() const { return stored(kernels, channels); }  // of one block where there are no others
  uint64_t bytes() const;                                           // when packed
  // Whether no value lies outside of a tensor of so many elements, and sizes are such that nothing overflows. For plans of files.
  bool fits(int64_t elements) const;

  // `values` nullptr: all have `value`. Writes every byte of `to`, which holds bytes().
  void pack(const void* values, std::span<std::byte> to, ThreadPool& pool) const;
  // Per kernel, of int8 values without their zero point.
  std::vector<int64_t> sums(const int8_t* values) const;

 private:
  KernelShape stored(int64_t kernels, int64_t channels) const;
  template <class T>
  void pack_groups(const T* values, T* to, ThreadPool& pool) const;
};

}  // namespace orknn::silicon
