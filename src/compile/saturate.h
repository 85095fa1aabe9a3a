// Arithmetic for figures of lying shapes: they saturate instead of wrapping.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace orknn::compile {

constexpr uint64_t kMostFigure = uint64_t{1} << 60;

constexpr uint64_t mul(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t f : factors) {
    if (f == 0) return 0;
    if (result > kMostFigure / f)
      result = kMostFigure;
    else
      result *= f;
  }
  return result;
}
constexpr uint64_t add(uint64_t a, uint64_t b) {
  return std::min(kMostFigure, std::min(kMostFigure, a) + std::min(kMostFigure, b));
}
constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return b ? a / b + (a % b != 0) : a; }
constexpr uint64_t pad(uint64_t value, uint64_t multiple) { return mul({ceil_div(value, multiple), multiple}); }
constexpr uint64_t u(int64_t v) { return v > 0 ? static_cast<uint64_t>(v) : 0; }

}  // namespace orknn::compile
