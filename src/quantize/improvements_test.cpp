// What is done to a network besides rounding it: equalization, bias correction, adaptive rounding, and the choice of ranges.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "quantize/adaptive_rounding.h"
#include "quantize/bias_correction.h"
#include "quantize/calibrate.h"
#include "quantize/channel_importance.h"
#include "quantize/equalize.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
namespace {
using namespace ir;

std::vector<float> noise(size_t count, unsigned seed, float spread) {
  std::minstd_rand random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = spread * (static_cast<float>(random() % 20001) / 10000 - 1);
  return values;
}

Graph graph_of(std::string_view text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  EXPECT_TRUE(infer_shapes(*parsed, ops::builtin_ops()));
  return std::move(*parsed);
}

// Computes a graph on four pictures of noise.
RunSamples run_on(Dims dims, float spread = 1) {
  return [dims, spread](const Graph& graph, size_t count, const Observe& observe) -> Status {
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> values = noise(static_cast<size_t>(element_count(dims)), static_cast<unsigned>(i + 1), spread);
      const TensorData x = TensorData::from<float>(dims, values);
      observe(graph.tensor(graph.inputs()[0]).name, x.view());
      ops::EvalOptions options;
      options.observe = [&](TensorId t, const TensorData& value) { observe(graph.tensor(t).name, value.view()); };
      ORKNN_TRY_ASSIGN(auto results, ops::eval_graph(graph, ops::builtin_ops(), std::span(&x, 1), options));
    }
    return {};
  };
}

std::vector<double> result_of(const Graph& graph, const TensorData& x) {
  auto results = ops::eval_graph(graph, ops::builtin_ops(), std::span(&x, 1));
  EXPECT_TRUE(results) << results.status().to_string();
  return to_doubles((*results)[0].view());
}

// The result of a quantized graph in real numbers, for real numbers.
std::vector<double> real_result(const Graph& graph, const TensorData& x) {
  const Tensor &in = graph.tensor(graph.inputs()[0]), &out = graph.tensor(graph.outputs()[0]);
  std::vector<int8_t> q;
  if (in.dtype == DType::Int8)
    for (float v : x.values<float>())
      q.push_back(
          static_cast<int8_t>(std::clamp(std::nearbyint(v / in.quant->scale[0]) + in.quant->zero_point[0], -128.0f, 127.0f)));
  std::vector<double> values = result_of(graph, in.dtype == DType::Int8 ? TensorData::from<int8_t>(x.dims(), q) : x);
  if (out.dtype == DType::Int8)
    for (double& v : values) v = (v - out.quant->zero_point[0]) * out.quant->scale[0];
  return values;
}

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
  std::vector<std::string_view> steps;
  options.remark = [&](const Step& step, const std::string&) { steps.push_back(step.name); };
  auto calibration = calibrate(graph, run, 4, options);
  ASSERT_TRUE(calibration) << calibration.status().to_string();
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps[0], "equalize_channels");
  const std::vector<double> after = result_of(graph, x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-5);
  // The statistics follow the graph: taking them anew gives the same.
  options.equalize = false;
  auto again = calibrate(graph, run, 4, options);
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
  options.remark = [](const Step& step, const std::string& text) { ADD_FAILURE() << step.name << ": " << text; };
  EXPECT_TRUE(calibrate(graph, run_on({1, 2, 4, 4}), 4, options));
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
  size_t remarks = 0;
  QuantizeOptions options;
  options.remark = [&](const Step&, const std::string&) { ++remarks; };
  EXPECT_TRUE(calibrate(graph, run_on({1, 2, 4, 4}), 4, options));
  EXPECT_GT(remarks, 0u);
  const std::vector<double> after = result_of(graph, x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-5);
}

TEST(Statistics, TellsConstantSamples) {
  const std::vector<float> zeros(8, 0), ones(8, 1), mixed{0, 1, 0, 0};
  Statistics s;
  s.add(mixed);
  s.add(zeros);
  s.add(ones);
  EXPECT_EQ(s.constant_samples(), 2);
  EXPECT_EQ(s.first_constant(), 1);
  EXPECT_TRUE(s.varies());
  Statistics same, different;
  for (int i = 0; i < 2; ++i) same.add(ones);
  EXPECT_FALSE(same.varies());
  different.add(zeros);
  EXPECT_FALSE(different.varies());
  different.add(ones);
  EXPECT_TRUE(different.varies());
}

