// Steps of the quantizer under the driver: trace, times, levels, dumps.
#include "quantize/steps.h"

#include <gtest/gtest.h>

#include "quantize/tails.h"
#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

// Every step that is left out leaves no trace; every other one says what it did and how long it took.
TEST(Steps, AreVisibleAndCanBeLeftOut) {
  constexpr std::string_view kNetwork = R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %stretch: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %stretch) + HardSwish()
  %v: float32[2,1,1,1] = const {0.000001, 2}
  %z = Conv(%h, %v) {group = 2}
  %w1: float32[2,2,1,1] = const {2, 1, 0.05, -0.025}
  %b1: float32[2] = const {0.5, 0.01}
  %a = Conv(%x, %w1, %b1) + Relu()
  %w2: float32[1,2,1,1] = const {0.13, 4.1}
  %boxes = Conv(%a, %w2)
  %tiny: float32[1,2,1,1] = const {0.0013, 0.0041}
  %scores = Conv(%a, %tiny)
  %y = Concat(%boxes, %scores) {axis = 1}
})";
  const auto traced = [&](const QuantizeOptions& given) {
    passes::Trace trace;
    QuantizeOptions options = given;
    options.algorithm = Algorithm::Mmse;
    options.adaptive_rounding = true;
    options.formats = {{"z", {.activations = DType::Int16, .weights = DType::Int16}}};
    options.trace = &trace;
    Graph graph = graph_of(kNetwork);
    EXPECT_TRUE(fit_tails(graph, ops::builtin_ops(), options.steps, options.trace));
    auto layers = quantized(graph, run_on({1, 2, 4, 4}), options);
    EXPECT_TRUE(layers) << layers.status().to_string();
    return trace;
  };
  const auto ran = [](const passes::Trace& trace, const Step& step) {
    return std::ranges::any_of(trace.times, [&](const passes::PassTime& t) { return t.pass == step.name && t.runs > 0; });
  };
  const passes::Trace all = traced({});
  QuantizeOptions without;
  for (const Step& step : steps()) {
    if (!step.required) without.leave_out(step);
    if (step.name == kFoldNormalization.name || step.name == kTrySteps.name || step.name == kReadParameters.name)
      continue;  // of other stages
    EXPECT_TRUE(ran(all, step)) << step.name;
    EXPECT_TRUE(step.required || !lines_of(all, step).empty()) << step.name;
  }
  const passes::Trace required = traced(without);
  for (const Step& step : steps())
    EXPECT_EQ(ran(required, step), step.required && step.name != kReadParameters.name) << step.name;
}

TEST(Steps, RunFromTheirLevelOn) {
  QuantizeOptions options;
  options.steps.level = 2;
  for (const Step& step : steps()) EXPECT_EQ(options.takes(step), step.min_level <= 2) << step.name;
}

TEST(Steps, GraphsCanBeSeenAfterEach) {
  Graph graph = graph_of(kStretched);
  QuantizeOptions options;
  std::vector<std::string> seen;
  options.steps.dump_after = {"equalize_channels", "lower_to_integers"};
  options.steps.dump = [&](std::string_view pass, const Graph& g) {
    seen.emplace_back(pass);
    EXPECT_EQ(print(g).find("int:Conv") != std::string::npos, pass == "lower_to_integers");
  };
  ASSERT_TRUE(quantized(graph, run_on({1, 2, 8, 8}), options));
  EXPECT_EQ(seen, options.steps.dump_after);
}
}  // namespace
}  // namespace orknn::quantize
