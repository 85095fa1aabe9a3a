// The TFLite importer on models written in memory: number formats, control flow, variables, cutting, names, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "import/importer.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "tflite_samples.h"
#include "tflite_writer.h"

namespace orknn {
namespace {
using namespace tests;
using namespace tests::tflite;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;

enum : int32_t {
  ADD = 0,
  CONCATENATION = 2,
  CONV_2D = 3,
  DEQUANTIZE = 6,
  FULLY_CONNECTED = 9,
  MUL = 18,
  RELU = 19,
  RESHAPE = 22,
  CUSTOM = 32,
  STRIDED_SLICE = 45,
  PAD = 34,
  EXP = 47,
  LESS = 58,
  FLOOR_MOD = 95,
  TRANSPOSE_CONV = 67,
  WHILE = 119,
  QUANTIZE = 114,
  HASHTABLE = 136
};

Result<Imported> import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
  auto kept = std::make_shared<std::string>(bytes);
  importer::Source source;
  source.path = "test.tflite";
  source.bytes = std::as_bytes(std::span(kept->data(), kept->size()));
  source.keeper = kept;
  return importer::load_bytes(source, options, ops::builtin_ops());
}

std::string error_of(const std::string& bytes, const ImportOptions& options = {}) {
  const auto result = import_bytes(bytes, options);
  return result ? "no error" : result.status().to_string();
}

ImportOptions cut(std::vector<std::string> inputs, std::vector<std::string> outputs, std::vector<ir::Dims> sizes = {}) {
  ImportOptions options;
  options.inputs = std::move(inputs);
  options.outputs = std::move(outputs);
  options.input_size_list = std::move(sizes);
  return options;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The outputs as real numbers: integers that have a scale are dequantized, as the runtime does.
std::vector<std::vector<double>> run(const std::string& bytes, const std::vector<TensorData>& inputs,
                                     const ImportOptions& options = {}) {
  auto imported = import_bytes(bytes, options);
  EXPECT_TRUE(imported) << imported.status().to_string();
  if (!imported) return {};
  const auto results = ops::eval_graph(imported->graph, ops::builtin_ops(), inputs);
  EXPECT_TRUE(results) << results.status().to_string();
  std::vector<std::vector<double>> out;
  for (size_t i = 0; results && i < results->size(); ++i) {
    out.push_back(to_doubles((*results)[i].view()));
    const auto& quant = imported->graph.tensor(imported->graph.outputs()[i]).quant;
    if (quant)
      for (double& v : out.back()) v = (v - quant->zero_point[0]) * static_cast<double>(quant->scale[0]);
  }
  return out;
}

TensorData real(ir::Dims dims, const std::vector<float>& values) { return TensorData::from<float>(std::move(dims), values); }
TensorData small(ir::Dims dims, const std::vector<int8_t>& values) { return TensorData::from<int8_t>(std::move(dims), values); }

const std::string& sample(std::string_view name) {
  static const auto samples = sample_tflite_models();
  for (const auto& s : samples)
    if (s.name == name) return s.bytes;
  ADD_FAILURE() << "no sample " << name;
  return samples[0].bytes;
}

Subgraph one_operator(int32_t code, FlatTable options = {}) {
  Subgraph g;
  g.tensors = {{"x", Float32, {2, 2}, ""}, {"y", Float32, {2, 2}, ""}};
  g.inputs = {0};
  g.outputs = {1};
  g.operators = {{code, {0}, {1}, std::move(options)}};
  return g;
}

TEST(ImportTflite, IsRecognizedByItsBytes) {
  const std::string bytes = model({one_operator(RELU)});
  const auto found = importer::sniff("model.bin", std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->name, "tflite");
}

TEST(ImportTflite, ConvolutionPadsLikeTensorFlowAndClipsAtSix) {
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 4, 4, 1}, ""},
               floats("w", {1, 3, 3, 1}, std::vector<float>(9, 1)),
               floats("b", {1}, {-1}),
               {"y", Float32, {1, 2, 2, 1}, ""}};
  g.inputs = {0};
  g.outputs = {3};
  g.operators = {{CONV_2D,
                  {0, 1, 2},
                  {3},
                  FlatTable().number<int8_t>(0, 0).number<int32_t>(1, 2).number<int32_t>(2, 2).number<int8_t>(3, 3)}};
  // Of the one row and column that stride 2 needs, none is in front.
  EXPECT_EQ(run(model({g}), {real({1, 4, 4, 1}, std::vector<float>(16, 0.75f))}),
            (std::vector<std::vector<double>>{{5.75, 3.5, 3.5, 2}}));
  const auto imported = import_bytes(model({g}));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).layout, ir::Layout::NHWC);
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).layout, ir::Layout::NHWC);
  ImportOptions options;
  options.input_is_nchw = true;
  const auto nchw = import_bytes(model({g}), options);
  ASSERT_TRUE(nchw);
  EXPECT_EQ(nchw->graph.tensor(nchw->graph.inputs()[0]).layout, ir::Layout::NCHW);
}