// Every step says what it did, and does nothing where it is left out.
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
  const auto told = [&](const QuantizeOptions& given) {
    std::map<std::string_view, size_t> counts;
    QuantizeOptions options = given;
    options.algorithm = Algorithm::AdaptiveRounding;
    options.remark = [&](const Step& step, const std::string& text) {
      EXPECT_FALSE(text.empty());
      ++counts[step.name];
    };
    Graph graph = graph_of(kNetwork);
    auto calibration = calibrate(graph, run_on({1, 2, 4, 4}), 4, options);
    EXPECT_TRUE(calibration) << calibration.status().to_string();
    options.rounded = calibration->rounded;
    EXPECT_TRUE(quantize(graph, ops::builtin_ops(), calibration->statistics, options));
    return counts;
  };
  const auto all = told({});
  for (const Step& step : steps())
    EXPECT_TRUE(step.name == kFoldNormalization.name || all.contains(step.name)) << step.name;  // that one precedes calibration
  QuantizeOptions none;
  none.equalize = none.clip_outliers = none.correct_bias = none.keep_small_values = none.round_adaptively = false;
  EXPECT_TRUE(told(none).empty());
}

TEST(BiasCorrection, TakesAPlantedShiftBack) {
  // Weights of 0.4 steps round to nothing; the input's mean is 10.
  Node conv;
  conv.op = "Conv";
  const TensorData w = TensorData::from<float>({1, 2, 1, 1}, std::vector<float>{127, 0.4f});
  const QuantizedWeights q = round_weights(w, 0, {});
  ASSERT_EQ(q.values.as<int8_t>()[1], 0);
  std::vector<ChannelStatistics> input(2);
  input[1] = {.min = 8, .max = 12, .sum = 100, .squares = 1000, .count = 10};
  const std::vector<double> shift = bias_correction(conv, w, q, input);
  ASSERT_EQ(shift.size(), 1u);
  EXPECT_NEAR(shift[0], 4, 1e-5);
}

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

// A result of the integer graph must not depend on the order in which threads work; what calibrate() finds is the same twice.
TEST(AdaptiveRounding, RoundsALayerCloserToItsFloatResult) {
  std::string text = R"(graph "g" (%x: float32[1,8,6,6]) -> (%y) {
  %w: float32[4,8,3,3] = const {)";
  const std::vector<float> weights = noise(4 * 8 * 9, 5, 0.3f);
  for (size_t i = 0; i < weights.size(); ++i) text += (i ? ", " : "") + std::to_string(weights[i]);
  text += "}\n  %y = Conv(%x, %w) {pads = [1,1,1,1]}\n}";
  const Graph graph = graph_of(text);
  const auto run = run_on({1, 8, 6, 6});
  const auto error = [&](Algorithm algorithm) {
    Graph changed = graph;
    QuantizeOptions options;
    options.algorithm = algorithm;
    auto calibration = calibrate(changed, run, 4, options);
    EXPECT_TRUE(calibration);
    options.rounded = calibration->rounded;
    EXPECT_EQ(options.rounded != nullptr, algorithm == Algorithm::AdaptiveRounding);
    auto layers = quantize(changed, ops::builtin_ops(), calibration->statistics, options);
    EXPECT_TRUE(layers) << layers.status().to_string();
    EXPECT_TRUE((*layers)[0].integer) << (*layers)[0].reason;
    return to_ints(changed.tensor(changed.node(changed.order().back()).input(1)).constant.view());
  };
  EXPECT_NE(error(Algorithm::AdaptiveRounding), error(Algorithm::Mmse));
  EXPECT_EQ(error(Algorithm::AdaptiveRounding), error(Algorithm::AdaptiveRounding));
}

Statistics with_outlier(float outlier) {
  Statistics s;
  for (unsigned i = 1; i <= 80; ++i) s.add(noise(20000, i, 1));
  s.add(std::vector<float>{outlier});
  return s;
}

