// The ONNX importer on models written in memory: old forms, tensors, cropping, errors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/onnx/layer.h"
#include "import_onnx.h"

namespace orknn {
namespace {
using namespace tests;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;

// A model of one node with float inputs x, y, ... of the given shapes.
Message one_node(int64_t opset, const Message& n, const std::vector<std::vector<std::string>>& inputs,
                 const std::vector<Message>& initializers = {}, const Names& outputs = {"out"}) {
  GraphParts parts{.nodes = {n}, .initializers = initializers, .inputs = {}, .outputs = {}};
  const char* names[] = {"x", "y", "z"};
  for (size_t i = 0; i < inputs.size(); ++i) parts.inputs.push_back(value_info(names[i], kFloat, inputs[i]));
  for (const std::string& o : outputs) parts.outputs.push_back(value_info_without_shape(o, kFloat));
  return model(graph(parts), opset, opset < 9 ? 3 : 8);
}

// --- rows

// A node with `count` inputs of which one may be absent.
Status add_bare_node(std::string_view op, int64_t version, size_t count, size_t absent, const std::optional<ir::Shape>& shape) {
  ir::Graph g;
  ir::Node n;
  n.op = op;
  n.name = "n";
  for (size_t i = 0; i < count; ++i) {
    n.inputs.push_back(i == absent ? ir::TensorId{} : g.add_tensor("x" + std::to_string(i), DType::Float32, shape));
    if (n.inputs.back()) g.inputs().push_back(n.inputs.back());
  }
  n.outputs.push_back(g.add_tensor("y"));
  importer::onnx::Layer layer(g, ops::builtin_ops(), std::move(n), version);
  return importer::onnx::add(layer);
}

// Nothing has looked at a node before its row does: whatever it lacks, the row reports.
TEST(OnnxRows, SurviveMissingInputsAndAttributes) {
  using namespace importer::onnx;
  size_t tried = 0, refused = 0;
  for (const std::span<const Row> rows : {version_rows(), microsoft_rows(), microsoft_attention_rows(), linear_attention_rows()})
    for (const Row& row : rows)
      row.for_each_name([&](std::string_view op) {
        const int64_t version = row.limits.since > 0 ? row.limits.since : std::min<int64_t>(row.limits.below - 1, 30);
        for (size_t count = 0; count <= 6; ++count)
          for (size_t absent = 0; absent <= count; ++absent)
            for (const auto& shape : {std::optional<ir::Shape>(), std::optional<ir::Shape>({1, 4, 4})}) {
              ++tried;
              refused += !add_bare_node(op, version, count, absent, shape);
            }
      });
  EXPECT_GT(tried, 4000u);
  EXPECT_GT(refused, tried / 10);
}

// --- old opsets

TEST(OnnxVersions, BroadcastAlongAxis) {
  const Message m = one_node(6, node("Add", {"x", "y"}, {"out"}, {attribute_int("broadcast", 1), attribute_int("axis", 1)}),
                             {{"1", "2", "2"}, {"2"}});
  EXPECT_EQ(run(m, {floats({1, 2, 2}, {1, 2, 3, 4}), floats({2}, {10, 20})})[0], (Values{11, 12, 23, 24}));
  const Message plain = one_node(6, node("Sub", {"x", "y"}, {"out"}, {attribute_int("broadcast", 1)}), {{"2", "2"}, {"2"}});
  EXPECT_EQ(run(plain, {floats({2, 2}, {1, 2, 3, 4}), floats({2}, {10, 20})})[0], (Values{-9, -18, -7, -16}));
  const Message bad =
      one_node(6, node("Add", {"x", "y"}, {"out"}, {attribute_int("broadcast", 1), attribute_int("axis", 2)}, "sum"),
               {{"1", "2", "2"}, {"2", "2"}});
  EXPECT_TRUE(contains(error_of(bad), "test.onnx: import: node 'sum' (Add)")) << error_of(bad);
}

TEST(OnnxVersions, SoftmaxOverAllAxesFromOne) {
  const Message m = one_node(11, node("Softmax", {"x"}, {"out"}), {{"1", "2", "2"}});
  EXPECT_EQ(run(m, {floats({1, 2, 2}, {3, 3, 3, 3})})[0], (Values{0.25, 0.25, 0.25, 0.25}));
  const Message now = one_node(13, node("Softmax", {"x"}, {"out"}), {{"1", "2", "2"}});
  EXPECT_EQ(run(now, {floats({1, 2, 2}, {3, 3, 3, 3})})[0], (Values{0.5, 0.5, 0.5, 0.5}));
}

TEST(OnnxVersions, AttributesBecomeInputs) {
  const std::vector<float> six{1, 2, 3, 4, 5, 6};
  const auto x = floats({2, 3}, six);
  const std::vector<std::vector<std::string>> shape{{"2", "3"}};
  EXPECT_EQ(run(one_node(6, node("Clip", {"x"}, {"out"}, {attribute_float("min", 2), attribute_float("max", 5)}), shape), {x})[0],
            (Values{2, 2, 3, 4, 5, 5}));
  EXPECT_EQ(run(one_node(10, node("Clip", {"x"}, {"out"}, {attribute_float("max", 5)}), shape), {x})[0],
            (Values{1, 2, 3, 4, 5, 5}));
  EXPECT_EQ(run(one_node(1, node("Pad", {"x"}, {"out"}, {attribute_ints("paddings", {0, 1, 0, 0}), attribute_float("value", 9)}),
                         shape),
                {x})[0],
            (Values{9, 1, 2, 3, 9, 4, 5, 6}));
  EXPECT_EQ(run(one_node(9,
                         node("Slice", {"x"}, {"out"},
                              {attribute_ints("starts", {1}), attribute_ints("ends", {9}), attribute_ints("axes", {1})}),
                         shape),
                {x})[0],
            (Values{2, 3, 5, 6}));
  EXPECT_EQ(run(one_node(9, node("Slice", {"x"}, {"out"}, {attribute_ints("starts", {1}), attribute_ints("ends", {2})}), shape),
                {x})[0],
            (Values{4, 5, 6}));
  EXPECT_EQ(
      run(one_node(12, node("ReduceSum", {"x"}, {"out"}, {attribute_ints("axes", {0}), attribute_int("keepdims", 0)}), shape),
          {x})[0],
      (Values{5, 7, 9}));
  EXPECT_EQ(run(one_node(17, node("ReduceMax", {"x"}, {"out"}, {attribute_ints("axes", {1})}), shape), {x})[0], (Values{3, 6}));
  EXPECT_EQ(run(one_node(4, node("Reshape", {"x"}, {"out"}, {attribute_ints("shape", {3, -1})}), shape), {x})[0],
            Values(six.begin(), six.end()));
  EXPECT_EQ(run(one_node(9, node("TopK", {"x"}, {"out", "i"}, {attribute_int("k", 1)}), shape), {x})[0], (Values{3, 6}));
  EXPECT_EQ(
      run(one_node(5, node("Tile", {"x", "t", "a"}, {"out"}), shape, {float_tensor("t", {}, {2}), float_tensor("a", {}, {0})}),
          {x})[0]
          .size(),
      12u);
  const auto parts =
      run(one_node(2, node("Split", {"x"}, {"a", "b"}, {attribute_int("axis", 1), attribute_ints("split", {1, 2})}), shape, {},
                   {"a", "b"}),
          {x});
  EXPECT_EQ(parts[0], (Values{1, 4}));
  EXPECT_EQ(parts[1], (Values{2, 3, 5, 6}));
  const auto halves = run(one_node(13, node("Split", {"x"}, {"a", "b"}), shape, {}, {"a", "b"}), {x});
  EXPECT_EQ(halves[1], (Values{4, 5, 6}));
  // Squeeze and Unsqueeze keep the values; the shape is what counts.
  auto imported = import_model(one_node(11, node("Unsqueeze", {"x"}, {"out"}, {attribute_ints("axes", {0, 3})}), shape));
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_TRUE(infer_shapes(imported->graph, ops::builtin_ops()));
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.outputs()[0]).shape), "[1,2,3,1]");
}