TEST(ImportTflite, QuantizedPortsKeepTheirIntegersAndParameters) {
  const auto imported = import_bytes(sample("quantized"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  const ir::Graph& g = imported->graph;
  for (ir::TensorId t : {g.inputs()[0], g.outputs()[0]}) {
    EXPECT_EQ(g.tensor(t).dtype, DType::Int8);
    ASSERT_TRUE(g.tensor(t).quant);
  }
  EXPECT_EQ(g.tensor(g.inputs()[0]).quant->scale, std::vector<float>{0.05f});
  EXPECT_EQ(g.tensor(g.inputs()[0]).quant->zero_point, std::vector<int32_t>{3});
  EXPECT_EQ(g.tensor(g.outputs()[0]).name, "y");
  // Weights stay integers.
  bool found = false;
  for (size_t i = 0; i < g.tensor_count(); ++i) {
    const TensorData& value = g.tensor({static_cast<int32_t>(i)}).constant;
    found |= value.has_value() && value.dtype() == DType::Int8 && value.count() == 72;
  }
  EXPECT_TRUE(found);
}

TEST(ImportTflite, QuantizedAddRoundsToTheOutputsScale) {
  Subgraph g;
  g.tensors = {{"a", Int8, {4}, "", {0.5f}, {0}}, {"b", Int8, {4}, "", {0.25f}, {10}}, {"y", Int8, {4}, "", {1.0f}, {-20}}};
  g.inputs = {0, 1};
  g.outputs = {2};
  g.operators = {{ADD, {0, 1}, {2}, FlatTable().number<int8_t>(0, 1)}};
  // 2 + 0.5; -3 + 0 under ReLU; 60 + 29.25; 63.5 + 29.25, which saturates at 127 + 20 only later.
  EXPECT_EQ(run(model({g}), {small({4}, {4, -6, 120, 127}), small({4}, {12, 10, 127, 127})}),
            (std::vector<std::vector<double>>{{2, 0, 89, 93}}));
}

TEST(ImportTflite, PaddingOfIntegersIsTheirZero) {
  Subgraph g;
  g.tensors = {{"x", Int8, {2}, "", {0.5f}, {7}}, ints("pads", {1, 2}, {1, 1}), {"y", Int8, {4}, "", {0.5f}, {7}}};
  g.inputs = {0};
  g.outputs = {2};
  g.operators = {{PAD, {0, 1}, {2}}};
  EXPECT_EQ(run(model({g}), {small({2}, {9, 5})}), (std::vector<std::vector<double>>{{0, 1, -1, 0}}));
}

TEST(ImportTflite, PackedHalfAndSparseWeights) {
  // y1 = relu(x . packed / 2), y2 = y1 . halves (zeros), y3 = y2 . sparse
  const auto packed = run(sample("weights"), {real({1, 4}, {1, 1, 1, 1})}, cut({}, {"y1"}));
  EXPECT_EQ(packed, (std::vector<std::vector<double>>{{5, 9.5, 1}}));  // halves of 1+2+3+4, 5+6+7+1, -1+2-2+3
  Subgraph g;
  const FlatTable dense = FlatTable().number<int32_t>(1, 2);
  const FlatTable rows = FlatTable()
                             .number<int8_t>(0, 1)
                             .number<uint8_t>(2, 2)
                             .table(3, FlatTable().numbers<uint16_t>(0, {0, 1, 3}))
                             .number<uint8_t>(4, 1)
                             .table(5, FlatTable().numbers<int32_t>(0, {1, 0, 3}));
  g.tensors = {{"x", Float32, {1, 4}, ""},
               {"w",
                Float32,
                {2, 4},
                bytes_of<float>({2, 3, 5}),
                {},
                {},
                0,
                false,
                FlatTable().numbers<int32_t>(0, {0, 1}).tables(2, {dense, rows})},
               {"y", Float32, {1, 2}, ""}};
  g.inputs = {0};
  g.outputs = {2};
  g.operators = {{FULLY_CONNECTED, {0, 1}, {2}, FlatTable().number<int8_t>(0, 0)}};
  EXPECT_EQ(run(model({g}), {real({1, 4}, {1, 10, 100, 1000})}), (std::vector<std::vector<double>>{{20, 5003}}));
  g.tensors[1].data = bytes_of<float>({2, 3});
  EXPECT_TRUE(contains(error_of(model({g})), "lists more values than it stores")) << error_of(model({g}));
}

TEST(ImportTflite, SparseBlocks) {
  // Blocks of two rows: of the 2 x 2 blocks of a [4,2] tensor only (0,1) and (1,0) are stored.
  const FlatTable dense = FlatTable().number<int32_t>(1, 2);
  const FlatTable rows = FlatTable()
                             .number<int8_t>(0, 1)
                             .number<uint8_t>(2, 3)
                             .table(3, FlatTable().numbers<uint8_t>(0, {0, 1, 2}))
                             .number<uint8_t>(4, 3)
                             .table(5, FlatTable().numbers<uint8_t>(0, {1, 0}));
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 2}, ""},
               {"w",
                Float32,
                {4, 2},
                bytes_of<float>({1, 2, 3, 4}),
                {},
                {},
                0,
                false,
                FlatTable().numbers<int32_t>(0, {0, 1, 2}).numbers<int32_t>(1, {0}).tables(2, {dense, rows, dense})},
               {"y", Float32, {1, 4}, ""}};
  g.inputs = {0};
  g.outputs = {2};
  g.operators = {{FULLY_CONNECTED, {0, 1}, {2}, FlatTable().number<int8_t>(0, 0)}};
  EXPECT_EQ(run(model({g}), {real({1, 2}, {1, 10})}), (std::vector<std::vector<double>>{{10, 20, 3, 4}}));
}

