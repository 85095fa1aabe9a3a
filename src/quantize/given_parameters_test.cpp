// Quantized models become integer layers with their own parameters.
#include "quantize/given_parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/eval.h"
#include "quantize/quantized_operators.h"

namespace orknn::quantize {
namespace {
using ir::TensorData;

ir::Graph parsed(const std::string& text) {
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  if (!graph) return {};
  const Status s = ir::infer_shapes(*graph, ops::builtin_ops());
  EXPECT_TRUE(s.is_ok()) << s.to_string();
  return std::move(*graph);
}

struct Absorbed {
  ir::Graph before, after;
  std::vector<LayerDecision> decisions;

  size_t count(std::string_view op) const {
    size_t n = 0;
    for (ir::NodeId id : after.order()) n += after.node(id).op == op;
    return n;
  }
  const ir::Node* node(std::string_view op) const {
    for (ir::NodeId id : after.order())
      if (after.node(id).op == op) return &after.node(id);
    return nullptr;
  }
};

Absorbed absorbed(const std::string& text) {
  Absorbed a;
  a.before = parsed(text);
  a.after = a.before;
  const Status expanded = expand_quantized_operators(a.after, ops::builtin_ops());
  EXPECT_TRUE(expanded.is_ok()) << expanded.to_string();
  auto decisions = use_given_parameters(a.after, ops::builtin_ops());
  EXPECT_TRUE(decisions) << decisions.status().to_string();
  if (decisions) a.decisions = *decisions;
  Status s = ir::infer_shapes(a.after, ops::builtin_ops());
  if (s) s = ir::verify(a.after, ops::builtin_ops(), ir::Stage::Inferred);
  EXPECT_TRUE(s.is_ok()) << s.to_string() << "\n" << ir::print(a.after);
  return a;
}

// Real values on the grid of a tensor of the graph (or any, where it has none), and results as real values.
std::vector<double> computed(const ir::Graph& g, std::span<const double> reals) {
  std::vector<TensorData> inputs;
  size_t next = 0;
  for (ir::TensorId t : g.inputs()) {
    const ir::Tensor& tensor = g.tensor(t);
    const auto dims = *ir::to_dims(*tensor.shape);
    std::vector<int64_t> integers;
    std::vector<float> floats;
    for (int64_t i = 0; i < ir::element_count(dims); ++i) {
      const double real = reals[next++ % reals.size()];
      if (tensor.dtype == DType::Float32)
        floats.push_back(static_cast<float>(real));
      else
        integers.push_back(rounded(real, tensor.quant->scale[0], tensor.quant->zero_point[0], limits_of(tensor.dtype)));
    }
    inputs.push_back(tensor.dtype == DType::Float32 ? TensorData::from<float>(dims, floats)
                                                    : integer_tensor(tensor.dtype, dims, integers));
  }
  auto results = ops::eval_graph(g, ops::builtin_ops(), inputs);
  EXPECT_TRUE(results) << results.status().to_string();
  std::vector<double> all;
  if (!results) return all;
  for (size_t i = 0; i < results->size(); ++i) {
    const ir::Tensor& tensor = g.tensor(g.outputs()[i]);
    for (double v : ir::to_doubles((*results)[i].view()))
      all.push_back(is_integer(tensor.dtype) && tensor.quant
                        ? (v - tensor.quant->zero_point[0]) * static_cast<double>(tensor.quant->scale[0])
                        : v);
  }
  return all;
}

// Both graphs give the same numbers but for one step here and there: the source rounds in float, the integer layer in its
// converter.
void expect_same(const Absorbed& a, double step, double share = 0.05) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> values(-2, 2);
  std::vector<double> reals(997);
  for (double& v : reals) v = values(random);
  const std::vector<double> want = computed(a.before, reals), got = computed(a.after, reals);
  ASSERT_EQ(want.size(), got.size());
  size_t off = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(std::abs(want[i] - got[i]), step * 1.01) << i;
    off += std::abs(want[i] - got[i]) > step * 0.01;
  }
  EXPECT_LE(static_cast<double>(off), share * static_cast<double>(want.size())) << ir::print(a.after);
}

