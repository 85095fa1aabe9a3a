// Arithmetic and functions, element by element.
#include <cmath>
#include <numbers>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// Two operands in their common type.
struct Operands {
  TensorId a, b;
  DType dtype;
};
Result<Operands> operands(Call& c, bool as_float = false) {
  const Value &a = c.value("self"), &b = c.value("other");
  ORKNN_TRY_ASSIGN(DType t, c.common_type({&a, &b}));
  if (as_float && !is_float(t)) t = DType::Float32;
  return Operands{c.as(a, t), c.as(b, t), t};
}

// Truth values are added and multiplied as such.
TensorId combine(Call& c, const char* op, const char* op_of_bools, const Operands& x) {
  return c.emit(x.dtype == DType::Bool ? op_of_bools : op, {x.a, x.b});
}

Result<Value> sum(Call& c, bool subtract, bool swapped) {
  const Value& alpha = c.value("alpha");
  const Value &first = c.value("self"), &second = c.value("other");
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&first, &second}));
  TensorId a = c.as(first, t), b = c.as(second, t);
  if (swapped) std::swap(a, b);
  if (alpha.number() != 1) b = c.mul(b, c.as(alpha, t));
  if (subtract) return c.made(c.sub(a, b));
  return c.made(combine(c, "Add", "Or", {a, b, t}));
}
Result<Value> add(Call& c) { return sum(c, false, false); }
Result<Value> sub(Call& c) { return sum(c, true, false); }
// rsub: other - alpha * self
Result<Value> rsub(Call& c) { return sum(c, true, true); }

Result<Value> mul(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  return c.made(combine(c, "Mul", "And", x));
}

TensorId truncated(Call& c, TensorId x) {
  if (!is_float(c.dtype_of(x))) return x;
  return c.mul(c.emit("Sign", {x}), c.emit("Floor", {c.emit("Abs", {x})}));
}

TensorId floor_divided(Call& c, const Operands& x) {
  if (is_float(x.dtype)) return c.emit("Floor", {c.div(x.a, x.b)});
  // Integers: the quotient without the remainder that has the divisor's sign.
  return c.div(c.sub(x.a, c.emit("Mod", {x.a, x.b})), x.b);
}

Result<Value> divide(Call& c) {
  const std::string_view mode = c.has("rounding_mode") ? c.text("rounding_mode") : "";
  ORKNN_TRY_ASSIGN(const Operands x, operands(c, mode.empty() && !c.session().divides_integers));
  if (mode == "floor") return c.made(floor_divided(c, x));
  if (mode == "trunc") return c.made(truncated(c, c.div(x.a, x.b)));
  return c.made(c.div(x.a, x.b));
}
Result<Value> true_divide(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c, true));
  return c.made(c.div(x.a, x.b));
}
Result<Value> floor_divide(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  return c.made(floor_divided(c, x));
}

Result<Value> fmod(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  return c.made(c.emit("Mod", {x.a, x.b}, {{"fmod", int64_t{1}}}));
}
// The remainder has the divisor's sign.
Result<Value> remainder(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  if (!is_float(x.dtype)) return c.made(c.emit("Mod", {x.a, x.b}));
  const TensorId rest = c.emit("Mod", {x.a, x.b}, {{"fmod", int64_t{1}}}), zero = c.scalar(0, x.dtype);
  const TensorId has_other_sign = c.emit("Less", {c.mul(rest, x.b), zero});
  return c.made(c.where(has_other_sign, c.add(rest, x.b), rest));
}

Result<Value> power(Call& c) {
  const Value& exponent = c.value("exponent");
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &exponent}));
  const TensorId x = c.as(c.value("self"), t);
  if (exponent.is_number() && is_float(t)) {
    const double e = exponent.number();
    if (e == 1) return c.made(c.emit("Identity", {x}));
    if (e == 2) return c.made(c.mul(x, x));
    if (e == 3) return c.made(c.mul(c.mul(x, x), x));
    if (e == 0.5) return c.made(c.emit("Sqrt", {x}));
    if (e == -1) return c.made(c.emit("Reciprocal", {x}));
    if (e == -0.5) return c.made(c.emit("Reciprocal", {c.emit("Sqrt", {x})}));
    if (e == -2) return c.made(c.emit("Reciprocal", {c.mul(x, x)}));
  }
  return c.made(c.emit("Pow", {x, c.as(exponent, t)}));
}
Result<Value> float_power(Call& c) {
  return c.made(c.emit("Pow", {c.as(c.value("self"), DType::Float64), c.as(c.value("exponent"), DType::Float64)}));
}

