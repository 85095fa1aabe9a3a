// Activation functions with parameters given as attributes.
#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

Status run_celu(RunContext& c) {
  const double alpha = c.get_float("alpha");
  return map_float(
      c, [&]<class T>(T x) { return x > 0 || x != x ? x : static_cast<T>(alpha) * std::expm1(x / static_cast<T>(alpha)); });
}
Status run_elu(RunContext& c) {
  const double alpha = c.get_float("alpha");
  return map_float(c, [&]<class T>(T x) { return x < 0 ? static_cast<T>(alpha) * std::expm1(x) : x; });
}
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
Status run_hard_sigmoid(RunContext& c) {
  const double alpha = c.get_float("alpha"), beta = c.get_float("beta");
  return map_float(c, [&]<class T>(T x) {
    const T y = static_cast<T>(alpha) * x + static_cast<T>(beta);
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  });
}
Status run_leaky_relu(RunContext& c) {
  const double alpha = c.get_float("alpha");
  return map_float(c, [&]<class T>(T x) { return x < 0 ? static_cast<T>(alpha) * x : x; });
}
Status run_selu(RunContext& c) {
  const double alpha = c.get_float("alpha"), gamma = c.get_float("gamma");
  return map_float(
      c, [&]<class T>(T x) { return static_cast<T>(gamma) * (x > 0 || x != x ? x : static_cast<T>(alpha) * std::expm1(x)); });
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
Status run_swish(RunContext& c) {
  const double alpha = c.get_float("alpha");
  return map_float(c, [&]<class T>(T x) { return x * sigmoid(static_cast<T>(alpha) * x); });
}
Status run_thresholded_relu(RunContext& c) {
  const double alpha = c.get_float("alpha");
  return map_float(c, [&]<class T>(T x) { return x > static_cast<T>(alpha) || x != x ? x : T(0); });
}
}  // namespace

std::span<const OpDef> activations() {
  static const OpDef defs[] = {
      {.name = "Celu",
       .summary = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))",
       .attributes = {attr_float("alpha", 1.0)},
       .infer = float_same_as_input,
       .run = run_celu,
       .quant = QuantRule::Table},
      {.name = "Elu",
       .summary = "x, or alpha * (exp(x) - 1) below zero",
       .attributes = {attr_float("alpha", 1.0)},
       .infer = float_same_as_input,
       .run = run_elu,
       .quant = QuantRule::Table,
       .engine = Engine::Lut},
      {.name = "Gelu",
       .summary = "x times the normal distribution function, or its tanh approximation",
       .attributes = {attr_string("approximate", "none")},
       .infer = infer_gelu,
       .run = run_gelu,
       .quant = QuantRule::Table,
       .engine = Engine::Lut},
      {.name = "HardSigmoid",
       .summary = "clamp(alpha * x + beta, 0, 1)",
       .attributes = {attr_float("alpha", 0.2), attr_float("beta", 0.5)},
       .infer = float_same_as_input,
       .run = run_hard_sigmoid,
       .quant = QuantRule::Fixed01,
       .engine = Engine::Lut},
      {.name = "LeakyRelu",
       .summary = "x, or alpha * x below zero",
       .attributes = {attr_float("alpha", 0.01)},
       .infer = float_same_as_input,
       .run = run_leaky_relu,
       .quant = QuantRule::Table,
       .engine = Engine::Elementwise},
      {.name = "Selu",
       .summary = "gamma * (x, or alpha * (exp(x) - 1) below zero)",
       .attributes = {attr_float("alpha", 1.67326319217681884765625), attr_float("gamma", 1.05070102214813232421875)},
       .infer = float_same_as_input,
       .run = run_selu,
       .quant = QuantRule::Table},
      {.name = "Shrink",
       .summary = "moves x towards zero by bias; zero within lambd",
       .attributes = {attr_float("lambd", 0.5), attr_float("bias", 0.0)},
       .infer = arithmetic_same_as_input,
       .run = run_shrink,
       .quant = QuantRule::Table},
      {.name = "Swish",
       .summary = "x * sigmoid(alpha * x)",
       .attributes = {attr_float("alpha", 1.0)},
       .infer = float_same_as_input,
       .run = run_swish,
       .quant = QuantRule::Table,
       .engine = Engine::Lut},
      {.name = "ThresholdedRelu",
       .summary = "x above alpha, otherwise 0",
       .attributes = {attr_float("alpha", 1.0)},
       .infer = float_same_as_input,
       .run = run_thresholded_relu,
       .quant = QuantRule::Table},
  };
  return defs;
}
}  // namespace orknn::ops
