// The TensorFlow importer on graphs written as text: operators with their traps, control flow, functions, names, cutting, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "import/importer.h"
#include "import/tensorflow/parse.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "run_import.h"
#include "tensorflow_writer.h"

namespace orknn {
namespace {
using namespace tests::tf;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;
using Values = std::vector<double>;

Result<Imported> import_graph(const std::string& model, const ImportOptions& options = {}) {
  auto bytes = std::make_shared<std::string>(model);
  importer::Source source;
  source.path = "test.pbtxt";
  source.bytes = std::as_bytes(std::span(bytes->data(), bytes->size()));
  source.keeper = bytes;
  return importer::load_bytes(source, options, ops::builtin_ops());
}

std::string error_of(const std::string& model, const ImportOptions& options = {}) {
  const auto result = import_graph(model, options);
  return result ? "no error" : result.status().to_string();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TensorData values(ir::Dims dims, const std::vector<float>& list) { return TensorData::from<float>(std::move(dims), list); }

// 0, 1, 2, ... of a shape.
TensorData counted(ir::Dims dims) {
  std::vector<float> list(static_cast<size_t>(ir::element_count(dims)));
  for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<float>(i);
  return values(std::move(dims), list);
}

struct Answer {
  std::vector<ir::Dims> dims;
  std::vector<Values> values;
};
Answer run(const std::string& model, const std::vector<TensorData>& inputs, const ImportOptions& options = {}) {
  const std::vector<TensorData> results = tests::run_import(import_graph(model, options), inputs);
  if (results.empty()) return {std::vector<ir::Dims>(8), std::vector<Values>(8)};
  Answer answer;
  for (const TensorData& t : results) {
    answer.dims.push_back(t.dims());
    answer.values.push_back(ir::to_doubles(t.view()));
  }
  return answer;
}

void expect_near(const Values& found, const Values& expected, const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << name << " at " << i;
}

// --- operators: a graph around one input x of counted values, its only output, and what is expected

struct OperatorCase {
  const char* name;
  Ints input;
  std::vector<std::string> nodes;
  ir::Dims dims;
  Values expected;
};

std::string same(std::string_view name, const Names& inputs, std::string_view op) { return node(name, op, inputs); }

const std::vector<OperatorCase>& operator_cases() {
  static const std::vector<OperatorCase> cases = {
      // element-wise
      {"FloorMod has the sign of the divisor",
       {3},
       {floats("a", {3}, {-3.5, -1, 5}), floats("b", {3}, {2, 3, -3}), node("m", "FloorMod", {"a", "b"}),
        same("y", {"m", "x"}, "Add")},
       {3},
       {0.5, 3, 1}},
      {"Mod has the sign of the dividend",
       {3},
       {floats("a", {3}, {-3.5, -1, 5}), floats("b", {3}, {2, 3, -3}), node("m", "Mod", {"a", "b"}),
        same("y", {"m", "x"}, "Add")},
       {3},
       {-1.5, 0, 4}},
      {"gamma functions",
       {3},
       {floats("a", {3}, {3, 5, 4}), node("l", "Lgamma", {"a"}), node("d", "Digamma", {"a"}), same("s", {"l", "d"}, "Add"),
        same("y", {"s", "x"}, "Add")},
       {3},
       {1.6159315157f, 5.6841714988f, 5.0478771376f}},
      {"special functions",
       {3},
       {floats("a", {3}, {3, 5, 4}), floats("b", {3}, {2, 2, 3}), floats("p", {3}, {0.5, 0.9f, 0.1f}),
        node("g", "Igamma", {"a", "b"}), node("h", "Igammac", {"a", "b"}), node("k", "Polygamma", {"b", "a"}),
        node("q", "Ndtri", {"p"}), same("s", {"g", "k"}, "Add"), same("t", {"s", "q"}, "Sub"), same("u", {"t", "h"}, "Add"),
        same("y", {"u", "x"}, "Add")},
       {3},
       {0.8458861937f, 0.6696587022f, 4.3264168937f}},
      {"the inverse of the error function",
       {3},
       {floats("a", {3}, {0, 0.5, -0.3f}), node("e", "Erfinv", {"a"}), same("y", {"e", "x"}, "Add")},
       {3},
       {0, 1.4769362762f, 1.7275372853f}},
      {"FloorDiv of integers",
       {2},
       {ints("a", {2}, {-7, 7}), ints("b", {2}, {2, -2}), node("d", "FloorDiv", {"a", "b"}),
        node("f", "Cast", {"d"}, {{"DstT", type("FLOAT")}}), same("y", {"f", "x"}, "Add")},
       {2},
       {-4, -3}},
      {"TruncateDiv of floats",
       {2},
       {floats("a", {2}, {-7, 7}), floats("b", {2}, {2, 2}), node("d", "TruncateDiv", {"a", "b"}), same("y", {"d", "x"}, "Add")},
       {2},
       {-3, 4}},
      {"DivNoNan of zero",
       {2},
       {floats("a", {2}, {1, 6}), floats("b", {2}, {0, 2}), node("d", "DivNoNan", {"a", "b"}), same("y", {"d", "x"}, "Add")},
       {2},
       {0, 4}},
      {"Select of rows",
       {2, 2},
       {node("c", "Const", {},
             {{"dtype", type("BOOL")},
              {"value", "tensor { dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: [true, false] }"}}),
        floats("z", {2, 2}, {9}), node("y", "Select", {"c", "x", "z"})},
       {2, 2},
       {0, 1, 9, 9}},
      {"BiasAdd of channels first",
       {1, 2, 1, 2},
       {floats("b", {2}, {10, 20}), node("y", "BiasAdd", {"x", "b"}, {{"data_format", text("NCHW")}})},
       {1, 2, 1, 2},
       {10, 11, 22, 23}},
      {"LeakyRelu of 0.2 unless stated",
       {2},
       {floats("a", {2}, {-5, -10}), node("l", "LeakyRelu", {"a"}), same("y", {"l", "x"}, "Add")},
       {2},
       {-1, -1}},
      {"the last value repeats", {4}, {floats("a", {4}, {1, 2}), same("y", {"a", "x"}, "Add")}, {4}, {1, 3, 4, 5}},
      {"no values are zeros", {2}, {floats("a", {2}, {}), same("y", {"a", "x"}, "Add")}, {2}, {0, 1}},
      // shapes
      {"StridedSlice with an ellipsis, a new axis and a dropped one",
       {2, 2, 3},
       {ints("b", {4}, {1, 0, 0, 0}), ints("e", {4}, {2, 0, 0, 2}), ints("s", {4}, {1, 1, 1, 1}),
        node("y", "StridedSlice", {"x", "b", "e", "s"},
             {{"shrink_axis_mask", integer(1)}, {"ellipsis_mask", integer(2)}, {"new_axis_mask", integer(4)}})},
       {2, 1, 2},
       {6, 7, 9, 10}},
      {"StridedSlice backwards with open ends",
       {5},
       {ints("b", {1}, {0}), ints("e", {1}, {0}), ints("s", {1}, {-2}),
        node("y", "StridedSlice", {"x", "b", "e", "s"}, {{"begin_mask", integer(1)}, {"end_mask", integer(1)}})},
       {3},
       {4, 2, 0}},
      {"StridedSlice of the last element",
       {5},
       {ints("b", {1}, {-1}), ints("e", {1}, {0}), ints("s", {1}, {1}),
        node("y", "StridedSlice", {"x", "b", "e", "s"}, {{"shrink_axis_mask", integer(1)}})},
       {},
       {4}},
      {"Slice to the end",
       {2, 3},
       {ints("b", {2}, {0, 1}), ints("n", {2}, {1, -1}), node("y", "Slice", {"x", "b", "n"})},
       {1, 2},
       {1, 2}},
      {"MirrorPad repeating the edge",
       {3},
       {ints("p", {1, 2}, {2, 1}), node("y", "MirrorPad", {"x", "p"}, {{"mode", text("SYMMETRIC")}})},
       {6},
       {1, 0, 0, 1, 2, 2}},
      {"MirrorPad without it",
       {3},
       {ints("p", {1, 2}, {2, 1}), node("y", "MirrorPad", {"x", "p"}, {{"mode", text("REFLECT")}})},
       {6},
       {2, 1, 0, 1, 2, 1}},
      {"a reshape to zero extents", {0, 3}, {ints("s", {2}, {0, 6}), node("y", "Reshape", {"x", "s"})}, {0, 6}, {}},
      {"SplitV takes what is left",
       {4},
       {ints("n", {2}, {1, -1}), ints("a", {}, {0}), node("p", "SplitV", {"x", "n", "a"}, {{"num_split", integer(2)}}),
        same("y", {"p:1"}, "Neg")},
       {3},
       {-1, -2, -3}},
      {"OneHot of numbers outside",
       {2},
       {node("i", "Cast", {"x"}, {{"DstT", type("INT32")}}), ints("o", {}, {-1}), node("j", "Add", {"i", "o"}),
        ints("d", {}, {2}), floats("on", {}, {1}), floats("off", {}, {5}), node("y", "OneHot", {"j", "d", "on", "off"})},
       {2, 2},
       {5, 5, 1, 5}},
      {"GatherV2 with shared axes",
       {2, 3},
       {ints("i", {2, 1}, {2, 0}), ints("a", {}, {1}), node("y", "GatherV2", {"x", "i", "a"}, {{"batch_dims", integer(1)}})},
       {2, 1},
       {2, 3}},
      {"ScatterNd adds up",
       {3},
       {ints("i", {3, 1}, {1, 1, 0}), ints("s", {1}, {4}), node("y", "ScatterNd", {"i", "x", "s"})},
       {4},
       {2, 1, 0, 0}},
      {"no axes reduce nothing", {2, 2}, {ints("a", {0}, {}), node("y", "Sum", {"x", "a"})}, {2, 2}, {0, 1, 2, 3}},
      {"SpaceToBatchND",
       {1, 2, 2, 1},
       {ints("b", {2}, {2, 2}), ints("p", {2, 2}, {0, 0, 0, 0}), node("y", "SpaceToBatchND", {"x", "b", "p"})},
       {4, 1, 1, 1},
       {0, 1, 2, 3}},
      {"BatchToSpaceND with crops",
       {4, 1, 1, 1},
       {ints("b", {2}, {2, 2}), ints("p", {2, 2}, {0, 1, 1, 0}), node("y", "BatchToSpaceND", {"x", "b", "p"})},
       {1, 1, 1, 1},
       {1}},
      {"DynamicStitch lets the later win",
       {2},
       {ints("i", {2}, {0, 1}), ints("j", {1}, {1}), floats("z", {1}, {7}),
        node("y", "DynamicStitch", {"i", "j", "x", "z"}, {{"N", integer(2)}})},
       {2},
       {0, 7}},
      // windows
      {"SAME puts the odd pixel last",
       {1, 2, 2, 1},
       {floats("w", {2, 2, 1, 1}, {1, 10, 100, 1000}),
        node("y", "Conv2D", {"x", "w"}, {{"strides", integers({1, 1, 1, 1})}, {"padding", text("SAME")}})},
       {1, 2, 2, 1},
       {3210, 301, 32, 3}},
      {"padding of a channels first convolution",
       {1, 1, 2, 2},
       {floats("w", {1, 1, 1, 1}, {2}), node("y", "Conv2D", {"x", "w"},
                                             {{"strides", integers({1, 1, 1, 1})},
                                              {"padding", text("EXPLICIT")},
                                              {"explicit_paddings", integers({0, 0, 0, 0, 1, 0, 0, 1})},
                                              {"data_format", text("NCHW")}})},
       {1, 1, 3, 3},
       {0, 0, 0, 0, 2, 0, 4, 6, 0}},
      {"a depth multiplier",
       {1, 1, 1, 2},
       {floats("w", {1, 1, 2, 2}, {1, 2, 3, 4}),
        node("y", "DepthwiseConv2dNative", {"x", "w"}, {{"strides", integers({1, 1, 1, 1})}, {"padding", text("VALID")}})},
       {1, 1, 1, 4},
       {0, 0, 3, 4}},
      {"a transposed convolution of the stated size",
       {1, 1, 2, 1},
       {ints("s", {4}, {1, 1, 4, 1}), floats("w", {1, 2, 1, 1}, {1, 10}),
        node("y", "Conv2DBackpropInput", {"s", "w", "x"}, {{"strides", integers({1, 1, 2, 1})}, {"padding", text("SAME")}})},
       {1, 1, 4, 1},
       {0, 0, 1, 10}},
      {"a transposed convolution that leaves a rest",
       {1, 1, 2, 1},
       {ints("s", {4}, {1, 1, 5, 1}), floats("w", {1, 2, 1, 1}, {1, 10}),
        node("y", "Conv2DBackpropInput", {"s", "w", "x"}, {{"strides", integers({1, 1, 2, 1})}, {"padding", text("VALID")}})},
       {1, 1, 5, 1},
       {0, 0, 1, 10, 0}},
      {"padding does not count in averages",
       {1, 3, 1, 1},
       {node("y", "AvgPool", {"x"},
             {{"ksize", integers({1, 2, 1, 1})}, {"strides", integers({1, 2, 1, 1})}, {"padding", text("SAME")}})},
       {1, 2, 1, 1},
       {0.5, 2}},
      {"MaxPool of channels",
       {1, 1, 1, 4},
       {node("y", "MaxPool", {"x"},
             {{"ksize", integers({1, 1, 1, 2})}, {"strides", integers({1, 1, 1, 2})}, {"padding", text("VALID")}})},
       {1, 1, 1, 2},
       {1, 3}},
      {"MaxPoolGrad puts values back",
       {1, 1, 4, 1},
       {node("m", "MaxPool", {"x"},
             {{"ksize", integers({1, 1, 2, 1})}, {"strides", integers({1, 1, 2, 1})}, {"padding", text("VALID")}}),
        node("y", "MaxPoolGrad", {"x", "m", "m"},
             {{"ksize", integers({1, 1, 2, 1})}, {"strides", integers({1, 1, 2, 1})}, {"padding", text("VALID")}})},
       {1, 1, 4, 1},
       {0, 1, 0, 3}},
      {"positions of MaxPoolWithArgmax",
       {1, 2, 2, 2},
       {node("m", "MaxPoolWithArgmax", {"x"},
             {{"ksize", integers({1, 2, 2, 1})}, {"strides", integers({1, 2, 2, 1})}, {"padding", text("VALID")}}),
        node("y", "Identity", {"m:1"})},
       {1, 1, 1, 2},
       {6, 7}},
      {"ResizeBilinear from the corner",
       {1, 1, 2, 1},
       {ints("s", {2}, {1, 4}), node("y", "ResizeBilinear", {"x", "s"})},
       {1, 1, 4, 1},
       {0, 0.5, 1, 1}},
      {"ResizeBilinear with half pixels",
       {1, 1, 2, 1},
       {ints("s", {2}, {1, 4}), node("y", "ResizeBilinear", {"x", "s"}, {{"half_pixel_centers", flag(true)}})},
       {1, 1, 4, 1},
       {0, 0.25, 0.75, 1}},
      {"ResizeNearestNeighbor between corners",
       {1, 1, 3, 1},
       {ints("s", {2}, {1, 5}), node("y", "ResizeNearestNeighbor", {"x", "s"}, {{"align_corners", flag(true)}})},
       {1, 1, 5, 1},
       {0, 1, 1, 2, 2}},
      {"CropAndResize outside of the picture",
       {1, 2, 2, 1},
       {floats("b", {1, 4}, {0, 0, 1, 2}), ints("i", {1}, {0}), ints("s", {2}, {2, 3}),
        node("y", "CropAndResize", {"x", "b", "i", "s"}, {{"extrapolation_value", real(9)}})},
       {1, 2, 3, 1},
       {0, 1, 9, 2, 3, 9}},
      {"LRN sums without dividing",
       {1, 1, 1, 2},
       {node("y", "LRN", {"x"}, {{"depth_radius", integer(1)}, {"bias", real(1)}, {"alpha", real(3)}, {"beta", real(1)}})},
       {1, 1, 1, 2},
       {0, 0.25}},
      {"FusedBatchNorm in training mode",
       {2, 1, 1, 1},
       {floats("s", {1}, {2}), floats("o", {1}, {1}), floats("e", {0}, {}),
        node("y", "FusedBatchNorm", {"x", "s", "o", "e", "e"}, {{"epsilon", real(0)}})},
       {2, 1, 1, 1},
       {-1, 3}},
      {"a fused convolution",
       {1, 1, 1, 1},
       {floats("w", {1, 1, 1, 1}, {1}), floats("b", {1}, {7}),
        node("y", "_FusedConv2D", {"x", "w", "b"},
             {{"strides", integers({1, 1, 1, 1})}, {"padding", text("SAME")}, {"fused_ops", texts({"BiasAdd", "Relu6"})}})},
       {1, 1, 1, 1},
       {6}},
      // quantization
      {"FakeQuant moves the range so that zero is exact",
       {2},
       {floats("a", {2}, {-0.4, 300}), node("q", "FakeQuantWithMinMaxArgs", {"a"}, {{"min", real(-0.4)}, {"max", real(254.6)}}),
        same("y", {"q", "x"}, "Add")},
       {2},
       {0, 256}},
      {"Dequantize of a constant",
       {2},
       {ints("c", {2}, {0, 255}, "QUINT8"), floats("lo", {}, {-1}), floats("hi", {}, {4}),
        node("d", "Dequantize", {"c", "lo", "hi"}, {{"mode", text("MIN_COMBINED")}}), same("y", {"d", "x"}, "Add")},
       {2},
       {-1, 5}},
      // the rest
      {"a running sum backwards without itself",
       {3},
       {ints("a", {}, {0}), node("y", "Cumsum", {"x", "a"}, {{"exclusive", flag(true)}, {"reverse", flag(true)}})},
       {3},
       {3, 2, 0}},
      {"the logarithm of a running sum of exponentials",
       {3},
       {ints("a", {}, {0}), floats("s", {}, {1000}), same("m", {"x", "s"}, "Mul"), node("y", "CumulativeLogsumexp", {"m", "a"})},
       {3},
       {0, 1000, 2000}},
      {"the second smallest and the second greatest of each row",
       {2, 3},
       {ints("n", {}, {1}), floats("o", {2, 3}, {3, -2, 0, 0, 4, -9}), same("s", {"x", "o"}, "Add"),
        node("l", "NthElement", {"s", "n"}), node("g", "NthElement", {"s", "n"}, {{"reverse", flag(true)}}),
        same("y", {"l", "g"}, "Sub")},
       {2},
       {0, 0}},
      {"the smallest of each row",
       {2, 3},
       {ints("n", {}, {0}), floats("o", {2, 3}, {3, -2, 0, 0, 4, -9}), same("s", {"x", "o"}, "Add"),
        node("y", "NthElement", {"s", "n"})},
       {2},
       {-1, -4}},
      {"BatchMatMul with both transposed",
       {2, 1},
       {floats("b", {1, 2}, {1, 10}), node("y", "BatchMatMulV2", {"x", "b"}, {{"adj_x", flag(true)}, {"adj_y", flag(true)}})},
       {1, 1},
       {10}},
      {"the inverse of a matrix",
       {2, 2},
       {floats("d", {2, 2}, {2, 0, 0, 1}), same("m", {"x", "d"}, "Add"), node("y", "MatrixInverse", {"m"})},
       {2, 2},
       {2.0 / 3, -1.0 / 6, -1.0 / 3, 1.0 / 3}},
      {"a transposed matrix is solved for",
       {2, 1},
       {floats("m", {2, 2}, {2, 1, 2, 4}), node("y", "MatrixSolve", {"m", "x"}, {{"adjoint", flag(true)}})},
       {2, 1},
       {-1.0 / 3, 1.0 / 3}},
      {"a triangle is solved for",
       {2, 1},
       {floats("m", {2, 2}, {2, 9, 2, 4}), node("y", "MatrixTriangularSolve", {"m", "x"}, {{"lower", flag(true)}})},
       {2, 1},
       {0, 0.25}},
      {"places among sorted values",
       {1, 4},
       {floats("s", {1, 3}, {0, 1, 1}), node("l", "LowerBound", {"s", "x"}), node("u", "UpperBound", {"s", "x"}),
        same("y", {"l", "u"}, "Add")},
       {1, 4},
       {1, 4, 6, 6}},
      {"numbers are counted with weights",
       {3},
       {ints("i", {3}, {2, 0, 7}), ints("n", {}, {4}), node("y", "DenseBincount", {"i", "n", "x"})},
       {4},
       {1, 0, 0, 0}},
      {"values are counted in bins",
       {6},
       {floats("r", {2}, {1, 4}), ints("n", {}, {3}), node("y", "HistogramFixedWidth", {"x", "r", "n"})},
       {3},
       {2, 1, 3}},
      {"a picture resized with the weights of a triangle",
       {1, 1, 4, 1},
       {ints("s", {2}, {1, 2}), floats("f", {2}, {1, 0.5}), floats("t", {2}, {0, 0}),
        node("y", "ScaleAndTranslate", {"x", "s", "f", "t"}, {{"kernel_type", text("triangle")}, {"antialias", flag(true)}})},
       {1, 1, 2, 1},
       {5.0 / 7, 16.0 / 7}},
      {"colours without saturation",
       {1, 1, 1, 3},
       {floats("f", {}, {0}), node("y", "AdjustSaturation", {"x", "f"})},
       {1, 1, 1, 3},
       {2, 2, 2}},
      {"colours turned by a third",
       {1, 1, 1, 3},
       {floats("f", {}, {1.0 / 3}), node("y", "AdjustHue", {"x", "f"})},
       {1, 1, 1, 3},
       {2, 0, 1}},
      {"a band of a matrix",
       {2, 2},
       {ints("l", {}, {0}), ints("u", {}, {-1}), node("y", "MatrixBandPart", {"x", "l", "u"})},
       {2, 2},
       {0, 1, 0, 3}},
      {"NonMaxSuppressionV3",
       {2, 4},
       {floats("s", {2}, {0.5, 0.9}), ints("n", {}, {5}), floats("o", {}, {0.5}), floats("t", {}, {0.6}),
        node("y", "NonMaxSuppressionV3", {"x", "s", "n", "o", "t"})},
       {1},
       {1}},
      {"half-precision weights beside single-precision data",
       {2},
       {node("h", "Const", {},
             {{"dtype", type("HALF")}, {"value", "tensor { dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: 15360 }"}}),
        same("y", {"x", "h"}, "Add")},
       {2},
       {1, 2}},
      {"a spectrum",
       {4},
       {ints("n", {1}, {4}), node("f", "RFFT", {"x", "n"}), node("y", "ComplexAbs", {"f"})},
       {3},
       {6, std::sqrt(8.0), 2}},
  };
  return cases;
}

TEST(TensorFlowOperators, GiveWhatTensorFlowGives) {
  for (const OperatorCase& c : operator_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<std::string> nodes{input("x", c.input)};
    nodes.insert(nodes.end(), c.nodes.begin(), c.nodes.end());
    ImportOptions options;
    options.outputs = {"y"};
    const Answer answer = run(graph(nodes), {counted(c.input)}, options);
    ASSERT_EQ(answer.values.size(), 1u);
    EXPECT_EQ(answer.dims[0], c.dims);
    expect_near(answer.values[0], c.expected, c.name);
  }
}

// A dilated convolution written with SpaceToBatchND and BatchToSpaceND becomes one Conv, also with steps in between.
// Where the plain formulas give 0, or a remainder of the wrong sign.
TEST(TensorFlowOperators, SmallValuesKeepTheirDigits) {
  const auto one = [](const char* op, float x) {
    return run(graph({input("x", {1}), node("y", op, {"x"})}), {values({1}, {x})}).values[0][0];
  };
  const auto two = [](const char* op, float x, float y) {
    const std::string model = graph({input("x", {1}), input("z", {1}), node("y", op, {"x", "z"})});
    return run(model, {values({1}, {x}), values({1}, {y})}, {.inputs = {"x", "z"}}).values[0][0];
  };
  for (float tiny : {1e-10f, -1e-10f, 1e-30f}) {
    EXPECT_FLOAT_EQ(static_cast<float>(one("Log1p", tiny)), tiny);
    EXPECT_FLOAT_EQ(static_cast<float>(one("Expm1", tiny)), tiny);
    EXPECT_FLOAT_EQ(static_cast<float>(two("Xlog1py", 2, tiny)), 2 * tiny);
  }
  EXPECT_EQ(two("FloorMod", 1e-8f, 1), 1e-8f);
  EXPECT_EQ(two("FloorMod", 1, 0.1f), std::fmod(1.0f, 0.1f));
  EXPECT_EQ(two("FloorMod", -7, 3), 2);
  EXPECT_EQ(two("FloorMod", 7, -3), -2);
  EXPECT_EQ(two("FloorMod", -6, 3), 0);
}

TEST(TensorFlowOperators, DilatedConvolutionIsOneNode) {
  const std::string model = graph(
      {input("x", {1, 5, 5, 2}), ints("b", {2}, {2, 2}), ints("p", {2, 2}, {2, 3, 2, 3}), ints("c", {2, 2}, {0, 1, 0, 1}),
       floats("w", {3, 3, 2, 3}, {1, 2, 3}), floats("bias", {3}, {1, 2, 3}), node("s", "SpaceToBatchND", {"x", "b", "p"}),
       node("conv", "Conv2D", {"s", "w"}, {{"strides", integers({1, 1, 1, 1})}, {"padding", text("VALID")}}),
       node("add", "BiasAdd", {"conv", "bias"}), node("relu", "Relu", {"add"}), node("y", "BatchToSpaceND", {"relu", "b", "c"}),
       node("direct", "Conv2D", {"x", "w"},
            {{"strides", integers({1, 1, 1, 1})}, {"dilations", integers({1, 2, 2, 1})}, {"padding", text("SAME")}}),
       node("d", "BiasAdd", {"direct", "bias"}), node("z", "Relu", {"d"})});
  const Answer answer = run(model, {counted({1, 5, 5, 2})});
  ASSERT_EQ(answer.values.size(), 2u);
  EXPECT_EQ(answer.dims[0], (ir::Dims{1, 5, 5, 3}));
  expect_near(answer.values[0], answer.values[1], "dilated");
  ImportOptions options;
  options.outputs = {"y"};
  const auto imported = import_graph(model, options);
  ASSERT_TRUE(imported);
  for (ir::NodeId id : imported->graph.order()) EXPECT_NE(imported->graph.node(id).op, "Pad");
}

// --- control flow

TEST(TensorFlowControlFlow, Samples) {
  const Answer loop = run(tests::tf::samples()[2].text, {values({3, 2}, {1, 2, 3, 4, 5, 6})}, {.outputs = {"out", "xi"}});
  EXPECT_EQ(loop.values[0], (Values{9, 12}));
  EXPECT_EQ(loop.values[1], (Values{3}));
  const Answer lists = run(tests::tf::samples()[3].text, {values({4, 2}, {1, 1, 2, 2, 3, 3, 4, 4})}, {.outputs = {"y", "call"}});
  EXPECT_EQ(lists.values[0], (Values{4, 6, 8, 12, 12, 18, 16, 24}));
  EXPECT_EQ(lists.values[1], (Values{4}));
}

// Switch and Merge around a predicate; one branch is a constant that only a control edge ties to it.
std::vector<std::string> conditional(const std::string& predicate) {
  return {node("pred", "Identity", {predicate}),
          node("pivot", "Switch", {predicate, predicate}),
          node("on", "Identity", {"pivot:1"}),
          node("off", "Identity", {"pivot"}),
          node("data", "Switch", {"x", "pred"}),
          node("twice", "Add", {"data:1", "data:1"}),
          node("nine", "Const", {"^off"},
               {{"dtype", type("FLOAT")}, {"value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 9 }"}}),
          node("y", "Merge", {"nine", "twice"})};
}

TEST(TensorFlowControlFlow, ConstantPredicateTakesABranch) {
  for (bool value : {true, false}) {
    std::vector<std::string> nodes{input("x", {2}), truth("p", value)};
    for (const std::string& n : conditional("p")) nodes.push_back(n);
    nodes.push_back(node("unsupported", "PyFunc", {value ? "data" : "data:1"}));  // only in the branch not taken
    EXPECT_EQ(run(graph(nodes), {values({2}, {1, 2})}, {.outputs = {"y"}}).values[0], (value ? Values{2, 4} : Values{9, 9}));
  }
}

TEST(TensorFlowControlFlow, PredicateOfTheInputSelects) {
  std::vector<std::string> nodes{input("x", {2}), input("p", {}, "BOOL")};
  for (const std::string& n : conditional("p")) nodes.push_back(n);
  for (bool value : {true, false})
    EXPECT_EQ(run(graph(nodes), {values({2}, {1, 2}), TensorData::scalar<bool>(value)}, {.inputs = {"x", "p"}, .outputs = {"y"}})
                  .values[0],
              (value ? Values{2, 4} : Values{9, 9}));
  // The same switch fed by a value: Toolkit1's predef_file.
  ImportOptions options;
  options.outputs = {"y"};
  options.feeds.emplace("p", TensorData::scalar<bool>(true));
  EXPECT_EQ(run(graph(nodes), {values({2}, {1, 2})}, options).values[0], (Values{2, 4}));
}

TEST(TensorFlowControlFlow, PlaceholderWithDefaultIsItsDefault) {
  const std::string model =
      graph({input("x", {1}), floats("k", {}, {3}),
             node("keep", "PlaceholderWithDefault", {"k"}, {{"dtype", type("FLOAT")}, {"shape", shape({})}}),
             node("y", "Mul", {"x", "keep"})});
  EXPECT_EQ(run(model, {values({1}, {2})}).values[0], (Values{6}));
  EXPECT_EQ(run(model, {values({1}, {2}), TensorData::scalar<float>(5)}, {.inputs = {"x", "keep:0"}, .outputs = {"y"}}).values[0],
            (Values{10}));
}

TEST(TensorFlowControlFlow, IfAndCase) {
  const std::vector<std::string> library{define("neg", {"a FLOAT"}, {"r FLOAT n:y:0"}, {node("n", "Neg", {"a"})}),
                                         define("same", {"a FLOAT"}, {"r FLOAT a"}, {})};
  const std::string chosen =
      graph({input("x", {1}), input("p", {}, "BOOL"),
             node("y", "If", {"p", "x"}, {{"then_branch", function("neg")}, {"else_branch", function("same")}})},
            library);
  for (bool value : {true, false})
    EXPECT_EQ(run(chosen, {values({1}, {2}), TensorData::scalar<bool>(value)}).values[0], (Values{value ? -2.0 : 2.0}));
  const std::string cases =
      graph({input("x", {1}), input("i", {}, "INT32"),
             node("y", "Case", {"i", "x"}, {{"branches", "list { func { name: \"same\" } func { name: \"neg\" } }"}})},
            library);
  for (int32_t i : {-1, 0, 1, 5})
    EXPECT_EQ(run(cases, {values({1}, {2}), TensorData::scalar<int32_t>(i)}).values[0], (Values{i == 0 ? 2.0 : -2.0}));
}

// Attributes of a function's nodes may be left open for the call to fill.
TEST(TensorFlowControlFlow, CallsFillAttributes) {
  const std::string model =
      graph({input("x", {2}), node("y", "to", {"x"}, {{"Out", type("INT32")}})},
            {define("to", {"a FLOAT"}, {"r INT32 c:y:0"}, {node("c", "Cast", {"a"}, {{"DstT", "placeholder: \"Out\""}})})});
  const auto imported = import_graph(model);
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).dtype, DType::Int32);
}

TEST(TensorFlowControlFlow, WhatCannotBeUnrolledIsRefused) {
  const Names state{"i FLOAT"};
  const auto model = [&](const Names& results, const std::vector<std::string>& condition) {
    return graph(
        {input("x", {}), node("y", "While", {"x"}, {{"cond", function("more")}, {"body", function("turn")}})},
        {define("more", state, results, condition), define("turn", state, {"r FLOAT n:y:0"}, {node("n", "Neg", {"i"})})});
  };
  EXPECT_TRUE(contains(error_of(model({"r BOOL l:z:0"}, {floats("k", {}, {1}), node("l", "Less", {"i", "k:output:0"})})),
                       "node 'y' (While): the number of iterations"));
  EXPECT_TRUE(contains(error_of(model({"r BOOL t:output:0"}, {truth("t", true)})), "too many iterations"));
  const std::string itself =
      graph({input("x", {}), node("y", "f", {"x"})}, {define("f", {"a FLOAT"}, {"r FLOAT c:r:0"}, {node("c", "f", {"a"})})});
  EXPECT_TRUE(contains(error_of(itself), "too deeply"));
  const std::string doubling =
      graph({input("x", {}), node("y", "f", {"x"})},
            {define("f", {"a FLOAT"}, {"r FLOAT d:r:0"}, {node("c", "f", {"a"}), node("d", "f", {"c:r:0"})})});
  EXPECT_NE(error_of(doubling), "no error");
  std::vector<std::string> powers{define("f0", {"a FLOAT"}, {"r FLOAT n:y:0"}, {node("n", "Neg", {"a"})})};
  for (int i = 1; i < 20; ++i) {
    const std::string smaller = "f" + std::to_string(i - 1);
    powers.push_back(define("f" + std::to_string(i), {"a FLOAT"}, {"r FLOAT d:r:0"},
                            {node("c", smaller, {"a"}), node("d", smaller, {"c:r:0"})}));
  }
  const std::string grown =
      error_of(graph({input("x", {}), node("y", "f19", {"x"}), node("z", "Neg", {"y"}), node("w", "f3", {"x"})}, powers));
  EXPECT_TRUE(contains(grown, "the graph grows too large")) << grown;
  EXPECT_EQ(std::count(grown.begin(), grown.end(), '\n'), 0) << grown;
}

// --- names, ports

TEST(TensorFlowPorts, NamesWithAndWithoutNumber) {
  const std::string model = graph({input("x", {2}), node("a", "Relu", {"x:0"}), node("b", "Neg", {"a", "^a"}),
                                   node("c", "Split", {"axis", "b"}, {{"num_split", integer(2)}}), ints("axis", {}, {0})});
  const auto names = [&](const ImportOptions& options) {
    const auto imported = import_graph(model, options);
    if (!imported) return imported.status().to_string();
    std::string text;
    for (ir::TensorId id : imported->graph.inputs()) text += imported->graph.tensor(id).name + " ";
    for (ir::TensorId id : imported->graph.outputs()) text += "-> " + imported->graph.tensor(id).name + " ";
    return text;
  };
  EXPECT_EQ(names({}), "x:0 -> c:0 -> c:1 ");
  EXPECT_EQ(names({.inputs = {"a"}, .input_size_list = {{2}}, .outputs = {"c:1"}}), "a:0 -> c:1 ");
  EXPECT_EQ(names({.inputs = {"x:0"}, .outputs = {"a", "a:0"}}), "x:0 -> a:0 -> a:0/Identity ");
  EXPECT_EQ(names({.outputs = {"x"}}), "x:0 -> x:0/Identity ");
  EXPECT_TRUE(contains(names({.outputs = {"nothing"}}), "the 'nothing' in outputs=['nothing'] is invalid!"));
  EXPECT_TRUE(contains(names({.inputs = {"^a"}}), "the '^a' in inputs=['^a'] is invalid!"));
}

TEST(TensorFlowPorts, ConstantOutputsKeepTheirNames) {
  auto imported =
      import_graph(graph({input("x", {1}), floats("c", {2}, {3, 4}), node("y", "Identity", {"c"}), node("z", "Neg", {"x"})}),
                   {.outputs = {"y", "z"}});
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->graph.outputs().size(), 2u);
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).name, "y:0");
}

