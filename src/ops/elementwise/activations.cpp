// Activation functions with parameters given as attributes.
#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_gelu(InferContext& c) {
  const std::string& form = c.get_string("approximate");
  if (form != "none" && form != "tanh") return invalid_model("attribute 'approximate' is neither none nor tanh").found(form);
  return float_same_as_input(c);
}
Status run_gelu(RunContext& c) {
  if (c.get_string("approximate") == "none")
    return map_float(c, []<class T>(T x) { return T(0.5) * x * (1 + std::erf(x * T(0.70710678118654752440))); });
  return map_float(
      c, []<class T>(T x) { return T(0.5) * x * (1 + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))); });
}
Status run_shrink(RunContext& c) {
  const double lambda = c.get_float("lambd"), bias = c.get_float("bias");
  return map_numeric(c, [&]<class T>(T x) -> T {
    const double v = static_cast<double>(x);
    if (v != v) return x;
    const double y = v < -lambda ? v + bias : v > lambda ? v - bias : 0;
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(y);
    else
      return std::abs(y) < 9e18 ? static_cast<T>(static_cast<int64_t>(y)) : T(0);
  });
}
}  // namespace

std::span<const OpDef> activations() {
  static const OpDef defs[] = {
      float_function({.name = "Celu",
                      .summary = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))",
                      .attributes = {attr_float("alpha", 1.0)},
                      .quant = QuantRule::Table,
                      .scalar = {.a = "alpha"}},
                     []<class T>(T x, T alpha, T) { return x > 0 || x != x ? x : alpha * std::expm1(x / alpha); }),
      float_function({.name = "Elu",
                      .summary = "x, or alpha * (exp(x) - 1) below zero",
                      .attributes = {attr_float("alpha", 1.0)},
                      .quant = QuantRule::Table,
                      .scalar = {.a = "alpha"},
                      .npu = table_function()},
                     []<class T>(T x, T alpha, T) { return x < 0 ? alpha * std::expm1(x) : x; }),
      {.name = "Gelu",
       .summary = "x times the normal distribution function, or its tanh approximation",
       .attributes = {attr_string("approximate", "none")},
       .infer = infer_gelu,
       .run = run_gelu,
       .quant = QuantRule::Table,
       .engine = Engine::Lut,
       .pattern = Pattern::Pointwise,
       .npu = table_function("exGelu"),
       .cpu = {CpuList::LargeChips}},
      float_function({.name = "HardSigmoid",
                      .summary = "clamp(alpha * x + beta, 0, 1)",
                      .attributes = {attr_float("alpha", 0.2), attr_float("beta", 0.5)},
                      .quant = QuantRule::Fixed01,
                      .scalar = {.a = "alpha", .b = "beta"},
                      .npu = table_function()},
                     []<class T>(T x, T alpha, T beta) {
                       const T y = alpha * x + beta;
                       return y < 0 ? T(0) : y > 1 ? T(1) : y;
                     }),
      float_function({.name = "LeakyRelu",
                      .summary = "x, or alpha * x below zero",
                      .attributes = {attr_float("alpha", 0.01)},
                      .quant = QuantRule::Table,
                      .engine = Engine::Elementwise,
                      .scalar = {.a = "alpha"},
                      .keeps_range = true,
                      .slope_attribute = "alpha",
                      .scales_through = true,
                      .npu = {.form = NpuForm::Function, .stage = OutputStage::Plain}},
                     []<class T>(T x, T alpha, T) { return x < 0 ? alpha * x : x; }),
      float_function(
          {.name = "Selu",
           .summary = "gamma * (x, or alpha * (exp(x) - 1) below zero)",
           .attributes = {attr_float("alpha", 1.67326319217681884765625), attr_float("gamma", 1.05070102214813232421875)},
           .quant = QuantRule::Table,
           .scalar = {.a = "alpha", .b = "gamma"}},
          []<class T>(T x, T alpha, T gamma) { return gamma * (x > 0 || x != x ? x : alpha * std::expm1(x)); }),
      {.name = "Shrink",
       .summary = "moves x towards zero by bias; zero within lambd",
       .attributes = {attr_float("lambd", 0.5), attr_float("bias", 0.0)},
       .infer = arithmetic_same_as_input,
       .run = run_shrink,
       .quant = QuantRule::Table,
       .pattern = Pattern::Pointwise},
      float_function({.name = "Swish",
                      .summary = "x * sigmoid(alpha * x)",
                      .attributes = {attr_float("alpha", 1.0)},
                      .quant = QuantRule::Table,
                      .scalar = {.a = "alpha"},
                      .npu = table_function("exSwish"),
                      .cpu = {CpuList::LargeChips}},
                     []<class T>(T x, T alpha, T) { return x * (1 / (1 + std::exp(-(alpha * x)))); }),
      float_function({.name = "ThresholdedRelu",
                      .summary = "x above alpha, otherwise 0",
                      .attributes = {attr_float("alpha", 1.0)},
                      .quant = QuantRule::Table,
                      .scalar = {.a = "alpha"}},
                     []<class T>(T x, T alpha, T) { return x > alpha || x != x ? x : T(0); }),
  };
  return defs;
}
}  // namespace orknn::ops
