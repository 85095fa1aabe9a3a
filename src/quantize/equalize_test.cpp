// Equalized channels: the function stays, ranges are filled, and nothing passes functions that do not scale.
#include "quantize/equalize.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

// Two channels of the middle tensor differ by a factor of 40; a residual addition and a Clip lie on the way.
constexpr std::string_view kUneven = R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w1: float32[2,2,1,1] = const {2, 1, 0.05, -0.025}
  %b1: float32[2] = const {0.5, 0.01}
  %a = Conv(%x, %w1, %b1) + Clip() {max = 6.0, min = 0.0}
  %w2: float32[2,1,1,1] = const {0.5, 0.7}
  %d = Conv(%a, %w2) {group = 2} + Relu()
  %s = Add(%a, %d)
  %w3: float32[1,2,1,1] = const {0.1, 4}
  %y = Conv(%s, %w3)
})";

TEST(Equalize, LeavesTheFunctionAndFillsTheRange) {
  Graph graph = graph_of(kUneven);
  const auto run = run_on({1, 2, 4, 4});
  const TensorData x = TensorData::from<float>({1, 2, 4, 4}, noise(32, 3, 1));
  const std::vector<double> before = result_of(graph, x);
  QuantizeOptions options;
  passes::Trace trace;
  options.trace = &trace;
  auto calibration = calibrated(graph, run, options);
  ASSERT_TRUE(calibration) << calibration.status().to_string();
  EXPECT_FALSE(lines_of(trace, kEqualizeChannels).empty());
  const std::vector<double> after = result_of(graph, x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-5);
  // The statistics follow the graph: taking them anew gives the same.
  options.leave_out(kEqualizeChannels);
  auto again = calibrated(graph, run, options);
  ASSERT_TRUE(again);
  for (const auto& [name, s] : again->statistics) {
    EXPECT_NEAR(s.max(), calibration->statistics.at(name).max(), 1e-5) << name;
    EXPECT_NEAR(s.min(), calibration->statistics.at(name).min(), 1e-5) << name;
  }
  const auto channels = calibration->statistics.at("a").channels();
  EXPECT_GT(channels[1].max, channels[0].max / 4);
}

TEST(Equalize, StopsAtFunctionsThatDoNotScale) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w1: float32[2,2,1,1] = const {2, 1, 0.05, -0.025}
  %a = Conv(%x, %w1) + Sigmoid()
  %w3: float32[1,2,1,1] = const {0.1, 4}
  %y = Conv(%a, %w3)
})");
  QuantizeOptions options;
  passes::Trace trace;
  options.trace = &trace;
  EXPECT_TRUE(calibrated(graph, run_on({1, 2, 4, 4}), options));
  EXPECT_TRUE(lines_of(trace, kEqualizeChannels).empty()) << trace.to_text();
}

TEST(Equalize, FollowsSlopesOfATail) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w1: float32[2,2,1,1] = const {2, 1, 0.05, -0.025}
  %s: float32[2,1,1] = const {0.25, 0.1}
  %a = Conv(%x, %w1) + PRelu(%s)
  %w3: float32[1,2,1,1] = const {0.1, 4}
  %y = Conv(%a, %w3)
})");
  const TensorData x = TensorData::from<float>({1, 2, 4, 4}, noise(32, 3, 1));
  const std::vector<double> before = result_of(graph, x);
  QuantizeOptions options;
  passes::Trace trace;
  options.trace = &trace;
  EXPECT_TRUE(calibrated(graph, run_on({1, 2, 4, 4}), options));
  EXPECT_FALSE(lines_of(trace, kEqualizeChannels).empty());
  const std::vector<double> after = result_of(graph, x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-5);
}
}  // namespace
}  // namespace orknn::quantize
