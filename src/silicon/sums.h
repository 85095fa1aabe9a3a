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

// Sum of products of float16 numbers, exact before it is rounded to float. At most 32 of them.
float exact_product(const float* a, const float* b, int64_t count);

}  // namespace orknn::silicon