TEST(Ranges, OutliersAreCutOnlyWhereThatPays) {
  for (Algorithm a : {Algorithm::Mmse, Algorithm::KlDivergence}) {
    const Range even = choose_range(with_outlier(1), a);
    EXPECT_GT(even.high, 0.97);
    EXPECT_LT(even.low, -0.97);
    const Range cut = choose_range(with_outlier(40), a);
    EXPECT_LT(cut.high, 40);
    EXPECT_GE(cut.high, 1);
  }
}

// Eight channels of noise, the first many times as large, and what the layers behind make of it.
Statistics with_large_channel(float importance, float size = 100) {
  std::vector<float> list(8, (8 - importance) / 7);
  list[0] = importance;
  Statistics s(false, list);
  for (unsigned i = 1; i <= 4; ++i) {
    std::vector<float> values = noise(8 * 2000, i, 1);
    for (size_t k = 0; k < 2000; ++k) values[k] *= size;
    s.add(TensorData::from<float>({1, 8, 2000}, values).view());
  }
  return s;
}

TEST(Ranges, AChannelThatStretchesTheRangeIsCutWhereItHardlyCounts) {
  const auto cut = cut_outliers(with_large_channel(1e-7f));
  ASSERT_TRUE(cut);
  EXPECT_LT(cut->error, 0.32);
  EXPECT_GT(cut->range.high, 1);
  EXPECT_LT(cut->range.high, 25);
  for (Algorithm a : {Algorithm::Normal, Algorithm::MovingAverage})
    EXPECT_EQ(choose_range(with_large_channel(1e-7f), a).high, cut->range.high);
  EXPECT_EQ(choose_range(with_large_channel(1e-7f), Algorithm::Normal, 16).high, with_large_channel(1e-7f).max());
  // Read like the others, or as most layers do that saw such channels in training, by as much less as they are larger.
  for (float importance : {1.f, 1e-4f}) EXPECT_FALSE(cut_outliers(with_large_channel(importance))) << importance;
}

TEST(Ranges, NothingIsCutForChannelsThatStayBelowAStep) { EXPECT_FALSE(cut_outliers(with_large_channel(1e-9f, 1e6f))); }

// Two channels behind a function that no factor passes; the layer behind reads the large one with weights that leave nothing of
// it.
constexpr const char* kStretched = R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %w) + HardSwish()
  %v: float32[2,1,1,1] = const {0.000001, 2}
  %y = Conv(%h, %v) {group = 2}
})";

TEST(ClipOutliers, TheLayerBehindSeesMoreOfTheOtherChannels) {
  const Graph graph = graph_of(kStretched);
  const TensorData x = TensorData::from<float>({1, 2, 8, 8}, noise(128, 9, 1));
  const std::vector<double> expected = result_of(graph, x);
  std::string told;
  const auto error = [&](bool clip) {
    Graph changed = graph;
    QuantizeOptions options;
    options.clip_outliers = clip;
    options.remark = [&](const Step& step, const std::string& text) {
      if (step.name == kClipOutliers.name) told += text;
    };
    auto calibration = calibrate(changed, run_on({1, 2, 8, 8}), 4, options);
    EXPECT_TRUE(calibration);
    EXPECT_TRUE(quantize(changed, ops::builtin_ops(), calibration->statistics, options));
    const std::vector<double> got = real_result(changed, x);
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) sum += (got[i] - expected[i]) * (got[i] - expected[i]);
    return std::sqrt(sum);
  };
  const double before = error(false);
  EXPECT_EQ(told, "");
  EXPECT_LT(error(true), 0.2 * before);
  EXPECT_NE(told.find("the range of 'h'"), std::string::npos) << told;
}

// A depthwise layer makes the large channel small, and the one behind it large again.
constexpr const char* kReadBack = R"(graph "g" (%x: float32[1,2,8,8]) -> (%y) {
  %w: float32[2,2,1,1] = const {400, 0, 0, 1}
  %h = Conv(%x, %w) + HardSwish()
  %v: float32[2,1,1,1] = const {0.00001, 1}
  %d = Conv(%h, %v) {group = 2} + Relu()
  %u: float32[1,2,1,1] = const {100000, 1}
  %y = Conv(%d, %u)
})";