constexpr const char* kConvolution = R"(graph "g" (%x: float32[1,2,5,5]) -> (%y) {
  %s: float32[] = const {0.02}
  %z: uint8[] = const {128}
  %ws: float32[3] = const {0.01, 0.02, 0.005}
  %wz: int8[3] = const {0, 5, -7}
  %wq: int8[3,2,3,3] = const {1,-20,30,-40,50,-60,70,-80,90, 5,15,25,35,45,55,65,75,85, -128,127,3,4,5,6,7,8,9, 11,12,-13,14,-15,16,-17,18,-19, 1,2,3,4,5,6,7,8,9, -1,-2,-3,-4,-5,-6,-7,-8,-9}
  %bq: int32[3] = const {1000, -2000, 300}
  %bs: float32[3] = const {0.0002, 0.0004, 0.0001}
  %ys: float32[] = const {0.05}
  %yz: uint8[] = const {3}
  %xq: uint8[1,2,5,5] = QuantizeLinear(%x, %s, %z)
  %xd: float32[1,2,5,5] = DequantizeLinear(%xq, %s, %z)
  %wd: float32[3,2,3,3] = DequantizeLinear(%wq, %ws, %wz) {axis = 0}
  %bd: float32[3] = DequantizeLinear(%bq, %bs) {axis = 0}
  %c: float32[1,3,5,5] = Conv(%xd, %wd, %bd) {pads = [1,1,1,1]} + Relu()
  %yq: uint8[1,3,5,5] = QuantizeLinear(%c, %ys, %yz)
  %y: float32[1,3,5,5] = DequantizeLinear(%yq, %ys, %yz)
})";

TEST(GivenParameters, ConvolutionKeepsItsIntegers) {
  const Absorbed a = absorbed(kConvolution);
  EXPECT_EQ(a.after.node_count(), 1u) << ir::print(a.after);
  const ir::Node* conv = a.node("int:Conv");
  ASSERT_TRUE(conv);
  const TensorData *weights = a.after.constant(conv->input(1)), *bias = a.after.constant(conv->input(2));
  EXPECT_TRUE(ir::identical(weights->view(), a.before.constant(a.before.find_tensor("wq"))->view()));
  EXPECT_TRUE(ir::identical(bias->view(), a.before.constant(a.before.find_tensor("bq"))->view()));
  EXPECT_EQ(conv->attributes.ints_or("w_zero_point"), (std::vector<int64_t>{0, 5, -7}));
  // uint8 becomes int8, the zero point less 128; names of inputs and outputs stay.
  const ir::Tensor &x = a.after.tensor(a.after.inputs()[0]), &y = a.after.tensor(a.after.outputs()[0]);
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.dtype, DType::Int8);
  EXPECT_EQ(x.quant->zero_point[0], 0);
  EXPECT_EQ(y.name, "y");
  EXPECT_EQ(y.dtype, DType::Int8);
  EXPECT_EQ(y.quant->zero_point[0], 3 - 128);
  EXPECT_FLOAT_EQ(y.quant->scale[0], 0.05f);
  expect_same(a, 0.05);
}