TEST(ImportTflite, ShapesComputedInTheGraphAreSettled) {
  const auto imported = import_bytes(sample("shapes"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.outputs()[0]).shape), "[1,16]");
  // The convolution between space-to-batch and batch-to-space is a dilated one.
  size_t convolutions = 0;
  for (ir::NodeId id : imported->graph.order()) {
    const ir::Node& n = imported->graph.node(id);
    if (n.op != "Conv") continue;
    ++convolutions;
    EXPECT_EQ(n.attributes.ints_or("dilations"), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(n.attributes.ints_or("pads"), (std::vector<int64_t>{2, 2, 2, 2}));
  }
  EXPECT_EQ(convolutions, 1u);
}

// Rows of one scale are joined as they are stored; one of another scale has to be brought to that of the output.
TEST(ImportTflite, IntegersAreMovedAsTheyAre) {
  for (const float other : {0.5f, 0.25f}) {
    Subgraph g;
    g.tensors = {
        {"a", Int8, {1, 2}, "", {0.5f}, {3}}, {"b", Int8, {1, 2}, "", {other}, {3}}, {"y", Int8, {2, 2}, "", {0.5f}, {3}}};
    g.inputs = {0, 1};
    g.outputs = {2};
    g.operators = {{CONCATENATION, {0, 1}, {2}, FlatTable().number<int32_t>(0, 0)}};
    const auto imported = import_bytes(model({g}));
    ASSERT_TRUE(imported) << imported.status().to_string();
    std::vector<std::string> ops;
    for (ir::NodeId id : imported->graph.order()) ops.push_back(imported->graph.node(id).op);
    EXPECT_EQ(ops == std::vector<std::string>{"Concat"}, other == 0.5f);
    const auto a = TensorData::from<int8_t>({1, 2}, std::vector<int8_t>{7, 9}),
               b = TensorData::from<int8_t>({1, 2}, std::vector<int8_t>{3, 11});
    EXPECT_EQ(run(model({g}), {a, b})[0], (std::vector<double>{2, 3, 0, other == 0.5f ? 4.0 : 2.0}));
  }
}

