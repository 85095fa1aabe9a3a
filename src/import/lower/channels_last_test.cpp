#include "import/lower/channels_last.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

TEST(ChannelsLast, GroupsFollowFromTheChannels) {
  Emitted m;
  const ir::TensorId x = m.input({1, 6, 4, 4}), w = m.counted({4, 3, 3, 3});
  const auto y = convolution(m.e, x, w, {}, {.kernel = {}, .strides = {1, 1}, .dilations = {}, .pads_begin = {}, .pads_end = {}});
  ASSERT_TRUE(y) << y.status().to_string();
  EXPECT_EQ(m.dims(y), (Dims{1, 4, 2, 2}));
  EXPECT_EQ(m.graph.producer_node(*y)->attributes.int_or("group", 0), 2);
  const auto misfit = convolution(m.e, m.input({1, 4, 4, 4}), w, {}, {});
  EXPECT_NE(misfit.status().to_string().find("expected 4 input channels, found 3"), std::string::npos);
}

// Sizes of the forward convolution: SAME of stride 2 makes 3 out of 5 and of 6.
TEST(ChannelsLast, TransposedConvolutionHasTheStatedSize) {
  for (int64_t wanted : {5, 6}) {
    Emitted m;
    const Window window{
        .kernel = {}, .strides = {2, 2}, .dilations = {1, 1}, .padding = Window::Padding::Same, .pads_begin = {}, .pads_end = {}};
    const auto y = transposed_convolution(m.e, m.input({1, 2, 3, 3}), m.counted({2, 1, 3, 3}), {}, window, {wanted, wanted});
    EXPECT_EQ(m.dims(y), (Dims{1, 1, wanted, wanted}));
  }
}

TEST(ChannelsLast, WhatATransposedConvolutionDoesNotReachIsZero) {
  Emitted m;
  const Window window{
      .kernel = {}, .strides = {1}, .dilations = {1}, .padding = Window::Padding::Valid, .pads_begin = {}, .pads_end = {}};
  const ir::TensorId x = m.floats({1, 1, 2}, {1, 2}), w = m.floats({1, 1, 2}, {1, 1});
  EXPECT_EQ(m.values(transposed_convolution(m.e, x, w, {}, window, {5})), (Values{1, 3, 2, 0, 0}));
  const auto with_bias = transposed_convolution(m.e, x, w, m.floats({1}, {1}), window, {5});
  EXPECT_NE(with_bias.status().to_string().find("larger than the transposed convolution reaches"), std::string::npos);
}

TEST(ChannelsLast, ResizesToNearestInEveryWay) {
  Emitted m;
  const ir::TensorId x = m.counted({1, 1, 4, 1});
  const auto resized = [&](int64_t width, bool align, bool half) {
    return m.values(resize(m.e, x, {1, width}, {"nearest", align, half}));
  };
  EXPECT_EQ(resized(3, false, false), (Values{0, 1, 2}));      // floor(i * 4 / 3)
  EXPECT_EQ(resized(3, false, true), (Values{0, 2, 3}));       // floor((i + 0.5) * 4 / 3)
  EXPECT_EQ(resized(3, true, false), (Values{0, 2, 3}));       // round(i * 3 / 2)
  EXPECT_EQ(resized(5, true, true), (Values{0, 1, 2, 3, 3}));  // round((i + 0.5) * 3 / 4)
  EXPECT_FALSE(resize(m.e, x, {0, 2}, {}));
}

TEST(ChannelsLast, AlphaIsNotDividedByTheSize) {
  Emitted m;
  const auto y = local_response_normalization(m.e, m.floats({1, 1, 1, 3}, {1, 2, 3}), 1, 1, 1, 1);
  const Values expected{1.0 / 6, 2.0 / 15, 3.0 / 14}, found = m.values(y);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}
}  // namespace
}  // namespace orknn::importer