TEST(ClipOutliers, LayersFurtherBehindCountToo) {
  Graph graph = graph_of(kReadBack);
  const std::vector<float> list = channel_importance(graph).at("h");
  EXPECT_NEAR(list[0], 1, 1e-4);
  EXPECT_NEAR(list[1], 1, 1e-4);
  // Equalization moves factors into the weights behind; nothing may be cut by what they were before.
  for (Algorithm algorithm : {Algorithm::Normal, Algorithm::Mmse}) {
    QuantizeOptions options;
    options.algorithm = algorithm;
    Graph changed = graph;
    auto calibration = calibrate(changed, run_on({1, 2, 8, 8}), 4, options);
    ASSERT_TRUE(calibration);
    EXPECT_FALSE(cut_outliers(calibration->statistics.at("h")));
  }
}

TEST(ClipOutliers, OnlyTensorsReadByWeightsAloneAreKnown) {
  const auto known = channel_importance(graph_of(kStretched));
  ASSERT_EQ(known.size(), 1u);
  ASSERT_TRUE(known.contains("h"));
  EXPECT_NEAR(known.at("h")[0], 5e-13, 1e-14);
  EXPECT_NEAR(known.at("h")[1], 2, 1e-6);
  std::string also_read = kStretched;
  also_read.replace(also_read.find("-> (%y)"), 7, "-> (%y, %z)");
  also_read.replace(also_read.rfind('}'), 1, "  %z = Relu(%h)\n}");
  EXPECT_TRUE(channel_importance(graph_of(also_read)).empty());
}

TEST(Ranges, AScoreMapOfMostlyZerosKeepsItsScores) {
  Statistics s;
  std::vector<float> values(10000, 0.001f);
  for (size_t i = 0; i < 20; ++i) values[i * 50] = 0.9f;
  s.add(values);
  for (Algorithm a : {Algorithm::Mmse, Algorithm::KlDivergence, Algorithm::Normal})
    EXPECT_GT(choose_range(s, a).high, 0.8) << static_cast<int>(a);
}

TEST(Statistics, ChannelsAndValuesThatAreNotFinite) {
  Statistics s(false);
  s.add(TensorData::from<float>({1, 2, 2}, std::vector<float>{1, 3, NAN, -2}).view());
  s.add(TensorData::from<float>({1, 2, 2}, std::vector<float>{5, 3, INFINITY, -4}).view());
  EXPECT_EQ(s.not_finite(), 2);
  EXPECT_EQ(s.first_not_finite(), 0);
  EXPECT_TRUE(s.varies());
  EXPECT_EQ(s.min(), -4);
  EXPECT_EQ(s.max(), 5);
  ASSERT_EQ(s.channels().size(), 2u);
  EXPECT_EQ(s.channels()[0].mean(), 3);
  EXPECT_EQ(s.channels()[1].mean(), -3);
  EXPECT_EQ(s.channels()[1].mean_square(), 10);
  EXPECT_TRUE(s.histogram().empty());
  EXPECT_EQ(choose_range(s, Algorithm::Normal).high, 5);
}

Result<std::vector<LayerDecision>> quantized(Graph& graph, const RunSamples& run) {
  QuantizeOptions options;
  ORKNN_TRY_ASSIGN(const Calibration calibration, calibrate(graph, run, 4, options));
  return quantize(graph, ops::builtin_ops(), calibration.statistics, options);
}

