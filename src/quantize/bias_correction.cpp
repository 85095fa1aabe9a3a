#include "quantize/bias_correction.h"

#include "base/files.h"
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
  const auto term = [&](int64_t at, int64_t output, int64_t input) {
    return (static_cast<double>(real[at]) - rounded_weight(at, static_cast<size_t>(output))) * mean[static_cast<size_t>(input)];
  };
  if (grid.rows_are_outputs)
    sum_rows(grid, shift, term);
  else
    sum_columns(grid, shift, [&](int64_t row, int64_t first, int64_t columns, double* to) {
      int64_t at = (row * grid.columns + first) * grid.taps;
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t t = 0; t < grid.taps; ++t, ++at) to[c] += term(at, grid.first_column(row) + first + c, row);
    });
  release_mapped_pages(std::as_bytes(std::span(real, static_cast<size_t>(weights.count()))));  // rarely looked at again
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
