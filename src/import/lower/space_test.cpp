#include "import/lower/space.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

TEST(Space, BatchAndBack) {
  Emitted m;
  CutTensors cut;
  const auto blocks = blocks_of({2, 2}, {0, 1, 1, 0});
  ASSERT_TRUE(blocks);
  const ir::TensorId x = m.counted({1, 3, 3, 1});
  const auto batch = space_to_batch(m.e, x, *blocks, 9, cut);
  EXPECT_EQ(m.dims(batch), (Dims{4, 2, 2, 1}));
  EXPECT_EQ(m.values(batch), (Values{9, 1, 9, 7, 0, 2, 6, 8, 9, 4, 9, 9, 3, 5, 9, 9}));
  EXPECT_EQ(m.values(batch_to_space(m.e, *batch, *blocks, {})), m.values(x));
}

TEST(Space, RefusesWhatDoesNotFit) {
  Emitted m;
  CutTensors cut;
  const ir::TensorId x = m.counted({1, 3, 3, 1});
  EXPECT_FALSE(blocks_of({2}, {0, 1, 0, 1}));
  EXPECT_FALSE(blocks_of({0, 2}, {0, 1, 0, 1}));
  EXPECT_FALSE(blocks_of({2, 2}, {0, -1, 0, 1}));
  EXPECT_FALSE(space_to_batch(m.e, x, *blocks_of({2, 2}, {0, 0, 0, 0}), 0, cut));
  EXPECT_FALSE(batch_to_space(m.e, x, *blocks_of({2, 2}, {0, 0, 0, 0}), cut));
  EXPECT_FALSE(space_to_batch(m.e, x, *blocks_of({1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}), 0, cut));
}

// Integers that stand for real numbers between the two, and an activation: the convolution is the only one left, dilated.
TEST(Space, ConvolutionBetweenIsDilated) {
  Emitted m;
  CutTensors cut;
  const Blocks pads = *blocks_of({2, 2}, {2, 2, 2, 2}), crops = *blocks_of({2, 2}, {0, 0, 0, 0});
  const ir::TensorId x = m.input({1, 4, 4, 3}, DType::Int8), w = m.counted({5, 3, 3, 3});
  const ir::TensorId scale = m.e.add_scalar("scale", 0.5), zero = m.e.add_scalar("zero", 3, DType::Int8);
  const auto batch = space_to_batch(m.e, x, pads, 3, cut);
  ASSERT_TRUE(batch);
  const ir::TensorId real = m.e.emit("DequantizeLinear", {*batch, scale, zero});
  const auto convolved = in_channels_first(m.e, {}, real, [&](ir::TensorId first) -> Result<ir::TensorId> {
    ORKNN_TRY_ASSIGN(const ir::TensorId y, convolution(m.e, first, w, {}, {.padding = Window::Padding::Valid}));
    return m.e.unary("Relu", y);
  });
  ASSERT_TRUE(convolved);
  const auto y = batch_to_space(m.e, m.e.emit("QuantizeLinear", {*convolved, scale, zero}), crops, cut);
  EXPECT_EQ(m.dims(y), (Dims{1, 4, 4, 5}));
  std::vector<std::string> path;
  const ir::Node* dilated = nullptr;
  for (ir::TensorId at = *y; const ir::Node* node = m.graph.producer_node(at); at = node->inputs[0]) {
    path.push_back(node->op);
    if (node->op == "Conv") dilated = node;
  }
  EXPECT_EQ(path, (std::vector<std::string>{"QuantizeLinear", "Transpose", "Relu", "Conv", "Transpose", "DequantizeLinear"}));
  ASSERT_TRUE(dilated);
  EXPECT_EQ(dilated->attributes.ints_or("dilations"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(dilated->attributes.ints_or("pads"), (std::vector<int64_t>{2, 2, 2, 2}));
}

// A bias before the convolution also lies on the padding, which a dilated convolution would leave 0.
TEST(Space, WhatChangesThePaddingIsNotPassed) {
  Emitted m;
  CutTensors cut;
  const Blocks pads = *blocks_of({2, 2}, {2, 2, 2, 2}), crops = *blocks_of({2, 2}, {0, 0, 0, 0});
  const auto batch = space_to_batch(m.e, m.input({1, 4, 4, 3}), pads, 0, cut);
  ASSERT_TRUE(batch);
  const auto convolved = in_channels_first(m.e, {}, m.e.add(*batch, 1.0), [&](ir::TensorId first) {
    return convolution(m.e, first, m.counted({5, 3, 3, 3}), {}, {.padding = Window::Padding::Valid});
  });
  ASSERT_TRUE(convolved);
  const auto y = batch_to_space(m.e, *convolved, crops, cut);
  ASSERT_TRUE(y);
  EXPECT_EQ(m.graph.producer_node(*y)->op, "Reshape");
}
}  // namespace
}  // namespace orknn::importer
