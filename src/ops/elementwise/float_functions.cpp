// Functions of one real number without parameters.
#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Functions that leave whole numbers whole, so shape arithmetic passes through.
template <class F>
OpDef number_function(OpDef def, F) {
  if (!def.infer) def.infer = arithmetic_same_as_input;
  def.run = [](RunContext& c) { return map_numeric(c, F{}); };
  def.pattern = Pattern::Pointwise;
  return def;
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

constexpr CpuFacts kOnCpu{CpuList::LargeChips};

// A function that is only computed on the CPU, or in a table where the layers around it are integers.
template <class F>
OpDef plain(std::string_view name, std::string_view summary, F, QuantRule quant = QuantRule::Table, CpuFacts cpu = {}) {
  return float_function({.name = name, .summary = summary, .quant = quant, .cpu = cpu},
                        [](auto x, auto, auto) { return F{}(x); });
}
// An activation that the NPU looks up in a table.
template <class F>
OpDef activation(std::string_view name, std::string_view summary, F, QuantRule quant, NpuFacts npu, CpuFacts cpu = {}) {
  return float_function({.name = name, .summary = summary, .quant = quant, .npu = npu, .cpu = cpu},
                        [](auto x, auto, auto) { return F{}(x); });
}

OpDef exponential() {
  return float_function({.name = "Exp",
                         .summary = "e to the power x",
                         .quant = QuantRule::Table,
                         .never_negative = true,
                         .npu = {.stage = OutputStage::Table},
                         .cpu = {CpuList::AllChips}},
                        [](auto x, auto, auto) { return std::exp(x); });
}
OpDef sigmoid() {
  OpDef def = activation(
      "Sigmoid", "1 / (1 + exp(-x))", [](auto x) { return 1 / (1 + std::exp(-x)); }, QuantRule::Fixed01, table_function(),
      kOnCpu);
  def.is_score = true;
  return def;
}
OpDef hard_swish() {
  OpDef def = activation(
      "HardSwish", "x * clamp(x / 6 + 0.5, 0, 1)",
      []<class T>(T x) {
        const T gate = x / T(6) + T(0.5);
        return x * (gate < 0 ? T(0) : gate > 1 ? T(1) : gate);
      },
      QuantRule::Table, table_function(), kOnCpu);
  def.npu.in_parts = true;
  return def;
}
OpDef logarithm() {
  OpDef def = plain(
      "Log", "natural logarithm", [](auto x) { return std::log(x); }, QuantRule::Table, kOnCpu);
  def.needs_small_values = true;
  return def;
}
}  // namespace

std::span<const OpDef> float_functions() {
  static const OpDef defs[] = {
      plain("Acos", "arc cosine", [](auto x) { return std::acos(x); }),
      plain("Acosh", "inverse hyperbolic cosine", [](auto x) { return std::acosh(x); }),
      plain("Asin", "arc sine", [](auto x) { return std::asin(x); }),
      plain("Asinh", "inverse hyperbolic sine", [](auto x) { return std::asinh(x); }),
      plain("Atan", "arc tangent", [](auto x) { return std::atan(x); }),
      plain("Atanh", "inverse hyperbolic tangent", [](auto x) { return std::atanh(x); }),
      plain("Ceil", "smallest whole number that is not less", [](auto x) { return std::ceil(x); }),
      plain(
          "Cos", "cosine", [](auto x) { return std::cos(x); }, QuantRule::Fixed11, kOnCpu),
      plain("Cosh", "hyperbolic cosine", [](auto x) { return std::cosh(x); }),
      exponential(),
      plain(
          "Floor", "greatest whole number that is not greater", [](auto x) { return std::floor(x); }, QuantRule::Table, kOnCpu),
      hard_swish(),
      logarithm(),
      activation(
          "Mish", "x * tanh(softplus(x))", [](auto x) { return x * std::tanh(softplus(x)); }, QuantRule::Table,
          table_function("exMish"), kOnCpu),
      plain("Reciprocal", "1 / x", [](auto x) { return 1 / x; }),
      plain(
          "Round", "nearest whole number, halves to even", [](auto x) { return std::rint(x); }, QuantRule::Table, kOnCpu),
      sigmoid(),
      plain(
          "Sin", "sine", [](auto x) { return std::sin(x); }, QuantRule::Fixed11, kOnCpu),
      plain("Sinh", "hyperbolic sine", [](auto x) { return std::sinh(x); }),
      activation(
          "Softplus", "log(1 + exp(x))", [](auto x) { return softplus(x); }, QuantRule::Table, table_function()),
      plain(
          "Softsign", "x / (1 + |x|)", [](auto x) { return x / (1 + std::abs(x)); }, QuantRule::Fixed11),
      plain(
          "Sqrt", "square root", [](auto x) { return std::sqrt(x); }, QuantRule::Table, kOnCpu),
      plain("Tan", "tangent", [](auto x) { return std::tan(x); }),
      activation(
          "Tanh", "hyperbolic tangent", [](auto x) { return std::tanh(x); }, QuantRule::Fixed11, table_function(), kOnCpu),
      number_function(
          {.name = "Abs", .summary = "magnitude", .quant = QuantRule::Table, .never_negative = true, .scales_through = true},
          []<class T>(T x) {
            if constexpr (std::is_unsigned_v<T>)
              return x;
            else if constexpr (std::is_floating_point_v<T>)
              return std::abs(x);
            else
              return x < 0 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
          }),
      number_function(
          {.name = "Erf", .summary = "error function", .quant = QuantRule::Fixed11, .cpu = kOnCpu},
          []<class T>(T x) { return static_cast<T>(std::erf(std::conditional_t<std::is_same_v<T, float>, float, double>(x))); }),
      number_function({.name = "Neg", .summary = "-x", .infer = infer_neg, .quant = QuantRule::Table, .scales_through = true},
                      []<class T>(T x) {
                        if constexpr (std::is_floating_point_v<T>)
                          return -x;
                        else
                          return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));  // the least value stays
                      }),
      number_function({.name = "Sign", .summary = "-1, 0 or 1", .quant = QuantRule::Fixed11},
                      []<class T>(T x) { return x > 0   ? T(1)
                                                : x < 0 ? static_cast<T>(-1)
                                                        : x; }),
  };
  return defs;
}
}  // namespace orknn::ops