TEST(OnnxVersions, OtherFormsOfTheirTime) {
  const auto x = floats({2}, {1.5f, -2});
  EXPECT_EQ(run(one_node(5, node("Cast", {"x"}, {"out"}, {attribute_string("to", "INT32")}), {{"2"}}), {x})[0], (Values{1, -2}));
  EXPECT_EQ(run(one_node(3, node("Concat", {"x", "y"}, {"out"}), {{"1", "2"}, {"1", "1"}}),
                {floats({1, 2}, {1, 2}), floats({1, 1}, {3})})[0],
            (Values{1, 2, 3}));
  EXPECT_EQ(run(one_node(10, node("Dropout", {"x"}, {"out", "mask"}, {attribute_float("ratio", 0.9f)}), {{"2"}}), {x})[0],
            (Values{1.5, -2}));
  EXPECT_EQ(run(one_node(5, node("Relu", {"x"}, {"out"}, {attribute_ints("consumed_inputs", {0})}), {{"2"}}), {x})[0],
            (Values{1.5, 0}));
  EXPECT_EQ(run(one_node(9, node("Scatter", {"x", "i", "u"}, {"out"}), {{"2"}},
                         {int64_tensor("i", {1}, {1}), float_tensor("u", {1}, {7})}),
                {x})[0],
            (Values{1.5, 7}));
  // Statistics per element: (x - mean) / sqrt(variance + epsilon) * scale + bias.
  const Message elements = one_node(7,
                                    node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"out"},
                                         {attribute_int("spatial", 0), attribute_float("epsilon", 1)}),
                                    {{"1", "1", "2"}},
                                    {float_tensor("s", {1, 2}, {2, 3}), float_tensor("b", {1, 2}, {10, 20}),
                                     float_tensor("m", {1, 2}, {1, 2}), float_tensor("v", {1, 2}, {3, 8})});
  EXPECT_EQ(run(elements, {floats({1, 1, 2}, {5, 8})})[0], (Values{14, 26}));
  const Message parts = one_node(1, node("Split", {"x", "s"}, {"out", "rest"}, {attribute_int("axis", 0)}), {{"3"}},
                                 {float_tensor("s", {2}, {1, 2})});
  EXPECT_EQ(run(parts, {floats({3}, {1, 2, 3})})[0], (Values{1}));
  const Message scaler =
      one_node(1, node("ImageScaler", {"x"}, {"out"}, {attribute_float("scale", 2), attribute_floats("bias", {1, 10})}),
               {{"1", "2", "1", "1"}});
  EXPECT_EQ(run(scaler, {floats({1, 2, 1, 1}, {3, 4})})[0], (Values{7, 18}));
}

TEST(OnnxVersions, OptionalTensorsAreTensors) {
  const auto x = floats({1}, {4});
  EXPECT_EQ(run(one_node(18, node("OptionalGetElement", {"x"}, {"out"}), {{"1"}}), {x})[0], Values{4});
  EXPECT_EQ(run(one_node(18, node("OptionalHasElement", {"x"}, {"out"}), {{"1"}}), {x})[0], Values{1});
  EXPECT_EQ(run(one_node(18, node("OptionalHasElement", {""}, {"out"}), {{"1"}}), {x})[0], Values{0});
}

