#include "quantize/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/threads.h"
#include "quantize/wide.h"

namespace orknn::quantize {

struct MeasuredRow {
  float min = INFINITY, max = -INFINITY;
  double sum = 0, squares = 0;
  int64_t count = 0;

  void merge(const MeasuredRow& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    sum += other.sum;
    squares += other.squares;
    count += other.count;
  }
};

namespace {
constexpr double kMovingWeight = 0.1;  // of a new sample
// Beyond this the axis is no list of channels.
constexpr int64_t kMaxChannels = 8192;

// Sums run in lanes of float over short blocks, and the blocks are added in double, always in this order: the compiler may
// use as wide registers as it likes without changing a bit.
constexpr size_t kLanes = 16, kBlock = 64 * kLanes;
struct Lanes {
  float low[kLanes], high[kLanes], sum[kLanes], squares[kLanes];
};

ORKNN_WIDE void add_block(const float* values, size_t count, Lanes& to) {
  Lanes lanes = to;
  for (size_t i = 0; i < count; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) {
      const float v = values[i + k];
      lanes.low[k] = v < lanes.low[k] ? v : lanes.low[k];
      lanes.high[k] = v > lanes.high[k] ? v : lanes.high[k];
      lanes.sum[k] += v;
      lanes.squares[k] += v * v;
    }
  to = lanes;
}

MeasuredRow measure(std::span<const float> values) {
  Lanes lanes;
  std::fill_n(lanes.low, kLanes, INFINITY);
  std::fill_n(lanes.high, kLanes, -INFINITY);
  MeasuredRow row;
  for (size_t block = 0; block < values.size(); block += kBlock) {
    std::fill_n(lanes.sum, kLanes, 0.f);
    std::fill_n(lanes.squares, kLanes, 0.f);
    const size_t end = std::min(values.size(), block + kBlock), whole = end - (end - block) % kLanes;
    add_block(values.data() + block, whole - block, lanes);
    for (size_t i = whole; i < end; ++i) {
      const float v = values[i];
      lanes.low[0] = v < lanes.low[0] ? v : lanes.low[0];
      lanes.high[0] = v > lanes.high[0] ? v : lanes.high[0];
      lanes.sum[i - whole] += v;
      lanes.squares[i - whole] += v * v;
    }
    for (size_t k = 0; k < kLanes; ++k) {
      row.sum += lanes.sum[k];
      row.squares += lanes.squares[k];
    }
  }
  for (size_t k = 0; k < kLanes; ++k) {
    row.min = std::min(row.min, lanes.low[k]);
    row.max = std::max(row.max, lanes.high[k]);
  }
  row.count = static_cast<int64_t>(values.size());
  if (std::isfinite(row.sum) && std::isfinite(row.squares)) return row;
  // Values that are not finite, or too large for sums in float.
  row = {};
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    row.merge({v, v, v, static_cast<double>(v) * v, 1});
  }
  return row;
}

std::vector<MeasuredRow> measure_rows(std::span<const float> values, size_t row) {
  std::vector<MeasuredRow> rows(row > 0 ? values.size() / row : 0);
  ThreadPool::shared().parallel_for(static_cast<int64_t>(rows.size()),
                                    std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(static_cast<int64_t>(row), 1)),
                                    [&](int64_t begin, int64_t end) {
                                      for (int64_t i = begin; i < end; ++i)
                                        rows[static_cast<size_t>(i)] = measure(values.subspan(static_cast<size_t>(i) * row, row));
                                    });
  return rows;
}

// What each index of the last axis holds, which has `extent` of them.
std::vector<MeasuredRow> measure_columns(std::span<const float> values, size_t extent) {
  std::vector<MeasuredRow> columns(extent);
  ThreadPool::shared().parallel_for(static_cast<int64_t>(extent), 64, [&](int64_t begin, int64_t end) {
    for (size_t row = 0; row < values.size(); row += extent)
      for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c)
        if (const float v = values[row + c]; std::isfinite(v)) columns[c].merge({v, v, v, static_cast<double>(v) * v, 1});
  });
  return columns;
}

void merge(ChannelStatistics& c, const MeasuredRow& measured) {
  if (measured.count == 0) return;
  c.min = c.count == 0 ? measured.min : std::min(c.min, measured.min);
  c.max = c.count == 0 ? measured.max : std::max(c.max, measured.max);
  c.sum += measured.sum;
  c.squares += measured.squares;
  c.count += measured.count;
}
}  // namespace

void Statistics::add(const ir::TensorView& value) { add(value, {this}); }