TEST(TensorFlowPorts, SizesOfPlaceholders) {
  const std::string open = graph({node("x", "Placeholder", {}, {{"dtype", type("FLOAT")}}), node("y", "Neg", {"x"})});
  EXPECT_EQ(run(open, {values({2, 2}, {1, 2, 3, 4})}, {.input_size_list = {{2, 2}}}).dims[0], (ir::Dims{2, 2}));
  const std::string batch = graph({input("x", {-1, 2}), node("y", "Neg", {"x"})});
  EXPECT_EQ(run(batch, {values({1, 2}, {1, 2})}, {.input_size_list = {{2}}}).dims[0], (ir::Dims{1, 2}));
  const auto picture = import_graph(graph({input("x", {1, 2, 2, 3}), node("y", "Neg", {"x"})}));
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->graph.tensor(picture->graph.inputs()[0]).layout, ir::Layout::NHWC);
  // The first layer is named and the size is that of the picture it reads: the weights tell.
  const std::string named =
      graph({input("x", {1, 2, 2, 3}), node("p", "Neg", {"x"}), floats("w", {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}),
             node("c", "Conv2D", {"p", "w"}, {{"strides", integers({1, 1, 1, 1})}, {"padding", text("VALID")}}),
             node("y", "Relu", {"c"})});
  EXPECT_EQ(
      run(named, {values({1, 2, 2, 3}, std::vector<float>(12, 1))}, {.inputs = {"c"}, .input_size_list = {{2, 2, 3}}}).dims[0],
      (ir::Dims{1, 2, 2, 2}));
  EXPECT_EQ(
      run(named, {values({1, 2, 2, 2}, std::vector<float>(8, 1))}, {.inputs = {"c"}, .input_size_list = {{2, 2, 2}}}).dims[0],
      (ir::Dims{1, 2, 2, 2}));  // the result itself
  // Without the batch for a placeholder of unknown rank: pictures are known by who reads them.
  const std::string pictures =
      graph({node("x", "Placeholder", {}, {{"dtype", type("FLOAT")}}), floats("half", {}, {0.5}), node("s", "Mul", {"x", "half"}),
             floats("w", {1, 1, 3, 2}, {1}),
             node("y", "Conv2D", {"s", "w"}, {{"padding", text("SAME")}, {"strides", integers({1, 1, 1, 1})}})});
  EXPECT_EQ(run(pictures, {values({1, 2, 2, 3}, std::vector<float>(12, 1))}, {.input_size_list = {{2, 2, 3}}}).dims[0],
            (ir::Dims{1, 2, 2, 2}));
  EXPECT_EQ(run(open, {values({2, 2, 3}, std::vector<float>(12, 1))}, {.input_size_list = {{2, 2, 3}}}).dims[0],
            (ir::Dims{2, 2, 3}));
  EXPECT_TRUE(contains(error_of(pictures), "Hint: give the input shapes with input_size_list")) << error_of(pictures);
  // It is not known whether an open placeholder is a number: only one that chooses a branch has to be one.
  EXPECT_TRUE(contains(error_of(open),
                       "the number of dimensions of input 'x:0' is not known: the file does not state it. Hint: give the input "
                       "shapes with input_size_list ([] for a single number)"))
      << error_of(open);
  EXPECT_EQ(run(open, {values({}, {3})}, {.input_size_list = {{}}}).dims[0], (ir::Dims{}));
  const std::string switched = graph({node("train", "Placeholder", {}, {{"dtype", type("BOOL")}}),
                                      node("same", "Identity", {"train"}), input("x", {2}), node("s", "Switch", {"x", "same"}),
                                      node("n", "Neg", {"s"}), node("r", "Relu", {"s:1"}), node("y", "Merge", {"n", "r"})});
  EXPECT_EQ(error_of(switched), "no error");
  // Before version 24 an empty shape was an open one.
  const std::string old = graph({input("x", {}), node("y", "Neg", {"x"})}, {}, 20);
  EXPECT_EQ(run(old, {values({3}, {1, 2, 3})}, {.input_size_list = {{3}}}).dims[0], (ir::Dims{3}));
}