// x - floor(x / y) * y would lose the digits of the one and give the other the wrong sign.
TEST(ImportTflite, RemaindersKeepTheirDigits) {
  Subgraph g = one_operator(FLOOR_MOD);
  g.tensors.push_back(floats("divisor", {2, 2}, {1, 0.1f, 3, -3}));
  g.operators[0].inputs = {0, 2};
  const auto x = TensorData::from<float>({2, 2}, std::vector<float>{1e-8f, 1, -7, 7});
  EXPECT_EQ(run(model({g}), {x})[0], (std::vector<double>{1e-8f, std::fmod(1.0f, 0.1f), 2, -2}));
}

TEST(ImportTflite, StridedSliceMasks) {
  Subgraph g;
  g.tensors = {{"x", Float32, {2, 3, 4}, ""},
               ints("begin", {3}, {1, 0, -1}),
               ints("end", {3}, {0, 0, 0}),
               ints("strides", {3}, {1, 1, -2}),
               {"y", Float32, {}, ""}};
  g.inputs = {0};
  g.outputs = {4};
  // Row 1, everything in the middle, every second element from the end down to index 1.
  g.operators = {
      {STRIDED_SLICE, {0, 1, 2, 3}, {4}, FlatTable().number<int32_t>(1, 0).number<int32_t>(2, 2).number<int32_t>(4, 1)}};
  std::vector<float> values(24);
  for (size_t i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
  EXPECT_EQ(run(model({g}), {real({2, 3, 4}, values)}), (std::vector<std::vector<double>>{{15, 13, 19, 17, 23, 21}}));
}

TEST(ImportTflite, LoopsChoicesAndVariables) {
  // x * 8, squared or not, plus the variable's first value.
  const TensorData x = real({2}, {1, 2});
  EXPECT_EQ(run(sample("control"), {x, TensorData::scalar<bool>(true)}), (std::vector<std::vector<double>>{{74, 276}}));
  EXPECT_EQ(run(sample("control"), {x, TensorData::scalar<bool>(false)}), (std::vector<std::vector<double>>{{18, 36}}));
  const auto imported = import_bytes(sample("control"));
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(imported->source.warnings[0], "state between calls (variable 'v')")) << imported->source.warnings[0];
}