void Statistics::add(const ir::TensorView& value, std::initializer_list<Statistics*> all) {
  const auto values = value.values<float>();
  size_t channels = 0, row = values.size();
  if (value.rank() >= 2 && value.dims[1] >= 1 && value.dims[1] <= kMaxChannels && !values.empty()) {
    channels = static_cast<size_t>(value.dims[1]);
    row = 1;
    for (size_t i = 2; i < value.dims.size(); ++i) row *= static_cast<size_t>(value.dims[i]);
  }
  const std::vector<MeasuredRow> rows = measure_rows(values, row);
  std::vector<MeasuredRow> columns;
  if (std::ranges::any_of(all, &Statistics::weighs_columns) && value.rank() >= 2 && value.dims.back() >= 1 &&
      value.dims.back() <= kMaxChannels && !values.empty())
    columns = measure_columns(values, static_cast<size_t>(value.dims.back()));
  for (Statistics* s : all) s->add_rows(values, channels, row, rows, columns);
}

void Statistics::add_features(const ir::TensorView& value) {
  const std::span<const int64_t> dims = value.dims;
  if (dims.size() < 3 || value.count() == 0) return;
  if (features_.empty()) {
    features_.push_back({dims.size() - 1, {}, {}});
    if (dims.size() == 5) features_.push_back({2, {}, {}});
  }
  for (Features& f : features_) {
    const auto extent = static_cast<size_t>(f.axis < dims.size() ? dims[f.axis] : 0);
    if (f.low.empty()) {
      f.low.assign(extent, INFINITY);
      f.high.assign(extent, -INFINITY);
    }
    if (f.low.size() != extent || extent == 0) continue;
    size_t inner = 1;
    for (size_t i = f.axis + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
    const std::span<const float> values = value.values<float>();
    for (size_t at = 0; at < values.size();)
      for (size_t k = 0; k < extent; ++k)
        for (size_t i = 0; i < inner; ++i, ++at) {
          f.low[k] = values[at] < f.low[k] ? values[at] : f.low[k];
          f.high[k] = values[at] > f.high[k] ? values[at] : f.high[k];
        }
  }
}

void Statistics::add(std::span<const float> values) {
  add_rows(values, 0, values.size(), measure_rows(values, values.size()), {});
}

void Statistics::add_rows(std::span<const float> values, size_t channels, size_t row, std::span<const MeasuredRow> rows,
                          std::span<const MeasuredRow> columns) {
  if (!weighs_columns()) columns = {};
  if (added_ == 0) {
    channels_.resize(channels);
    columns_.resize(columns.size());
  }
  if (channels_.size() != channels) channels_.clear();
  if (columns_.size() != columns.size()) columns_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) merge(columns_[i], columns[i]);
  MeasuredRow all;
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& measured = rows[i];
    all.merge(measured);
    if (!channels_.empty()) merge(channels_[i % channels], measured);
  }
  const int64_t missing = static_cast<int64_t>(values.size()) - all.count;
  if (missing > 0 && first_not_finite_ < 0) first_not_finite_ = added_;
  not_finite_ += missing;
  varies_ |= all.count > 0 && (all.min != all.max || (count_ > 0 && (all.min != min_ || all.max != max_)));
  if (all.count > 1 && all.min == all.max) {
    if (first_constant_ < 0) first_constant_ = added_;
    ++constant_samples_;
  }
  ++added_;
  if (all.count == 0) return;
  below_ += std::max(0.f, -all.min);
  above_ += std::max(0.f, all.max);
  ++shown_;
  if (count_ == 0) {
    min_ = moving_min_ = all.min;
    max_ = moving_max_ = all.max;
  } else {
    min_ = std::min(min_, all.min);
    max_ = std::max(max_, all.max);
    moving_min_ = static_cast<float>(moving_min_ + kMovingWeight * (all.min - moving_min_));
    moving_max_ = static_cast<float>(moving_max_ + kMovingWeight * (all.max - moving_max_));
  }
  count_ += all.count;
  // In a fixed number of parts: sums do not depend on the number of threads.
  const auto count = [&](Histogram& to, size_t length, auto add_row) {
    constexpr size_t kParts = 8;
    to.cover(min_, max_);
    std::vector<Histogram> parts(kParts, to.without_counts());
    const size_t lines = values.size() / length;
    ThreadPool::shared().parallel_for(kParts, 1, [&](int64_t begin, int64_t end) {
      for (auto p = static_cast<size_t>(begin); p < static_cast<size_t>(end); ++p)
        for (size_t i = p * lines / kParts; i < (p + 1) * lines / kParts; ++i)
          add_row(parts[p], values.subspan(i * length, length), i);
    });
    for (const Histogram& part : parts) to.add(part);
  };
  if (counts_values_) count(histogram_, row, [](Histogram& to, std::span<const float> line, size_t) { to.add(line, 1.0); });
  const std::span<const float> weights = importance_.channels;
  if (weighed_channels().size() != weights.size()) forget_importance();
  // Asked of samples 1, 2, 4, 8, ...: the first may be blank, and asking costs as much as a row of values per channel.
  if (!counts_weighted_ && std::has_single_bit(static_cast<uint64_t>(added_))) counts_weighted_ = looks_stretched();
  if (!counts_weighted_) return;
  if (weighs_columns())
    count(weighted_histogram_, weights.size(),
          [&](Histogram& to, std::span<const float> line, size_t) { to.add(line, weights); });
  else
    count(weighted_histogram_, row, [&](Histogram& to, std::span<const float> line, size_t i) {
      to.add(line, static_cast<double>(weights[i % channels]));
    });
}

