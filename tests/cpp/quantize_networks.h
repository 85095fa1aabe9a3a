// Small networks computed on made-up samples, for tests of the quantizer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "quantize/calibrate.h"

namespace orknn::quantize::tests {
using namespace ir;

inline std::vector<float> noise(size_t count, unsigned seed, float spread) {
  std::minstd_rand random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = spread * (static_cast<float>(random() % 20001) / 10000 - 1);
  return values;
}

inline Graph graph_of(std::string_view text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  EXPECT_TRUE(infer_shapes(*parsed, ops::builtin_ops()));
  return std::move(*parsed);
}

// Computes a graph on four pictures of noise.
inline RunSamples run_on(Dims dims, float spread = 1) {
  return [dims, spread](const Graph& graph, size_t count, const Observe& observe) -> Status {
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> values = noise(static_cast<size_t>(element_count(dims)), static_cast<unsigned>(i + 1), spread);
      const TensorData x = TensorData::from<float>(dims, values);
      observe(graph.tensor(graph.inputs()[0]).name, x.view());
      ops::EvalOptions options;
      options.observe = [&](TensorId t, const TensorData& value) { observe(graph.tensor(t).name, value.view()); };
      ORKNN_TRY_ASSIGN(auto results, ops::eval_graph(graph, ops::builtin_ops(), std::span(&x, 1), options));
    }
    return {};
  };
}

inline std::vector<double> result_of(const Graph& graph, const TensorData& x) {
  auto results = ops::eval_graph(graph, ops::builtin_ops(), std::span(&x, 1));
  EXPECT_TRUE(results) << results.status().to_string();
  return to_doubles((*results)[0].view());
}

// The result of a quantized graph in real numbers, for real numbers.
inline std::vector<double> real_result(const Graph& graph, const TensorData& x) {
  const Tensor &in = graph.tensor(graph.inputs()[0]), &out = graph.tensor(graph.outputs()[0]);
  std::vector<int8_t> q;
  if (in.dtype == DType::Int8)
    for (float v : x.values<float>())
      q.push_back(
          static_cast<int8_t>(std::clamp(std::nearbyint(v / in.quant->scale[0]) + in.quant->zero_point[0], -128.0f, 127.0f)));
  std::vector<double> values = result_of(graph, in.dtype == DType::Int8 ? TensorData::from<int8_t>(x.dims(), q) : x);
  if (out.dtype == DType::Int8)
    for (double& v : values) v = (v - out.quant->zero_point[0]) * out.quant->scale[0];
  return values;
}

inline double distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

inline Result<Calibration> calibrated(Graph& graph, const RunSamples& run, const QuantizeOptions& options = {}) {
  return calibrate(graph, ops::builtin_ops(), LayerForms(graph), run, 4, options);
}

// Calibrates and quantizes.
inline Result<std::vector<LayerDecision>> quantized(Graph& graph, const RunSamples& run, const QuantizeOptions& options = {}) {
  ORKNN_TRY_ASSIGN(const Calibration calibration, calibrated(graph, run, options));
  return quantize(graph, ops::builtin_ops(), LayerForms(graph), calibration, options);
}

// Lines of the trace that a step left.
inline std::vector<std::string> lines_of(const passes::Trace& trace, const Step& step) {
  std::vector<std::string> lines;
  for (const passes::TraceEntry& e : trace.entries)
    if (e.pass == step.name) lines.push_back(e.text);
  return lines;
}

// Two channels after a function that no factor passes; the next layer reads the large one with weights that leave nothing of it.
constexpr const char* kStretched = R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %w) + HardSwish()
  %v: float32[2,1,1,1] = const {0.000001, 2}
  %y = Conv(%h, %v) {group = 2}
})";

}  // namespace orknn::quantize::tests