TEST(Quantize, PaddingBelowEverythingEntersNoRange) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,1,4,4]) -> (%y, %z) {
  %pads: int64[8] = const {0, 0, 3, 3, 0, 0, 3, 3}
  %lowest: float32[] = const {-65504}
  %p = Pad(%x, %pads, %lowest)
  %y = MaxPool(%p) {kernel_shape = [4,4], strides = [2,2]}
  %z = MaxPool(%p) {kernel_shape = [5,5], strides = [2,2]}
})");
  const TensorData x = TensorData::from<float>({1, 1, 4, 4}, noise(16, 9, 1));
  const std::vector<double> expected = result_of(graph, x);
  auto layers = quantized(graph, run_on({1, 1, 4, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  for (const LayerDecision& d : *layers) EXPECT_TRUE(d.integer) << d.node << d.reason;
  const QuantParams& p = *graph.tensor(graph.inputs()[0]).quant;
  std::vector<int8_t> q;
  for (float v : x.values<float>())
    q.push_back(static_cast<int8_t>(std::clamp(std::nearbyint(v / p.scale[0]) + p.zero_point[0], -128.0f, 127.0f)));
  auto results = ops::eval_graph(graph, ops::builtin_ops(), std::vector<TensorData>{TensorData::from<int8_t>({1, 1, 4, 4}, q)});
  ASSERT_TRUE(results) << results.status().to_string();
  const std::vector<double> got = to_doubles((*results)[0].view());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR((got[i] - p.zero_point[0]) * p.scale[0], expected[i], p.scale[0]);
}

// The bias of a matrix product, a residual and constants behind a function are no roundings of their own.
TEST(Quantize, ConstantsRoundWithTheirLayer) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,3,4]) -> (%y) {
  %w: float32[4,4] = const {0.5, -1, 0.25, 1, 2, 0.125, -0.5, 1, -1, 1, 0.75, 0.5, 0.25, 0.5, -0.5, 1}
  %b: float32[4] = const {0.5, -0.25, 1, 2}
  %m = MatMul(%x, %w) + Add(%b) + Add(%x) + HardSwish()
  %three: float32[1] = const {3}
  %s = Mul(%three, %m)
  %two: float32[] = const {2}
  %y = Sub(%two, %s)
})");
  const TensorData x = TensorData::from<float>({1, 3, 4}, noise(12, 2, 1));
  const std::vector<double> expected = result_of(graph, x);
  ASSERT_TRUE(split_tails(graph, ops::builtin_ops()));
  EXPECT_EQ(graph.node_count(), 1u);
  const std::vector<double> same = result_of(graph, x);
  for (size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i], expected[i], 1e-5);
  auto layers = quantized(graph, run_on({1, 3, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  ASSERT_EQ(layers->size(), 1u);
  EXPECT_TRUE((*layers)[0].integer) << (*layers)[0].reason;
  const double step = graph.tensor(graph.outputs()[0]).quant->scale[0];
  const std::vector<double> got = real_result(graph, x);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 3 * step) << i;
}

// Boxes of hundreds beside scores of one: in one scale the scores would be 0 or 1. Whatever lies between the Concat and the
// output.
TEST(Quantize, AConcatOfBoxesAndScoresKeepsTheScores) {
  const std::pair<const char*, const char*> heads[] = {
      {"plain", "%y = Concat(%boxes, %scores) {axis = 1}"},
      {"transposed", "%j = Concat(%boxes, %scores) {axis = 1}\n %y = Transpose(%j) {perm = [0, 2, 3, 1]}"},
      {"clipped", "%j = Concat(%boxes, %scores) {axis = 1}\n %y = Relu(%j)"},
      {"joined again", "%j = Concat(%boxes, %scores) {axis = 1}\n %y = Concat(%j, %j) {axis = 2}"},
      {"split",
       "%j = Concat(%boxes, %scores) {axis = 1}\n %a, %b = Split(%j) {axis = 1, num_outputs = 2}\n %y = Concat(%b, %a) {axis = "
       "1}"},
      {"scaled", "%f: float32[1,2,1,1] = const {300, 1}\n %both = Concat(%scores, %scores) {axis = 1}\n %y = Mul(%both, %f)"}};
  for (const auto& [name, head] : heads) {
    SCOPED_TRACE(name);
    Graph graph = graph_of(std::string(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w1: float32[1,2,1,1] = const {300, 200}
  %boxes = Conv(%x, %w1)
  %w2: float32[1,2,1,1] = const {1, 2}
  %scores = Conv(%x, %w2) + Sigmoid()
)") + head + "\n}");
    const TensorData x = TensorData::from<float>({1, 2, 4, 4}, noise(32, 3, 1));
    const std::vector<double> expected = result_of(graph, x);
    auto layers = quantized(graph, run_on({1, 2, 4, 4}));
    ASSERT_TRUE(layers) << layers.status().to_string();
    EXPECT_TRUE(std::any_of(layers->begin(), layers->end(), [](const LayerDecision& d) { return d.notable && !d.integer; }));
    for (const LayerDecision& d : *layers) EXPECT_TRUE(d.integer || !d.op.starts_with("Conv")) << d.output << ": " << d.reason;
    const std::vector<double> found = real_result(graph, x);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], std::abs(expected[i]) <= 1 ? 0.03 : 8) << i;
  }
}