TEST(ImportTflite, StateTensorsCanBePorts) {
  const auto plain = import_bytes(sample("recurrent"));
  ASSERT_TRUE(plain) << plain.status().to_string();
  EXPECT_EQ(plain->graph.inputs().size(), 1u);
  ASSERT_FALSE(plain->source.warnings.empty());
  const auto open = import_bytes(sample("recurrent"), cut({"m", "memory"}, {"y", "memory"}));
  ASSERT_TRUE(open) << open.status().to_string();
  EXPECT_EQ(open->graph.inputs().size(), 2u);
  EXPECT_TRUE(open->source.warnings.empty());
  // Features 0.1 a + 0.2 b and 0.3 a + 0.4 b join the memory, the oldest entry leaves it.
  const auto y =
      run(sample("recurrent"), {real({1, 2}, {1, 1}), real({1, 6}, {9, 1, 2, 9, 3, 4})}, cut({"m", "memory"}, {"y", "memory"}));
  ASSERT_EQ(y.size(), 2u);
  EXPECT_NEAR(y[0][0], 1 * 1 + 2 * 2 + 3 * 0.3 + 0.5, 1e-5);
  EXPECT_NEAR(y[0][1], 4 * 3 + 5 * 4 + 6 * 0.7 - 0.5, 1e-5);
  for (const auto& [i, wanted] :
       {std::pair(0, 1.0), std::pair(1, 2.0), std::pair(2, 0.3), std::pair(3, 3.0), std::pair(4, 4.0), std::pair(5, 0.7)})
    EXPECT_NEAR(y[1][static_cast<size_t>(i)], wanted, 1e-6);
}

TEST(ImportTflite, PoolingRemembersPlacesAndUnpoolingUsesThem) {
  const std::string options = bytes_of<int32_t>({1, 2, 2, 2, 2, 0});  // SAME, strides, window, no activation
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 4, 4, 1}, ""},
               {"pooled", Float32, {1, 2, 2, 1}, ""},
               {"places", Float32, {1, 2, 2, 1}, ""},
               {"y", Float32, {1, 4, 4, 1}, ""}};
  g.inputs = {0};
  g.outputs = {1, 2, 3};
  g.operators = {{CUSTOM, {0}, {1, 2}, {}, "MaxPoolingWithArgmax2D", options},
                 {CUSTOM, {1, 2}, {3}, {}, "MaxUnpooling2D", options}};
  const auto y = run(model({g}), {real({1, 4, 4, 1}, {1, 2, 9, 3, 7, 4, 5, 6, 8, 0, 1, 1, 2, 3, 1, 5})});
  ASSERT_EQ(y.size(), 3u);
  EXPECT_EQ(y[0], (std::vector<double>{7, 9, 8, 5}));
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[1][i], (std::vector<double>{2.1, 0.1, 0.1, 3.1})[i], 1e-6);
  EXPECT_EQ(y[2], (std::vector<double>{0, 0, 9, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 5}));
  g.operators[0].custom_options = options.substr(0, 8);
  EXPECT_TRUE(contains(error_of(model({g})), "the options of the custom operator are too short")) << error_of(model({g}));
}

TEST(ImportTflite, TransposedConvolutionWithBias) {
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 2, 2, 1}, ""},
               floats("w", {1, 3, 2, 1}, {1, 2, 3, 4, 5, 6}),
               floats("b", {1}, {100}),
               {"y", Float32, {1, 4, 4, 1}, ""}};
  g.inputs = {0};
  g.outputs = {3};
  g.operators = {{CUSTOM, {0, 1, 2}, {3}, {}, "Convolution2DTransposeBias", bytes_of<int32_t>({1, 2, 2})}};
  // Of five rows one is too many, and it is the last: half of one, rounded down, is cut in front.
  EXPECT_EQ(run(model({g}), {real({1, 2, 2, 1}, {1, 10, 0, 0})}),
            (std::vector<std::vector<double>>{{101, 102, 110, 120, 103, 104, 130, 140, 105, 106, 150, 160, 100, 100, 100, 100}}));
}

