// What calibration samples show about the values of one tensor: extremes and moments, also per channel, and a histogram that
// grows with them. Memory does not depend on the number of samples, and the figures depend on the values and their order alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ir/tensor_data.h"

namespace orknn::quantize {

// Of the values of one channel; sums are taken in a fixed order.
struct ChannelStatistics {
  float min = 0, max = 0;
  double sum = 0, squares = 0;
  int64_t count = 0;

  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  double mean_square() const { return count > 0 ? squares / static_cast<double>(count) : 0; }
};

// Values counted in bins of equal width.
class Histogram {
 public:
  static constexpr size_t kBins = 2048;

  // Widens it, so that it holds values of [low, high].
  void cover(double low, double high);
  // Values that are not finite are left out; each of the others, which cover() has to know of, counts `weight`.
  void add(std::span<const float> values, double weight);
  // Value i counts weights[i % weights.size()].
  void add(std::span<const float> values, std::span<const float> weights);
  // Counts of a histogram with the same bins.
  void add(const Histogram& other);
  Histogram without_counts() const;
  void clear() { bins_.clear(); }

  bool empty() const { return bins_.empty(); }
  // Values in [lower_edge() + i * bin_width(), ... + bin_width()) are counted in bins()[i].
  std::span<const double> bins() const { return bins_; }
  double lower_edge() const { return lower_; }
  double bin_width() const { return width_; }

 private:
  size_t bin_of(float value, double per_width) const;

  double lower_ = 0, width_ = 0;
  std::vector<double> bins_;
};

// How much the layers after a tensor make of an error in each of its channels: 1 on average. They lie along `axis`, which is 1 or
// the last one.
struct AxisImportance {
  size_t axis = 1;
  std::vector<float> channels;

  bool operator==(const AxisImportance&) const = default;
};

struct MeasuredRow;  // what one channel of one sample holds

class Statistics {
 public:
  // Extremes and moments only, when no algorithm asks for the histogram: it costs more than the rest. `importance` for the
  // weighted histogram.
  explicit Statistics(bool histogram = true, AxisImportance importance = {})
      : counts_values_(histogram), importance_(std::move(importance)) {}

  // Adds the values of one sample. Values that are not finite are counted and otherwise left out. Tensors of two or more axes
  // have their channels on axis 1.
  void add(const ir::TensorView& value);
  // To each of `all`, looking at the values once.
  static void add(const ir::TensorView& value, std::initializer_list<Statistics*> all);
  // Extremes along the axes that hold features where those are not the channels: the last one, and axis 2 of 5.
  void add_features(const ir::TensorView& value);
  void add(std::span<const float> values);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }  // finite values
  int64_t not_finite() const { return not_finite_; }
  int64_t first_not_finite() const { return first_not_finite_; }  // number of the sample, from 0; -1 = none
  bool varies() const { return varies_; }                         // some value differs from another
  // Samples of several values that were all the same, and the first of them from 0; -1 = none.
  int64_t constant_samples() const { return constant_samples_; }
  int64_t first_constant() const { return first_constant_; }
  float min() const { return min_; }
  float max() const { return max_; }
  // Mean over samples of the sample's extremes, later samples counting more (Toolkit1's moving average).
  float moving_min() const { return moving_min_; }
  float moving_max() const { return moving_max_; }
  // How far below, or above, zero the furthest value of all samples lies, by how far that of a sample lies on average: at least
  // 1, also where there is none.
  double stretch_below() const { return stretch(-min_, below_); }
  double stretch_above() const { return stretch(max_, above_); }

  // Empty for tensors without channels and for those whose number of channels changed.
  std::span<const ChannelStatistics> channels() const { return channels_; }
  // As if channel c had been multiplied by factors[c] > 0 in every sample; the histogram and the moving extremes have to be taken
  // anew.
  void scale_channels(std::span<const double> factors);

  // What add_features() saw, an entry per axis: least and largest value of each index.
  struct Features {
    size_t axis = 0;
    std::vector<float> low, high;
  };
  std::span<const Features> features() const { return features_; }

  const Histogram& histogram() const { return histogram_; }
  // Values count as much as their channels are important; begins with the first sample that shows channels which stretch the
  // range although the layers after it hardly read them, empty without one.
  const Histogram& weighted_histogram() const { return weighted_histogram_; }
  const AxisImportance& importance() const { return importance_; }
  // The layers after it have changed: nothing is known of their importance any more.
  void forget_importance();
  // Squared error of all values, weighted, that are rounded to multiples of `step`: at most the values themselves get lost.
  double weighted_rounding_error(double step) const;

 private:
  // `rows`: what was measured of each row of `row` values; `columns`: of each index of the last axis, where importance asks for
  // it.
  void add_rows(std::span<const float> values, size_t channels, size_t row, std::span<const MeasuredRow> rows,
                std::span<const MeasuredRow> columns);
  bool looks_stretched() const;
  double stretch(double furthest, double of_samples) const;
  bool weighs_columns() const { return importance_.axis != 1; }
  // The channels that importance speaks of.
  std::span<const ChannelStatistics> weighed_channels() const { return weighs_columns() ? columns_ : channels_; }

  bool counts_values_ = true, counts_weighted_ = false;
  AxisImportance importance_;
  int64_t count_ = 0, not_finite_ = 0, first_not_finite_ = -1, constant_samples_ = 0, first_constant_ = -1, added_ = 0;
  bool varies_ = false;
  float min_ = 0, max_ = 0, moving_min_ = 0, moving_max_ = 0;
  double below_ = 0, above_ = 0;  // how far below and above zero samples reach, added up
  int64_t shown_ = 0;             // samples with finite values
  std::vector<ChannelStatistics> channels_, columns_;
  std::vector<Features> features_;
  Histogram histogram_, weighted_histogram_;
};

}  // namespace orknn::quantize
