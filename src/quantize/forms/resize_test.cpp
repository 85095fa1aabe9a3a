// Linear Resize becomes an integer layer that stays within a step of the float one, in every coordinate convention it has a form
// for.
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

struct Case {
  std::string_view name, attributes, operands, constants;
  bool integer = true;
};
constexpr std::string_view kTwice = "  %s: float32[4] = const {1, 1, 2, 2}\n", kOdd = "  %s: int64[4] = const {1, 2, 5, 13}\n";
constexpr Case kCases[] = {
    {"half_pixel", "", "(%x, _, %s)", kTwice},
    {"align_corners", ", coordinate_transformation_mode = \"align_corners\"", "(%x, _, _, %s)", kOdd},
    {"asymmetric", ", coordinate_transformation_mode = \"asymmetric\"", "(%x, _, _, %s)", kOdd},
    {"pytorch_half_pixel", ", coordinate_transformation_mode = \"pytorch_half_pixel\"", "(%x, _, _, %s)", kOdd},
    {"named_axes", ", axes = [3, 2]", "(%x, _, %s)", "  %s: float32[2] = const {1.5, 3}\n"},
    {"smaller", "", "(%x, _, _, %s)", "  %s: int64[4] = const {1, 2, 2, 3}\n"},
    {"antialiased", ", antialias = 1", "(%x, _, _, %s)", "  %s: int64[4] = const {1, 2, 2, 3}\n", false},
    {"more_channels", "", "(%x, _, _, %s)", "  %s: int64[4] = const {1, 4, 5, 13}\n", false},
};

void check(const Case& c, DType type) {
  const std::string text = "graph \"g\" (%x: float32[1,2,4,6]) -> (%y) {\n" + std::string(c.constants) + "  %y = Resize" +
                           std::string(c.operands) + " {mode = \"linear\"" + std::string(c.attributes) + "}\n}\n";
  auto graph = parse(text);
  ASSERT_TRUE(graph) << c.name << graph.status().to_string();
  ASSERT_TRUE(infer_shapes(*graph, ops::builtin_ops())) << c.name;
  TensorData x = TensorData::allocate(DType::Float32, {1, 2, 4, 6});
  for (int i = 0; i < 48; ++i) static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i * 37 % 64) / 32 - 0.75f;
  const auto wanted = ops::eval_graph(*graph, ops::builtin_ops(), std::span(&x, 1));
  ASSERT_TRUE(wanted) << c.name << wanted.status().to_string();
  TensorStatistics statistics;
  statistics.try_emplace("x").first->second.add(x.view());
  statistics.try_emplace("y").first->second.add((*wanted)[0].view());
  QuantizeOptions options;
  options.format.activations = options.format.weights = type;
  ASSERT_TRUE(quantize(*graph, ops::builtin_ops(), LayerForms(*graph), {.statistics = statistics}, options)) << c.name;
  ASSERT_TRUE(infer_shapes(*graph, ops::builtin_ops())) << c.name;
  EXPECT_EQ(print(*graph).find("int:Resize") != std::string::npos, c.integer) << c.name << "\n" << print(*graph);
  if (!c.integer) return;
  const Tensor &in = graph->tensor(graph->inputs()[0]), &out = graph->tensor(graph->outputs()[0]);
  ASSERT_TRUE(in.quant && out.quant) << c.name;
  std::vector<double> integers;
  for (double v : to_doubles(x.view())) integers.push_back(std::nearbyint(v / in.quant->scale[0]) + in.quant->zero_point[0]);
  const TensorData q = ir::convert(TensorData::from<double>(x.dims(), integers).view(), type);
  const auto got = ops::eval_graph(*graph, ops::builtin_ops(), std::span(&q, 1));
  ASSERT_TRUE(got) << c.name << got.status().to_string();
  const std::vector<double> a = to_doubles((*wanted)[0].view()), b = to_doubles((*got)[0].view());
  ASSERT_EQ(a.size(), b.size()) << c.name;
  // Half a step from the input, half from the result, and what the shares are rounded by.
  const double limit = 0.55 * in.quant->scale[0] + 0.55 * out.quant->scale[0] + 1e-4;
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR((b[i] - out.quant->zero_point[0]) * out.quant->scale[0], a[i], limit) << c.name << " " << i;
}

TEST(ResizeForm, StaysInInt8) {
  for (const Case& c : kCases) check(c, DType::Int8);
}
TEST(ResizeForm, StaysInInt16) {
  for (const Case& c : kCases) check(c, DType::Int16);
}
}  // namespace
}  // namespace orknn::quantize
