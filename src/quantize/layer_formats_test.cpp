// Layers in 16 bits beside layers in 8: types, conversions at the borders, and what it does to the result.
#include "quantize/layer_formats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/eval.h"
#include "quantize/quantize.h"

namespace orknn::quantize {
namespace {
using namespace ir;

constexpr std::string_view kChain = R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %z) {
  %w1: float32[3,2,1,1] = const {0.5, -0.3, 0.21, 0.8, -0.7, 0.11}
  %b1: float32[3] = const {0.1, -0.2, 0.05}
  %a = Conv(%x, %w1, %b1) + Relu() "first"
  %w2: float32[3,3,1,1] = const {0.3, -0.2, 0.9, 0.4, 0.6, -0.5, 0.1, 0.7, -0.8}
  %b = Conv(%a, %w2) + Sigmoid() "second"
  %t = Transpose(%b) {perm = [0, 2, 3, 1]} "turn"
  %u = Transpose(%t) {perm = [0, 3, 1, 2]} "back"
  %s = Add(%a, %u) "sum"
  %c = Concat(%s, %u) {axis = 1} "join"
  %w3: float32[1,6,1,1] = const {0.2, -0.1, 0.3, 0.25, -0.35, 0.15}
  %y = Conv(%c, %w3) "last"
  %z = Softmax(%s) {axis = 1} "shares"
})";

Graph chain() {
  auto graph = parse(kChain);
  EXPECT_TRUE(graph) << graph.status().to_string();
  EXPECT_TRUE(infer_shapes(*graph, ops::builtin_ops()));
  return std::move(*graph);
}

TensorData input() {
  TensorData x = TensorData::allocate(DType::Float32, {1, 2, 4, 4});
  for (int i = 0; i < 32; ++i) static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i * 37 % 64) / 32 - 1;
  return x;
}

TensorStatistics statistics_of(const Graph& graph) {
  TensorStatistics statistics;
  const TensorData x = input();
  statistics.try_emplace("x").first->second.add(x.view());
  ops::EvalOptions options;
  options.observe = [&](TensorId t, const TensorData& value) {
    statistics.try_emplace(graph.tensor(t).name).first->second.add(value.view());
  };
  EXPECT_TRUE(ops::eval_graph(graph, ops::builtin_ops(), std::span(&x, 1), options));
  return statistics;
}

Graph quantized(const QuantizeOptions& options) {
  Graph graph = chain();
  auto decisions = quantize(graph, ops::builtin_ops(), LayerForms(graph), {.statistics = statistics_of(graph)}, options);
  EXPECT_TRUE(decisions) << decisions.status().to_string();
  Status s = infer_shapes(graph, ops::builtin_ops());
  if (s) s = verify(graph, ops::builtin_ops(), Stage::Inferred);
  EXPECT_TRUE(s.is_ok()) << s.to_string() << "\n" << print(graph);
  return graph;
}

DType type_of(const Graph& g, std::string_view name) {
  return g.find_tensor(name) ? g.tensor(g.find_tensor(name)).dtype : DType::Undefined;
}

// Largest difference of output 0 to the float network.
double error_of(const Graph& g) {
  const TensorData x = input();
  const auto exact = ops::eval_graph(chain(), ops::builtin_ops(), std::span(&x, 1));
  const QuantParams& in = *g.tensor(g.inputs()[0]).quant;
  TensorData codes = TensorData::allocate(DType::Int8, x.dims());
  for (int i = 0; i < 32; ++i)
    static_cast<int8_t*>(codes.mutable_data())[i] =
        static_cast<int8_t>(rounded(x.as<float>()[i], in.scale[0], in.zero_point[0], {}));
  const auto results = ops::eval_graph(g, ops::builtin_ops(), std::span(&codes, 1));
  EXPECT_TRUE(results) << results.status().to_string();
  const std::vector<double> wanted = to_doubles((*exact)[0].view()), got = to_doubles((*results)[0].view());
  const QuantParams& out = *g.tensor(g.outputs()[0]).quant;
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    largest = std::max(largest, std::abs((got[i] - out.zero_point[0]) * out.scale[0] - wanted[i]));
  return largest;
}

