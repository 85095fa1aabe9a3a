// The array's sums of products, for speed apart from everything else.
#pragma once

#include <cstdint>
#include <span>

namespace orknn::silicon {

inline constexpr int64_t kSumLanes = 32;  // kernels that are computed together

// A row of windows and the weights of kSumLanes kernels, [tap][channel / 2][kernel][2].
struct ProductRow {
  const int16_t* first = nullptr;  // first pixel of the first window
  int64_t step = 0;                // from window to window, in elements
  std::span<const int64_t> taps;   // offset of each pixel of a window, in elements
  int64_t channels = 0;            // even
  const int16_t* weights = nullptr;
};
// sums[window][kernel], 32 bits that wrap. Operands are bytes.
void product_row(const ProductRow& row, int64_t windows, int32_t* sums);

inline constexpr int64_t kHalfLanes = 16;  // kernels of float16 that are computed together
inline constexpr int64_t kHalfSlice = 32;  // channels whose products are summed exactly before they are rounded

// A window of float16 numbers and the weights of kHalfLanes kernels, [slice][tap][channel of the slice][kernel].
struct HalfWindow {
  const float* first = nullptr;   // first pixel
  std::span<const int64_t> taps;  // offset of each pixel, in elements
  int64_t channels = 0;
  const float* weights = nullptr;
};
// Products of a slice at one tap are summed exactly and rounded to float; such sums are added in float, in the order of the
// weights.
void half_window(const HalfWindow& window, float* sums);

}  // namespace orknn::silicon
