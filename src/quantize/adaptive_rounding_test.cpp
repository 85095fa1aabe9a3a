// Weights rounded so that a layer's result stays close on the samples.
#include "quantize/adaptive_rounding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

double error_of(std::span<const float> weights, std::span<const int8_t> integers, double scale,
                std::span<const float> covariance) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t j = 0; j < weights.size(); ++j)
      sum += (weights[i] - integers[i] * scale) * (weights[j] - integers[j] * scale) * covariance[i * weights.size() + j];
  return sum;
}

TEST(AdaptiveRounding, UsesThatInputsGoTogether) {
  // Two inputs that are nearly the same: errors of opposite sign cancel.
  const std::vector<float> weights{0.4f, 0.4f}, covariance{1, 0.99f, 0.99f, 1};
  const std::vector<int8_t> integers = round_row(weights, covariance, 1.0);
  EXPECT_EQ(integers[0] + integers[1], 1);
}

TEST(AdaptiveRounding, IsNeverWorseThanTheNearest) {
  constexpr size_t kSize = 24;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const std::vector<float> weights = noise(kSize, seed, 0.05f), factor = noise(kSize * kSize, seed + 100, 1);
    std::vector<float> covariance(kSize * kSize, 0);
    for (size_t i = 0; i < kSize; ++i)
      for (size_t j = 0; j < kSize; ++j) {
        for (size_t k = 0; k < kSize / 2; ++k) covariance[i * kSize + j] += factor[i * kSize + k] * factor[j * kSize + k];
        if (i == j) covariance[i * kSize + j] += 0.01f;
      }
    const double scale = 0.05 / 7;
    std::vector<int8_t> nearest(kSize);
    for (size_t i = 0; i < kSize; ++i) nearest[i] = static_cast<int8_t>(std::nearbyint(weights[i] / scale));
    EXPECT_LT(error_of(weights, round_row(weights, covariance, scale, 7), scale, covariance),
              0.5 * error_of(weights, nearest, scale, covariance))
        << seed;
  }
}

// The error is that of the layer's result on inputs like those of the samples, not that of single weights.
TEST(AdaptiveRounding, RoundsALayerCloserToItsFloatResult) {
  std::string text = R"(graph "g" (%x: float32[1,8,6,6]) -> (%y) {
  %w: float32[4,8,3,3] = const {)";
  const std::vector<float> weights = noise(4 * 8 * 9, 5, 0.3f);
  for (size_t i = 0; i < weights.size(); ++i) text += (i ? ", " : "") + std::to_string(weights[i]);
  text += "}\n  %y = Conv(%x, %w) {pads = [1,1,1,1]}\n}";
  const Graph graph = graph_of(text);
  const auto run = run_on({1, 8, 6, 6});
  const TensorData x = TensorData::from<float>({1, 8, 6, 6}, noise(8 * 36, 2, 1));  // the second sample
  const std::vector<double> exact = result_of(graph, x);
  const auto rounded = [&](bool adaptively) {
    Graph integers = graph;
    QuantizeOptions options;
    options.algorithm = Algorithm::Mmse;
    options.adaptive_rounding = true;
    if (!adaptively) options.leave_out(kRoundAdaptively);
    auto layers = quantized(integers, run, options);
    EXPECT_TRUE(layers) << layers.status().to_string();
    EXPECT_TRUE((*layers)[0].integer) << (*layers)[0].reason;
    return integers;
  };
  // Weights alone are rounded here: the layer is computed in floats with the weights that the integers stand for.
  const auto error = [&](const Graph& integers) {
    const Node& conv = integers.node(integers.order().back());
    const Tensor &w = integers.tensor(conv.input(1)), &b = integers.tensor(conv.input(2));
    std::vector<float> weights, bias;
    for (int64_t i = 0; i < w.constant.count(); ++i)
      weights.push_back(w.constant.as<int8_t>()[i] * w.quant->scale[static_cast<size_t>(i / (8 * 9))]);
    for (int64_t i = 0; i < b.constant.count(); ++i)
      bias.push_back(static_cast<float>(b.constant.as<int32_t>()[i]) * b.quant->scale[static_cast<size_t>(i)]);
    Graph real = graph;
    Node n = real.node(real.order().back());
    n.inputs = {n.input(0), real.add_constant("w8", TensorData::from<float>({4, 8, 3, 3}, weights)),
                real.add_constant("b8", TensorData::from<float>({4}, bias))};
    real.replace_node(real.order().back(), std::move(n));
    return distance(result_of(real, x), exact);
  };
  const Graph adaptive = rounded(true);
  EXPECT_LT(error(adaptive), 0.9 * error(rounded(false)));
  // Nothing depends on the order in which threads work: rounded again, the weights are the same.
  EXPECT_EQ(print(adaptive), print(rounded(true)));
}
}  // namespace
}  // namespace orknn::quantize