double Statistics::stretch(double furthest, double of_samples) const {
  return furthest > 0 ? furthest * static_cast<double>(shown_) / of_samples : 1;
}

// A guess from the moments of the channels whether a smaller range would pay (cut_outliers() in ranges.h); taken to be like
// Laplace's, a channel of mean square m loses m / 2 * exp(-sqrt(2 / m) * limit) to a limit.
bool Statistics::looks_stretched() const {
  const std::span<const ChannelStatistics> channels = weighed_channels();
  const std::span<const float> importance = importance_.channels;
  if (importance.empty()) return false;
  const double reach = std::max(std::abs(max_), std::abs(min_)), step = (std::max(max_, 0.f) - std::min(min_, 0.f)) / 255.0;
  const double before = weighted_rounding_error(step);
  constexpr double kWorthCounting = 0.15;
  for (double part = 0.5; part > 0.01; part /= 2) {
    double error = weighted_rounding_error(part * step);
    for (size_t c = 0; c < channels.size(); ++c) {
      const ChannelStatistics& own = channels[c];
      const double square = own.mean_square(), limit = part * reach;
      if (square > 0 && std::max(std::abs(own.min), std::abs(own.max)) > limit)
        error += importance[c] * static_cast<double>(own.count) * square / 2 * std::exp(-std::sqrt(2 / square) * limit);
    }
    if (error < before * kWorthCounting) return true;
  }
  return false;
}

double Statistics::weighted_rounding_error(double step) const {
  const std::span<const ChannelStatistics> channels = weighed_channels();
  double error = 0;
  for (size_t c = 0; c < channels.size() && c < importance_.channels.size(); ++c)
    error +=
        importance_.channels[c] * static_cast<double>(channels[c].count) * std::min(step * step / 12, channels[c].mean_square());
  return error;
}

void Statistics::forget_importance() {
  importance_ = {};
  columns_.clear();
  weighted_histogram_.clear();
  counts_weighted_ = false;
}

void Statistics::scale_channels(std::span<const double> factors) {
  ORKNN_ASSERT(factors.size() == channels_.size(), "one factor per channel");
  histogram_.clear();
  forget_importance();
  bool first = true;
  for (size_t i = 0; i < factors.size(); ++i) {
    ChannelStatistics& c = channels_[i];
    if (c.count == 0) continue;
    c.min = static_cast<float>(c.min * factors[i]);
    c.max = static_cast<float>(c.max * factors[i]);
    c.sum *= factors[i];
    c.squares *= factors[i] * factors[i];
    min_ = moving_min_ = first ? c.min : std::min(min_, c.min);
    max_ = moving_max_ = first ? c.max : std::max(max_, c.max);
    first = false;
  }
  below_ = static_cast<double>(shown_) * std::max(0.f, -min_);
  above_ = static_cast<double>(shown_) * std::max(0.f, max_);
}

// The width of the bins is doubled as often as needed; counts move to the bins that now hold them.
void Histogram::cover(double low, double high) {
  if (bins_.empty()) {
    const double reach = std::max({std::abs(low), std::abs(high), 1e-30});
    const double span = std::max(high - low, reach * 1e-3);
    width_ = span * 1.0001 / kBins;
    lower_ = low;
    bins_.assign(kBins, 0);
  }
  while (low < lower_ || high > lower_ + width_ * kBins) {
    std::vector<double> wider(kBins, 0);
    // Grow to the side that lacks room.
    const bool downwards = low < lower_;
    const size_t shift = downwards ? kBins / 2 : 0;
    for (size_t i = 0; i < kBins; ++i) wider[shift + i / 2] += bins_[i];
    if (downwards) lower_ -= width_ * kBins;
    width_ *= 2;
    bins_ = std::move(wider);
  }
}

Histogram Histogram::without_counts() const {
  Histogram empty = *this;
  std::fill(empty.bins_.begin(), empty.bins_.end(), 0.0);
  return empty;
}

void Histogram::add(const Histogram& other) {
  for (size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

size_t Histogram::bin_of(float value, double per_width) const {
  const auto bin = static_cast<int64_t>((value - lower_) * per_width);
  return static_cast<size_t>(std::clamp<int64_t>(bin, 0, static_cast<int64_t>(kBins) - 1));
}

void Histogram::add(std::span<const float> values, double weight) {
  const double per_width = 1 / width_;
  for (float v : values)
    if (std::isfinite(v)) bins_[bin_of(v, per_width)] += weight;
}

void Histogram::add(std::span<const float> values, std::span<const float> weights) {
  const double per_width = 1 / width_;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) bins_[bin_of(values[i], per_width)] += weights[i % weights.size()];
}

}  // namespace orknn::quantize
