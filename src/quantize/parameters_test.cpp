// Which layers become integer ones, and in which ranges.
#include "quantize/parameters.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

TEST(Parameters, PaddingBelowEverythingEntersNoRange) {
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

// Boxes of hundreds beside scores of one: in one scale the scores would be 0 or 1. Whatever lies between the Concat and the
// output.
TEST(Parameters, AConcatOfBoxesAndScoresKeepsTheScores) {
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
TEST(Parameters, ChannelsOfOneLayerThatLieApartKeepTheirValues) {
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

TEST(Parameters, ChannelsLieApartOnlyWithAGapBetweenThem) {
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

TEST(Parameters, ProbabilitiesOfClassesThatNeverOccurAreNotSmallValues) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {1, 2, 0.5, 1}
  %b: float32[2] = const {0, -9}
  %y = Conv(%x, %w, %b) + Sigmoid()
})");
  auto layers = quantized(graph, run_on({1, 2, 4, 4}));
  ASSERT_TRUE(layers) << layers.status().to_string();
  for (const LayerDecision& d : *layers) EXPECT_TRUE(d.integer) << d.output << ": " << d.reason;
}

// In the middle of a network the next layer reads one tensor in any case.
TEST(Parameters, AConcatThatAConvolutionReadsIsAnIntegerLayer) {
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

TEST(Parameters, MaskedScoresStayInFloat) {
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

TEST(Parameters, LogarithmsAndWhatTheyReadStayInFloat) {
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
  for (const LayerDecision& d : *layers) {
    EXPECT_EQ(d.integer, d.output == "a") << d.output << ": " << d.reason;
    EXPECT_EQ(d.notable, !d.integer) << d.output << ": the user is told";
  }
}

// Heatmaps whose scores all stay below 0.01, and gates inside a network.
TEST(Parameters, SmallScoresKeepTheirSteps) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %w: float32[1,2,1,1] = const {0.5, 0.25}
  %b: float32[1] = const {-7}
  %y = Conv(%x, %w, %b) + Sigmoid()
  %c: float32[1] = const {-3}
  %g = Conv(%x, %w, %c) + Sigmoid()
  %w2: float32[1,1,1,1] = const {4}
  %z = Conv(%g, %w2)
})");
  auto statistics = calibrated(graph, run_on({1, 2, 4, 4}));
  ASSERT_TRUE(statistics) << statistics.status().to_string();
  const double largest = statistics->statistics.at("y").max();
  auto layers = quantize(graph, ops::builtin_ops(), LayerForms(graph), *statistics, {});
  ASSERT_TRUE(layers) << layers.status().to_string();
  EXPECT_NEAR(graph.tensor(graph.outputs()[0]).quant->max[0], 1.1 * largest, 1e-6);
  const TensorId gate = graph.producer_node(graph.outputs()[1])->input(0);
  EXPECT_EQ(graph.tensor(gate).quant->max[0], 0.25f)
      << "twice " << statistics->statistics.at("g").max() << " is held by it, not by half of it";
}

// 16 bits have some to spare for values that the samples do not show, 8 bits have not.
TEST(Parameters, SixteenBitsKeepRoom) {
  for (const char* name : {"w8a8", "w16a16i"}) {
    Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[1,2,1,1] = const {0.5, 0.25}
  %y = Conv(%x, %w)
})");
    QuantizeOptions options;
    const auto format = number_format(name);
    ASSERT_TRUE(format);
    options.format = *format;
    auto statistics = calibrated(graph, run_on({1, 2, 4, 4}), options);
    ASSERT_TRUE(statistics) << statistics.status().to_string();
    const double largest = statistics->statistics.at("y").max(), fed = statistics->statistics.at("x").max();
    ASSERT_TRUE(quantize(graph, ops::builtin_ops(), LayerForms(graph), *statistics, options));
    const auto held = [&](TensorId t) { return graph.tensor(t).quant->max[0]; };
    EXPECT_NEAR(held(graph.outputs()[0]), options.format.bits() == 16 ? 4 * largest : largest, 1e-3 * largest) << name;
    EXPECT_NEAR(held(graph.inputs()[0]), fed, 1e-3 * fed) << name;
  }
}

// Outputs can be given room for values that the samples do not show: the more, the more these differ; for scores four times as
// high, before and after their function.
TEST(Parameters, OutputsKeepTheRoomTheyAreGiven) {
  Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%a, %c) {
  %w: float32[2,2,1,1] = const {0.5, 0.25, 0.5, 0.5}
  %v: float32[2,2,1,1] = const {-1, -0.5, -1, 0.5}
  %y = Conv(%x, %w)
  %a = Transpose(%y) {perm = [0,2,3,1]}
  %b = Conv(%y, %v)
  %c = Sigmoid(%b)
})");
  QuantizeOptions options;
  options.output_room = 4;
  auto statistics = calibrated(graph, run_on({1, 2, 4, 4}), options);
  ASSERT_TRUE(statistics) << statistics.status().to_string();
  const auto seen = [&](const char* name) { return statistics->statistics.at(name); };
  ASSERT_TRUE(quantize(graph, ops::builtin_ops(), LayerForms(graph), *statistics, options));
  const auto held = [&](const char* name) { return *graph.tensor(graph.find_tensor(name)).quant; };
  const auto room = [](double stretch) { return std::clamp(stretch * stretch, 1.25, 4.0); };
  EXPECT_NEAR(held("a").max[0], room(seen("y").stretch_above()) * seen("y").max(), 1e-3);
  EXPECT_NEAR(held("a").min[0], room(seen("y").stretch_below()) * std::min(0.0f, seen("y").min()), 1e-3);
  EXPECT_NEAR(held("x").max[0], seen("x").max(), 1e-3);
  const double score = std::min(0.98, 4.0 * seen("c").max());
  EXPECT_NEAR(held("c").max[0], std::min(1.0, 4.0 * seen("c").max()), 1e-6);
  EXPECT_NEAR(held("b").max[0], std::max<double>(seen("b").max(), std::log(score / (1 - score))), 1e-2);
  EXPECT_NEAR(held("b").min[0], seen("b").min(), 1e-2) << "scores next to 0 need none";
}

// The optimizer folds constants; at level 0 and above a size it leaves them.
TEST(Parameters, LayersOfConstantDataStayInFloat) {
  for (const char* layer :
       {"Relu(%c)", "Conv(%c, %w)", "MaxPool(%c) {kernel_shape = [2,2]}", "AveragePool(%c) {kernel_shape = [2,2]}",
        "GlobalAveragePool(%c)", "Softmax(%c)", "Transpose(%c) {perm = [0, 1, 3, 2]}"}) {
    SCOPED_TRACE(layer);
    Graph graph = graph_of(std::string(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %c: float32[1,2,4,4] = const splat 0.5
  %w: float32[2,2,1,1] = const {1, 2, 0.5, 1}
  %z = )") + layer + "\n  %y = Conv(%x, %w)\n}");
    auto layers = quantized(graph, run_on({1, 2, 4, 4}));
    ASSERT_TRUE(layers) << layers.status().to_string();
    for (const LayerDecision& d : *layers) EXPECT_EQ(d.integer, d.output == "y") << d.output << ": " << d.reason;
  }
}
}  // namespace
}  // namespace orknn::quantize
