// What calibration samples show about the values of one tensor: extremes and a histogram that grows with them. Memory does not depend on
// the number of samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor_data.h"

namespace orknn::quantize {

class Statistics {
 public:
  static constexpr size_t kBins = 2048;

  // Adds the values of one sample. Values that are not finite are counted and otherwise left out.
  void add(std::span<const float> values);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }                // finite values
  int64_t not_finite() const { return not_finite_; }
  float min() const { return min_; }
  float max() const { return max_; }
  // Mean over samples of the sample's extremes, later samples counting more (Toolkit1's moving average).
  float moving_min() const { return moving_min_; }
  float moving_max() const { return moving_max_; }

  // Values in [lower_edge() + i * bin_width(), ... + bin_width()) are counted in bins()[i].
  std::span<const int64_t> bins() const { return bins_; }
  double lower_edge() const { return lower_; }
  double bin_width() const { return width_; }

 private:
  void cover(double low, double high);

  int64_t count_ = 0, not_finite_ = 0, samples_ = 0;
  float min_ = 0, max_ = 0, moving_min_ = 0, moving_max_ = 0;
  double lower_ = 0, width_ = 0;
  std::vector<int64_t> bins_;
};

}  // namespace orknn::quantize