TEST(GivenParameters, QOperators) {
  const Absorbed a = absorbed(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %s: float32[] = const {0.02}
  %z: int8[] = const {4}
  %ws: float32[] = const {0.01}
  %wq: int8[2,2,1,1] = const {100, -50, 30, 77}
  %wz: int8[] = const {0}
  %b: int32[2] = const {500, -700}
  %as: float32[] = const {0.04}
  %ms: float32[] = const {0.06}
  %xq: int8[1,2,4,4] = QuantizeLinear(%x, %s, %z)
  %c: int8[1,2,4,4] = QLinearConv(%xq, %s, %z, %wq, %ws, %wz, %as, %z, %b)
  %a: int8[1,2,4,4] = "com.microsoft:QLinearAdd"(%c, %as, %z, %xq, %s, %z, %ms, %z)
  %g: int8[1,2,4,4] = "com.microsoft:QLinearSigmoid"(%a, %ms, %z, %s, %z)
  %p: int8[1,2,2,2] = MaxPool(%g) {kernel_shape = [2,2], strides = [2,2]}
  %y: float32[1,2,2,2] = DequantizeLinear(%p, %s, %z)
})");
  EXPECT_EQ(a.count("int:Conv"), 1u) << ir::print(a.after);
  EXPECT_EQ(a.count("int:Add"), 1u);
  EXPECT_EQ(a.count("int:Table"), 1u);
  EXPECT_EQ(a.count("MaxPool"), 1u);
  EXPECT_EQ(a.count("QuantizeLinear") + a.count("DequantizeLinear"), 0u);
  expect_same(a, 0.02, 0.2);
}

TEST(GivenParameters, NeighboursLendTheirParameters) {
  // The pool states nothing and stands between quantized layers; what nothing quantized reads stays in float.
  const Absorbed a = absorbed(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y, %f, %h) {
  %s: float32[] = const {0.02}
  %z: int8[] = const {-10}
  %half: float32[] = const {0.5}
  %t: float32[] = const {0.01}
  %xq: int8[1,2,4,4] = QuantizeLinear(%x, %s, %z)
  %d: float32[1,2,4,4] = DequantizeLinear(%xq, %s, %z)
  %p: float32[1,2,2,2] = MaxPool(%d) {kernel_shape = [2,2], strides = [2,2]}
  %g: float32[1,2,2,2] = Sigmoid(%p)
  %q: int8[1,2,2,2] = QuantizeLinear(%g, %t, %z)
  %y: float32[1,2,2,2] = DequantizeLinear(%q, %t, %z)
  %e: float32[1,2,4,4] = Exp(%d)
  %h: float32[1,2,4,4] = Add(%e, %half)
  %f: float32[1,2,4,4] = Softmax(%d)
})");
  EXPECT_EQ(a.count("int:Table"), 1u) << ir::print(a.after);
  EXPECT_EQ(a.count("Exp"), 1u);
  EXPECT_EQ(a.count("Add"), 1u);
  EXPECT_EQ(a.count("Softmax"), 1u);
  EXPECT_EQ(a.after.tensor(a.after.outputs()[1]).dtype, DType::Float32);
  expect_same(a, 0.01);
}

TEST(GivenParameters, OtherReadersSeeWhatWasNotRounded) {
  // Two scales, the value itself as an output, and an addition that reads it beside a conversion: none may see values that
  // another's range clipped.
  const std::string head = R"(
  %s: float32[] = const {0.02}
  %z: int8[] = const {0}
  %narrow: float32[] = const {0.004}
  %wide: float32[] = const {0.03}
  %wq: int8[2,2,1,1] = const {100, -50, 30, 77}
  %ws: float32[] = const {0.01}
  %d: float32[1,2,4,4] = DequantizeLinear(%x, %s, %z)
  %wd: float32[2,2,1,1] = DequantizeLinear(%wq, %ws)
  %c: float32[1,2,4,4] = Conv(%d, %wd)
  %q: int8[1,2,4,4] = QuantizeLinear(%c, %narrow, %z)
  %y: float32[1,2,4,4] = DequantizeLinear(%q, %narrow, %z)
)";
  const auto graph = [&](const std::string& outputs, const std::string& rest) {
    return "graph \"g\" (%x: int8[1,2,4,4] quant(axis -1, 0.02:0)) -> (" + outputs + ") {" + head + rest + "}";
  };
  const std::string second = R"(  %q2: int8[1,2,4,4] = QuantizeLinear(%c, %wide, %z)
  %y2: float32[1,2,4,4] = DequantizeLinear(%q2, %wide, %z)
)";
  expect_same(absorbed(graph("%y, %y2", second)), 0.03);
  expect_same(absorbed(graph("%y, %c", "")), 0.004);
  expect_same(absorbed(graph("%a", "  %a: float32[1,2,4,4] = Add(%y, %c)\n")), 0.004);
  // Two conversions to the same grid are one.
  const std::string again = R"(  %q2: int8[1,2,4,4] = QuantizeLinear(%c, %narrow, %z)
  %y2: float32[1,2,4,4] = DequantizeLinear(%q2, %narrow, %z)
  %r: float32[1,2,4,4] = Neg(%y2)
)";
  EXPECT_EQ(absorbed(graph("%y, %r", again)).count("int:Conv"), 1u);
}