template <OpName Op>
Result<Value> binary(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  return c.made(c.emit(Op.string(), {x.a, x.b}));
}
// max and min of truth values
template <OpName Op, OpName OpOfBools>
Result<Value> extreme(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  return c.made(combine(c, Op.chars, OpOfBools.chars, x));
}

Result<Value> clamp(Call& c) {
  const Value &self = c.value("self"), &least = c.value("min"), &most = c.value("max");
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&self, &least, &most}));
  TensorId x = c.as(self, t);
  if (least.is_none() && most.is_none()) return c.made(x);
  if (!least.is_tensor() && !most.is_tensor())
    return c.made(
        c.emit("Clip", {x, least.is_none() ? TensorId{} : c.as(least, t), most.is_none() ? TensorId{} : c.as(most, t)}));
  if (!least.is_none()) x = c.emit("Max", {x, c.as(least, t)});
  if (!most.is_none()) x = c.emit("Min", {x, c.as(most, t)});
  return c.made(x);
}
template <OpName Op>
Result<Value> clamp_one_side(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands x, operands(c));
  const bool is_lower = Op.string() == "Max";
  if (!c.value("other").is_tensor())
    return c.made(c.emit("Clip", {x.a, is_lower ? x.b : TensorId{}, is_lower ? TensorId{} : x.b}));
  return c.made(c.emit(Op.string(), {x.a, x.b}));
}

// self + value * (tensor1 op tensor2)
template <OpName Op>
Result<Value> add_combined(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("tensor1"), &c.value("tensor2")}));
  TensorId part = c.emit(Op.string(), {c.as(c.value("tensor1"), t), c.as(c.value("tensor2"), t)});
  if (c.number("value") != 1) part = c.mul(part, c.as(c.value("value"), t));
  return c.made(c.add(c.as(c.value("self"), t), part));
}

Result<Value> lerp(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("end"), &c.value("weight")}));
  const TensorId start = c.as(c.value("self"), t), end = c.as(c.value("end"), t), weight = c.as(c.value("weight"), t);
  return c.made(c.add(start, c.mul(weight, c.sub(end, start))));
}

// --- functions of one value
template <OpName Op>
Result<Value> unary(Call& c) {
  return c.made(c.emit(Op.string(), {c.tensor("self")}));
}
template <OpName Op>
Result<Value> float_unary(Call& c) {
  return c.made(c.emit(Op.string(), {c.as_float("self")}));
}
// Whole numbers stay what they are.
template <OpName Op>
Result<Value> rounding(Call& c) {
  return is_float(c.dtype("self")) ? unary<Op>(c) : c.copy_of(c.handle("self"));
}

