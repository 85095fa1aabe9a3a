// The batch of a model: the larger network gives what the small one gives for each sample.
#include "toolkit/batch.h"

#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

Graph network(const char* text) {
  Result<Graph> g = parse(text);
  EXPECT_TRUE(g) << g.status().to_string();
  EXPECT_TRUE(infer_shapes(*g, ops::builtin_ops()));
  return std::move(*g);
}

// Runs `graph` on samples of ascending numbers, one after the other and all at once.
void expect_same_results(const Graph& graph, int64_t batch) {
  const auto larger = with_batch(graph, ops::builtin_ops(), batch);
  ASSERT_TRUE(larger) << larger.status().to_string();
  ASSERT_EQ(larger->inputs().size(), graph.inputs().size());
  std::vector<TensorData> all;
  for (TensorId t : larger->inputs()) {
    TensorData value = TensorData::allocate(DType::Float32, *to_dims(*larger->tensor(t).shape));
    for (int64_t i = 0; i < value.count(); ++i) static_cast<float*>(value.mutable_data())[i] = static_cast<float>(i % 23) - 11;
    all.push_back(std::move(value));
  }
  const auto found = ops::eval_graph(*larger, ops::builtin_ops(), all);
  ASSERT_TRUE(found) << found.status().to_string();
  std::vector<std::vector<double>> expected(graph.outputs().size());
  for (int64_t k = 0; k < batch; ++k) {
    std::vector<TensorData> one;
    for (size_t i = 0; i < all.size(); ++i) {
      const Dims dims = *to_dims(*graph.tensor(graph.inputs()[i]).shape);
      const size_t count = static_cast<size_t>(all[i].count() / batch);
      one.push_back(TensorData::from<float>(dims, all[i].view().values<float>().subspan(static_cast<size_t>(k) * count, count)));
    }
    const auto results = ops::eval_graph(graph, ops::builtin_ops(), one);
    ASSERT_TRUE(results) << results.status().to_string();
    for (size_t i = 0; i < expected.size(); ++i)
      for (double v : to_doubles((*results)[i].view())) expected[i].push_back(v);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(larger->tensor(larger->outputs()[i]).name, graph.tensor(graph.outputs()[i]).name);
    EXPECT_EQ((*found)[i].dims()[0], batch * to_dims(*graph.tensor(graph.outputs()[i]).shape)->at(0));
    EXPECT_EQ(to_doubles((*found)[i].view()), expected[i]);
  }
}

TEST(Batch, LayersGetTheLargerExtentWhereSamplesStayApart) {
  const Graph g = network(R"(graph "g" (%x: float32[1,2,4,4], %z: float32[1,3,1,1]) -> (%y, %s) {
    %w: float32[3,2,3,3] = const splat 0.5
    %c = Conv(%x, %w) {pads = [1,1,1,1]}
    %a = Add(%c, %z)
    %one: float32[] = const {1}
    %o = Sub(%one, %a)
    %r = Relu(%o)
    %shape: int64[2] = const {1, 48}
    %f = Reshape(%r, %shape)
    %m: float32[48,4] = const splat 0.25
    %y = MatMul(%f, %m)
    %p = MaxPool(%r) {kernel_shape = [2,2]}
    %s = Flatten(%p)
  })");
  EXPECT_TRUE(works_on_samples_alone(g));
  const auto larger = with_batch(g, ops::builtin_ops(), 3);
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->node_count(), g.node_count());
  expect_same_results(g, 3);
}

TEST(Batch, WhatOpsSayAboutThemselvesIsEnough) {
  const Graph g = network(R"(graph "g" (%x: float32[1,4,1,2]) -> (%y) {
    %a = Sin(%x)
    %b = ThresholdedRelu(%a) {alpha = 0.25}
    %axes: int64[1] = const {2}
    %c = Squeeze(%b, %axes)
    %two: float32[] = const {2}
    %d = Mod(%c, %two) {fmod = 1}
    %y = LogSoftmax(%d) {axis = 1}
  })");
  EXPECT_TRUE(works_on_samples_alone(g));
  expect_same_results(g, 3);
}