// Converters write a Relu as the range of the result, from zero on.
TEST(GivenParameters, AFloatLayerKeepsTheStatedRange) {
  const Absorbed a = absorbed(R"(graph "g" (%x: float32[1,4]) -> (%y) {
  %s: float32[] = const {0.02}
  %z: uint8[] = const {0}
  %e = Sin(%x)
  %q = QuantizeLinear(%e, %s, %z)
  %y = DequantizeLinear(%q, %s, %z)
})");
  const std::vector<double> reals{-1, 0.5, -0.25, 1};
  const std::vector<double> expected = computed(a.before, reals), found = computed(a.after, reals);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(GivenParameters, AnotherScaleAfterACopyIsAStepOfItsOwn) {
  const Absorbed a = absorbed(R"(graph "g" (%x: float32[2,3]) -> (%y) {
  %s: float32[] = const {0.02}
  %z: int8[] = const {0}
  %t: float32[] = const {0.03}
  %xq: int8[2,3] = QuantizeLinear(%x, %s, %z)
  %d: float32[2,3] = DequantizeLinear(%xq, %s, %z)
  %m: float32[3,2] = Transpose(%d) {perm = [1,0]}
  %q: int8[3,2] = QuantizeLinear(%m, %t, %z)
  %y: float32[3,2] = DequantizeLinear(%q, %t, %z)
})");
  EXPECT_EQ(a.count("Transpose"), 1u) << ir::print(a.after);
  EXPECT_EQ(a.count("int:Table"), 1u);
  EXPECT_FLOAT_EQ(a.after.tensor(a.after.outputs()[0]).quant->scale[0], 0.03f);
  expect_same(a, 0.03, 0);
}

TEST(GivenParameters, IntegersWithoutAScaleStayIntegers) {
  const Absorbed a = absorbed(R"(graph "g" (%x: uint8[1,2,4,4]) -> (%y) {
  %s: float32[] = const {0.02}
  %z: uint8[] = const {120}
  %t: float32[] = const {0.05}
  %d: float32[1,2,4,4] = DequantizeLinear(%x, %s, %z)
  %r: float32[1,2,4,4] = Relu(%d)
  %y: uint8[1,2,4,4] = QuantizeLinear(%r, %t, %z)
})");
  EXPECT_EQ(a.after.tensor(a.after.inputs()[0]).dtype, DType::UInt8);
  EXPECT_EQ(a.after.tensor(a.after.outputs()[0]).dtype, DType::UInt8);
  EXPECT_EQ(a.count("int:Table"), 1u) << ir::print(a.after);
  std::vector<uint8_t> bytes(32);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 8);
  const TensorData input = TensorData::from<uint8_t>({1, 2, 4, 4}, bytes);
  const auto want = ops::eval_graph(a.before, ops::builtin_ops(), std::span(&input, 1)),
             got = ops::eval_graph(a.after, ops::builtin_ops(), std::span(&input, 1));
  ASSERT_TRUE(want && got);
  EXPECT_TRUE(ir::identical((*want)[0].view(), (*got)[0].view()));
}