// The same from one layer, and from additions that only reach some channels.
TEST(Quantize, ChannelsOfOneLayerThatLieApartKeepTheirValues) {
  const std::pair<const char*, const char*> heads[] = {
      {"one convolution", "%y = Conv(%x, %w)"},
      {"turned", "%c = Conv(%x, %w)\n %y = Transpose(%c) {perm = [0, 2, 3, 1]}"},
      {"an addition",
       "%s: float32[2,2,1,1] = const {1, 2, 0.5, 1}\n %c = Conv(%x, %s)\n"
       "%grid: float32[1,2,1,1] = const {400, 0}\n %y = Add(%c, %grid)"},
      {"features at the end",
       "%s: float32[2,2,1,1] = const {1, 2, 0.5, 1}\n %c = Conv(%x, %s)\n %t = Transpose(%c) {perm = [0, 2, 3, 1]}\n"
       "%grid: float32[2] = const {400, 0}\n %y = Add(%t, %grid)"}};
  for (const auto& [name, head] : heads) {
    SCOPED_TRACE(name);
    Graph graph = graph_of(std::string(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {300, 200, 0.5, 1}
)") + head + "\n}");
    const TensorData x = TensorData::from<float>({1, 2, 4, 4}, noise(32, 3, 1));
    const std::vector<double> expected = result_of(graph, x);
    auto layers = quantized(graph, run_on({1, 2, 4, 4}));
    ASSERT_TRUE(layers) << layers.status().to_string();
    EXPECT_TRUE(std::any_of(layers->begin(), layers->end(), [](const LayerDecision& d) { return d.notable && !d.integer; }));
    const std::vector<double> found = real_result(graph, x);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], std::abs(expected[i]) <= 1 ? 0.03 : 8) << i;
  }
}

TEST(Quantize, ChannelsLieApartOnlyWithAGapBetweenThem) {
  // Channels on axis 1, or features on the last axis.
  const auto apart = [](const std::vector<float>& widths, bool last = false, int64_t seen = 8) {
    const auto count = static_cast<int64_t>(widths.size());
    TensorData x = TensorData::allocate(DType::Float32, last ? Dims{1, seen, count} : Dims{1, count, seen});
    for (int64_t i = 0; i < x.count(); ++i)
      static_cast<float*>(x.mutable_data())[i] = widths[static_cast<size_t>(last ? i % count : i / seen)];
    Statistics s;
    s.add(x.view());
    if (last) s.add_features(x.view());
    return channels_lie_apart(s, 8);
  };
  EXPECT_TRUE(apart({640, 480, 0.9f, 0.8f, 0.1f}, true));
  EXPECT_FALSE(apart({640, 480, 0.9f, 0.8f, 0.1f}, false, 3)) << "too few values: small by chance";
  EXPECT_TRUE(apart({640, 480, 0.9f, 0.8f, 0.1f}));
  EXPECT_FALSE(apart({640, 480, 90, 80, 70})) << "enough steps are left for all";
  EXPECT_FALSE(apart({64, 32, 16, 8, 4, 2, 1, 0.5f})) << "features of every size";
  EXPECT_FALSE(apart({6, 0, 5, 4, 0})) << "channels without values have nothing to lose";
  std::vector<float> features(64, 6.f);
  features[3] = 0.001f;
  EXPECT_FALSE(apart(features)) << "single channels that hardly speak";
}