Result<Value> round_decimals(Call& c) {
  const double scale = std::pow(10.0, std::clamp<double>(c.number("decimals"), -30, 30));
  const TensorId x = c.as_float("self"), s = c.scalar(scale, c.dtype_of(x));
  return c.made(c.div(c.emit("Round", {c.mul(x, s)}), s));
}
Result<Value> trunc(Call& c) {
  return is_float(c.dtype("self")) ? c.made(truncated(c, c.tensor("self"))) : c.copy_of(c.handle("self"));
}
Result<Value> frac(Call& c) { return c.made(c.sub(c.tensor("self"), truncated(c, c.tensor("self")))); }
Result<Value> sign(Call& c) {
  if (c.dtype("self") == DType::Bool) return c.copy_of(c.handle("self"));
  return unary<"Sign">(c);
}
Result<Value> absolute(Call& c) {
  if (c.dtype("self") == DType::Bool) return c.copy_of(c.handle("self"));
  return unary<"Abs">(c);
}
Result<Value> square(Call& c) { return c.made(c.mul(c.tensor("self"), c.tensor("self"))); }
Result<Value> rsqrt(Call& c) { return c.made(c.emit("Reciprocal", {c.emit("Sqrt", {c.as_float("self")})})); }
Result<Value> erfc(Call& c) {
  const TensorId x = c.as_float("self");
  return c.made(c.sub(c.scalar(1, c.dtype_of(x)), c.emit("Erf", {x})));
}
template <int Base>
Result<Value> log_of_base(Call& c) {
  const TensorId x = c.as_float("self");
  return c.made(c.mul(c.emit("Log", {x}), c.scalar(1 / std::log(static_cast<double>(Base)), c.dtype_of(x))));
}
// log(1 + x) for small x too: u = 1 + x; log(u) * x / (u - 1), and x itself where u is 1.
Result<Value> log1p(Call& c) {
  const TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  const TensorId one = c.scalar(1, t), u = c.add(x, one), difference = c.sub(u, one);
  const TensorId is_small = c.emit("Equal", {difference, c.scalar(0, t)});
  const TensorId safe = c.where(is_small, one, difference);
  return c.made(c.where(is_small, x, c.mul(c.emit("Log", {u}), c.div(x, safe))));
}
// exp(x) - 1 = 2 sinh(x / 2) exp(x / 2), which keeps its digits near zero.
Result<Value> expm1(Call& c) {
  const TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  const TensorId half = c.mul(x, c.scalar(0.5, t));
  const TensorId near = c.mul(c.mul(c.scalar(2, t), c.emit("Sinh", {half})), c.emit("Exp", {half}));
  const TensorId far = c.sub(c.emit("Exp", {x}), c.scalar(1, t));
  return c.made(c.where(c.emit("Less", {c.emit("Abs", {x}), c.scalar(1, t)}), near, far));
}
Result<Value> exp2(Call& c) {
  const TensorId x = c.as_float("self");
  return c.made(c.emit("Exp", {c.mul(x, c.scalar(std::numbers::ln2, c.dtype_of(x)))}));
}
Result<Value> logit(Call& c) {
  TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  if (c.has("eps")) x = c.clip(x, c.number("eps"), 1 - c.number("eps"));
  return c.made(c.emit("Log", {c.div(x, c.sub(c.scalar(1, t), x))}));
}
Result<Value> scaled(Call& c, double factor) {
  const TensorId x = c.as_float("self");
  return c.made(c.mul(x, c.scalar(factor, c.dtype_of(x))));
}
Result<Value> deg2rad(Call& c) { return scaled(c, std::numbers::pi / 180); }
Result<Value> rad2deg(Call& c) { return scaled(c, 180 / std::numbers::pi); }
Result<Value> sinc(Call& c) {
  const TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  const TensorId is_zero = c.emit("Equal", {x, c.scalar(0, t)});
  const TensorId angle = c.mul(c.where(is_zero, c.scalar(1, t), x), c.scalar(std::numbers::pi, t));
  return c.made(c.where(is_zero, c.scalar(1, t), c.div(c.emit("Sin", {angle}), angle)));
}
Result<Value> nan_to_num(Call& c) {
  const TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  if (!is_float(t)) return c.copy_of(c.handle("self"));
  const double largest = t == DType::Float16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
  const TensorId numbers = c.where(c.emit("IsNaN", {x}), c.scalar(c.has("nan") ? c.number("nan") : 0, t), x);
  const TensorId below = c.where(c.emit("IsInf", {x}, {{"detect_negative", int64_t{0}}}),
                                 c.scalar(c.has("posinf") ? c.number("posinf") : largest, t), numbers);
  return c.made(c.where(c.emit("IsInf", {x}, {{"detect_positive", int64_t{0}}}),
                        c.scalar(c.has("neginf") ? c.number("neginf") : -largest, t), below));
}

