// Element-wise functions: of one tensor, of two, of a tensor and a number. Results of comparisons have the type of their
// operands.
#include <cmath>

#include "import/lower/functions.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- one operand

TensorId reciprocal_cube_root(Emitter& e, TensorId x) { return e.unary("Reciprocal", cube_root(e, x)); }
TensorId logical_not(Emitter& e, TensorId x) { return e.cast(e.unary("Not", e.cast(x, DType::Bool)), e.dtype_of(x)); }
template <OpName Op>
TensorId test(Emitter& e, TensorId x) {
  return e.cast(e.unary(Op.chars, x), e.dtype_of(x));
}

// --- two operands of one type

using Binary = TensorId (*)(Emitter&, TensorId, TensorId);

template <OpName Op>
TensorId ours(Emitter& e, TensorId a, TensorId b) {
  return e.binary(Op.chars, a, b);
}
template <OpName Op>
TensorId compare(Emitter& e, TensorId a, TensorId b) {
  return e.cast(e.binary(Op.chars, a, b), e.dtype_of(a));
}
template <OpName Op>
TensorId logic(Emitter& e, TensorId a, TensorId b) {
  return e.cast(e.binary(Op.chars, e.cast(a, DType::Bool), e.cast(b, DType::Bool)), e.dtype_of(a));
}
TensorId differ(Emitter& e, TensorId a, TensorId b) { return e.cast(not_equal(e, a, b), e.dtype_of(a)); }

// The sign of the divisor, unlike C; 0 where it is 0.
TensorId modulo(Emitter& e, TensorId a, TensorId b) {
  const TensorId rest = floor_mod(e, a, b);
  const TensorData* divisor = e.constant_of(b);
  const bool is_never_zero = divisor && divisor->count() == 1 && to_doubles(divisor->view())[0] != 0;
  return is_never_zero || !is_float(e.dtype_of(a)) ? rest : zero_where_zero(e, b, rest);
}

// Operands of one type: the wider float, or the float.
void agree(Layer& l, TensorId& a, TensorId& b) {
  const DType left = l.dtype_of(a), right = l.dtype_of(b);
  if (left == right) return;
  const bool take_right = is_float(right) && (!is_float(left) || dtype_bytes(right) > dtype_bytes(left));
  (take_right ? a : b) = l.cast(take_right ? a : b, take_right ? right : left);
}

template <Binary Function>
TensorId two(Layer& l, TensorId a, TensorId b) {
  agree(l, a, b);
  return Function(l, a, b);
}

// The number of a layer, and the tensor in a type that can be combined with it.
TensorId number_beside(Layer& l, TensorId& x) {
  const double value = l.number("scalar", l.op().starts_with("_npi_") ? 1.0 : 0.0);
  if (!is_float(l.dtype_of(x)) && value != std::floor(value)) x = l.cast(x, DType::Float32);
  return l.scalar_like(x, value);
}
template <Binary Function>
TensorId number(Layer& l, TensorId x) {
  const TensorId value = number_beside(l, x);
  return Function(l, x, value);
}
// The number is the left operand.
template <Binary Function>
TensorId number_first(Layer& l, TensorId x) {
  const TensorId value = number_beside(l, x);
  return Function(l, value, x);
}

// --- the rest

TensorId add_n(Layer& l, Operands parts) {
  if (parts.size() == 1) return parts[0];
  return l.emit(parts.size() == 2 ? "Add" : "Sum", {parts.begin(), parts.end()});
}

TensorId clip(Layer& l, TensorId x) {
  const auto bound = [&](std::string_view key) { return l.has(key) ? std::optional(l.number(key, 0)) : std::nullopt; };
  return l.clip(x, bound("a_min"), bound("a_max"));
}

TensorId cast(Layer& l, TensorId x) { return l.cast(x, l.dtype("dtype", l.dtype_of(x))); }

// Every input as the widest (or, with cast_narrow, narrowest) of their types.
std::vector<TensorId> cast_all(Layer& l, Operands inputs) {
  const bool narrow = l.flag("cast_narrow", false);
  DType to = l.dtype_of(inputs[0]);
  for (TensorId x : inputs)
    if (const DType t = l.dtype_of(x); narrow ? dtype_bytes(t) < dtype_bytes(to) : dtype_bytes(t) > dtype_bytes(to)) to = t;
  std::vector<TensorId> results;
  for (TensorId x : inputs) results.push_back(l.cast(x, to));
  return results;
}

