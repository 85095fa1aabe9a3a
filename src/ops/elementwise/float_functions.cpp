// Functions of one real number without parameters.
#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

// `F` is a lambda without captures that takes and returns float or double.
template <class F>
OpDef float_function(std::string_view name, std::string_view summary, F, QuantRule quant = QuantRule::Table,
                     Engine engine = Engine::None) {
  return {.name = name,
          .summary = summary,
          .infer = float_same_as_input,
          .run = [](RunContext& c) { return map_float(c, F{}); },
          .quant = quant,
          .engine = engine};
}

// Rounding functions and the like leave whole numbers alone, so shape arithmetic passes through.
template <class F>
OpDef number_function(std::string_view name, std::string_view summary, F, QuantRule quant, Engine engine = Engine::None) {
  return {.name = name,
          .summary = summary,
          .infer = arithmetic_same_as_input,
          .run = [](RunContext& c) { return map_numeric(c, F{}); },
          .quant = quant,
          .engine = engine};
}

template <class T>
T softplus(T x) {
  return (x > 0 ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

Status infer_neg(InferContext& c) {
  ORKNN_TRY(arithmetic_same_as_input(c));
  if (is_integer(c.dtype(0))) fold_content(c, [](std::span<const Dim> x) { return Dim(0) - x[0]; });
  return {};
}

std::vector<OpDef> make() {
  std::vector<OpDef> defs = {
      float_function("Acos", "arc cosine", [](auto x) { return std::acos(x); }),
      float_function("Acosh", "inverse hyperbolic cosine", [](auto x) { return std::acosh(x); }),
      float_function("Asin", "arc sine", [](auto x) { return std::asin(x); }),
      float_function("Asinh", "inverse hyperbolic sine", [](auto x) { return std::asinh(x); }),
      float_function("Atan", "arc tangent", [](auto x) { return std::atan(x); }),
      float_function("Atanh", "inverse hyperbolic tangent", [](auto x) { return std::atanh(x); }),
      float_function("Ceil", "smallest whole number that is not less", [](auto x) { return std::ceil(x); }),
      float_function(
          "Cos", "cosine", [](auto x) { return std::cos(x); }, QuantRule::Fixed11),
      float_function("Cosh", "hyperbolic cosine", [](auto x) { return std::cosh(x); }),
      float_function("Exp", "e to the power x", [](auto x) { return std::exp(x); }),
      float_function("Floor", "greatest whole number that is not greater", [](auto x) { return std::floor(x); }),
      float_function(
          "HardSwish", "x * clamp(x / 6 + 0.5, 0, 1)",
          []<class T>(T x) {
            const T gate = x / T(6) + T(0.5);
            return x * (gate < 0 ? T(0) : gate > 1 ? T(1) : gate);
          },
          QuantRule::Table, Engine::Lut),
      float_function("Log", "natural logarithm", [](auto x) { return std::log(x); }),
      float_function(
          "Mish", "x * tanh(softplus(x))", [](auto x) { return x * std::tanh(softplus(x)); }, QuantRule::Table, Engine::Lut),
      float_function("Reciprocal", "1 / x", [](auto x) { return 1 / x; }),
      float_function("Round", "nearest whole number, halves to even", [](auto x) { return std::rint(x); }),
      float_function(
          "Sigmoid", "1 / (1 + exp(-x))", [](auto x) { return 1 / (1 + std::exp(-x)); }, QuantRule::Fixed01, Engine::Lut),
      float_function(
          "Sin", "sine", [](auto x) { return std::sin(x); }, QuantRule::Fixed11),
      float_function("Sinh", "hyperbolic sine", [](auto x) { return std::sinh(x); }),
      float_function(
          "Softplus", "log(1 + exp(x))", [](auto x) { return softplus(x); }, QuantRule::Table, Engine::Lut),
      float_function(
          "Softsign", "x / (1 + |x|)", [](auto x) { return x / (1 + std::abs(x)); }, QuantRule::Fixed11),
      float_function("Sqrt", "square root", [](auto x) { return std::sqrt(x); }),
      float_function("Tan", "tangent", [](auto x) { return std::tan(x); }),
      float_function(
          "Tanh", "hyperbolic tangent", [](auto x) { return std::tanh(x); }, QuantRule::Fixed11, Engine::Lut),
      number_function(
          "Abs", "magnitude",
          []<class T>(T x) {
            if constexpr (std::is_unsigned_v<T>)
              return x;
            else if constexpr (std::is_floating_point_v<T>)
              return std::abs(x);
            else
              return x < 0 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
          },
          QuantRule::Table),
      number_function(
          "Erf", "error function",
          []<class T>(T x) { return static_cast<T>(std::erf(std::conditional_t<std::is_same_v<T, float>, float, double>(x))); },
          QuantRule::Fixed11),
      number_function(
          "Neg", "-x",
          []<class T>(T x) {
            if constexpr (std::is_floating_point_v<T>)
              return -x;
            else
              return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));  // the least value stays
          },
          QuantRule::Table),
      number_function(
          "Sign", "-1, 0 or 1", []<class T>(T x) { return x > 0   ? T(1)
                                                          : x < 0 ? static_cast<T>(-1)
                                                                  : x; }, QuantRule::Fixed11),
  };
  for (OpDef& d : defs)
    if (d.name == "Neg") d.infer = infer_neg;
  return defs;
}
}  // namespace

std::span<const OpDef> float_functions() {
  static const std::vector<OpDef> defs = make();
  return defs;
}
}  // namespace orknn::ops