TEST(TensorFlowPorts, ImpossibleSizesAreRefused) {
  const std::string open = graph({input("x", {-1, 2}), node("y", "Neg", {"x"})});
  const std::string legal = "expected positive extents, -1 for what the model says";
  for (const ir::Dims& size : {ir::Dims{0, 2}, ir::Dims{-5, 2}}) {
    const std::string error = error_of(open, {.input_size_list = {size}});
    EXPECT_TRUE(contains(error, "Invalid input_shape = " + ir::to_string(size) + " for input 0!; " + legal)) << error;
  }
  EXPECT_TRUE(contains(error_of(open, {.input_size_list = {{1 << 20, 1 << 20}}}), "expected at most 17179869184 elements"));
  EXPECT_EQ(error_of(graph({input("x", {0, 2}), node("y", "Neg", {"x"})}), {.input_size_list = {{0, 2}}}), "no error");
}

TEST(TensorFlowPorts, FeedsAreNamed) {
  const std::string model = graph({input("x", {1}), node("y", "Neg", {"x"})});
  EXPECT_TRUE(
      contains(error_of(model, {.feeds = {{"train", values({1}, {1})}}}), "the 'train' in predef_file=['train'] is invalid!"));
}

TEST(TensorFlowPorts, BinaryAndSavedModel) {
  const std::string model = graph({input("x", {1}), node("y", "Neg", {"x"})});
  const auto bytes = importer::tensorflow::encode_graph_text(model);
  ASSERT_TRUE(bytes);
  const std::string binary(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_EQ(run(binary, {values({1}, {2})}).values[0], (Values{-2}));
  const auto wrapped = [](const std::string& s) {
    return std::string("\x12") + static_cast<char>(s.size()) + s;
  };  // field 2, shorter than 128 bytes
  ASSERT_LT(binary.size(), 120u);
  EXPECT_EQ(run("\x08\x01" + wrapped(wrapped(binary)), {values({1}, {2})}).values[0], (Values{-2}));
}

// --- errors

TEST(TensorFlowErrors, SayWhatAndWhere) {
  const std::pair<std::string, const char*> cases[] = {
      {graph({input("x", {1}), node("a", "Whatever", {"x"}), node("b", "Other", {"a"})}),
       "test.pbtxt: import: node 'a' (Whatever): the operator is not supported"},
      {graph({input("x", {1}), node("a", "Whatever", {"x"}), node("b", "Other", {"a"})}),
       "node 'b' (Other): the operator is not supported"},
      {graph({node("v", "VariableV2", {}), node("y", "Neg", {"v"})}),
       "node 'v' (VariableV2): the graph holds a variable, so it is not frozen. Hint: freeze it"},
      {graph({input("x", {1}), node("y", "Add", {"x", "gone"})}), "node 'y' (Add): input 1 is not in the graph; found 'gone'"},
      {graph({input("x", {1}), node("r", "Relu", {"x"}), node("y", "Add", {"x", "r:3"})}),
       "node 'y' (Add): input 1 does not exist or is not supported; found output 3 of 'r'"},
      {graph({input("x", {1}), node("y", "Add", {"x", "x:7"})}),
       "node 'y' (Add): input 1 does not exist or is not supported; found output 7 of 'x'"},
      {graph({input("x", {1}), node("a", "Add", {"x", "b"}), node("b", "Neg", {"a"}), node("c", "Neg", {"b"})}),
       "node 'b' (Neg): the graph has a cycle: the node depends on itself"},
      {graph({input("x", {1}), node("a", "Add", {"x", "b"}), node("b", "Neg", {"a"})}),
       "node 'a' (Add): the graph has a cycle: the node depends on itself"},
      {graph({input("x", {1}), node("a", "Const", {"x", "b"}), node("b", "Neg", {"a"}), node("c", "Neg", {"b"})}),
       "node 'b' (Neg): the graph has a cycle: the node depends on itself"},
      {graph({input("x", {1}), node("a", "Add", {"x", "b"}), node("b", "Neg", {"a"})}),
       "node 'a' (Add): the graph has a cycle: the node depends on itself"},
      {graph({input("x", {1}), node("a", "Const", {"x"}), node("b", "Neg", {"a"})}), "node 'a' (Const)"},
      {graph({input("x", {1}), input("x", {1})}), "two nodes are called 'x'"},
      {graph({input("x", {3, 1, INT64_MAX}), ints("n", {}, {3}, "INT64"), floats("s", {1, 2}, {0}), floats("w", {4, 8}, {0}),
              floats("p", {2}, {0}), floats("b", {8}, {0}),
              node("y", "BlockLSTM", {"n", "x", "s", "s", "w", "p", "p", "p", "b"})}),
       "node 'y' (BlockLSTM): shape [3,1,9223372036854775807] has too many elements"},
      {graph({input("x", {1, 4, 4, 2}), floats("w", {3, 3, 3, 1}, {1}),
              node("y", "Conv2D", {"x", "w"}, {{"padding", text("SAME")}})}),
       "node 'y' (Conv2D): the weights do not fit the channels; expected 2 input channels, found 3"},
      {graph({input("x", {1, 4, 4, 2}), floats("w", {3, 3, 2, 1}, {1}),
              node("y", "Conv2D", {"x", "w"}, {{"padding", text("ODD")}})}),
       "expected SAME, VALID or EXPLICIT, found ODD"},
      {graph({input("x", {4}), input("s", {1}, "INT32"), node("y", "Reshape", {"x", "s"}),
              node("z", "Unpack", {"y"}, {{"num", integer(-5)}})}),
       "node 'z' (Unpack): the number of parts is out of range"},
      {graph({input("x", {4}), input("a", {}, "INT32"), node("y", "Cumsum", {"x", "a"})}),
       "the value of 'a:0' must be known to know the axis"},
      {graph({input("x", {-7, 3}), node("y", "Neg", {"x"})}),
       "node 'x' (Placeholder): an extent of the shape is below -1; expected -1 for one that is not known, found [-7,3]"},
      {graph({input("x", {-1, 4}), node("y", "Squeeze", {"x"})}),
       "the shape of 'x:0' must be known to drop extents of 1. Hint: give the input shapes with input_size_list"},
      {graph({input("x", {2, 3}), input("z", {4, 5}), node("a", "Add", {"x", "z"}), node("n", "Neg", {"a"}),
              node("y", "Squeeze", {"n"})}),
       "node 'a/Add' (Add)"},
      {graph({floats("c", {1000000000, 1000000000}, {1}), node("y", "Neg", {"c"})}), "node 'c' (Const)"},
      {graph({input("x", {1}), ints("c", {2}, {1, 2, 3}), node("y", "Add", {"x", "c"})}),
       "the data does not fit the shape; expected 2 values for int32[2], found 3"},
      {graph({input("x", {1}), node("s", "StringJoin", {"x"}), node("y", "Neg", {"s"})}), "text is not supported"},
      {graph({input("x", {4}), ints("n", {1}, {4}), node("f", "RFFT", {"x", "n"}), node("y", "Neg", {"f"})}),
       "complex numbers are not supported here"},
      {graph({input("x", {1}), node("e", "Enter", {"x"}, {{"frame_name", text("l")}}), node("m", "Merge", {"e", "n"}),
              node("n", "NextIteration", {"m"})}),
       "a loop has no condition"},
      {graph({node("n", "NoOp")}), "the graph has no outputs"},
      {"node { name: \"x\" op: \"Placeholder\" }\nnode { name: 3 op: \"Neg\" }\n", "line 2: the value of 'name' does not suit"},
  };
  for (const auto& [model, message] : cases) {
    const std::string error = error_of(model);
    EXPECT_TRUE(contains(error, message)) << message << "\n" << error;
  }
}

TEST(TensorFlowErrors, OtherFilesAreNotTaken) {
  const auto sniff = importer::find_importer("tensorflow")->sniff;
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); };
  EXPECT_TRUE(sniff(bytes(graph({input("x", {1})}))));
  EXPECT_TRUE(sniff(bytes("# comment\nversions { producer: 3 } node { op: \"NoOp\" name: \"n\" }")));
  for (std::string_view other : {"", "node", "name: \"net\" layer { name: \"a\" type: \"ReLU\" }", "{\"nodes\": []}",
                                 "[net]\nbatch=1\n", "\x0a\x03net", "\x08\x07\x3a\x02\x0a\x00", "PK\x03\x04"})
    EXPECT_FALSE(sniff(bytes(other))) << other;
}
}  // namespace
}  // namespace orknn
