#include "quantize/bias_correction.h"

#include "quantize/channel_weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// `rounded_weight` gives weight `at` of output channel `o` as it will be multiplied.
template <class RoundedWeight>
std::vector<double> mean_shift(const Node& node, const TensorData& weights, std::span<const ChannelStatistics> input,
                               RoundedWeight rounded_weight) {
  const float* real = weights.as<float>();
  std::vector<double> mean;
  for (const ChannelStatistics& c : input) mean.push_back(c.mean());
  const WeightGrid grid(node, weights.dims());
  if (grid.inputs() > static_cast<int64_t>(mean.size())) return {};
  std::vector<double> shift(static_cast<size_t>(grid.outputs()), 0);
  sum_weights(grid, grid.rows_are_outputs, shift, [&](int64_t at, int64_t row, int64_t column) {
    const auto o = static_cast<size_t>(grid.rows_are_outputs ? row : column),
               c = static_cast<size_t>(grid.rows_are_outputs ? column : row);
    return (static_cast<double>(real[at]) - rounded_weight(at, o)) * mean[c];
  });
  return shift;
}
}  // namespace

std::vector<double> bias_correction(const Node& node, const TensorData& weights, const QuantizedWeights& rounded,
                                    std::span<const ChannelStatistics> input) {
  const auto shift = [&](const auto* integers) {
    return mean_shift(node, weights, input, [&](int64_t at, size_t o) {
      const size_t channel = rounded.scales.size() == 1 ? 0 : o;
      const int64_t zero = rounded.zero_points.empty() ? 0 : rounded.zero_points[channel];
      return static_cast<double>(integers[at] - zero) * rounded.scales[channel];
    });
  };
  if (rounded.values.dtype() == DType::UInt8) return shift(rounded.values.as<uint8_t>());
  return shift(rounded.values.as<int8_t>());
}

std::vector<double> bias_correction(const Node& node, const TensorData& weights, const TensorData& rounded,
                                    std::span<const ChannelStatistics> input) {
  return mean_shift(node, weights, input, [&](int64_t at, size_t) { return static_cast<double>(rounded.as<float>()[at]); });
}

}  // namespace orknn::quantize
