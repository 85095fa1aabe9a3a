// How much layers make of an error in each channel.
#include "quantize/channel_importance.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

TEST(ChannelImportance, OnlyTensorsReadByWeightsAloneAreKnown) {
  const auto known = channel_importance(graph_of(kStretched));
  ASSERT_EQ(known.size(), 1u);
  ASSERT_TRUE(known.contains("h"));
  EXPECT_NEAR(known.at("h").channels[0], 5e-13, 1e-14);
  EXPECT_NEAR(known.at("h").channels[1], 2, 1e-6);
  std::string also_read = kStretched;
  also_read.replace(also_read.find("-> (%y)"), 7, "-> (%y, %z)");
  also_read.replace(also_read.rfind('}'), 1, "  %z = Relu(%h)\n}");
  EXPECT_TRUE(channel_importance(graph_of(also_read)).empty());
}

// A depthwise layer makes the large channel small, and the one after it large again.
constexpr const char* kReadBack = R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %w) + HardSwish()
  %v: float32[2,1,1,1] = const {0.00001, 1}
  %d = Conv(%h, %v) {group = 2} + Relu()
  %u: float32[1,2,1,1] = const {100000, 1}
  %y = Conv(%d, %u)
})";

TEST(ChannelImportance, LayersFurtherDownstreamCountToo) {
  const std::vector<float> list = channel_importance(graph_of(kReadBack)).at("h").channels;
  EXPECT_NEAR(list[0], 1, 1e-4);
  EXPECT_NEAR(list[1], 1, 1e-4);
  // Equalization moves factors into the weights downstream; nothing may be cut by what they were before.
  for (Algorithm algorithm : {Algorithm::Normal, Algorithm::Mmse}) {
    QuantizeOptions options;
    options.algorithm = algorithm;
    Graph changed = graph_of(kReadBack);
    auto calibration = calibrated(changed, run_on({1, 2, 8, 8}), options);
    ASSERT_TRUE(calibration);
    EXPECT_FALSE(calibration->cuts.contains("h"));
  }
}

// Pools, copies and joins hand on what the layers after them make of a channel.
TEST(ChannelImportance, PassesThroughLayersThatKeepChannels) {
  const auto known = channel_importance(graph_of(R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %w) + HardSwish()
  %p = MaxPool(%h) {kernel_shape = [2,2], strides = [2,2]}
  %r = Relu(%p)
  %q = Conv(%r, %w)
  %j = Concat(%r, %q) {axis = 1}
  %g = GlobalAveragePool(%j)
  %f = Flatten(%g)
  %v: float32[4,1] = const {0.001, 1, 0, 3}
  %y = MatMul(%f, %v)
})"));
  for (const char* name : {"j", "g", "f"}) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_NEAR(known.at(name).channels[1], 4 / 10.000001, 1e-5) << name;
    EXPECT_NEAR(known.at(name).channels[3], 4 * 9 / 10.000001, 1e-5) << name;
  }
  // Two readers count alike: Concat's part, and %q, whose first channel nothing reads.
  EXPECT_NEAR(known.at("q").channels[0], 0, 1e-9);
  for (const char* name : {"h", "p", "r"}) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_NEAR(known.at(name).channels[0], 1e-6, 1e-8) << name;
    EXPECT_NEAR(known.at(name).channels[1], 2, 1e-5) << name;
  }
}

// Products have their channels on the last axis, wherever they were before.
TEST(ChannelImportance, FollowsTheChannelsOfProducts) {
  const auto known = channel_importance(graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %c = Conv(%x, %w) + HardSwish()
  %s: int64[3] = const {1, 2, 16}
  %r = Reshape(%c, %s)
  %t = Transpose(%r) {perm = [0,2,1]}
  %v: float32[2,3] = const {0.001, 0, 0, 0, 1, 2}
  %m = MatMul(%t, %v)
  %a = Relu(%m)
  %u: float32[3,1] = const {1, 1, 3}
  %y = MatMul(%a, %u)
  %p = MatMul(%a, %u)
  %z = Transpose(%p) {perm = [0,2,1]}
})"));
  ASSERT_TRUE(known.contains("c") && known.contains("r") && known.contains("t") && known.contains("a"));
  EXPECT_EQ(known.at("a").axis, 2u);
  EXPECT_NEAR(known.at("a").channels[2], 3 * 9 / 11.0, 1e-5);
  EXPECT_EQ(known.at("t").axis, 2u);
  for (const char* name : {"c", "r"}) EXPECT_EQ(known.at(name).axis, 1u) << name;
  for (const char* name : {"c", "r", "t"}) {
    EXPECT_NEAR(known.at(name).channels[0], 2e-6 / 37, 1e-10) << name;
    EXPECT_NEAR(known.at(name).channels[1], 2, 1e-5) << name;
  }
}
}  // namespace
}  // namespace orknn::quantize