TEST(OnnxVersions, SlopePerChannel) {
  const Message m = one_node(6, node("PRelu", {"x", "s"}, {"out"}), {{"1", "2", "1", "2"}}, {float_tensor("s", {2}, {2, 3})});
  EXPECT_EQ(run(m, {floats({1, 2, 1, 2}, {-1, -1, -1, 1})})[0], (Values{-2, -2, -3, 1}));
}

TEST(OnnxVersions, UpsampleIsResize) {
  const auto x = floats({1, 1, 1, 2}, {1, 2});
  const Values wanted{1, 1, 2, 2};
  EXPECT_EQ(
      run(one_node(1, node("Upsample", {"x"}, {"out"}, {attribute_float("height_scale", 1), attribute_float("width_scale", 2)}),
                   {{"1", "1", "1", "2"}}),
          {x})[0],
      wanted);
  EXPECT_EQ(run(one_node(7, node("Upsample", {"x"}, {"out"}, {attribute_floats("scales", {1, 1, 1, 2})}), {{"1", "1", "1", "2"}}),
                {x})[0],
            wanted);
  const std::vector<Message> scales{float_tensor("s", {4}, {1, 1, 1, 2})};
  EXPECT_EQ(run(one_node(9, node("Upsample", {"x", "s"}, {"out"}), {{"1", "1", "1", "2"}}, scales), {x})[0], wanted);
  EXPECT_EQ(run(one_node(10, node("Resize", {"x", "s"}, {"out"}), {{"1", "1", "1", "2"}}, scales), {x})[0], wanted);
  EXPECT_EQ(
      run(one_node(10, node("Resize", {"x", "s"}, {"out"}, {attribute_string("mode", "linear")}), {{"1", "1", "1", "2"}}, scales),
          {x})[0],
      (Values{1, 1.5, 2, 2}));
}

TEST(OnnxVersions, GroupNormalizationPerGroup) {
  const Message m = one_node(
      18, node("GroupNormalization", {"x", "s", "b"}, {"out"}, {attribute_int("num_groups", 2), attribute_float("epsilon", 0)}),
      {{"1", "4", "2"}}, {float_tensor("s", {2}, {1, 10}), float_tensor("b", {2}, {0, 5})});
  EXPECT_EQ(run(m, {floats({1, 4, 2}, {-1, 1, -1, 1, -1, 1, -1, 1})})[0], (Values{-1, 1, -1, 1, -5, 15, -5, 15}));
}

