#include "quantize/bias_correction.h"

#include "quantize/channel_weights.h"

namespace orknn::quantize {
using namespace ir;

std::vector<double> bias_correction(const Node& node, const TensorData& weights, const QuantizedWeights& rounded,
                                    std::span<const ChannelStatistics> input) {
  const float* real = weights.as<float>();
  const int8_t* integers = rounded.values.as<int8_t>();
  std::vector<double> mean, shift;
  for (const ChannelStatistics& c : input) mean.push_back(c.mean());
  bool known = true;
  visit_weights(node, weights.dims(), [&](int64_t at, int64_t output, int64_t from) {
    const auto o = static_cast<size_t>(output), c = static_cast<size_t>(from);
    if (c >= mean.size()) {
      known = false;
      return;
    }
    if (o >= shift.size()) shift.resize(o + 1, 0);
    const double scale = rounded.scales[rounded.scales.size() == 1 ? 0 : o];
    shift[o] += (static_cast<double>(real[at]) - integers[at] * scale) * mean[c];
  });
  return known ? shift : std::vector<double>();
}

}  // namespace orknn::quantize