TEST(ImportTflite, CutsAtTensorsAndTakesSignatureNames) {
  const auto piece = import_bytes(sample("quantized"), cut({"c"}, {"a"}));
  ASSERT_TRUE(piece) << piece.status().to_string();
  EXPECT_EQ(piece->graph.tensor(piece->graph.inputs()[0]).name, "c");
  EXPECT_EQ(piece->graph.tensor(piece->graph.outputs()[0]).name, "a");
  const auto named = import_bytes(sample("quantized"), cut({}, {"result"}));
  ASSERT_TRUE(named) << named.status().to_string();
  EXPECT_EQ(named->graph.tensor(named->graph.outputs()[0]).name, "y");
  EXPECT_TRUE(contains(error_of(sample("quantized"), cut({}, {"nowhere"})), "the 'nowhere' in outputs=['nowhere'] is invalid!"));
  const auto sized = import_bytes(sample("quantized"), cut({}, {"a"}, {{2, 6, 6, 2}}));
  ASSERT_TRUE(sized) << sized.status().to_string();
  EXPECT_EQ(ir::to_string(*sized->graph.tensor(sized->graph.outputs()[0]).shape), "[2,4,4,4]");
}

TEST(ImportTflite, NamesMayBeMissingOrRepeat) {
  Subgraph g = one_operator(RELU);
  g.tensors[0].name = g.tensors[1].name = "";
  ASSERT_TRUE(import_bytes(model({g})));
  g.tensors[0].name = g.tensors[1].name = "same";
  const auto imported = import_bytes(model({g}));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).name, "same");
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).name, "same_1");
}

TEST(ImportTflite, WeightsAreViewsOfTheFile) {
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 4}, ""}, floats("w", {2, 4}, std::vector<float>(8, 1)), {"y", Float32, {1, 2}, ""}};
  g.inputs = {0};
  g.outputs = {2};
  g.operators = {{FULLY_CONNECTED, {0, 1}, {2}, FlatTable().number<int8_t>(0, 0)}};
  auto kept = std::make_shared<std::string>(model({g}));
  importer::Source source;
  source.bytes = std::as_bytes(std::span(kept->data(), kept->size()));
  source.keeper = kept;
  const auto imported = importer::load_bytes(source, {}, ops::builtin_ops(), "tflite");
  ASSERT_TRUE(imported);
  const ir::TensorId w = imported->graph.find_tensor("w");
  ASSERT_TRUE(w);
  const auto* data = static_cast<const char*>(imported->graph.tensor(w).constant.data());
  EXPECT_TRUE(data >= kept->data() && data < kept->data() + kept->size());
}

// --- errors

