// Which form layers take, by the rules their operators state.
#include "quantize/layer_forms.h"

#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::quantize {
namespace {

Form form_of(const std::string& node) {
  auto graph = ir::parse(R"(graph "g" (%x: float32[1,2,4,4], %z: float32[1,2,4,4]) -> (%y) {
  %indices: int64[1,2,4,4] = const splat 0
  %lengths: int64[2] = const {1, 1}
  %shape: int64[2] = const {2, 16}
  %low: float32[] = const {-1}
  %y = )" + node + "\n}");
  EXPECT_TRUE(graph) << graph.status().to_string();
  if (!graph) return Form::Float;
  EXPECT_TRUE(ir::infer_shapes(*graph, ops::builtin_ops())) << node;
  return LayerForms(*graph)[graph->order().back()].form;
}

TEST(LayerForms, FollowTheRulesOfOperators) {
  for (const char* function : {"Relu(%x)",        "Clip(%x, %low)", "LeakyRelu(%x)",  "ThresholdedRelu(%x)",
                               "Elu(%x)",         "Selu(%x)",       "Celu(%x)",       "Sigmoid(%x)",
                               "HardSigmoid(%x)", "HardSwish(%x)",  "Swish(%x)",      "Mish(%x)",
                               "Gelu(%x)",        "Tanh(%x)",       "Softplus(%x)",   "Softsign(%x)",
                               "Erf(%x)",         "Exp(%x)",        "Log(%x)",        "Sqrt(%x)",
                               "Abs(%x)",         "Neg(%x)",        "Reciprocal(%x)", "Sin(%x)",
                               "Cos(%x)",         "Floor(%x)",      "Ceil(%x)",       "Round(%x)",
                               "Sign(%x)",        "Shrink(%x)",     "Atan(%x)",       "Cosh(%x)"})
    EXPECT_EQ(form_of(function), Form::Table) << function;
  for (const char* copy : {"Reshape(%x, %shape)", "Transpose(%x)", "Flatten(%x)", "Identity(%x)",
                           "MaxPool(%x) {kernel_shape = [2,2]}", "GlobalMaxPool(%x)", "GatherElements(%x, %indices)",
                           "ReverseSequence(%x, %lengths) {batch_axis = 1, time_axis = 0}", "DepthToSpace(%x) {blocksize = 1}"})
    EXPECT_EQ(form_of(copy), Form::Move) << copy;
  EXPECT_EQ(form_of("Concat(%x, %z) {axis = 1}"), Form::Concat);
  EXPECT_EQ(form_of("Softmax(%x)"), Form::Softmax);
  EXPECT_EQ(form_of("AveragePool(%x) {kernel_shape = [2,2]}"), Form::Average);
  EXPECT_EQ(form_of("GlobalAveragePool(%x)"), Form::Mean);
  // The zeros of one are not the zero point, the other is no function of one value.
  for (const char* real : {"Trilu(%x)", "Hardmax(%x)"}) EXPECT_EQ(form_of(real), Form::Float) << real;
}

TEST(LayerForms, FixedRanges) {
  for (const char* op : {"Sigmoid", "HardSigmoid", "Softmax"}) EXPECT_TRUE(has_unit_range(op)) << op;
  for (const char* op : {"Tanh", "Erf", "Sin", "Cos", "Softsign", "Sign"}) EXPECT_TRUE(has_symmetric_range(op)) << op;
  for (const char* op : {"Relu", "Exp", "no such operator"}) EXPECT_FALSE(has_unit_range(op) || has_symmetric_range(op)) << op;
}

}  // namespace
}  // namespace orknn::quantize