TEST(OnnxVersions, ScanWithBatchAxis) {
  const Message body = graph({.nodes = {node("Add", {"sum", "next"}, {"sum_out"}), node("Identity", {"sum_out"}, {"scan"})},
                              .initializers = {},
                              .inputs = {value_info("sum", kFloat, {"1"}), value_info("next", kFloat, {"1"})},
                              .outputs = {value_info("sum_out", kFloat, {"1"}), value_info("scan", kFloat, {"1"})}});
  const Message m =
      one_node(8, node("Scan", {"", "x", "y"}, {"a", "b"}, {attribute_graph("body", body), attribute_int("num_scan_inputs", 1)}),
               {{"2", "1"}, {"2", "3", "1"}}, {}, {"a", "b"});
  const auto out = run(m, {floats({2, 1}, {0, 100}), floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(out[0], (Values{6, 115}));
  EXPECT_EQ(out[1], (Values{1, 3, 6, 104, 109, 115}));
}

TEST(OnnxVersions, NoOpsetIsTheFirst) {
  const Message m = model(graph({.nodes = {node("Clip", {"x"}, {"out"}, {attribute_float("max", 1)})},
                                 .initializers = {},
                                 .inputs = {value_info("x", kFloat, {"1"})},
                                 .outputs = {value_info("out", kFloat, {"1"})}}),
                          0, 1);
  EXPECT_EQ(run(m, {floats({1}, {5})})[0], Values{1});
}

TEST(OnnxMicrosoft, FusedOps) {
  const auto domain = "com.microsoft";
  const auto x = floats({1, 2}, {1, -2});
  EXPECT_EQ(
      run(one_node(
              13, node("FusedMatMul", {"x", "y"}, {"out"}, {attribute_int("transB", 1), attribute_float("alpha", 2)}, "", domain),
              {{"1", "2"}, {"2", "2"}}),
          {x, floats({2, 2}, {1, 2, 3, 4})})[0],
      (Values{-6, -10}));
  EXPECT_EQ(run(one_node(13, node("FusedGemm", {"x", "y"}, {"out"}, {attribute_string("activation", "Relu")}, "", domain),
                         {{"1", "2"}, {"2", "2"}}),
                {x, floats({2, 2}, {1, 2, 3, -4})})[0],
            (Values{0, 10}));
}

TEST(OnnxMicrosoft, ACacheOfAnotherRankIsRefused) {
  const Message attention = node("GroupQueryAttention", {"x", "x", "x", "keys", "values", "last", "total"}, {"out"},
                                 {attribute_int("num_heads", 1), attribute_int("kv_num_heads", 1)}, "", "com.microsoft");
  const auto refusal = [&](std::vector<std::string> keys, std::vector<std::string> values) {
    return error_of(model(graph({.nodes = {attention},
                                 .initializers = {},
                                 .inputs = {value_info("x", kFloat, {"1", "1", "4"}), value_info("keys", kFloat, keys),
                                            value_info("values", kFloat, values), value_info("last", kInt64, {"1"}),
                                            value_info("total", kInt64, {"1"})},
                                 .outputs = {value_info_without_shape("out", kFloat)}}),
                          17));
  };
  const std::vector<std::string> cache{"1", "1", "2", "4"}, flat{"1", "8"};
  EXPECT_TRUE(contains(refusal(flat, cache), "has the wrong rank; expected 4 axes to read the cache, found [1,8]"))
      << refusal(flat, cache);
  EXPECT_TRUE(contains(refusal(cache, flat), "has the wrong rank; expected 4, found [1,8]")) << refusal(cache, flat);
}

TEST(OnnxMicrosoft, NumbersOfUnknownWidthAreRefused) {
  for (const int64_t bits : {int64_t{0}, int64_t{3}, int64_t{9}, int64_t{256}}) {
    const Message gather =
        node("GatherBlockQuantized", {"t", "i", "s"}, {"out"}, {attribute_int("bits", bits)}, "", "com.microsoft");
    const std::string error =
        error_of(model(graph({.nodes = {gather},
                              .initializers = {raw_tensor("t", kUInt8, {1, 4}, "abcd"), float_tensor("s", {1, 1}, {1})},
                              .inputs = {value_info("i", kInt64, {"1"})},
                              .outputs = {value_info_without_shape("out", kFloat)}}),
                       17));
    EXPECT_TRUE(contains(error, "weights of " + std::to_string(bits) + " bits are not supported; expected 2, 4 or 8")) << error;
  }
}

TEST(OnnxMicrosoft, ScalesOfAnotherRankAreRefused) {
  const Message gather = node("GatherBlockQuantized", {"t", "i", "s", "z"}, {"out"}, {}, "", "com.microsoft");
  const std::string error =
      error_of(model(graph({.nodes = {gather},
                            .initializers = {raw_tensor("t", kUInt8, {1, 4}, "abcd"), float_tensor("s", {}, {1}),
                                             raw_tensor("z", kUInt8, {1, 1}, "8")},
                            .inputs = {value_info("i", kInt64, {"1"})},
                            .outputs = {value_info_without_shape("out", kFloat)}}),
                     17));
  EXPECT_TRUE(contains(error, "the scales have the wrong rank; expected 2, found []")) << error;
}

TEST(OnnxMicrosoft, QuantizedProductsMeansAndChoices) {
  constexpr int kInt8 = 3, kInt32 = 6;
  const auto bytes = [](const std::vector<int32_t>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  };
  const std::vector<Message> constants{float_tensor("as", {}, {0.5}),
                                       raw_tensor("az", kUInt8, {}, "\x0a"),
                                       raw_tensor("b", kInt8, {2, 2}, "\x01\x02\x03\xfc"),
                                       raw_tensor("bt", kInt8, {2, 2}, "\x01\x03\x02\xfc"),
                                       float_tensor("bs", {2}, {0.1f, 0.2f}),
                                       raw_tensor("c", kInt32, {2}, bytes({100, -50})),
                                       float_tensor("bias", {2}, {5, -5}),
                                       float_tensor("ys", {}, {1}),
                                       float_tensor("gs", {}, {0.4f}),
                                       raw_tensor("yz", kUInt8, {}, "\x03"),
                                       raw_tensor("condition", kBool, {1, 2}, std::string("\x01\0", 2)),
                                       raw_tensor("other", kUInt8, {1, 2}, "\x14\x1e")};
  // x is 1, -2 and lies on its grid; results are floats or bytes.
  const auto result = [&](const Message& last, int type = kFloat, std::vector<float> x = {1, -2}) {
    const Message quantize = node("QuantizeLinear", {"x", "as", "az"}, {"xq"});
    const Message m = model(graph({.nodes = {quantize, last},
                                   .initializers = constants,
                                   .inputs = {value_info("x", kFloat, {"1", "2"})},
                                   .outputs = {value_info_without_shape("out", type)}}),
                            13);
    return run(m, {floats({1, 2}, x)})[0];
  };
  const auto near = [](const Values& got, const Values& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
  };
  const auto domain = "com.microsoft";
  near(result(node("QGemm", {"xq", "as", "az", "b", "bs", "", "c"}, {"out"}, {}, "", domain)), {4.5, -3});
  near(result(node("QGemm", {"xq", "as", "az", "bt", "bs", "", "c"}, {"out"},
                   {attribute_int("transB", 1), attribute_float("alpha", 2)}, "", domain)),
       {9, -6});
  near(result(node("QGemm", {"xq", "as", "az", "b", "bs", "", "", "gs", "yz"}, {"out"}, {}, "", domain), kUInt8), {2, 8});
  near(result(node("MatMulIntegerToFloat", {"xq", "b", "as", "bs", "az", "", "bias"}, {"out"}, {}, "", domain)), {4.5, -3});
  near(result(node("DynamicQuantizeMatMul", {"x", "b", "bs", "", "bias"}, {"out"}, {}, "", domain), kFloat, {0, 255}),
       {0.3 * 255 + 5, -0.8 * 255 - 5});
  near(result(node("QLinearWhere", {"condition", "xq", "as", "az", "other", "as", "az", "ys", "yz"}, {"out"}, {}, "", domain),
              kUInt8),
       {4, 13});
  near(result(node("QLinearReduceMean", {"xq", "as", "az", "as", "az"}, {"out"}, {attribute_int("keepdims", 1)}, "", domain),
              kUInt8),
       {9});
  EXPECT_TRUE(contains(error_of(one_node(13, node("QGemm", {"x", "y"}, {"out"}, {}, "", domain), {{"1", "2"}, {"2", "2"}})),
                       "input 3 is missing"));
}

// --- tensors

// Adds the initializer t to x and returns the sum.
Values with_tensor(const Message& tensor, const std::vector<float>& x) {
  GraphParts parts{.nodes = {node("Cast", {"t"}, {"f"}, {attribute_int("to", 1)}), node("Add", {"x", "f"}, {"out"})},
                   .initializers = {tensor},
                   .inputs = {value_info("x", kFloat, {std::to_string(x.size())})},
                   .outputs = {value_info("out", kFloat, {std::to_string(x.size())})}};
  return run(model(graph(parts), 21, 10), {floats({static_cast<int64_t>(x.size())}, x)})[0];
}

TEST(OnnxTensors, EveryWayToStoreValues) {
  const auto typed = [](int type, int field, const Ints& values, int64_t count, bool packed) {
    return Message().numbers(1, Ints{count}).number(2, type).numbers(field, values, packed).text(8, "t");
  };
  for (bool packed : {false, true}) {
    EXPECT_EQ(with_tensor(typed(kHalf, 5, {0x3c00, 0xc000}, 2, packed), {0, 0}), (Values{1, -2}));
    EXPECT_EQ(with_tensor(typed(kBool, 5, {0, 1}, 2, packed), {0, 0}), (Values{0, 1}));
    EXPECT_EQ(with_tensor(typed(kInt64, 7, {-3, 1 << 20}, 2, packed), {0, 0}), (Values{-3, 1 << 20}));
    EXPECT_EQ(with_tensor(typed(kUInt64, 11, {5, 6}, 2, packed), {0, 0}), (Values{5, 6}));
    EXPECT_EQ(with_tensor(typed(kInt4, 5, {0x2f, 0x07}, 3, packed), {0, 0, 0}), (Values{-1, 2, 7}));
    EXPECT_EQ(with_tensor(typed(3, 5, {-128, 127}, 2, packed), {0, 0}), (Values{-128, 127}));
  }
  EXPECT_EQ(with_tensor(Message().number(1, 2).number(2, kFloat).real(4, 1.5f).real(4, 2.5f).text(8, "t"), {0, 0}),
            (Values{1.5, 2.5}));
  EXPECT_EQ(with_tensor(raw_tensor("t", kUInt4, {3}, std::string("\x2f\x07", 2)), {0, 0, 0}), (Values{15, 2, 7}));
  EXPECT_EQ(with_tensor(raw_tensor("t", kBool, {2}, std::string("\0\x05", 2)), {0, 0}), (Values{0, 1}))
      << "a bool that is neither 0 nor 1";
  EXPECT_EQ(with_tensor(raw_tensor("t", kUInt8, {1}, "\xff"), {0}), Values{255});
}

Message tensor_model(const Message& tensor) {
  return model(graph({.nodes = {node("Add", {"x", "t"}, {"out"})},
                      .initializers = {tensor},
                      .inputs = {value_info("x", kFloat, {"2"})},
                      .outputs = {value_info("out", kFloat, {"2"})}}),
               13);
}

TEST(OnnxTensors, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(contains(error_of(tensor_model(float_tensor("t", {3}, {1, 2}))), "does not fit the shape"));
  EXPECT_TRUE(
      contains(error_of(tensor_model(float_tensor("t", {int64_t{1} << 40, int64_t{1} << 40}, {1, 2}))), "test.onnx: import"));
  EXPECT_TRUE(contains(error_of(tensor_model(float_tensor("t", {-2}, {1, 2}))), "negative"));
  EXPECT_TRUE(contains(error_of(tensor_model(raw_tensor("t", kString, {1}, ""))), "string"));
  EXPECT_TRUE(contains(error_of(tensor_model(raw_tensor("t", 17, {1}, "a"))), "float8"));
  Message segment = float_tensor("t", {2}, {1, 2});
  segment.message(3, Message().number(1, 0).number(2, 2));
  EXPECT_TRUE(contains(error_of(tensor_model(segment)), "segments"));
}

TEST(OnnxTensors, Sparse) {
  const auto sparse_model = [](const Message& sparse) {
    return model(graph({.nodes = {node("Add", {"x", "t"}, {"out"})},
                        .initializers = {},
                        .inputs = {value_info("x", kFloat, {"2", "2"})},
                        .outputs = {value_info("out", kFloat, {"2", "2"})},
                        .sparse_initializers = {sparse}}),
                 13);
  };
  const auto x = floats({2, 2}, {0, 0, 0, 0});
  const Message values = float_tensor("t", {2}, {5, 6});
  EXPECT_EQ(
      run(sparse_model(Message().message(1, values).message(2, int64_tensor("", {2}, {1, 2})).numbers(3, Ints{2, 2})), {x})[0],
      (Values{0, 5, 6, 0}));
  EXPECT_EQ(
      run(sparse_model(Message().message(1, values).message(2, int64_tensor("", {2, 2}, {0, 0, 1, 1})).numbers(3, Ints{2, 2})),
          {x})[0],
      (Values{5, 0, 0, 6}));
  EXPECT_TRUE(contains(
      error_of(sparse_model(Message().message(1, values).message(2, int64_tensor("", {2}, {1, 4})).numbers(3, Ints{2, 2}))),
      "outside"));
  EXPECT_TRUE(
      contains(error_of(sparse_model(
                   Message().message(1, values).message(2, int64_tensor("", {2}, {1, 4})).numbers(3, Ints{1 << 20, 1 << 20}))),
               "import"));
}

TEST(OnnxTensors, ConstantNodes) {
  const std::pair<Message, Values> forms[] = {
      {attribute_float("value_float", 2.5f), {2.5, 2.5}},
      {attribute_floats("value_floats", {1, 2}), {1, 2}},
      {attribute_tensor("value", float_tensor("", {2}, {3, 4})), {3, 4}},
      {Message()
           .text(1, "sparse_value")
           .message(22,
                    Message().message(1, float_tensor("", {1}, {9})).message(2, int64_tensor("", {1}, {1})).numbers(3, Ints{2}))
           .number(20, 11),
       {0, 9}}};
  for (const auto& [attribute, wanted] : forms) {
    const Message m = model(graph({.nodes = {node("Constant", {}, {"c"}, {attribute}), node("Add", {"x", "c"}, {"out"})},
                                   .initializers = {},
                                   .inputs = {value_info("x", kFloat, {"2"})},
                                   .outputs = {value_info("out", kFloat, {"2"})}}),
                            13);
    EXPECT_EQ(run(m, {floats({2}, {0, 0})})[0], wanted);
  }
  for (const Message& attribute : {attribute_int("value_int", 1), attribute_ints("value_ints", {1})}) {
    const Message m = model(graph({.nodes = {node("Constant", {}, {"c"}, {attribute}), node("Gather", {"x", "c"}, {"out"})},
                                   .initializers = {},
                                   .inputs = {value_info("x", kFloat, {"2"})},
                                   .outputs = {value_info_without_shape("out", kFloat)}}),
                            13);
    EXPECT_EQ(run(m, {floats({2}, {3, 4})})[0], Values{4});
  }
}

TEST(OnnxTensors, ExternalData) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("orknn_external_" + std::to_string(::getpid()));
  fs::create_directories(folder / "weights");
  const float values[] = {0, 1, 2, 3};
  std::ofstream(folder / "weights" / "w.bin", std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  const auto save = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    Message tensor;
    tensor.numbers(1, Ints{2}).number(2, kFloat).text(8, "t").number(14, 1);
    for (const auto& [key, value] : entries) tensor.message(13, Message().text(1, key).text(2, value));
    const std::string path = (folder / "m.onnx").string();
    std::ofstream(path, std::ios::binary) << tensor_model(tensor).bytes();
    return path;
  };
  const auto load = [&](const std::string& path) { return importer::load_file(path, {}, ops::builtin_ops()); };
  const auto good = load(save({{"location", "weights/w.bin"}, {"offset", "8"}, {"length", "8"}}));
  ASSERT_TRUE(good) << good.status().to_string();
  const TensorData* t = good->graph.constant(good->graph.find_tensor("t"));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(ir::to_doubles(t->view()), (Values{2, 3}));
  const auto error = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    const auto result = load(save(entries));
    return result ? "no error" : result.status().to_string();
  };
  EXPECT_TRUE(contains(error({{"location", "weights/none.bin"}}), "cannot open"));
  EXPECT_TRUE(contains(error({{"location", "../w.bin"}}), "own folder"));
  EXPECT_TRUE(contains(error({{"location", "weights/../../w.bin"}}), "own folder"));
  EXPECT_TRUE(contains(error({{"location", "/etc/passwd"}}), "own folder"));
  EXPECT_TRUE(contains(error({}), "own folder"));
  EXPECT_TRUE(contains(error({{"location", "weights/w.bin"}, {"offset", "12"}}), "too short"));
  EXPECT_TRUE(contains(error({{"location", "weights/w.bin"}, {"offset", "18446744073709551615"}}), "too short"));
  EXPECT_TRUE(contains(error({{"location", "weights/w.bin"}, {"offset", "x"}}), "offset"));
  EXPECT_TRUE(contains(error({{"location", "weights/w.bin"}, {"length", "4"}}), "does not fit"));

  // A link must not lead out of the model's folder, unless the model itself is such a link into the same place.
  const fs::path outside = folder.string() + "_blobs";
  fs::create_directories(outside);
  fs::copy_file(folder / "weights" / "w.bin", outside / "w.bin", fs::copy_options::overwrite_existing);
  fs::create_symlink(outside / "w.bin", folder / "linked.bin");
  EXPECT_TRUE(contains(error({{"location", "linked.bin"}, {"length", "8"}}), "outside the model's folder"));
  const std::string model = save({{"location", "linked.bin"}, {"length", "8"}});
  fs::rename(model, outside / "m.onnx");
  fs::create_symlink(outside / "m.onnx", model);
  const auto cached = load(model);
  EXPECT_TRUE(cached) << cached.status().to_string();
  fs::remove_all(outside);
  fs::remove(model);

  // Values that are described instead of stored are drawn: the same every time, with a warning.
  const auto drawn = [&](const char* scale, const char* mean) {
    const auto result = load(save({{"location", "fill:normal"}, {"seed", "7"}, {"scale", scale}, {"mean", mean}}));
    EXPECT_TRUE(result) << result.status().to_string();
    if (!result) return Values{};
    EXPECT_EQ(result->source.warnings.size(), 1u);
    return ir::to_doubles(result->graph.constant(result->graph.find_tensor("t"))->view());
  };
  EXPECT_EQ(drawn("0.5", "1"), drawn("0.5", "1"));
  EXPECT_EQ(drawn("0", "3"), (Values{3, 3}));
  EXPECT_NE(drawn("0.5", "0"), drawn("0.25", "0"));
  EXPECT_TRUE(contains(error({{"location", "fill:normal"}, {"seed", "7"}}), "seed, scale or mean"));
  EXPECT_TRUE(contains(error({{"location", "fill:normal"}, {"seed", "-1"}, {"scale", "1"}}), "seed, scale or mean"));
  EXPECT_TRUE(contains(error({{"location", "fill:normal"}, {"seed", "7"}, {"scale", "inf"}}), "seed, scale or mean"));
  EXPECT_TRUE(contains(error({{"location", "fill:uniform"}, {"seed", "7"}, {"scale", "1"}}), "cannot open"));
  fs::remove_all(folder);
}

