#include "quantize/weights.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
using namespace ir;

QuantizedWeights round_weights(const TensorData& weights, std::optional<int64_t> axis, std::span<const double> least_scales) {
  const Dims& dims = weights.dims();
  const int64_t channels = axis ? dims[static_cast<size_t>(*axis)] : 1;
  int64_t inner = 1;
  if (axis)
    for (size_t i = static_cast<size_t>(*axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  else
    inner = weights.count();
  const int64_t count = weights.count(), outer = channels * inner > 0 ? count / (channels * inner) : 0;
  const float* from = weights.as<float>();
  QuantizedWeights result;
  result.values = TensorData::allocate(DType::Int8, dims);
  result.scales.assign(static_cast<size_t>(channels), 0);
  auto* to = static_cast<int8_t*>(result.values.mutable_data());
  double least_of_all = 0;
  for (double s : least_scales) least_of_all = std::max(least_of_all, s);
  ThreadPool::shared().parallel_for(channels, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(outer * inner, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      float largest = 0;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) largest = std::max(largest, std::abs(from[(o * channels + c) * inner + i]));
      const double least = least_scales.empty() ? 0 : axis ? least_scales[static_cast<size_t>(c)] : least_of_all;
      double scale = std::max(static_cast<double>(largest) / 127, least);
      if (!(scale > 1e-30)) scale = 1;
      result.scales[static_cast<size_t>(c)] = scale;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t at = (o * channels + c) * inner + i;
          to[at] = static_cast<int8_t>(std::isnan(from[at]) ? 0.0 : std::clamp(std::nearbyint(from[at] / scale), -127.0, 127.0));
        }
    }
  });
  return result;
}

QuantizedConstant round_constant(const TensorData& value) {
  QuantizedConstant result;
  const float* from = value.as<float>();
  const int64_t count = value.count();
  Range range;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(from[i])) continue;
    range.low = std::min(range.low, static_cast<double>(from[i]));
    range.high = std::max(range.high, static_cast<double>(from[i]));
  }
  result.parameters = int8_parameters(range);
  const double scale = result.parameters.scale[0];
  const int32_t zero = result.parameters.zero_point[0];
  result.values = TensorData::allocate(DType::Int8, value.dims());
  auto* to = static_cast<int8_t*>(result.values.mutable_data());
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<int8_t>(std::isnan(from[i]) ? zero : std::clamp(std::nearbyint(from[i] / scale) + zero, -128.0, 127.0));
  return result;
}

}  // namespace orknn::quantize
