// Functions that frameworks have and we compose of our operators. Roundings and remainders are exact, log1p and expm1 keep their
// digits near 0, hypot is right for infinite operands and where squares or quotients overflow; the others are as good
// as their formulas. All take tensors of one type; those without parameters can stand in a row as they
// are ({"LOG1P", log1p}).
#pragma once

#include "import/lower/emitter.h"
#include "import/lower/row.h"

namespace orknn::importer {

// --- of one value
ir::TensorId square(Emitter& e, ir::TensorId x);
ir::TensorId rsqrt(Emitter& e, ir::TensorId x);
ir::TensorId cube_root(Emitter& e, ir::TensorId x);
ir::TensorId log1p(Emitter& e, ir::TensorId x);  // keeps its digits near 0
ir::TensorId expm1(Emitter& e, ir::TensorId x);  // keeps its digits near 0
ir::TensorId log2(Emitter& e, ir::TensorId x);
ir::TensorId log10(Emitter& e, ir::TensorId x);
ir::TensorId exp2(Emitter& e, ir::TensorId x);
ir::TensorId log_sigmoid(Emitter& e, ir::TensorId x);
ir::TensorId degrees(Emitter& e, ir::TensorId x);
ir::TensorId radians(Emitter& e, ir::TensorId x);
ir::TensorId is_finite(Emitter& e, ir::TensorId x);
ir::TensorId relu6(Emitter& e, ir::TensorId x);
ir::TensorId zeros_like(Emitter& e, ir::TensorId x);
ir::TensorId ones_like(Emitter& e, ir::TensorId x);

// --- rounding. Integers stay what they are. Ties to even is our operator Round.
ir::TensorId truncate(Emitter& e, ir::TensorId x);
ir::TensorId round_half_away(Emitter& e, ir::TensorId x);  // from zero
ir::TensorId round_half_down(Emitter& e, ir::TensorId x);

// --- of two values
ir::TensorId not_equal(Emitter& e, ir::TensorId a, ir::TensorId b);
ir::TensorId squared_difference(Emitter& e, ir::TensorId a, ir::TensorId b);
// The largest whole number not above the quotient: 1 / 0.1 is 9 where 0.1 is a little more than a tenth, as in Python.
ir::TensorId floor_div(Emitter& e, ir::TensorId a, ir::TensorId b);
// The quotient rounded as floats are, then down, as TensorFlow computes it: 1 / 0.1 is 10.
ir::TensorId floor_of_quotient(Emitter& e, ir::TensorId a, ir::TensorId b);
ir::TensorId truncate_div(Emitter& e, ir::TensorId a, ir::TensorId b);
ir::TensorId floor_mod(Emitter& e, ir::TensorId a, ir::TensorId b);     // sign of the divisor
ir::TensorId truncate_mod(Emitter& e, ir::TensorId a, ir::TensorId b);  // sign of the dividend
ir::TensorId hypot(Emitter& e, ir::TensorId a, ir::TensorId b);
// `value` where `tested` is not 0, and 0 where it is, whatever `value` is there.
ir::TensorId zero_where_zero(Emitter& e, ir::TensorId tested, ir::TensorId value);
ir::TensorId xlogy(Emitter& e, ir::TensorId x, ir::TensorId y);        // x log(y), 0 where x is 0
ir::TensorId log_add_exp(Emitter& e, ir::TensorId a, ir::TensorId b);  // log(e^a + e^b), infinite operands included
ir::TensorId xlog1py(Emitter& e, ir::TensorId x, ir::TensorId y);      // x log(1 + y), 0 where x is 0
ir::TensorId div_no_nan(Emitter& e, ir::TensorId a, ir::TensorId b);   // 0 where b is 0

ir::TensorId clamp(Emitter& e, ir::TensorId least, ir::TensorId x, ir::TensorId most);
// Max or Min, where what is no number gives way to the other operand.
template <OpName Op>
ir::TensorId ignoring_nan(Emitter& e, ir::TensorId a, ir::TensorId b) {
  const ir::TensorId both = e.binary(Op.chars, a, b);
  return is_float(e.dtype_of(a)) ? e.where(e.unary("IsNaN", a), b, e.where(e.unary("IsNaN", b), a, both)) : both;
}

// --- activations with parameters
// Our operator whose attribute is alpha: LeakyRelu, Elu, Celu, Swish, ThresholdedRelu.
template <OpName Op>
ir::TensorId with_alpha(Emitter& e, ir::TensorId x, double alpha) {
  return e.emit(Op.chars, {x}, {{"alpha", alpha}});
}
ir::TensorId hard_sigmoid(Emitter& e, ir::TensorId x, double slope, double offset = 0.5);
ir::TensorId selu(Emitter& e, ir::TensorId x, double alpha, double scale);
ir::TensorId gelu(Emitter& e, ir::TensorId x, bool is_approximate);
ir::TensorId shrink(Emitter& e, ir::TensorId x, double lambda, bool is_soft);  // soft: what is left moves towards 0 by lambda
ir::TensorId tanh_shrink(Emitter& e, ir::TensorId x);
// log(1 + exp(beta x)) / beta, x itself where beta x is above the threshold.
ir::TensorId softplus(Emitter& e, ir::TensorId x, double beta, double threshold);

// --- selection
// Where, with a vector of conditions standing for whole rows of the operands.
Result<ir::TensorId> select_rows(Emitter& e, ir::TensorId condition, ir::TensorId a, ir::TensorId b);
// Where for conditions of any type, broadcast.
ir::TensorId select(Emitter& e, ir::TensorId condition, ir::TensorId a, ir::TensorId b);

}  // namespace orknn::importer
