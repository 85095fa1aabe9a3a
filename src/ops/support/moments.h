// Pieces shared by normalizations: mean and variance, parameters as double, axis splits.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

struct Moments {
  double mean = 0, variance = 0;  // of the population
};

template <class T>
Moments moments(const T* values, int64_t count) {
  if (count == 0) return {};
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(values[i]) - mean;
    squares += d * d;
  }
  return {mean, squares / static_cast<double>(count)};
}

// A shape seen as [outer, extent, inner] around one axis.
struct AxisSplit {
  int64_t outer = 1, extent = 1, inner = 1;
};
inline AxisSplit split_at(std::span<const int64_t> dims, int64_t axis) {
  const auto a = static_cast<size_t>(axis);
  return {ir::element_count(dims.first(a)), dims[a], ir::element_count(dims.subspan(a + 1))};
}

// Values of a tensor that broadcasts to `dims`. Where it has no extent above 1 outside the last `inner_rank` axes only those
// are expanded, so the result repeats with the period of its own size.
Result<std::vector<double>> repeating_values(const ir::TensorView& t, std::span<const int64_t> dims, size_t inner_rank);

// A parameter of one value per channel.
Result<std::vector<double>> channel_values(const ir::TensorView& t, int64_t channels, std::string_view what);

}  // namespace orknn::ops
