// PRelu and LeakyRelu in integers: with the convolution before them, and alone.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "quantize/quantize.h"

namespace orknn::quantize {
namespace {
using namespace ir;

constexpr size_t kValues = 96;

TensorData sample() {
  TensorData x = TensorData::allocate(DType::Float32, {1, 2, 6, 8});
  for (size_t i = 0; i < kValues; ++i)
    static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i * 37 % kValues) / (kValues / 2) - 1;
  return x;
}

struct Quantized {
  Graph graph;
  double worst = 0;  // difference to the float network, in steps of the result
};

Quantized quantized(const std::string& layers) {
  Quantized q;
  const std::string text = "graph \"g\" (%x: float32[1,2,6,8]) -> (%y) {\n" + layers + "}";
  auto graph = parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  EXPECT_TRUE(infer_shapes(*graph, ops::builtin_ops()));
  TensorStatistics statistics;
  const TensorData x = sample();
  statistics.try_emplace("x").first->second.add(x.view());
  ops::EvalOptions options;
  options.observe = [&](TensorId t, const TensorData& value) {
    statistics.try_emplace(graph->tensor(t).name).first->second.add(value.view());
  };
  const auto exact = ops::eval_graph(*graph, ops::builtin_ops(), std::span(&x, 1), options);
  EXPECT_TRUE(exact);
  q.graph = std::move(*graph);
  QuantizeOptions choice;
  choice.leave_out(kCorrectBias);
  const auto decisions = quantize(q.graph, ops::builtin_ops(), LayerForms(q.graph), {.statistics = statistics}, choice);
  EXPECT_TRUE(decisions) << decisions.status().to_string();
  for (const LayerDecision& d : *decisions) EXPECT_TRUE(d.integer) << d.op << ": " << d.reason;
  EXPECT_TRUE(infer_shapes(q.graph, ops::builtin_ops()));
  const QuantParams &in = *q.graph.tensor(q.graph.inputs()[0]).quant, &out = *q.graph.tensor(q.graph.outputs()[0]).quant;
  std::vector<int64_t> codes;
  for (size_t i = 0; i < kValues; ++i) codes.push_back(rounded(x.as<float>()[i], in.scale[0], in.zero_point[0], {}));
  const TensorData integers = integer_tensor(DType::Int8, x.dims(), codes);
  const auto results = ops::eval_graph(q.graph, ops::builtin_ops(), std::span(&integers, 1));
  EXPECT_TRUE(results) << results.status().to_string();
  const std::vector<double> want = to_doubles((*exact)[0].view()), got = to_doubles((*results)[0].view());
  for (size_t i = 0; i < want.size(); ++i)
    q.worst = std::max(q.worst, std::abs(want[i] / out.scale[0] - (got[i] - out.zero_point[0])));
  return q;
}

const Node* only(const Graph& g, std::string_view op) {
  return g.node_count() == 1 && g.node(g.order()[0]).op == op ? &g.node(g.order()[0]) : nullptr;
}

constexpr const char* kWeights =
    "  %w: float32[3,2,1,1] = const {0.5, -0.3, 0.21, 0.8, -0.7, 0.11}\n  %b: float32[3] = const {0.1, -0.2, 0.05}\n";

TEST(Slopes, ConvolutionTakesASlopePerChannel) {
  const Quantized q =
      quantized(std::string(kWeights) + "  %s: float32[3,1,1] = const {0.25, -0.5, 1.5}\n  %y = Conv(%x, %w, %b) + PRelu(%s)\n");
  const Node* conv = only(q.graph, "int:Conv");
  ASSERT_TRUE(conv) << print(q.graph);
  EXPECT_EQ(conv->attributes.ints_or("slope_multiplier").size(), 3u);
  EXPECT_FALSE(conv->has_input(4));  // no table
  EXPECT_LT(q.worst, 3);
}

TEST(Slopes, OneSlopeForAllAndATableAfterIt) {
  const Quantized leaky = quantized(std::string(kWeights) + "  %y = Conv(%x, %w, %b) + LeakyRelu() {alpha = 0.1}\n");
  ASSERT_TRUE(only(leaky.graph, "int:Conv")) << print(leaky.graph);
  EXPECT_TRUE(only(leaky.graph, "int:Conv")->attributes.has("slope_multiplier"));
  EXPECT_LT(leaky.worst, 3);
  const Quantized clipped =
      quantized(std::string(kWeights) +
                "  %s: float32[1] = const {0.25}\n  %y = Conv(%x, %w, %b) + PRelu(%s) + Clip() {min = -0.1, max = 0.6}\n");
  EXPECT_TRUE(only(clipped.graph, "int:Conv")) << print(clipped.graph);
  EXPECT_LT(clipped.worst, 3);
  const Quantized sigmoid =
      quantized(std::string(kWeights) +
                "  %s: float32[3,1,1] = const {0.25, -0.5, 1.5}\n  %y = Conv(%x, %w, %b) + PRelu(%s) + Sigmoid()\n");
  ASSERT_TRUE(only(sigmoid.graph, "int:Conv")) << print(sigmoid.graph);
  EXPECT_TRUE(only(sigmoid.graph, "int:Conv")->has_input(4));
  EXPECT_LT(sigmoid.worst, 3);
}

TEST(Slopes, AloneWithASlopePerChannel) {
  // A vector that fits the last axis belongs to it, whatever the number of channels.
  for (const char* slope : {"float32[2,1,1] = const {0.25, -0.5}", "float32[8] = const {0.25, -0.5, 0, 1, 2, 0.1, 0.3, 1.5}"}) {
    const Quantized q = quantized(std::string("  %s: ") + slope + "\n  %y = PRelu(%x, %s)\n");
    const Node* alone = only(q.graph, "int:PRelu");
    ASSERT_TRUE(alone) << print(q.graph);
    EXPECT_EQ(alone->attributes.int_or("axis", 0), slope[8] == '2' ? 1 : 3);
    EXPECT_LT(q.worst, 2);
  }
}

TEST(Slopes, AfterAnAdditionAsALayerOfItsOwn) {
  const Quantized q = quantized(
      "  %w: float32[2,2,1,1] = const {0.5, -0.3, 0.21, 0.8}\n  %s: float32[2,1,1] = const {0.25, -0.5}\n  %c = Conv(%x, %w) + "
      "Add(%x)\n  %y = PRelu(%c, %s)\n");
  EXPECT_EQ(q.graph.node_count(), 2u) << print(q.graph);
  EXPECT_LT(q.worst, 4);
}

}  // namespace
}  // namespace orknn::quantize