Result<TensorId> smooth_l1(Layer& l, TensorId x) {
  const double square = std::pow(l.number("scalar", 1.0), 2);
  if (!(square > 0)) return invalid_model("illegal scalar").expected("not 0").found(std::to_string(square));
  const TensorId size = l.unary("Abs", x), near = l.mul(l.mul(x, x), 0.5 * square), far = l.sub(size, 0.5 / square);
  return l.where(l.with_scalar("Less", size, 1.0 / square), near, far);
}

TensorId quadratic(Layer& l, TensorId x) {
  const TensorId inner = l.add(l.mul(x, l.number("a", 0)), l.number("b", 0));
  return l.add(l.mul(inner, x), l.number("c", 0));
}

Result<TensorId> divide_by_root_of_width(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to scale by it"));
  if (dims.empty() || dims.back() < 1) return shape_mismatch("the data has no last axis").found(to_string(dims));
  return l.div(x, std::sqrt(static_cast<double>(dims.back())));
}

Result<TensorId> where(Layer& l, TensorId condition, TensorId a, TensorId b) {
  agree(l, a, b);
  return l.rank_of(condition) && l.rank_of(a) ? select_rows(l, condition, a, b) : select(l, condition, a, b);
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"relu", same<"Relu">},
      {"sigmoid", same<"Sigmoid">},
      {"tanh", same<"Tanh">},
      {"softsign", same<"Softsign">},
      {"exp", same<"Exp">},
      {"log", same<"Log">},
      {"sqrt", same<"Sqrt">},
      {"abs|_abs", same<"Abs">},
      {"reciprocal", same<"Reciprocal">},
      {"negative", same<"Neg">},
      {"sin", same<"Sin">},
      {"cos", same<"Cos">},
      {"tan", same<"Tan">},
      {"arcsin", same<"Asin">},
      {"arccos", same<"Acos">},
      {"arctan", same<"Atan">},
      {"sinh", same<"Sinh">},
      {"cosh", same<"Cosh">},
      {"arcsinh", same<"Asinh">},
      {"arccosh", same<"Acosh">},
      {"arctanh", same<"Atanh">},
      {"erf", same<"Erf">},
      {"floor", same<"Floor">},
      {"ceil", same<"Ceil">},
      {"sign|_contrib_sign_ste", same<"Sign">},
      {"mish", same<"Mish">},
      {"square", square},
      {"rsqrt", rsqrt},
      {"cbrt", cube_root},
      {"rcbrt", reciprocal_cube_root},
      {"log2", log2},
      {"log10", log10},
      {"log1p", log1p},
      {"expm1", expm1},
      {"degrees", degrees},
      {"radians", radians},
      {"trunc|fix", truncate},
      {"round|_contrib_round_ste", round_half_away},
      {"rint", round_half_down},
      {"log_sigmoid", log_sigmoid},
      {"zeros_like", zeros_like},
      {"ones_like", ones_like},
      {"logical_not", logical_not},
      {"_contrib_isnan", test<"IsNaN">},
      {"_contrib_isinf", test<"IsInf">},
      {"gamma", same<"Gamma">},
      {"gammaln", same<"LogGamma">},
      {"digamma", same<"Digamma">},
      {"erfinv", same<"ErfInv">},
      {"elemwise_add|_add|_grad_add|broadcast_add|_npi_add|_plus|_Plus|broadcast_plus", two<ours<"Add">>},
      {"elemwise_sub|_sub|broadcast_sub|_npi_subtract|_minus|_Minus|broadcast_minus", two<ours<"Sub">>},
      {"elemwise_mul|_mul|_Mul|broadcast_mul|_npi_multiply", two<ours<"Mul">>},
      {"elemwise_div|_div|_Div|_scatter_elemwise_div|broadcast_div|_npi_true_divide", two<ours<"Div">>},
      {"_power|_Power|broadcast_power|_npi_power", two<ours<"Pow">>},
      {"_maximum|_Maximum|broadcast_maximum|_npi_maximum", two<ours<"Max">>},
      {"_minimum|_Minimum|broadcast_minimum|_npi_minimum", two<ours<"Min">>},
      {"_mod|_Mod|broadcast_mod|_npi_mod", two<modulo>},
      {"_hypot|_Hypot|broadcast_hypot", two<hypot>},
      {"_equal|_Equal|broadcast_equal|_npi_equal", two<compare<"Equal">>},
      {"_not_equal|_Not_Equal|broadcast_not_equal|_npi_not_equal", two<differ>},
      {"_greater|_Greater|broadcast_greater|_npi_greater", two<compare<"Greater">>},
      {"_greater_equal|_Greater_Equal|broadcast_greater_equal|_npi_greater_equal", two<compare<"GreaterOrEqual">>},
      {"_lesser|_Lesser|broadcast_lesser|_npi_less", two<compare<"Less">>},
      {"_lesser_equal|_Lesser_Equal|broadcast_lesser_equal|_npi_less_equal", two<compare<"LessOrEqual">>},
      {"_logical_and|_Logical_And|broadcast_logical_and", two<logic<"And">>},
      {"_logical_or|_Logical_Or|broadcast_logical_or", two<logic<"Or">>},
      {"_logical_xor|_Logical_Xor|broadcast_logical_xor", two<logic<"Xor">>},
      {"_npi_add_scalar|_plus_scalar|_PlusScalar|_scatter_plus_scalar", number<ours<"Add">>},
      {"_npi_subtract_scalar|_minus_scalar|_MinusScalar|_scatter_minus_scalar", number<ours<"Sub">>},
      {"_npi_rsubtract_scalar|_rminus_scalar|_RMinusScalar", number_first<ours<"Sub">>},
      {"_mul_scalar|_MulScalar|_npi_multiply_scalar", number<ours<"Mul">>},
      {"_div_scalar|_DivScalar|_npi_true_divide_scalar", number<ours<"Div">>},
      {"_rdiv_scalar|_RDivScalar|_npi_rtrue_divide_scalar", number_first<ours<"Div">>},
      {"_power_scalar|_PowerScalar|_npi_power_scalar", number<ours<"Pow">>},
      {"_rpower_scalar|_RPowerScalar|_npi_rpower_scalar", number_first<ours<"Pow">>},
      {"_maximum_scalar|_MaximumScalar|_npi_maximum_scalar", number<ours<"Max">>},
      {"_minimum_scalar|_MinimumScalar|_npi_minimum_scalar", number<ours<"Min">>},
      {"_mod_scalar|_ModScalar|_npi_mod_scalar", number<modulo>},
      {"_rmod_scalar|_RModScalar|_npi_rmod_scalar", number_first<modulo>},
      {"_hypot_scalar|_HypotScalar", number<hypot>},
      {"_equal_scalar|_EqualScalar|_npi_equal_scalar", number<compare<"Equal">>},
      {"_not_equal_scalar|_NotEqualScalar|_npi_not_equal_scalar", number<differ>},
      {"_greater_scalar|_GreaterScalar|_npi_greater_scalar", number<compare<"Greater">>},
      {"_greater_equal_scalar|_GreaterEqualScalar|_npi_greater_equal_scalar", number<compare<"GreaterOrEqual">>},
      {"_lesser_scalar|_LesserScalar|_npi_less_scalar", number<compare<"Less">>},
      {"_lesser_equal_scalar|_LesserEqualScalar|_npi_less_equal_scalar", number<compare<"LessOrEqual">>},
      {"_logical_and_scalar|_LogicalAndScalar", number<logic<"And">>},
      {"_logical_or_scalar|_LogicalOrScalar", number<logic<"Or">>},
      {"_logical_xor_scalar|_LogicalXorScalar", number<logic<"Xor">>},
      {"add_n|ElementWiseSum|_sum", add_n, {.inputs = {1}}},
      {"clip", clip},
      {"Cast|cast|amp_cast", cast},
      {"amp_multicast", cast_all, {.inputs = {1}}},
      {"smooth_l1", smooth_l1},
      {"_contrib_quadratic", quadratic},
      {"_contrib_div_sqrt_dim", divide_by_root_of_width},
      {"where|_npi_where", where},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
