#include "quantize/weights.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/threads.h"
#include "ops/support/requantize.h"
#include "quantize/parameters.h"
#include "quantize/wide.h"

namespace orknn::quantize {
using namespace ir;
namespace {
constexpr int64_t kRow = 256;  // numbers rounded at a time

// What rounded() makes of up to kRow numbers, for limits of 32 bits or less.
ORKNN_WIDE void round_row(const float* from, int64_t count, double scale, double zero, double low, double high, int32_t* to) {
  const double of_nan = std::clamp(zero, low, high);
  for (int64_t i = 0; i < count; ++i) {
    const double q = std::nearbyint(from[i] / scale) + zero, most = q < high ? q : high, kept = most > low ? most : low;
    to[i] = static_cast<int32_t>(q == q ? kept : of_nan);
  }
}

template <class T>
void round_run(const float* from, int64_t count, double scale, int64_t zero, Limits limits, T* to) {
  constexpr int64_t kWorthIt = 8;
  if (count < kWorthIt) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(rounded(from[i], scale, zero, limits));
    return;
  }
  int32_t integers[kRow];
  for (int64_t begin = 0; begin < count; begin += kRow) {
    const int64_t some = std::min(kRow, count - begin);
    round_row(from + begin, some, scale, static_cast<double>(zero), static_cast<double>(limits.low),
              static_cast<double>(limits.high), integers);
    for (int64_t i = 0; i < some; ++i) to[begin + i] = static_cast<T>(integers[i]);
  }
}
}  // namespace

void set_channel_scales(std::span<double> scales) {
  double largest = 0;
  for (double s : scales) largest = std::max(largest, s);
  if (!(largest > 1e-30)) largest = 1;
  constexpr auto kMost = static_cast<double>(ops::kMaxChannelFactor);
  for (double& s : scales) s = s > 1e-30 ? largest * (std::ceil(s / largest * kMost * (1 - 1e-12)) / kMost) : largest;
}

QuantizedWeights round_weights(const TensorData& weights, std::optional<int64_t> axis, std::span<const double> least_scales,
                               DType type, bool power_of_two) {
  const Dims& dims = weights.dims();
  const int64_t channels = axis ? dims[static_cast<size_t>(*axis)] : 1;
  int64_t inner = 1;
  if (axis)
    for (size_t i = static_cast<size_t>(*axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  else
    inner = weights.count();
  const int64_t count = weights.count(), outer = channels * inner > 0 ? count / (channels * inner) : 0;
  const float* from = weights.as<float>();
  const bool shifted = type == DType::UInt8;
  const Limits limits = limits_of(type, !shifted);
  QuantizedWeights result;
  result.values = TensorData::allocate(type, dims);
  result.scales.assign(static_cast<size_t>(channels), 0);
  if (shifted) result.zero_points.assign(static_cast<size_t>(channels), 0);
  double least_of_all = 0;
  for (double s : least_scales) least_of_all = std::max(least_of_all, s);
  std::vector<Range> ranges(static_cast<size_t>(channels));
  const auto measure_channel = [&](int64_t c) {
    Range& range = ranges[static_cast<size_t>(c)];
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const float v = from[(o * channels + c) * inner + i];
        if (!std::isfinite(v)) continue;  // infinity saturates, NaN becomes zero
        range.low = std::min<double>(range.low, v);
        range.high = std::max<double>(range.high, v);
      }
    const double least = least_scales.empty() ? 0 : axis ? least_scales[static_cast<size_t>(c)] : least_of_all;
    const double largest = shifted ? range.high - range.low : std::max(-range.low, range.high);
    double& scale = result.scales[static_cast<size_t>(c)];
    scale = std::max(largest / static_cast<double>(limits.high), least);
    if (power_of_two) scale = scale > 1e-30 ? std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(scale)))) : 1;
  };
  const auto round_channel = [&]<class T>(int64_t c, T* to) {
    const double scale = result.scales[static_cast<size_t>(c)], low = ranges[static_cast<size_t>(c)].low;
    const int64_t zero = shifted ? static_cast<int64_t>(std::clamp(-std::nearbyint(low / scale), 0.0, 255.0)) : 0;
    if (shifted) result.zero_points[static_cast<size_t>(c)] = zero;
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t at = (o * channels + c) * inner;
      round_run(from + at, inner, scale, zero, limits, to + at);
    }
  };
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(outer * inner, 1));
  const auto for_channels = [&](auto&& f) {
    ThreadPool::shared().parallel_for(channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) f(c);
    });
  };
  for_channels(measure_channel);
  if (!power_of_two) set_channel_scales(result.scales);
  void* bytes = result.values.mutable_data();
  for_channels([&](int64_t c) {
    if (type == DType::Int16)
      round_channel(c, static_cast<int16_t*>(bytes));
    else if (shifted)
      round_channel(c, static_cast<uint8_t*>(bytes));
    else
      round_channel(c, static_cast<int8_t*>(bytes));
  });
  release_mapped_pages(std::as_bytes(std::span(from, static_cast<size_t>(count))));  // rarely looked at again
  return result;
}

std::optional<QuantizedWeights> stored_weights(const TensorData& weights, const QuantParams& stated) {
  if (weights.dtype() != DType::Float32) return std::nullopt;
  const Dims& dims = weights.dims();
  const int64_t count = weights.count();
  int64_t inner = std::max<int64_t>(count, 1);
  if (stated.axis >= 0) inner = element_count(std::span(dims).subspan(static_cast<size_t>(stated.axis) + 1));
  const auto channels = static_cast<int64_t>(stated.scale.size());
  QuantizedWeights result;
  result.values = TensorData::allocate(DType::Int8, dims);
  result.scales.assign(stated.scale.begin(), stated.scale.end());
  result.zero_points.assign(stated.zero_point.begin(), stated.zero_point.end());
  const float* from = weights.as<float>();
  auto* to = static_cast<int8_t*>(result.values.mutable_data());
  for (int64_t i = 0; i < count; ++i) {
    const auto c = static_cast<size_t>(i / inner % channels);
    const double q = from[i] / result.scales[c] + static_cast<double>(result.zero_points[c]), whole = std::nearbyint(q);
    if (!(std::abs(q - whole) < 0.01) || whole < -128 || whole > 127) return std::nullopt;
    to[i] = static_cast<int8_t>(whole);
  }
  return result;
}

QuantizedConstant round_constant(const TensorData& value, DType type, bool power_of_two) {
  QuantizedConstant result;
  const float* from = value.as<float>();
  const int64_t count = value.count();
  Range range;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(from[i])) continue;
    range.low = std::min(range.low, static_cast<double>(from[i]));
    range.high = std::max(range.high, static_cast<double>(from[i]));
  }
  result.parameters = parameters_of(range, type, power_of_two);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(
        rounded(from[i], result.parameters.scale[0], result.parameters.zero_point[0], limits_of(type, power_of_two)));
  result.values = integer_tensor(type, value.dims(), values);
  return result;
}

}  // namespace orknn::quantize
