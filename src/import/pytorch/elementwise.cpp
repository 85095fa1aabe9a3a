// Arithmetic and functions, element by element.
#include <cmath>
#include <limits>
#include <numbers>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// Truth values are added and multiplied, and have a greatest and a least, as such.
template <OpName Op, OpName OpOfBools>
Result<TensorId> combined(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  return c.binary(c.dtype_of(x[0]) == DType::Bool ? OpOfBools.chars : Op.chars, x[0], x[1]);
}

// a + alpha * b, a - alpha * b, and with the operands swapped
template <bool Subtract, bool Swapped = false>
Result<TensorId> sum_of_two(Call& c) {
  ORKNN_TRY_ASSIGN(auto x, c.promoted());
  const DType t = c.dtype_of(x[0]);
  if (Swapped) std::swap(x[0], x[1]);
  if (c.number("alpha") != 1) x[1] = c.mul(x[1], c.as("alpha", t));
  return c.binary(Subtract ? "Sub" : t == DType::Bool ? "Or" : "Add", x[0], x[1]);
}

Result<TensorId> divide(Call& c) {
  const std::string_view mode = c.has("rounding_mode") ? c.text("rounding_mode") : "";
  ORKNN_TRY_ASSIGN(const auto x, c.promoted(mode.empty() && !c.session().divides_integers));
  if (mode == "floor") return floor_div(c, x[0], x[1]);
  return mode == "trunc" ? truncate_div(c, x[0], x[1]) : c.div(x[0], x[1]);
}

Result<TensorId> power(Call& c) {
  const Value& exponent = c.value("exponent");
  ORKNN_TRY_ASSIGN(const auto operands, c.promoted());
  const TensorId x = operands[0];
  if (exponent.is_number() && is_float(c.dtype_of(x))) {
    const double e = exponent.number();
    if (e == 1) return c.unary("Identity", x);
    if (e == 2) return square(c, x);
    if (e == 3) return c.mul(square(c, x), x);
    if (e == 0.5) return c.unary("Sqrt", x);
    if (e == -1) return c.unary("Reciprocal", x);
    if (e == -0.5) return rsqrt(c, x);
    if (e == -2) return c.unary("Reciprocal", square(c, x));
  }
  return c.binary("Pow", x, operands[1]);
}
TensorId float_power(Call& c) { return c.binary("Pow", c.as("self", DType::Float64), c.as("exponent", DType::Float64)); }

Result<TensorId> clamp(Call& c) {
  const Value &least = c.value("min"), &most = c.value("max");
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({"self", "min", "max"}));
  const TensorId x = c.as("self", t);
  const TensorId low = least.is_none() ? TensorId{} : c.as(least, t), high = most.is_none() ? TensorId{} : c.as(most, t);
  if (!low && !high) return x;
  if (!least.is_tensor() && !most.is_tensor()) return c.emit("Clip", {x, low, high});
  const TensorId raised = low ? c.binary("Max", x, low) : x;
  return high ? c.binary("Min", raised, high) : raised;
}
template <OpName Op>
Result<TensorId> clamp_one_side(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  if (c.value("other").is_tensor()) return c.binary(Op.chars, x[0], x[1]);
  const bool is_lower = Op.string() == "Max";
  return c.emit("Clip", {x[0], is_lower ? x[1] : TensorId{}, is_lower ? TensorId{} : x[1]});
}

// self + value * (tensor1 op tensor2)
template <OpName Op>
Result<TensorId> add_combined(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  const TensorId part = c.binary(Op.chars, x[1], x[2]);
  return c.add(x[0], c.number("value") == 1 ? part : c.mul(part, c.as("value", c.dtype_of(part))));
}
Result<TensorId> lerp(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  return c.add(x[0], c.mul(x[2], c.sub(x[1], x[0])));
}

// --- functions of one value
// Whole numbers stay what they are.
template <UnaryFunction F>
Output rounding(Call& c) {
  if (!is_float(c.dtype())) return c.copy_of();
  return F(c, c.tensor("self"));
}
template <OpName Op>
TensorId rounded(Emitter& e, TensorId x) {
  return e.unary(Op.chars, x);
}
template <OpName Op>
Output of_numbers(Call& c) {  // truth values stay what they are
  if (c.dtype() == DType::Bool) return c.copy_of();
  return c.unary(Op.chars, c.tensor("self"));
}
TensorId round_decimals(Call& c, TensorId x) {
  const double scale = std::pow(10.0, std::clamp<double>(c.number("decimals"), -30, 30));
  x = c.as_float(x);
  return c.div(c.unary("Round", c.mul(x, scale)), scale);
}
TensorId fraction(Call& c, TensorId x) { return c.sub(x, truncate(c, x)); }
TensorId logit(Call& c, TensorId x) {
  x = c.as_float(x);
  if (c.has("eps")) x = c.clip(x, c.number("eps"), 1 - c.number("eps"));
  return c.unary("Log", c.div(x, c.sub(c.scalar_like(x, 1), x)));
}
TensorId sinc(Emitter& e, TensorId x) {
  const TensorId is_zero = e.with_scalar("Equal", x, 0), one = e.scalar_like(x, 1);
  const TensorId angle = e.mul(e.where(is_zero, one, x), std::numbers::pi);
  return e.where(is_zero, one, e.div(e.unary("Sin", angle), angle));
}
Output nan_to_num(Call& c) {
  const TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  if (!is_float(t)) return c.copy_of();
  const double largest = t == DType::Float16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
  const TensorId numbers = c.where(c.unary("IsNaN", x), c.scalar(c.number_or("nan", 0), t), x);
  const TensorId below =
      c.where(c.emit("IsInf", {x}, {{"detect_negative", int64_t{0}}}), c.scalar(c.number_or("posinf", largest), t), numbers);
  return c.where(c.emit("IsInf", {x}, {{"detect_positive", int64_t{0}}}), c.scalar(c.number_or("neginf", -largest), t), below);
}

