// Layers with fixed parameters, for the self check of a board and for tests.
#pragma once

#include "silicon/recipe.h"

namespace orknn::silicon::examples {

inline ConvLayer conv(int64_t height, int64_t width, int64_t channels, int64_t kernels, Window2d w = {}) {
  ConvLayer l;
  l.height = height;
  l.width = width;
  l.channels = channels;
  l.kernels = kernels;
  l.window = w;
  l.out_height = (height + w.top + w.bottom - w.reach_y()) / w.stride_y + 1;
  l.out_width = (width + w.left + w.right - w.reach_x()) / w.stride_x + 1;
  l.in_zero_point = 11;
  l.out_zero_point = -7;
  l.out_multiplier = 0x5123;
  l.out_shift = 22;
  return l;
}
inline constexpr Window2d kSame3{.height = 3, .width = 3, .top = 1, .bottom = 1, .left = 1, .right = 1};

inline ConvLayer depthwise(ConvLayer l) {
  l.depthwise = true;
  l.out_shift = 19;
  return l;
}
// With a tensor added to its sums.
inline ConvLayer with_operand(ConvLayer l) {
  l.element_wise = ElementWise{.zero_point = -9, .multiplier = 30000, .shift = 5};
  return l;
}

}  // namespace orknn::silicon::examples