TEST(GivenParameters, PaddedIntegersKeepTheirMeaning) {
  // With the zero point, and with another value, which stays what it is.
  for (const char* fill : {"5", "9"}) {
    const Absorbed a = absorbed(std::string(R"(graph "g" (%x: int8[1,4] quant(axis -1, 0.02:5)) -> (%y) {
  %p: int64[4] = const {0, 1, 0, 1}
  %v: int8[] = const {)") + fill +
                                R"(}
  %y: int8[1,6] quant(axis -1, 0.02:5) = Pad(%x, %p, %v)
})");
    const ir::Tensor &x = a.after.tensor(a.after.inputs()[0]), &y = a.after.tensor(a.after.outputs()[0]);
    for (const ir::Tensor* t : {&x, &y}) {
      EXPECT_EQ(t->dtype, DType::Int8);
      ASSERT_TRUE(t->quant);
      EXPECT_EQ(t->quant->zero_point[0], 5);
    }
    expect_same(a, 0.02, 0);
  }
}

TEST(GivenParameters, SixteenBits) {
  const Absorbed a = absorbed(R"(graph "g" (%x: float32[2,64]) -> (%y) {
  %s: float32[] = const {0.0001}
  %z: int16[] = const {0}
  %t: float32[] = const {0.001}
  %ws: float32[] = const {0.01}
  %wq: int8[64,3] = const splat 100
  %xq: int16[2,64] = QuantizeLinear(%x, %s, %z)
  %d: float32[2,64] = DequantizeLinear(%xq, %s, %z)
  %wd: float32[64,3] = DequantizeLinear(%wq, %ws)
  %m: float32[2,3] = MatMul(%d, %wd)
  %q: int16[2,3] = QuantizeLinear(%m, %t, %z)
  %y: float32[2,3] = DequantizeLinear(%q, %t, %z)
})");
  EXPECT_EQ(a.count("int:MatMul"), 1u) << ir::print(a.after);
  EXPECT_EQ(a.after.tensor(a.after.outputs()[0]).dtype, DType::Int16);
  expect_same(a, 0.002, 0.7);  // a 15-bit multiplier is as coarse as a 16-bit result
}

TEST(GivenParameters, WhatCountsAsQuantized) {
  EXPECT_TRUE(states_quantization(parsed(kConvolution)));
  // Weights stored as integers alone are not: activations can still be calibrated.
  EXPECT_FALSE(states_quantization(parsed(R"(graph "g" (%x: float32[1,2]) -> (%y) {
  %ws: float32[] = const {0.01}
  %wq: int8[2,2] = const {1,2,3,4}
  %wd: float32[2,2] = DequantizeLinear(%wq, %ws)
  %y: float32[1,2] = MatMul(%x, %wd)
})")));
}

// The zero point of the last part may be left out.
TEST(GivenParameters, AJoinWithoutItsLastZeroPointKeepsAllParts) {
  ir::Graph g = parsed(R"(graph "g" (%a: int8[1,2], %b: int8[1,3]) -> (%y) {
  %s: float32[] = const {0.5}
  %z: int8[] = const {0}
  %y = "com.microsoft:QLinearConcat"(%s, %z, %a, %s, %z, %b, %s) {axis = 1}
})");
  const Status expanded = expand_quantized_operators(g, ops::builtin_ops());
  ASSERT_TRUE(expanded.is_ok()) << expanded.to_string();
  const ir::Node* join = nullptr;
  for (ir::NodeId id : g.order())
    if (g.node(id).op == "Concat") join = &g.node(id);
  ASSERT_TRUE(join);
  EXPECT_EQ(join->inputs.size(), 2u);
  EXPECT_EQ(g.tensor(g.outputs()[0]).shape, (ir::Shape{1, 5}));
}

}  // namespace
}  // namespace orknn::quantize
