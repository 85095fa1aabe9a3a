#include "quantize/statistics.h"

#include <algorithm>
#include <cmath>

namespace orknn::quantize {
namespace {
constexpr double kMovingWeight = 0.1;  // of a new sample
}

void Statistics::add(std::span<const float> values) {
  float low = INFINITY, high = -INFINITY;
  int64_t finite = 0;
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
    ++finite;
  }
  not_finite_ += static_cast<int64_t>(values.size()) - finite;
  if (finite == 0) return;
  if (count_ == 0) {
    min_ = moving_min_ = low;
    max_ = moving_max_ = high;
  } else {
    min_ = std::min(min_, low);
    max_ = std::max(max_, high);
    moving_min_ = static_cast<float>(moving_min_ + kMovingWeight * (low - moving_min_));
    moving_max_ = static_cast<float>(moving_max_ + kMovingWeight * (high - moving_max_));
  }
  count_ += finite;
  ++samples_;
  cover(min_, max_);
  const double per_width = 1 / width_;
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    const auto bin = static_cast<int64_t>((v - lower_) * per_width);
    ++bins_[static_cast<size_t>(std::clamp<int64_t>(bin, 0, static_cast<int64_t>(kBins) - 1))];
  }
}

// Widens the histogram, doubling the bins' width as often as needed; counts move to the bins that now hold them.
void Statistics::cover(double low, double high) {
  if (bins_.empty()) {
    const double reach = std::max({std::abs(low), std::abs(high), 1e-30});
    const double span = std::max(high - low, reach * 1e-3);
    width_ = span * 1.0001 / kBins;
    lower_ = low;
    bins_.assign(kBins, 0);
  }
  while (low < lower_ || high > lower_ + width_ * kBins) {
    std::vector<int64_t> wider(kBins, 0);
    // Grow to the side that lacks room.
    const bool downwards = low < lower_;
    const size_t shift = downwards ? kBins / 2 : 0;
    for (size_t i = 0; i < kBins; ++i) wider[shift + i / 2] += bins_[i];
    if (downwards) lower_ -= width_ * kBins;
    width_ *= 2;
    bins_ = std::move(wider);
  }
}

}  // namespace orknn::quantize