TEST(Batch, OperatorsSayWhetherTheirAttributesKeepSamplesApart) {
  const struct {
    bool are_apart;
    const char* text;
  } kNetworks[] = {
      {true, R"(graph "g" (%x: float32[1,4,3]) -> (%y) { %y = Attention(%x, %x, %x) {q_num_heads = 1, kv_num_heads = 1} })"},
      {false, R"(graph "g" (%x: float32[1,4,3]) -> (%y) { %k: float32[1,4,3] = const splat 0.5
                 %y = Attention(%x, %k, %k) {q_num_heads = 1, kv_num_heads = 1} })"},
      {true, R"(graph "g" (%x: float32[1,4,3]) -> (%y) { %i: int64[2] = const {2, 0}  %y = Gather(%x, %i) {axis = 2} })"},
      {false, R"(graph "g" (%x: float32[2,3]) -> (%y) { %i: int64[2] = const {1, 0}  %y = Gather(%x, %i) })"},
      {true, R"(graph "g" (%x: float32[2,3]) -> (%y) { %t: float32[4,5] = const splat 0.5
                %i = Cast(%x) {to = 7}  %y = Gather(%t, %i) })"},
      {false, R"(graph "g" (%x: float32[2,2]) -> (%y) { %t: float32[2,5] = const splat 0.5
                 %i = Cast(%x) {to = 7}  %r = Gather(%t, %i) {axis = 1}  %a: int64[1] = const {1}
                 %y = ReduceMax(%r, %a) {keepdims = 0} })"},
      {true, R"(graph "g" (%x: float32[2,3,4]) -> (%y) { %y = Transpose(%x) {perm = [0,2,1]} })"},
      {false, R"(graph "g" (%x: float32[2,2]) -> (%y) { %y = Transpose(%x) {perm = [1,0]} })"},
      {true, R"(graph "g" (%x: float32[2,3,4]) -> (%y) { %y = Flatten(%x) })"},
      {false, R"(graph "g" (%x: float32[2,1,4]) -> (%y) { %y = Flatten(%x) {axis = 2} })"},
  };
  for (const auto& n : kNetworks) EXPECT_EQ(works_on_samples_alone(network(n.text)), n.are_apart) << n.text;
}

TEST(Batch, OtherNetworksAreRepeated) {
  for (
      const char* text : {
          // the batch is multiplied with itself
          R"(graph "g" (%x: float32[2,3]) -> (%y) { %t = Transpose(%x) {perm = [1,0]}  %y = MatMul(%x, %t) })",
          // the first axis is reduced
          R"(graph "g" (%x: float32[2,3]) -> (%y) { %axes: int64[1] = const {0}  %y = ReduceSum(%x, %axes) {keepdims = 1} })",
          // places of the largest values count through all samples
          R"(graph "g" (%x: float32[1,1,4,4]) -> (%y, %i) { %y, %i = MaxPool(%x) {kernel_shape = [2,2]} })",
          // the samples are multiplied with one matrix from the left
          R"(graph "g" (%x: float32[2,3]) -> (%y) { %w: float32[2,2] = const {1, 2, 3, 4}  %y = MatMul(%w, %x) })",
          // a constant for every sample of the source's batch
          R"(graph "g" (%x: float32[2,3]) -> (%y) { %c: float32[2,1] = const {1, 2}  %y = Mul(%x, %c) })",
          // rows of the picture move into the batch
          R"(graph "g" (%x: float32[1,3,2]) -> (%y) { %s: int64[2] = const {3, 2}  %r = Reshape(%x, %s)  %y = Softmax(%r) {axis = 0} })",
      }) {
    const Graph g = network(text);
    EXPECT_FALSE(works_on_samples_alone(g)) << text;
    expect_same_results(g, 2);
  }
}

TEST(Batch, RefusesPortsWithoutBatch) {
  const Graph g =
      network(R"(graph "g" (%x: float32[2]) -> (%y) { %axes: int64[1] = const {0}  %y = ReduceSum(%x, %axes) {keepdims = 0} })");
  const auto larger = with_batch(g, ops::builtin_ops(), 2);
  ASSERT_FALSE(larger);
  EXPECT_NE(larger.status().to_string().find("'y' has no batch"), std::string::npos) << larger.status().to_string();
}

}  // namespace
}  // namespace orknn::toolkit