TensorId normal_probability(Emitter& e, TensorId x) { return e.mul(e.unary("Erfc", e.mul(x, -std::numbers::sqrt2 / 2)), 0.5); }
TensorId entropy(Emitter& e, TensorId x) {  // -x log(x), 0 at 0
  const TensorId value = e.unary("Neg", xlogy(e, x, x));
  return e.where(e.with_scalar("Less", x, 0), e.scalar_like(x, -std::numeric_limits<double>::infinity()), value);
}
TensorId spherical_bessel(Emitter& e, TensorId x) { return sinc(e, e.mul(x, std::numbers::inv_pi)); }
TensorId polygamma(Call& c, TensorId x) {
  x = c.as_float(x);
  return c.binary("Polygamma", c.scalar_like(x, static_cast<double>(c.integer("n"))), x);
}
// The logarithm of the gamma function of p by p matrices.
Result<TensorId> multivariate_log_gamma(Call& c, TensorId x) {
  constexpr int64_t kMost = 1000;
  const int64_t p = c.integer("p");
  if (p < 1 || p > kMost) return invalid_model("p of mvlgamma is out of range").found(std::to_string(p));
  x = c.as_float(x);
  TensorId sum = c.unary("LogGamma", x);
  for (int64_t i = 1; i < p; ++i) sum = c.add(sum, c.unary("LogGamma", c.sub(x, static_cast<double>(i) / 2)));
  return c.add(sum, static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi));
}

