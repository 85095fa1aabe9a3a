// What a layer computes of its tail in integers.
#include "quantize/tails.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

// The bias of a matrix product, a residual and constants after a function are no roundings of their own.
TEST(Tails, ConstantsRoundWithTheirLayer) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,3,4]) -> (%y) {
  %w: float32[4,4] = const {0.5, -1, 0.25, 1, 2, 0.125, -0.5, 1, -1, 1, 0.75, 0.5, 0.25, 0.5, -0.5, 1}
  %b: float32[4] = const {0.5, -0.25, 1, 2}
  %three: float32[1] = const {3}
  %two: float32[] = const {2}
  %y = MatMul(%x, %w) + Add(%b) + Add(%x) + HardSwish() + Mul(%three, first) + Sub(%two, first)
})");
  const TensorData x = TensorData::from<float>({1, 3, 4}, noise(12, 2, 1));
  const std::vector<double> expected = result_of(graph, x);
  auto layers = quantized(graph, run_on({1, 3, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  ASSERT_EQ(layers->size(), 1u);
  EXPECT_TRUE((*layers)[0].integer) << (*layers)[0].reason;
  const double step = graph.tensor(graph.outputs()[0]).quant->scale[0];
  const std::vector<double> got = real_result(graph, x);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 3 * step) << i;
}

TEST(Tails, TellWhatALayerComputesAtOnce) {
  const auto computes = [](std::string_view layer) {
    const Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4], %z: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {2, 1, 0.5, -1}
  %y = )" + std::string(layer) + "\n}");
    return computes_tail(graph, graph.node(graph.order()[0]));
  };
  EXPECT_TRUE(computes("Conv(%x, %w) + Add(%z) + Relu()"));
  EXPECT_FALSE(computes("Conv(%x, %w) + Relu() + Add(%z)"));
  EXPECT_TRUE(computes("Add(%x, %z) + Relu()"));
  EXPECT_FALSE(computes("MaxPool(%x) {kernel_shape = [1,1]} + Relu()"));
  EXPECT_TRUE(computes("LRN(%x) {size = 3} + Relu() + Add(%z)"));  // computed in float anyway
}

TEST(Tails, StepsBeyondTheIntegerFormKeepTheirLayerInFloat) {
  const Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4], %z: float32[1,2,4,4]) -> (%y) {
  %m = MaxPool(%x) {kernel_shape = [1,1]}
  %y = MaxPool(%m) {kernel_shape = [1,1]} + Relu() + Add(%z) + Clip() {max = 6.0, min = -1.0}
})");
  const LayerForms forms(graph);
  EXPECT_EQ(forms[graph.order()[0]].form, Form::Move);
  EXPECT_EQ(forms[graph.order()[1]].form, Form::Float);
  EXPECT_EQ(forms[graph.order()[1]].reason, "its fused steps have no integer form");
}
}  // namespace
}  // namespace orknn::quantize