TEST(OnnxTensors, DescribedValuesOfAnySizeAreNotDrawn) {
  Message tensor;
  tensor.numbers(1, Ints{1 << 20, 1 << 20}).number(2, kFloat).text(8, "t").number(14, 1);
  for (const auto& [key, value] : {std::pair("location", "fill:normal"), {"seed", "1"}, {"scale", "1"}})
    tensor.message(13, Message().text(1, key).text(2, value));
  EXPECT_TRUE(contains(error_of(tensor_model(tensor)), "too large"));
}

// --- graph rules

TEST(OnnxGraph, InitializersAreNoInputs) {
  const Message m = model(graph({.nodes = {node("Add", {"x", "w"}, {"out"})},
                                 .initializers = {float_tensor("w", {1}, {1})},
                                 .inputs = {value_info("x", kFloat, {"1"}), value_info("w", kFloat, {"1"})},
                                 .outputs = {value_info("out", kFloat, {"1"})}}),
                          7, 3);
  EXPECT_EQ(run(m, {floats({1}, {2})})[0], Values{3});
}

TEST(OnnxGraph, NodesInAnyOrder) {
  const Message m =
      model(graph({.nodes = {node("Neg", {"a"}, {"out"}), node("Relu", {"x"}, {"a"}), node("Unheard", {"x"}, {"unused"})},
                   .initializers = {},
                   .inputs = {value_info("x", kFloat, {"1"})},
                   .outputs = {value_info("out", kFloat, {"1"})}}),
            13);
  EXPECT_EQ(run(m, {floats({1}, {2})})[0], Values{-2}) << "and what is not read does no harm";
  EXPECT_TRUE(contains(error_of(model(graph({.nodes = {node("Neg", {"b"}, {"a"}), node("Relu", {"a"}, {"b"})},
                                             .initializers = {},
                                             .inputs = {},
                                             .outputs = {value_info("a", kFloat, {"1"})}}),
                                      13)),
                       "cycle"));
  EXPECT_TRUE(contains(error_of(model(graph({.nodes = {node("Neg", {"x"}, {"a"}), node("Relu", {"x"}, {"a"})},
                                             .initializers = {},
                                             .inputs = {value_info("x", kFloat, {"1"})},
                                             .outputs = {value_info("a", kFloat, {"1"})}}),
                                      13)),
                       "produced twice"));
  EXPECT_TRUE(contains(error_of(model(graph({.nodes = {node("Neg", {"nowhere"}, {"a"}, {}, "n")},
                                             .initializers = {},
                                             .inputs = {},
                                             .outputs = {value_info("a", kFloat, {"1"})}}),
                                      13)),
                       "'nowhere'"));
}