// --- functions of two values
// The angle of (x, y): the arc tangent of y / x, moved by pi in the left half plane.
Result<Value> atan2(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  const TensorId y = v.a, x = v.b, zero = c.scalar(0, v.dtype), pi = c.scalar(std::numbers::pi, v.dtype),
                 half = c.scalar(std::numbers::pi / 2, v.dtype);
  const TensorId x_is_zero = c.emit("Equal", {x, zero});
  const TensorId base = c.emit("Atan", {c.div(y, c.where(x_is_zero, c.scalar(1, v.dtype), x))});
  const TensorId is_left = c.emit("Less", {x, zero}), is_down = c.emit("Less", {y, zero});
  const TensorId moved = c.add(base, c.where(is_left, c.where(is_down, c.emit("Neg", {pi}), pi), zero));
  const TensorId upright = c.mul(c.emit("Sign", {y}), half);
  return c.made(c.where(x_is_zero, upright, moved));
}
Result<Value> hypot(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  return c.made(c.emit("Sqrt", {c.add(c.mul(v.a, v.a), c.mul(v.b, v.b))}));
}
Result<Value> logaddexp(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  const TensorId unit = c.scalar(c.op() == "logaddexp2" ? std::log(2.0) : 1, v.dtype);  // natural logarithm of the base
  const TensorId a = c.mul(v.a, unit), b = c.mul(v.b, unit), largest = c.emit("Max", {a, b});
  return c.made(c.div(
      c.add(largest, c.emit("Log", {c.add(c.emit("Exp", {c.sub(a, largest)}), c.emit("Exp", {c.sub(b, largest)}))})), unit));
}
Result<Value> xlogy(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  const TensorId zero = c.scalar(0, v.dtype), is_zero = c.emit("Equal", {v.a, zero});
  return c.made(c.where(is_zero, zero, c.mul(v.a, c.emit("Log", {v.b}))));
}
Result<Value> copysign(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  const TensorId magnitude = c.emit("Abs", {v.a});
  return c.made(c.where(c.emit("Less", {v.b, c.scalar(0, v.dtype)}), c.emit("Neg", {magnitude}), magnitude));
}
Result<Value> heaviside(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("values")}));
  const TensorId x = c.as(c.value("self"), t), zero = c.scalar(0, t);
  const TensorId step = c.where(c.emit("Less", {x, zero}), zero, c.scalar(1, t));
  return c.made(c.where(c.emit("Equal", {x, zero}), c.as(c.value("values"), t), step));
}
Result<Value> ldexp(Call& c) {
  ORKNN_TRY_ASSIGN(const Operands v, operands(c, true));
  return c.made(c.mul(v.a, c.emit("Pow", {c.scalar(2, v.dtype), v.b})));
}
}  // namespace