const NumberFormat kWide{.activations = DType::Int16, .weights = DType::Int16};

TEST(LayerFormats, OneLayerBetweenConversions) {
  QuantizeOptions options;
  options.formats = {{"b", kWide}};
  const Graph g = quantized(options);
  EXPECT_EQ(type_of(g, "a"), DType::Int8);
  EXPECT_EQ(type_of(g, "a_int16"), DType::Int16);
  EXPECT_EQ(type_of(g, "b"), DType::Int16);
  EXPECT_EQ(type_of(g, "u"), DType::Int16) << "copies keep the type";
  EXPECT_EQ(type_of(g, "u_int8"), DType::Int8);
  EXPECT_EQ(type_of(g, "s"), DType::Int8);
  EXPECT_EQ(type_of(g, "w2_int16"), DType::Int16);
  EXPECT_EQ(type_of(g, "w3_int8"), DType::Int8);
  EXPECT_EQ(g.producer_node(g.find_tensor("a_int16"))->op, "int:Table");
  EXPECT_LT(error_of(g), 0.02);
}

TEST(LayerFormats, MoreBitsMakeTheResultBetter) {
  QuantizeOptions options;
  const double plain = error_of(quantized(options));
  for (const char* name : {"a", "b", "s", "c", "y"}) options.formats[name] = kWide;
  const Graph g = quantized(options);
  EXPECT_EQ(type_of(g, "x"), DType::Int8) << "inputs stay what users feed";
  EXPECT_EQ(type_of(g, "y"), DType::Int16);
  EXPECT_EQ(type_of(g, "s_int8"), DType::Int8) << "Softmax has no 16-bit form";
  EXPECT_LT(error_of(g), plain);
}

TEST(LayerFormats, FloatLayersHandOverAllBits) {
  QuantizeOptions options;
  options.formats = {{"b", kWide}};
  options.keep_float = [](const Node&, std::string_view output) { return output == "a"; };
  const Graph g = quantized(options);
  ASSERT_TRUE(g.find_tensor("a_int16"));
  EXPECT_EQ(g.producer_node(g.find_tensor("a_int16"))->op, "QuantizeLinear");
  QuantizeOptions softmax;
  softmax.formats = {{"z", kWide}};
  EXPECT_EQ(quantized(softmax).producer_node(quantized(softmax).find_tensor("z"))->op, "Softmax");
}

TEST(LayerFormats, FixedPointBesideAffine) {
  QuantizeOptions options;
  options.formats = {{"b", {.activations = DType::Int16, .weights = DType::Int16, .power_of_two = true, .per_tensor = true}}};
  const Graph g = quantized(options);
  const Tensor& b = g.tensor(g.find_tensor("b"));
  EXPECT_TRUE(b.quant->fixed_point);
  EXPECT_EQ(b.quant->scale[0], std::exp2(std::ilogb(b.quant->scale[0])));
  EXPECT_FALSE(g.tensor(g.find_tensor("a")).quant->fixed_point);
  EXPECT_LT(error_of(g), 0.02);
}

// What step 2 of hybrid quantization relies on: ranges and means say as much as the samples did.
TEST(QuantizeOptions, RangesAndMeansReplaceStatistics) {
  for (const char* algorithm : {"normal", "mmse", "kl_divergence"}) {
    QuantizeOptions options;
    ASSERT_TRUE(set_algorithm(options, algorithm));
    const Graph measured = quantized(options);
    Graph graph = chain();
    for (const auto& [name, s] : statistics_of(graph))
      for (const ChannelStatistics& c : s.channels()) options.channel_means[name].push_back(c.mean());
    for (size_t i = 0; i < measured.tensor_count(); ++i) {
      const Tensor& t = measured.tensor({static_cast<int32_t>(i)});
      if (t.quant && !t.is_constant() && graph.find_tensor(t.name)) options.ranges[t.name] = {t.quant->min[0], t.quant->max[0]};
    }
    ASSERT_TRUE(quantize(graph, ops::builtin_ops(), LayerForms(graph), {}, options));
    EXPECT_EQ(print(graph), print(measured)) << algorithm;
  }
}
}  // namespace
}  // namespace orknn::quantize
