#include "quantize/adaptive_rounding.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/facts.h"
#include "quantize/input_moments.h"
#include "quantize/layer_forms.h"

namespace orknn::quantize {
using namespace ir;
namespace {

constexpr int kSweeps = 12;

RoundedLayer round_layer(const Graph& g, const InputMoments& l, const QuantizeOptions& options) {
  const Node& n = g.node(l.node);
  const TensorData& w = *g.constant(n.input(1));
  const int64_t outputs = w.count() / l.size, outputs_per_group = outputs / l.groups;
  const bool product = ops::facts_of(n).weights == Weights::Matrix;
  // Conv and a transposed Gemm keep a row's weights together; [K, N] has them a column apart.
  const bool rows = !product || n.attributes.int_or("transB", 0) != 0;
  const double alpha = product ? n.attributes.float_or("alpha", 1) : 1;
  RoundedLayer result;
  result.weights.values = TensorData::allocate(DType::Int8, product ? Dims{l.size, outputs} : w.dims());
  result.weights.scales.assign(static_cast<size_t>(outputs), 0);
  result.bias_shift.assign(static_cast<size_t>(outputs), 0);
  std::vector<int64_t> moved(static_cast<size_t>(outputs), 0);
  const float* from = w.as<float>();
  auto* to = static_cast<int8_t*>(result.weights.values.mutable_data());
  const auto weight = [&](int64_t o, int64_t k) {
    const float v = static_cast<float>(from[rows ? o * l.size + k : k * outputs + o] * alpha);
    return std::isfinite(v) ? v : 0.0f;
  };
  std::vector<double>& scales = result.weights.scales;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t k = 0; k < l.size; ++k)
      scales[static_cast<size_t>(o)] = std::max<double>(scales[static_cast<size_t>(o)], std::abs(weight(o, k)) / 127.0);
  if (!options.per_channel) std::ranges::fill(scales, *std::ranges::max_element(scales));
  set_channel_scales(scales);
  ThreadPool::shared().parallel_for(outputs, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(l.size));
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t k = 0; k < l.size; ++k) row[static_cast<size_t>(k)] = weight(o, k);
      const double scale = scales[static_cast<size_t>(o)];
      const int64_t group = o / outputs_per_group;
      const auto covariance =
          l.products.subspan(static_cast<size_t>(group * l.size * l.size), static_cast<size_t>(l.size * l.size));
      const std::vector<int8_t> integers = round_row(row, covariance, scale);
      double shift = 0;
      for (int64_t k = 0; k < l.size; ++k) {
        const auto at = static_cast<size_t>(k);
        moved[static_cast<size_t>(o)] += integers[at] != std::clamp(std::nearbyint(row[at] / scale), -127.0, 127.0);
        shift += (row[at] - integers[at] * scale) * l.sums[static_cast<size_t>(group * l.size + k)];
        to[product ? k * outputs + o : o * l.size + k] = integers[at];
      }
      result.bias_shift[static_cast<size_t>(o)] = shift;
    }
  });
  for (int64_t count : moved) result.moved += count;
  if (!options.per_channel) scales.resize(1);
  return result;
}
}  // namespace

std::vector<int8_t> round_row(std::span<const float> weights, std::span<const float> covariance, double scale, int limit) {
  const size_t size = weights.size();
  std::vector<double> error(size), slope(size, 0);
  std::vector<int8_t> result(size);
  for (size_t i = 0; i < size; ++i) {
    const double q = std::clamp(std::nearbyint(weights[i] / scale), static_cast<double>(-limit), static_cast<double>(limit));
    result[i] = static_cast<int8_t>(q);
    error[i] = weights[i] - q * scale;
  }
  for (size_t i = 0; i < size; ++i) {
    const float* row = covariance.data() + i * size;
    if (error[i] == 0) continue;
    for (size_t j = 0; j < size; ++j) slope[j] += error[i] * row[j];
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool moved = false;
    for (size_t i = 0; i < size; ++i) {
      const float* row = covariance.data() + i * size;
      const double wanted = std::nearbyint(slope[i] / (scale * row[i]));
      const double q = std::clamp(result[i] + wanted, static_cast<double>(-limit), static_cast<double>(limit));
      const double step = (q - result[i]) * scale;
      if (step == 0 || !(step * step * row[i] < 2 * step * slope[i])) continue;
      result[i] = static_cast<int8_t>(q);
      for (size_t j = 0; j < size; ++j) slope[j] -= step * row[j];
      moved = true;
    }
    if (!moved) break;
  }
  return result;
}

Result<RoundedLayers> round_adaptively(const Graph& graph, const LayerForms& forms, const RunSamples& run, size_t samples,
                                       const Calibration& calibration, const QuantizeOptions& options) {
  RoundedLayers result;
  const auto wanted = [&](NodeId id) {
    const Form form = forms[id].form;
    return (form == Form::Conv || form == Form::MatMul) &&
           !options.nearest_layers.contains(graph.tensor(graph.node(id).output()).name);
  };
  ORKNN_TRY(visit_input_moments(graph, run, samples, wanted, [&](const InputMoments& moments) {
    double rounding = 0;
    if (const auto seen = calibration.statistics.find(moments.input); seen != calibration.statistics.end()) {
      const Range range = calibration.range(seen->first, seen->second, options.algorithm, 8);
      rounding = (range.high - range.low) * (range.high - range.low) / (255.0 * 255 * 12);
    }
    finish(moments, true, rounding);
    result.emplace(graph.tensor(graph.node(moments.node).output()).name, round_layer(graph, moments, options));
  }));
  return result;
}

}  // namespace orknn::quantize
