#include "import/lower/functions.h"

#include <limits>
#include <numbers>

namespace orknn::importer {
using namespace ir;

TensorId square(Emitter& e, TensorId x) { return e.mul(x, x); }
TensorId rsqrt(Emitter& e, TensorId x) { return e.unary("Reciprocal", e.unary("Sqrt", x)); }
TensorId cube_root(Emitter& e, TensorId x) {
  return e.mul(e.unary("Sign", x), e.with_scalar("Pow", e.unary("Abs", x), 1.0 / 3.0));
}

// u = 1 + x rounds x to the digits that u has; log(u) x / (u - 1) makes up for that. Far from 0 nothing is lost.
TensorId log1p(Emitter& e, TensorId x) {
  const TensorId u = e.add(x, 1.0), kept = e.sub(u, 1.0), log = e.unary("Log", u);
  const TensorId all_lost = e.with_scalar("Equal", kept, 0.0);
  const TensorId corrected = e.mul(log, e.div(x, e.where(all_lost, e.scalar_like(x, 1.0), kept)));
  const TensorId is_near = e.with_scalar("Less", e.unary("Abs", x), 0.5);
  return e.where(is_near, e.where(all_lost, x, corrected), log);
}

// exp(x) - 1 = 2 sinh(x / 2) exp(x / 2), which subtracts nothing.
TensorId expm1(Emitter& e, TensorId x) {
  const TensorId half = e.mul(x, 0.5);
  const TensorId near = e.mul(e.mul(e.unary("Sinh", half), 2.0), e.unary("Exp", half));
  return e.where(e.with_scalar("Less", e.unary("Abs", x), 1.0), near, e.sub(e.unary("Exp", x), 1.0));
}

TensorId log2(Emitter& e, TensorId x) { return e.mul(e.unary("Log", x), std::numbers::log2e); }
TensorId log10(Emitter& e, TensorId x) { return e.mul(e.unary("Log", x), std::numbers::log10e); }
TensorId exp2(Emitter& e, TensorId x) { return e.unary("Exp", e.mul(x, std::numbers::ln2)); }
TensorId log_sigmoid(Emitter& e, TensorId x) { return e.unary("Neg", e.unary("Softplus", e.unary("Neg", x))); }
TensorId degrees(Emitter& e, TensorId x) { return e.mul(x, 180 / std::numbers::pi); }
TensorId radians(Emitter& e, TensorId x) { return e.mul(x, std::numbers::pi / 180); }
TensorId is_finite(Emitter& e, TensorId x) { return e.unary("Not", e.binary("Or", e.unary("IsInf", x), e.unary("IsNaN", x))); }
TensorId relu6(Emitter& e, TensorId x) { return e.clip(x, 0.0, 6.0); }
TensorId zeros_like(Emitter& e, TensorId x) { return e.full_like(x, 0.0); }
TensorId ones_like(Emitter& e, TensorId x) { return e.full_like(x, 1.0); }

TensorId truncate(Emitter& e, TensorId x) {
  if (!is_float(e.dtype_of(x))) return x;
  return e.mul(e.unary("Sign", x), e.unary("Floor", e.unary("Abs", x)));
}

// The fraction decides, which is exact: floor(|x| + 0.5) would round 0.49999997 up.
TensorId round_half_away(Emitter& e, TensorId x) {
  if (!is_float(e.dtype_of(x))) return x;
  const TensorId size = e.unary("Abs", x), whole = e.unary("Floor", size);
  const TensorId up = e.cast(e.with_scalar("GreaterOrEqual", e.sub(size, whole), 0.5), e.dtype_of(x));
  return e.mul(e.unary("Sign", x), e.add(whole, up));
}
// The nearer neighbour: of the two distances the smaller one is exact.
TensorId round_half_down(Emitter& e, TensorId x) {
  if (!is_float(e.dtype_of(x))) return x;
  const TensorId below = e.unary("Floor", x), above = e.unary("Ceil", x);
  return e.where(e.binary("Greater", e.sub(x, below), e.sub(above, x)), above, below);
}

TensorId not_equal(Emitter& e, TensorId a, TensorId b) { return e.unary("Not", e.binary("Equal", a, b)); }
TensorId squared_difference(Emitter& e, TensorId a, TensorId b) { return square(e, e.sub(a, b)); }

namespace {
// Whether one of them is below zero and the other is not.
TensorId signs_differ(Emitter& e, TensorId a, TensorId b, TensorId zero) {
  return e.binary("Xor", e.binary("Less", a, zero), e.binary("Less", b, zero));
}
}  // namespace

// Floats by way of the remainder, which is exact. Our Div of integers truncates, our Mod has the divisor's sign.
TensorId floor_div(Emitter& e, TensorId a, TensorId b) {
  if (!is_float(e.dtype_of(a))) return e.div(e.sub(a, e.binary("Mod", a, b)), b);
  const TensorId rest = truncate_mod(e, a, b), zero = e.scalar_like(a, 0.0);
  const TensorId are_apart = signs_differ(e, rest, b, zero), is_below = e.binary("And", are_apart, not_equal(e, rest, zero));
  const TensorId quotient = e.sub(e.div(e.sub(a, rest), b), e.cast(is_below, e.dtype_of(a)));
  return e.where(e.binary("Equal", b, zero), e.div(a, b), round_half_down(e, quotient));
}
TensorId floor_of_quotient(Emitter& e, TensorId a, TensorId b) {
  return is_float(e.dtype_of(a)) ? e.unary("Floor", e.div(a, b)) : floor_div(e, a, b);
}
TensorId truncate_div(Emitter& e, TensorId a, TensorId b) { return truncate(e, e.div(a, b)); }
TensorId truncate_mod(Emitter& e, TensorId a, TensorId b) { return e.emit("Mod", {a, b}, {{"fmod", int64_t{1}}}); }

// The remainder of the truncating division is exact; it is moved by one divisor where its sign is not the divisor's.
TensorId floor_mod(Emitter& e, TensorId a, TensorId b) {
  if (!is_float(e.dtype_of(a))) return e.binary("Mod", a, b);
  const TensorId rest = truncate_mod(e, a, b), zero = e.scalar_like(a, 0.0), are_apart = signs_differ(e, rest, b, zero);
  return e.where(e.binary("And", are_apart, not_equal(e, rest, zero)), e.add(rest, b), rest);
}

// The larger one times the square root of 1 + (smaller / larger)^2, whose square does not overflow. An infinite one decides, even
// beside what is no number.
TensorId hypot(Emitter& e, TensorId a, TensorId b) {
  const TensorId size_a = e.unary("Abs", a), size_b = e.unary("Abs", b), one = e.scalar_like(a, 1.0);
  const TensorId larger = e.binary("Max", size_a, size_b), smaller = e.binary("Min", size_a, size_b);
  const TensorId share = e.div(smaller, e.where(e.with_scalar("Equal", larger, 0.0), one, larger));
  const TensorId length = e.mul(larger, e.unary("Sqrt", e.add(square(e, share), one)));
  const TensorId is_infinite = e.binary("Or", e.unary("IsInf", a), e.unary("IsInf", b));
  return e.where(is_infinite, e.scalar_like(a, std::numeric_limits<double>::infinity()), length);
}

TensorId log_add_exp(Emitter& e, TensorId a, TensorId b) {
  // Equal operands may be infinite, which have no difference.
  const TensorId gap = e.where(e.binary("Equal", a, b), e.scalar_like(a, 0.0), e.unary("Abs", e.sub(a, b)));
  return e.add(e.binary("Max", a, b), log1p(e, e.unary("Exp", e.unary("Neg", gap))));
}

TensorId zero_where_zero(Emitter& e, TensorId tested, TensorId value) {
  return e.where(e.with_scalar("Equal", tested, 0.0), e.scalar_like(value, 0.0), value);
}
TensorId xlogy(Emitter& e, TensorId x, TensorId y) { return zero_where_zero(e, x, e.mul(x, e.unary("Log", y))); }
TensorId xlog1py(Emitter& e, TensorId x, TensorId y) { return zero_where_zero(e, x, e.mul(x, log1p(e, y))); }
TensorId div_no_nan(Emitter& e, TensorId a, TensorId b) { return zero_where_zero(e, b, e.div(a, b)); }

TensorId clamp(Emitter& e, TensorId least, TensorId x, TensorId most) { return e.binary("Min", e.binary("Max", x, least), most); }

TensorId hard_sigmoid(Emitter& e, TensorId x, double slope, double offset) {
  return e.emit("HardSigmoid", {x}, {{"alpha", slope}, {"beta", offset}});
}
TensorId selu(Emitter& e, TensorId x, double alpha, double scale) {
  return e.emit("Selu", {x}, {{"alpha", alpha}, {"gamma", scale}});
}
TensorId gelu(Emitter& e, TensorId x, bool is_approximate) {
  return e.emit("Gelu", {x}, {{"approximate", std::string(is_approximate ? "tanh" : "none")}});
}
TensorId shrink(Emitter& e, TensorId x, double lambda, bool is_soft) {
  return e.emit("Shrink", {x}, {{"lambd", lambda}, {"bias", is_soft ? lambda : 0.0}});
}
TensorId tanh_shrink(Emitter& e, TensorId x) { return e.sub(x, e.unary("Tanh", x)); }
TensorId softplus(Emitter& e, TensorId x, double beta, double threshold) {
  const TensorId scaled = beta == 1 ? x : e.mul(x, beta);
  TensorId y = e.unary("Softplus", scaled);
  if (beta != 1) y = e.mul(y, 1 / beta);
  // At 20 the function and x differ by less than a float32 shows.
  return threshold >= 20 ? y : e.where(e.with_scalar("Greater", scaled, threshold), x, y);
}

Result<TensorId> select_rows(Emitter& e, TensorId condition, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(condition, "to select"));
  if (rank == 1) {
    ORKNN_TRY_ASSIGN(const int64_t wanted, e.need_rank(a, "to select its rows"));
    std::vector<int64_t> axes;
    for (int64_t i = 1; i < wanted; ++i) axes.push_back(i);
    condition = e.unsqueeze(condition, axes);
  }
  return select(e, condition, a, b);
}
TensorId select(Emitter& e, TensorId condition, TensorId a, TensorId b) { return e.where(e.cast(condition, DType::Bool), a, b); }

}  // namespace orknn::importer