TEST(Quantize, ProbabilitiesOfClassesThatNeverOccurAreNotSmallValues) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {1, 2, 0.5, 1}
  %b: float32[2] = const {0, -9}
  %y = Conv(%x, %w, %b) + Sigmoid()
})");
  auto layers = quantized(graph, run_on({1, 2, 4, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  for (const LayerDecision& d : *layers) EXPECT_TRUE(d.integer) << d.output << ": " << d.reason;
}

// In the middle of a network the layer behind reads one tensor in any case.
TEST(Quantize, AConcatThatAConvolutionReadsIsAnIntegerLayer) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w1: float32[1,2,1,1] = const {300, 200}
  %large = Conv(%x, %w1)
  %w2: float32[1,2,1,1] = const {1, 2}
  %small = Conv(%x, %w2) + Sigmoid()
  %j = Concat(%large, %small) {axis = 1}
  %w3: float32[1,2,1,1] = const {1, 1}
  %y = Conv(%j, %w3)
})");
  auto layers = quantized(graph, run_on({1, 2, 4, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  for (const LayerDecision& d : *layers) EXPECT_TRUE(d.integer) << d.output << ": " << d.reason;
}

TEST(Quantize, MaskedScoresStayInFloat) {
  for (const char* mask :
       {"%m: float32[] = const {-1e9}\n %c: bool[4,4] = const {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}\n %s = Where(%c, "
        "%a, %m)",
        "%m: float32[4,4] = const {0, -1e4, -1e4, -1e4, 0, 0, -1e4, -1e4, 0, 0, 0, -1e4, 0, 0, 0, 0}\n %s = Add(%a, %m)"}) {
    SCOPED_TRACE(mask);
    Graph graph = graph_of(std::string(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {1, 2, -1, 1}
  %a = Conv(%x, %w)
  )") + mask + "\n %y = Softmax(%s) {axis = -1}\n}");
    const TensorData x = TensorData::from<float>({1, 2, 4, 4}, noise(32, 2, 1));
    const std::vector<double> expected = result_of(graph, x);
    auto layers = quantized(graph, run_on({1, 2, 4, 4}));
    ASSERT_TRUE(layers) << layers.status().to_string();
    const std::vector<double> found = real_result(graph, x);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.05) << i;
  }
}

TEST(Quantize, LogarithmsAndWhatTheyReadStayInFloat) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {1, 2, -1, 1}
  %a = Conv(%x, %w) + Relu()
  %w2: float32[2,2,1,1] = const {1, 2, 1, 1}
  %b = Conv(%a, %w2) + Relu()
  %e: float32[] = const {0.0001}
  %c = Add(%b, %e)
  %y = Log(%c)
})");
  auto layers = quantized(graph, run_on({1, 2, 4, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  for (const LayerDecision& d : *layers) EXPECT_EQ(d.integer, d.output == "a") << d.output << ": " << d.reason;
}

// Heatmaps whose scores all stay below 0.01, and gates inside a network.
TEST(Quantize, SmallScoresKeepTheirSteps) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %w: float32[1,2,1,1] = const {0.5, 0.25}
  %b: float32[1] = const {-7}
  %y = Conv(%x, %w, %b) + Sigmoid()
  %c: float32[1] = const {-3}
  %g = Conv(%x, %w, %c) + Sigmoid()
  %w2: float32[1,1,1,1] = const {4}
  %z = Conv(%g, %w2)
})");
  QuantizeOptions options;
  auto statistics = calibrate(graph, run_on({1, 2, 4, 4}), 4, options);
  ASSERT_TRUE(statistics) << statistics.status().to_string();
  const double largest = statistics->statistics.at("y").max();
  auto layers = quantize(graph, ops::builtin_ops(), statistics->statistics, options);
  ASSERT_TRUE(layers) << layers.status().to_string();
  EXPECT_NEAR(graph.tensor(graph.outputs()[0]).quant->max[0], 1.1 * largest, 1e-6);
  const TensorId gate = graph.producer_node(graph.outputs()[1])->input(0);
  EXPECT_EQ(graph.tensor(gate).quant->max[0], 0.25f)
      << "twice " << statistics->statistics.at("g").max() << " is held by it, not by half of it";
}
}  // namespace
}  // namespace orknn::quantize