std::span<const Row> pointwise_rows() {
  static constexpr Row kRows[] = {
      {"add(Tensor self, operand other, *, Scalar alpha=1)", add},
      {"sub(Tensor self, operand other, *, Scalar alpha=1)", sub},
      {"subtract(Tensor self, operand other, *, Scalar alpha=1)", sub},
      {"rsub(Tensor self, operand other, Scalar alpha=1)", rsub},
      {"mul(Tensor self, operand other)", mul},
      {"multiply(Tensor self, operand other)", mul},
      {"div(Tensor self, operand other, *, str? rounding_mode=None)", divide},
      {"divide(Tensor self, operand other, *, str? rounding_mode=None)", divide},
      {"true_divide(Tensor self, operand other)", true_divide},
      {"floor_divide(Tensor self, operand other)", floor_divide},
      {"floordiv(Tensor self, operand other)", floor_divide},
      {"remainder(operand self, operand other)", remainder},
      {"fmod(Tensor self, operand other)", fmod},
      {"pow(operand self, operand exponent)", power},
      {"__pow__(operand self, operand exponent)", power},
      {"float_power(operand self, operand exponent)", float_power},
      {"maximum(Tensor self, Tensor other)", extreme<"Max", "Or">},
      {"minimum(Tensor self, Tensor other)", extreme<"Min", "And">},
      {"max(Tensor self, Tensor other)", extreme<"Max", "Or">},
      {"min(Tensor self, Tensor other)", extreme<"Min", "And">},
      {"fmax(Tensor self, Tensor other)", binary<"Max">},
      {"fmin(Tensor self, Tensor other)", binary<"Min">},
      {"clamp(Tensor self, operand? min=None, operand? max=None)", clamp},
      {"clip(Tensor self, operand? min=None, operand? max=None)", clamp},
      {"clamp_min(Tensor self, operand other)", clamp_one_side<"Max">},
      {"clamp_max(Tensor self, operand other)", clamp_one_side<"Min">},
      {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_combined<"Mul">},
      {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_combined<"Div">},
      {"lerp(Tensor self, Tensor end, operand weight)", lerp},
      {"abs(Tensor self)", absolute},
      {"absolute(Tensor self)", absolute},
      {"neg(Tensor self)", unary<"Neg">},
      {"negative(Tensor self)", unary<"Neg">},
      {"sign(Tensor self)", sign},
      {"sgn(Tensor self)", sign},
      {"square(Tensor self)", square},
      {"sqrt(Tensor self)", float_unary<"Sqrt">},
      {"rsqrt(Tensor self)", rsqrt},
      {"reciprocal(Tensor self)", float_unary<"Reciprocal">},
      {"exp(Tensor self)", float_unary<"Exp">},
      {"exp2(Tensor self)", exp2},
      {"special_exp2(Tensor self)", exp2},
      {"expm1(Tensor self)", expm1},
      {"log(Tensor self)", float_unary<"Log">},
      {"log2(Tensor self)", log_of_base<2>},
      {"log10(Tensor self)", log_of_base<10>},
      {"log1p(Tensor self)", log1p},
      {"sin(Tensor self)", float_unary<"Sin">},
      {"cos(Tensor self)", float_unary<"Cos">},
      {"tan(Tensor self)", float_unary<"Tan">},
      {"asin(Tensor self)", float_unary<"Asin">},
      {"acos(Tensor self)", float_unary<"Acos">},
      {"atan(Tensor self)", float_unary<"Atan">},
      {"arcsin(Tensor self)", float_unary<"Asin">},
      {"arccos(Tensor self)", float_unary<"Acos">},
      {"arctan(Tensor self)", float_unary<"Atan">},
      {"sinh(Tensor self)", float_unary<"Sinh">},
      {"cosh(Tensor self)", float_unary<"Cosh">},
      {"asinh(Tensor self)", float_unary<"Asinh">},
      {"acosh(Tensor self)", float_unary<"Acosh">},
      {"atanh(Tensor self)", float_unary<"Atanh">},
      {"arctanh(Tensor self)", float_unary<"Atanh">},
      {"arcsinh(Tensor self)", float_unary<"Asinh">},
      {"arccosh(Tensor self)", float_unary<"Acosh">},
      {"erf(Tensor self)", float_unary<"Erf">},
      {"special_erf(Tensor self)", float_unary<"Erf">},
      {"erfc(Tensor self)", erfc},
      {"special_erfc(Tensor self)", erfc},
      {"ceil(Tensor self)", rounding<"Ceil">},
      {"floor(Tensor self)", rounding<"Floor">},
      {"round(Tensor self)", rounding<"Round">},
      {"round(Tensor self, *, int decimals)", round_decimals},
      {"trunc(Tensor self)", trunc},
      {"fix(Tensor self)", trunc},
      {"frac(Tensor self)", frac},
      {"logit(Tensor self, float? eps=None)", logit},
      {"special_logit(Tensor self, float? eps=None)", logit},
      {"deg2rad(Tensor self)", deg2rad},
      {"rad2deg(Tensor self)", rad2deg},
      {"sinc(Tensor self)", sinc},
      {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)", nan_to_num},
      {"atan2(Tensor self, Tensor other)", atan2},
      {"arctan2(Tensor self, Tensor other)", atan2},
      {"hypot(Tensor self, Tensor other)", hypot},
      {"logaddexp(Tensor self, Tensor other)", logaddexp},
      {"logaddexp2(Tensor self, Tensor other)", logaddexp},
      {"xlogy(operand self, operand other)", xlogy},
      {"special_xlogy(operand self, operand other)", xlogy},
      {"copysign(Tensor self, operand other)", copysign},
      {"heaviside(Tensor self, Tensor values)", heaviside},
      {"ldexp(Tensor self, Tensor other)", ldexp},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