TEST(ImportTflite, AllUnsupportedOperatorsAreNamedAtOnce) {
  Subgraph g;
  g.tensors = {{"x", Float32, {2}, ""}, {"a", Float32, {2}, ""}, {"b", Float32, {2}, ""}, {"y", Float32, {2}, ""}};
  g.inputs = {0};
  g.outputs = {3};
  g.operators = {{HASHTABLE, {0}, {1}}, {CUSTOM, {0}, {2}, {}, "FlexErf"}, {ADD, {1, 2}, {3}, FlatTable().number<int8_t>(0, 0)}};
  const auto result = import_bytes(model({g}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().count(), 2u) << result.status().to_string();  // the addition suffers, but is not to blame
  const std::string text = result.status().to_string();
  EXPECT_TRUE(contains(text, "node 'a' (HASHTABLE): the operator is not supported")) << text;
  EXPECT_TRUE(contains(text, "node 'b' (FlexErf): the custom operator is not supported")) << text;
  EXPECT_TRUE(contains(text, "without SELECT_TF_OPS")) << text;
  EXPECT_TRUE(import_bytes(model({g}), cut({"a", "b"}, {})));
  g.operators = {{HASHTABLE, {0}, {1}}, {CUSTOM, {1}, {2}, {}, "FlexErf"}, {RELU, {2}, {3}}};  // one after the other
  EXPECT_EQ(import_bytes(model({g})).status().count(), 2u);
}

TEST(ImportTflite, DamageIsToldWithItsPlace) {
  EXPECT_TRUE(contains(error_of(model({one_operator(RELU)}, {}, 2)), "schema version is not supported"));
  std::string bytes = model({one_operator(RELU)});
  EXPECT_TRUE(contains(error_of(bytes.substr(0, bytes.size() / 2)), "the file is damaged"))
      << error_of(bytes.substr(0, bytes.size() / 2));
  EXPECT_TRUE(contains(error_of(bytes.substr(0, bytes.size() / 2)), "at offset"));
  Subgraph g = one_operator(RELU);
  g.operators[0].inputs = {5};
  EXPECT_TRUE(contains(error_of(model({g})), "an input of an operator is out of range; expected below 2, found 5"))
      << error_of(model({g}));
  g = one_operator(ADD);
  g.operators[0].inputs = {0, 1};
  EXPECT_TRUE(contains(error_of(model({g})), "tensor 'y' is read but nothing before it produces it")) << error_of(model({g}));
  g.tensors.push_back(floats("c", {3}, {1, 2}));
  g.operators[0].inputs = {0, 2};
  EXPECT_TRUE(
      contains(error_of(model({g})), "data of tensor 'c' does not fit its shape; expected 12 bytes for float32[3], found 8"))
      << error_of(model({g}));
  g.tensors[2] = {"c", String, {1}, "abcd"};
  EXPECT_TRUE(contains(error_of(model({g})), "found string")) << error_of(model({g}));
  g = one_operator(RELU);
  g.tensors[0].shape = {0, 2};
  EXPECT_TRUE(contains(error_of(model({g})), "Invalid input_shape = [0,2] for input 0!")) << error_of(model({g}));
}

TEST(ImportTflite, ImpossibleQuantizationIsRefused) {
  Subgraph g;
  g.tensors = {{"x", Int8, {2}, "", {0.5f}, {300}}, {"y", Float32, {2}, ""}};
  g.inputs = {0};
  g.outputs = {1};
  g.operators = {{DEQUANTIZE, {0}, {1}}};
  EXPECT_TRUE(contains(error_of(model({g})), "a zero point outside of its type; expected int8, found 300"))
      << error_of(model({g}));
  g.tensors[0] = {"x", Int8, {2}, "", {0.5f, 0.25f, 1.0f}, {0, 0, 0}};
  EXPECT_TRUE(contains(error_of(model({g})), "scales that fit none of its axes")) << error_of(model({g}));
  g.tensors[0] = {"x", Int8, {2}, "", {-0.5f}, {0}};
  EXPECT_TRUE(contains(error_of(model({g})), "an impossible scale")) << error_of(model({g}));
}

TEST(ImportTflite, LoopsWithoutAKnownEndAreRefused) {
  Subgraph g, condition, body;
  g.tensors = {{"n", Float32, {}, ""}, {"y", Float32, {}, ""}};
  g.inputs = {0};
  g.outputs = {1};
  g.operators = {{WHILE, {0}, {1}, FlatTable().number<int32_t>(0, 1).number<int32_t>(1, 2)}};
  condition.tensors = {{"v", Float32, {}, ""}, floats("limit", {}, {3}), {"go", Bool, {}, ""}};
  condition.inputs = {0};
  condition.outputs = {2};
  condition.operators = {{LESS, {0, 1}, {2}}};
  body.tensors = {{"v", Float32, {}, ""}, {"w", Float32, {}, ""}};
  body.inputs = {0};
  body.outputs = {1};
  body.operators = {{EXP, {0}, {1}}};
  EXPECT_TRUE(contains(error_of(model({g, condition, body})), "the number of iterations of the loop must be known"))
      << error_of(model({g, condition, body}));
  body.operators = {{WHILE, {0}, {1}, FlatTable().number<int32_t>(0, 1).number<int32_t>(1, 2)}};  // calls itself
  condition.operators = {{LESS, {1, 1}, {2}}};
  EXPECT_TRUE(import_bytes(model({g, condition, body}))) << "has no iterations";
  condition.tensors[2] = {"go", Bool, {}, "\1"};
  condition.operators.clear();
  EXPECT_TRUE(contains(error_of(model({g, condition, body})), "call each other too deeply"))
      << error_of(model({g, condition, body}));
}

}  // namespace
}  // namespace orknn