// --- functions of two values
TensorId log2_add_exp2(Emitter& e, TensorId a, TensorId b) {
  return e.div(log_add_exp(e, e.mul(a, std::numbers::ln2), e.mul(b, std::numbers::ln2)), std::numbers::ln2);
}
TensorId heaviside(Emitter& e, TensorId x, TensorId at_zero) {
  const TensorId zero = e.scalar_like(x, 0);
  return e.where(e.binary("Equal", x, zero), at_zero, e.where(e.binary("Less", x, zero), zero, e.scalar_like(x, 1)));
}
TensorId ldexp(Emitter& e, TensorId x, TensorId exponent) { return e.mul(x, e.binary("Pow", e.scalar_like(x, 2), exponent)); }
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"add(Tensor self, operand other, *, Scalar alpha=1)", sum_of_two<false>},
      {"sub|subtract(Tensor self, operand other, *, Scalar alpha=1)", sum_of_two<true>},
      {"rsub(Tensor self, operand other, Scalar alpha=1)", sum_of_two<true, true>},
      {"mul|multiply(Tensor self, operand other)", combined<"Mul", "And">},
      {"div|divide(Tensor self, operand other, *, str? rounding_mode=None)", divide},
      {"true_divide(Tensor self, operand other)", floats<"Div">},
      {"floor_divide|floordiv(Tensor self, operand other)", promoted<floor_div>},
      {"remainder(operand self, operand other)", promoted<floor_mod>},
      {"fmod(Tensor self, operand other)", promoted<truncate_mod>},
      {"pow|__pow__(operand self, operand exponent)", power},
      {"float_power(operand self, operand exponent)", float_power},
      {"maximum|max(Tensor self, Tensor other)", combined<"Max", "Or">},
      {"minimum|min(Tensor self, Tensor other)", combined<"Min", "And">},
      {"fmax(Tensor self, Tensor other)", promoted<ignoring_nan<"Max">>},
      {"fmin(Tensor self, Tensor other)", promoted<ignoring_nan<"Min">>},
      {"clamp|clip(Tensor self, operand? min=None, operand? max=None)", clamp},
      {"clamp_min(Tensor self, operand other)", clamp_one_side<"Max">},
      {"clamp_max(Tensor self, operand other)", clamp_one_side<"Min">},
      {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_combined<"Mul">},
      {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_combined<"Div">},
      {"lerp(Tensor self, Tensor end, operand weight)", lerp},
      {"abs|absolute(Tensor self)", of_numbers<"Abs">},
      {"neg|negative(Tensor self)", same<"Neg">},
      {"sign|sgn(Tensor self)", of_numbers<"Sign">},
      {"square(Tensor self)", square},
      {"sqrt(Tensor self)", floats<"Sqrt">},
      {"rsqrt(Tensor self)", floats<rsqrt>},
      {"reciprocal(Tensor self)", floats<"Reciprocal">},
      {"exp(Tensor self)", floats<"Exp">},
      {"exp2|special_exp2(Tensor self)", floats<exp2>},
      {"expm1(Tensor self)", floats<expm1>},
      {"log(Tensor self)", floats<"Log">},
      {"log2(Tensor self)", floats<log2>},
      {"log10(Tensor self)", floats<log10>},
      {"log1p(Tensor self)", floats<log1p>},
      {"sin(Tensor self)", floats<"Sin">},
      {"cos(Tensor self)", floats<"Cos">},
      {"tan(Tensor self)", floats<"Tan">},
      {"asin|arcsin(Tensor self)", floats<"Asin">},
      {"acos|arccos(Tensor self)", floats<"Acos">},
      {"atan|arctan(Tensor self)", floats<"Atan">},
      {"sinh(Tensor self)", floats<"Sinh">},
      {"cosh(Tensor self)", floats<"Cosh">},
      {"asinh|arcsinh(Tensor self)", floats<"Asinh">},
      {"acosh|arccosh(Tensor self)", floats<"Acosh">},
      {"atanh|arctanh(Tensor self)", floats<"Atanh">},
      {"erf|special_erf(Tensor self)", floats<"Erf">},
      {"erfc|special_erfc(Tensor self)", floats<"Erfc">},
      {"erfinv|special_erfinv(Tensor self)", floats<"ErfInv">},
      {"lgamma|special_gammaln(Tensor self)", floats<"LogGamma">},
      {"digamma|special_digamma|special_psi(Tensor self)", floats<"Digamma">},
      {"polygamma|special_polygamma(int n, Tensor self)", polygamma},
      {"mvlgamma|special_multigammaln(Tensor self, int p)", multivariate_log_gamma},
      {"igamma|special_gammainc(Tensor self, Tensor other)", floats<"GammaInc">},
      {"igammac|special_gammaincc(Tensor self, Tensor other)", floats<"GammaIncUpper">},
      {"special_zeta(operand self, operand other)", floats<"Zeta">},
      {"special_erfcx(Tensor self)", floats<"ErfcScaled">},
      {"special_ndtr(Tensor self)", floats<normal_probability>},
      {"special_ndtri(Tensor self)", floats<"NormalInverse">},
      {"special_log_ndtr(Tensor self)", floats<"LogNormalCdf">},
      {"special_entr(Tensor self)", floats<entropy>},
      {"i0|special_i0|special_modified_bessel_i0(Tensor self)", floats<"BesselI0">},
      {"special_i1|special_modified_bessel_i1(Tensor self)", floats<"BesselI1">},
      {"special_i0e(Tensor self)", floats<"BesselI0Scaled">},
      {"special_i1e(Tensor self)", floats<"BesselI1Scaled">},
      {"special_modified_bessel_k0(Tensor self)", floats<"BesselK0">},
      {"special_modified_bessel_k1(Tensor self)", floats<"BesselK1">},
      {"special_scaled_modified_bessel_k0(Tensor self)", floats<"BesselK0Scaled">},
      {"special_scaled_modified_bessel_k1(Tensor self)", floats<"BesselK1Scaled">},
      {"special_bessel_j0(Tensor self)", floats<"BesselJ0">},
      {"special_bessel_j1(Tensor self)", floats<"BesselJ1">},
      {"special_bessel_y0(Tensor self)", floats<"BesselY0">},
      {"special_bessel_y1(Tensor self)", floats<"BesselY1">},
      {"special_spherical_bessel_j0(Tensor self)", floats<spherical_bessel>},
      {"ceil(Tensor self)", rounding<rounded<"Ceil">>},
      {"floor(Tensor self)", rounding<rounded<"Floor">>},
      {"round(Tensor self)", rounding<rounded<"Round">>},
      {"round(Tensor self, *, int decimals)", round_decimals},
      {"trunc|fix(Tensor self)", rounding<truncate>},
      {"frac(Tensor self)", fraction},
      {"logit|special_logit(Tensor self, float? eps=None)", logit},
      {"deg2rad(Tensor self)", floats<radians>},
      {"rad2deg(Tensor self)", floats<degrees>},
      {"sinc|special_sinc(Tensor self)", floats<sinc>},
      {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)", nan_to_num},
      {"atan2|arctan2(Tensor self, Tensor other)", floats<"Atan2">},
      {"hypot(Tensor self, Tensor other)", floats<hypot>},
      {"logaddexp(Tensor self, Tensor other)", floats<log_add_exp>},
      {"logaddexp2(Tensor self, Tensor other)", floats<log2_add_exp2>},
      {"xlogy|special_xlogy(operand self, operand other)", floats<xlogy>},
      {"special_xlog1py(operand self, operand other)", floats<xlog1py>},
      {"copysign(Tensor self, operand other)", floats<"CopySign">},
      {"heaviside(Tensor self, Tensor values)", promoted<heaviside>},
      {"ldexp(Tensor self, Tensor other)", floats<ldexp>},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