TEST(OnnxGraph, AllUnknownOpsAtOnce) {
  const Message m = model(graph({.nodes = {node("Foo", {"x"}, {"a"}, {}, "first"), node("Bar", {"a"}, {"b"}, {}, "", "org.acme"),
                                           node("Relu", {"b"}, {"out"})},
                                 .initializers = {},
                                 .inputs = {value_info("x", kFloat, {"1"})},
                                 .outputs = {value_info("out", kFloat, {"1"})}}),
                          13);
  const std::string text = error_of(m);
  EXPECT_TRUE(contains(text, "node 'first' (Foo)")) << text;
  EXPECT_TRUE(contains(text, "node 'b' (org.acme:Bar)")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(OnnxGraph, NamesAndOrigin) {
  const auto imported =
      import_model(model(graph({.nodes = {node("Relu", {"x"}, {"a"}, {}, "layer1/relu"), node("Neg", {"a"}, {"out"})},
                                .initializers = {},
                                .inputs = {value_info("x", kFloat, {"N", "3"})},
                                .outputs = {value_info("out", kFloat, {"N", "3"})}}),
                         13));
  ASSERT_TRUE(imported);
  const ir::Graph& g = imported->graph;
  EXPECT_EQ(g.node(g.order()[0]).name, "layer1/relu");
  EXPECT_EQ(g.node(g.order()[0]).origin, std::vector<std::string>{"layer1/relu"});
  EXPECT_EQ(g.node(g.order()[1]).name, "out");
  EXPECT_EQ(ir::to_string(*g.tensor(g.inputs()[0]).shape), "[N,3]");
  EXPECT_EQ(imported->source.framework, "onnx");
  EXPECT_EQ(imported->source.producer, "test");
}

TEST(OnnxGraph, ConstantsOfAnotherTypeAreConverted) {
  const Message m = one_node(19, node("Greater", {"x", "k"}, {"out"}), {{"2"}}, {int64_tensor("k", {}, {3})});
  EXPECT_EQ(run(m, {floats({2}, {2.5f, 3.5f})})[0], (Values{0, 1}));
}

TEST(OnnxGraph, ComputedOperandsOfTwoTypesAreRefused) {
  constexpr int64_t kInt64 = 7;
  for (const char* op : {"Add", "Greater", "Max", "Concat"}) {
    const auto attributes =
        std::string_view(op) == "Concat" ? std::vector<Message>{attribute_int("axis", 0)} : std::vector<Message>{};
    auto imported = import_model(model(graph({.nodes = {node(op, {"x", "y"}, {"out"}, attributes, "joined")},
                                              .initializers = {},
                                              .inputs = {value_info("x", kFloat, {"2"}), value_info("y", kInt64, {"2"})},
                                              .outputs = {value_info("out", kFloat, {"2"})}}),
                                       19));
    const Status status = imported ? ir::infer_shapes(imported->graph, ops::builtin_ops()) : imported.status();
    EXPECT_FALSE(status) << op;
    EXPECT_NE(status.to_string().find("'joined'"), std::string::npos) << status.to_string();
  }
}

TEST(OnnxGraph, OutputsThatAreNotAsStatedAreRemarked) {
  const auto remarks = [](const Names& stated, int64_t type = kFloat) {
    const auto imported = import_model(model(graph({.nodes = {node("Relu", {"x"}, {"out"})},
                                                    .initializers = {},
                                                    .inputs = {value_info("x", kFloat, {"N", "3"})},
                                                    .outputs = {value_info("out", type, stated)}}),
                                             19));
    EXPECT_TRUE(imported) << imported.status().to_string();
    return imported ? imported->source.warnings : std::vector<std::string>{};
  };
  EXPECT_TRUE(remarks({"N", "3"}).empty());
  EXPECT_TRUE(remarks({"4", "M"}).empty()) << "nothing known is contradicted";
  for (const Names& wrong : {Names{"N", "4"}, Names{"3"}}) {
    const std::vector<std::string> text = remarks(wrong);
    ASSERT_EQ(text.size(), 1u);
    EXPECT_NE(text[0].find("'out'"), std::string::npos) << text[0];
  }
}

// --- what the user asks for

Message chain() {
  return model(
      graph({.nodes = {node("Relu", {"x"}, {"a"}), node("Neg", {"a"}, {"b"}),
                       node("Split", {"b"}, {"s0", "s1"}, {attribute_int("axis", 1)}), node("Add", {"s0", "s1"}, {"out"})},
             .initializers = {},
             .inputs = {value_info("x", kFloat, {"N", "4"})},
             .outputs = {value_info("out", kFloat, {"N", "2"})}}),
      13);
}

TEST(OnnxCrop, OutputsAndInputs) {
  EXPECT_EQ(run(chain(), {floats({1, 4}, {1, -1, 2, 3})}, {.outputs = {"a"}})[0], (Values{1, 0, 2, 3}));
  EXPECT_EQ(run(chain(), {floats({1, 4}, {1, 2, 3, 4})}, {.inputs = {"b"}, .input_size_list = {{1, 4}}})[0], (Values{4, 6}));
  EXPECT_EQ(run(chain(), {floats({1, 2}, {1, 2}), floats({1, 4}, {1, 1, 1, 1})},
                {.inputs = {"s0", "b"}, .input_size_list = {{1, 2}, {1, 4}}})[0],
            (Values{2, 3}))
      << "one of two outputs of a node";
  EXPECT_TRUE(contains(error_of(chain(), {.outputs = {"a", "378"}}), "the '378' in outputs=['a', '378'] is invalid!"));
  EXPECT_TRUE(
      contains(error_of(chain(), {.inputs = {"zz"}, .input_size_list = {{1, 4}}}), "the 'zz' in inputs=['zz'] is invalid!"));
  EXPECT_TRUE(contains(error_of(chain(), {.inputs = {"s0"}, .input_size_list = {{1, 2}}}), "depend on input 'x'"));
}

TEST(OnnxCrop, Sizes) {
  const auto sized = import_model(chain(), {.input_size_list = {{7, 4}}});
  ASSERT_TRUE(sized) << sized.status().to_string();
  EXPECT_EQ(ir::to_string(*sized->graph.tensor(sized->graph.inputs()[0]).shape), "[7,4]");
  EXPECT_TRUE(contains(error_of(chain(), {.input_size_list = {{7, 4, 1}}}), "wrong number of dimensions"));
  EXPECT_TRUE(contains(error_of(chain(), {.input_size_list = {{7, 4}, {1}}}), "wrong length"));
  EXPECT_TRUE(contains(error_of(chain(), {.input_size_list = {{int64_t{1} << 40, int64_t{1} << 40}}}), "Invalid input_shape"));
  // The symbol N is settled for the other input too.
  const Message two = model(graph({.nodes = {node("Add", {"x", "y"}, {"out"})},
                                   .initializers = {},
                                   .inputs = {value_info("x", kFloat, {"N", "2"}), value_info("y", kFloat, {"N", "2"})},
                                   .outputs = {value_info("out", kFloat, {"N", "2"})}}),
                            13);
  const auto open = import_model(two, {.input_size_list = {{3, 2}, {-1, 2}}});
  ASSERT_TRUE(open);
  EXPECT_EQ(ir::to_string(*open->graph.tensor(open->graph.inputs()[1]).shape), "[3,2]");
}

TEST(OnnxCrop, InitialValues) {
  const Message two = model(graph({.nodes = {node("Add", {"x", "y"}, {"out"})},
                                   .initializers = {},
                                   .inputs = {value_info("x", kFloat, {"2"}), value_info("y", kFloat, {"2"})},
                                   .outputs = {value_info("out", kFloat, {"2"})}}),
                            13);
  const Ints whole{10, 20};
  EXPECT_EQ(run(two, {floats({2}, {1, 2})}, {.input_initial_val = {{}, TensorData::vector(whole)}})[0], (Values{11, 22}))
      << "converted to the input's type";
}

TEST(OnnxErrors, NotAModel) {
  importer::Source source;
  source.path = "dir/photo.jpg";
  const std::string bytes = "\xff\xd8\xff\xe0 no model";
  source.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
  const auto picture = importer::load_bytes(source, {}, ops::builtin_ops());
  EXPECT_TRUE(contains(picture.status().to_string(), "photo.jpg: import: the file is a picture, not a model"));
  source.bytes = source.bytes.subspan(3);
  const auto unknown = importer::load_bytes(source, {}, ops::builtin_ops());
  EXPECT_TRUE(contains(unknown.status().to_string(), "photo.jpg: import: the file is of no known model format"));
  EXPECT_TRUE(contains(importer::load_file("/nonexistent/m.onnx", {}, ops::builtin_ops()).status().to_string(), "cannot open"));
  EXPECT_TRUE(
      contains(importer::load_bytes(source, {}, ops::builtin_ops(), "torch7").status().to_string(), "no importer 'torch7'"));
  source.bytes = {};
  EXPECT_TRUE(contains(importer::load_bytes(source, {}, ops::builtin_ops(), "onnx").status().to_string(), "the file is empty"));
}

}  // namespace
}  // namespace orknn
