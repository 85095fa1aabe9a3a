// Steps of the quantizer under the driver: trace, times, levels, dumps.
#include "quantize/steps.h"

#include <gtest/gtest.h>

#include "quantize/quantized_operators.h"
#include "quantize/weight_only.h"
#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

bool is_of_another_stage(const Step& step) {
  constexpr std::string_view kOthers[] = {kExpandOperators.name,    kFoldNormalization.name, kTrySteps.name,
                                          kWidenLayers.name,        kReadParameters.name,    kKeepStoredWeights.name,
                                          kForgetConstantGrids.name};
  return std::ranges::find(kOthers, step.name) != std::end(kOthers);
}

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
    if (is_of_another_stage(step)) continue;
    EXPECT_TRUE(ran(all, step)) << step.name;
    EXPECT_TRUE(step.required || !lines_of(all, step).empty()) << step.name;
  }
  const passes::Trace required = traced(without);
  for (const Step& step : steps()) EXPECT_EQ(ran(required, step), step.required && !is_of_another_stage(step)) << step.name;
}

// Formats in which only weights are integers take the same steps.
TEST(Steps, OfWeightsAloneAreVisibleAndCanBeLeftOut) {
  const auto traced = [](WeightOnlyOptions options) {
    passes::Trace trace;
    options.run = run_on({1, 2, 8, 8});
    options.samples = 4;
    options.trace = &trace;
    Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {0.5, 0.313, -0.2, 0.11}
  %b: float32[2] = const {0.5, 0.01}
  %y = Conv(%x, %w, %b)
})");
    const auto layers = round_weights_only(graph, ops::builtin_ops(), options);
    EXPECT_TRUE(layers) << layers.status().to_string();
    std::vector<std::string> names;
    for (const passes::PassTime& t : trace.times) names.push_back(t.pass);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(traced({}), (Names{"measure_tensors", "round_weights", "correct_bias"}));
  EXPECT_EQ(traced({.fit_to_samples = true}), (Names{"round_adaptively", "round_weights"}));
  EXPECT_EQ(traced({.fit_to_samples = true, .steps = {.disable = {"round_adaptively"}}}),
            (Names{"measure_tensors", "round_weights", "correct_bias"}));
  EXPECT_EQ(traced({.steps = {.disable = {"correct_bias"}}}), (Names{"round_weights"}));
}

TEST(Steps, ExpandOperatorsOfQuantizedModelsByPatches) {
  constexpr std::string_view kQuantized = R"(graph "g" (%x: int8[1,2]) -> (%y) {
  %s: float32[] = const {0.5}
  %z: int8[] = const {0}
  %w: int8[2,3] = const {1, 2, 3, 4, 5, 6}
  %y = QLinearMatMul(%x, %s, %z, %w, %s, %z, %s, %z)
})";
  passes::Trace trace;
  Graph graph = graph_of(kQuantized);
  ASSERT_TRUE(expand_quantized_operators(graph, ops::builtin_ops(), {}, &trace));
  ASSERT_EQ(lines_of(trace, kExpandOperators).size(), 1u);
  EXPECT_NE(lines_of(trace, kExpandOperators)[0].find("QLinearMatMul:"), std::string::npos);
  EXPECT_NE(print(graph).find("= MatMul("), std::string::npos) << print(graph);
  graph = graph_of(kQuantized);
  ASSERT_TRUE(expand_quantized_operators(graph, ops::builtin_ops(), {.disable = {"expand_operators"}}));
  EXPECT_NE(print(graph).find("QLinearMatMul"), std::string::npos) << print(graph);
}

// Weights that the source model holds as integers, between float layers.
TEST(Steps, SettleConstantsThatWereIntegers) {
  const auto settled = [](const passes::Options& options, passes::Trace& trace) {
    Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {0.5, -1, 1.5, 63}
  %y = Conv(%x, %w)
})");
    QuantParams grid;
    grid.scale = {0.5f};
    grid.zero_point = {0};
    graph.tensor(graph.find_tensor("w")).quant = grid;
    EXPECT_TRUE(settle_constants(graph, ops::builtin_ops(), options, &trace));
    const Tensor& w = graph.tensor(graph.find_tensor("w"));
    EXPECT_FALSE(w.quant.has_value());
    EXPECT_EQ(to_doubles(w.constant.view()), (std::vector<double>{0.5, -1, 1.5, 63}));
    return w.constant.packed() != nullptr;
  };
  passes::Trace trace, without;
  EXPECT_TRUE(settled({}, trace));
  EXPECT_EQ(lines_of(trace, kKeepStoredWeights).size(), 1u);
  EXPECT_FALSE(settled({.disable = {"keep_stored_weights"}}, without));
  EXPECT_TRUE(lines_of(without, kKeepStoredWeights).empty());
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
