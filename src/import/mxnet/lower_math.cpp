// Element-wise functions: of one tensor, of two, of a tensor and a number. Results of comparisons have the type of their
// operands.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- one operand

TensorId truncated(Layer& l, TensorId x) { return l.binary("Mul", l.unary("Sign", x), l.unary("Floor", l.unary("Abs", x))); }
TensorId cube_root(Layer& l, TensorId x) {
  return l.binary("Mul", l.unary("Sign", x), l.with_scalar("Pow", l.unary("Abs", x), 1.0 / 3.0));
}

using UnaryFunction = TensorId (*)(Layer&, TensorId);

TensorId compute_unary(Layer& l, std::string_view op, TensorId x) {
  static const std::unordered_map<std::string_view, std::string_view> direct{
      {"relu", "Relu"},     {"sigmoid", "Sigmoid"},
      {"tanh", "Tanh"},     {"softsign", "Softsign"},
      {"exp", "Exp"},       {"log", "Log"},
      {"sqrt", "Sqrt"},     {"abs", "Abs"},
      {"_abs", "Abs"},      {"reciprocal", "Reciprocal"},
      {"negative", "Neg"},  {"sin", "Sin"},
      {"cos", "Cos"},       {"tan", "Tan"},
      {"arcsin", "Asin"},   {"arccos", "Acos"},
      {"arctan", "Atan"},   {"sinh", "Sinh"},
      {"cosh", "Cosh"},     {"arcsinh", "Asinh"},
      {"arccosh", "Acosh"}, {"arctanh", "Atanh"},
      {"erf", "Erf"},       {"floor", "Floor"},
      {"ceil", "Ceil"},     {"sign", "Sign"},
      {"mish", "Mish"},     {"_contrib_sign_ste", "Sign"},
  };
  static const std::unordered_map<std::string_view, UnaryFunction> composed{
      {"square", [](Layer& k, TensorId v) { return k.binary("Mul", v, v); }},
      {"rsqrt", [](Layer& k, TensorId v) { return k.unary("Reciprocal", k.unary("Sqrt", v)); }},
      {"cbrt", cube_root},
      {"rcbrt", [](Layer& k, TensorId v) { return k.unary("Reciprocal", cube_root(k, v)); }},
      {"log2", [](Layer& k, TensorId v) { return k.with_scalar("Mul", k.unary("Log", v), std::numbers::log2e); }},
      {"log10", [](Layer& k, TensorId v) { return k.with_scalar("Mul", k.unary("Log", v), std::numbers::log10e); }},
      {"log1p", [](Layer& k, TensorId v) { return k.unary("Log", k.with_scalar("Add", v, 1.0)); }},
      {"expm1", [](Layer& k, TensorId v) { return k.with_scalar("Sub", k.unary("Exp", v), 1.0); }},
      {"degrees", [](Layer& k, TensorId v) { return k.with_scalar("Mul", v, 180.0 / std::numbers::pi); }},
      {"radians", [](Layer& k, TensorId v) { return k.with_scalar("Mul", v, std::numbers::pi / 180.0); }},
      {"trunc", truncated},
      {"fix", truncated},
      // Halves go away from zero in `round`, down in `rint`.
      {"round",
       [](Layer& k, TensorId v) {
         return k.binary("Mul", k.unary("Sign", v), k.unary("Floor", k.with_scalar("Add", k.unary("Abs", v), 0.5)));
       }},
      {"rint", [](Layer& k, TensorId v) { return k.unary("Ceil", k.with_scalar("Sub", v, 0.5)); }},
      {"log_sigmoid", [](Layer& k, TensorId v) { return k.unary("Neg", k.unary("Softplus", k.unary("Neg", v))); }},
      {"zeros_like",
       [](Layer& k, TensorId v) {
         return k.emit("Expand", {k.add_scalar("zero", 0.0, k.dtype_of(v)), k.unary("Shape", v)});
       }},
      {"ones_like",
       [](Layer& k, TensorId v) {
         return k.emit("Expand", {k.add_scalar("one", 1.0, k.dtype_of(v)), k.unary("Shape", v)});
       }},
      {"logical_not", [](Layer& k, TensorId v) { return k.cast(k.unary("Not", k.cast(v, DType::Bool)), k.dtype_of(v)); }},
      {"_contrib_isnan", [](Layer& k, TensorId v) { return k.cast(k.unary("IsNaN", v), k.dtype_of(v)); }},
      {"_contrib_isinf", [](Layer& k, TensorId v) { return k.cast(k.unary("IsInf", v), k.dtype_of(v)); }},
      {"_contrib_round_ste",
       [](Layer& k, TensorId v) {
         return k.binary("Mul", k.unary("Sign", v), k.unary("Floor", k.with_scalar("Add", k.unary("Abs", v), 0.5)));
       }},
  };
  if (const auto it = direct.find(op); it != direct.end()) return l.unary(it->second, x);
  const auto it = composed.find(op);
  ORKNN_ASSERT(it != composed.end(), "every row of this table has a function");
  return it->second(l, x);
}

Status unary(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(compute_unary(l, l.op(), x));
  return {};
}

Status no_function(Layer& l) {
  return unsupported("no device function computes '" + l.op() + "'").hint("cut the model before it");
}

// --- two operands

enum class Kind { Arithmetic, Compare, Logic, Mod, Hypot, NotEqual };
struct BinaryForm {
  Kind kind;
  std::string_view op;
};

// The name without "broadcast_", "elemwise_", leading underscore, "_scalar" and capitals: "add", "rminus", "lesser_equal".
const std::unordered_map<std::string_view, BinaryForm>& binary_forms() {
  static const std::unordered_map<std::string_view, BinaryForm> forms{
      {"add", {Kind::Arithmetic, "Add"}},
      {"plus", {Kind::Arithmetic, "Add"}},
      {"sub", {Kind::Arithmetic, "Sub"}},
      {"minus", {Kind::Arithmetic, "Sub"}},
      {"mul", {Kind::Arithmetic, "Mul"}},
      {"div", {Kind::Arithmetic, "Div"}},
      {"power", {Kind::Arithmetic, "Pow"}},
      {"maximum", {Kind::Arithmetic, "Max"}},
      {"minimum", {Kind::Arithmetic, "Min"}},
      {"mod", {Kind::Mod, ""}},
      {"hypot", {Kind::Hypot, ""}},
      {"equal", {Kind::Compare, "Equal"}},
      {"not_equal", {Kind::NotEqual, "Equal"}},
      {"greater", {Kind::Compare, "Greater"}},
      {"greater_equal", {Kind::Compare, "GreaterOrEqual"}},
      {"lesser", {Kind::Compare, "Less"}},
      {"lesser_equal", {Kind::Compare, "LessOrEqual"}},
      {"logical_and", {Kind::Logic, "And"}},
      {"logical_or", {Kind::Logic, "Or"}},
      {"logical_xor", {Kind::Logic, "Xor"}},
  };
  return forms;
}

// a - floor(a / b) * b: the sign of the divisor, unlike C. Division by zero gives zero.
TensorId modulo(Layer& l, TensorId a, TensorId b) {
  const DType dtype = l.dtype_of(a);
  if (is_integer(dtype)) return l.binary("Mod", a, b);
  const TensorId rest = l.binary("Sub", a, l.binary("Mul", l.unary("Floor", l.binary("Div", a, b)), b));
  if (const TensorData* divisor = l.constant_of(b); divisor && divisor->count() == 1 && to_doubles(divisor->view())[0] != 0)
    return rest;
  const TensorId zero = l.add_scalar("zero", 0.0, dtype);
  return l.emit("Where", {l.binary("Equal", b, zero), zero, rest});
}

TensorId combine(Layer& l, const BinaryForm& form, TensorId a, TensorId b) {
  const DType dtype = l.dtype_of(a);
  switch (form.kind) {
    case Kind::Arithmetic: return l.binary(form.op, a, b);
    case Kind::Compare: return l.cast(l.binary(form.op, a, b), dtype);
    case Kind::NotEqual: return l.cast(l.unary("Not", l.binary(form.op, a, b)), dtype);
    case Kind::Logic: return l.cast(l.binary(form.op, l.cast(a, DType::Bool), l.cast(b, DType::Bool)), dtype);
    case Kind::Mod: return modulo(l, a, b);
    case Kind::Hypot: return l.unary("Sqrt", l.binary("Add", l.binary("Mul", a, a), l.binary("Mul", b, b)));
  }
  return a;
}

// Operands of one type: the wider float, or the float.
void agree(Layer& l, TensorId& a, TensorId& b) {
  const DType left = l.dtype_of(a), right = l.dtype_of(b);
  if (left == right) return;
  const bool take_right = is_float(right) && (!is_float(left) || dtype_bytes(right) > dtype_bytes(left));
  (take_right ? a : b) = l.cast(take_right ? a : b, take_right ? right : left);
}

std::string plain_name(std::string_view op) {
  std::string name;
  for (char c : op) {  // "_RMinusScalar" and "_rminus_scalar" alike
    if (c >= 'A' && c <= 'Z') {
      if (!name.empty() && name.back() != '_') name += '_';
      name += static_cast<char>(c - 'A' + 'a');
    } else {
      name += c;
    }
  }
  for (std::string_view prefix : {"_npi_", "broadcast_", "elemwise_", "_scatter_elemwise_", "_scatter_", "_grad_", "_"})
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  if (name.ends_with("_scalar")) name.resize(name.size() - 7);
  if (name.starts_with("r_")) name.erase(1, 1);
  if (name == "subtract" || name == "rsubtract") return name[0] == 'r' ? "rsub" : "sub";
  if (name == "multiply") return "mul";
  if (name == "true_divide" || name == "rtrue_divide") return name[0] == 'r' ? "rdiv" : "div";
  if (name == "less") return "lesser";
  if (name == "less_equal") return "lesser_equal";
  return name;
}

Status binary(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId a, l.need(0));
  ORKNN_TRY_ASSIGN(TensorId b, l.need(1));
  const auto form = binary_forms().find(plain_name(l.op()));
  ORKNN_ASSERT(form != binary_forms().end(), "every row of this table has a form");
  agree(l, a, b);
  l.set_output(combine(l, form->second, a, b));
  return {};
}

Status scalar(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  std::string name = plain_name(l.op());
  const double value = l.number("scalar", l.op().starts_with("_npi_") ? 1.0 : 0.0);
  const bool swapped = name != "r" && name.starts_with('r') && binary_forms().contains(std::string_view(name).substr(1));
  if (swapped) name.erase(0, 1);
  const auto form = binary_forms().find(name);
  ORKNN_ASSERT(form != binary_forms().end(), "every row of this table has a form");
  if (!is_float(l.dtype_of(x)) && value != std::floor(value)) x = l.cast(x, DType::Float32);
  const TensorId number = l.add_scalar("scalar", value, l.dtype_of(x));
  l.set_output(swapped ? combine(l, form->second, number, x) : combine(l, form->second, x, number));
  return {};
}

// --- the rest

Status add_n(Layer& l) {
  std::vector<TensorId> parts;
  for (size_t i = 0; i < l.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId part, l.need(i));
    parts.push_back(part);
  }
  if (parts.empty()) return invalid_model("a sum of nothing");
  l.set_output(parts.size() == 1   ? l.unary("Identity", parts[0])
               : parts.size() == 2 ? l.binary("Add", parts[0], parts[1])
                                   : l.emit("Sum", parts));
  return {};
}

Status clip(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const DType dtype = l.dtype_of(x);
  const TensorId low = l.has("a_min") ? l.add_scalar("min", l.number("a_min", 0), dtype) : TensorId{};
  const TensorId high = l.has("a_max") ? l.add_scalar("max", l.number("a_max", 0), dtype) : TensorId{};
  l.set_output(l.emit("Clip", {x, low, high}));
  return {};
}

Status cast(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const DType to = l.dtype("dtype", l.dtype_of(x));
  l.set_output(l.dtype_of(x) == to ? l.unary("Identity", x) : l.cast(x, to));
  return {};
}

// Every input as the widest (or, with cast_narrow, narrowest) of their types.
Status cast_all(Layer& l) {
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < l.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, l.need(i));
    inputs.push_back(x);
  }
  if (inputs.empty()) return invalid_model("an operator without inputs");
  const bool narrow = l.flag("cast_narrow", false);
  DType to = l.dtype_of(inputs[0]);
  for (TensorId x : inputs)
    if (const DType t = l.dtype_of(x); narrow ? dtype_bytes(t) < dtype_bytes(to) : dtype_bytes(t) > dtype_bytes(to)) to = t;
  for (size_t i = 0; i < inputs.size(); ++i) l.set_output(i, l.cast(inputs[i], to));
  return {};
}

Status smooth_l1(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const double square = std::pow(l.number("scalar", 1.0), 2);
  if (!(square > 0)) return invalid_model("illegal scalar").expected("not 0").found(std::to_string(square));
  const TensorId size = l.unary("Abs", x), near = l.with_scalar("Mul", l.binary("Mul", x, x), 0.5 * square),
                 far = l.with_scalar("Sub", size, 0.5 / square);
  l.set_output(l.emit("Where", {l.with_scalar("Less", size, 1.0 / square), near, far}));
  return {};
}

Status quadratic(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const TensorId inner = l.with_scalar("Add", l.with_scalar("Mul", x, l.number("a", 0)), l.number("b", 0));
  l.set_output(l.with_scalar("Add", l.binary("Mul", inner, x), l.number("c", 0)));
  return {};
}

Status divide_by_root_of_width(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to scale by it"));
  if (dims.empty() || dims.back() < 1) return shape_mismatch("the data has no last axis").found(to_string(dims));
  l.set_output(l.with_scalar("Div", x, std::sqrt(static_cast<double>(dims.back()))));
  return {};
}

Status where(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId condition, l.need(0));
  ORKNN_TRY_ASSIGN(TensorId a, l.need(1));
  ORKNN_TRY_ASSIGN(TensorId b, l.need(2));
  agree(l, a, b);
  condition = l.cast(condition, DType::Bool);
  const auto rank = l.rank_of(condition), data_rank = l.rank_of(a);
  if (rank && data_rank && *rank == 1 && *data_rank > 1) {  // one flag per row
    std::vector<int64_t> shape(static_cast<size_t>(*data_rank), 1);
    shape[0] = -1;
    condition = l.reshape(condition, shape);
  }
  l.set_output(l.emit("Where", {condition, a, b}));
  return {};
}
}  // namespace

std::span<const Row> math_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list{
        {"add_n", add_n},
        {"ElementWiseSum", add_n},
        {"_sum", add_n},
        {"clip", clip},
        {"Cast", cast},
        {"cast", cast},
        {"amp_cast", cast},
        {"amp_multicast", cast_all},
        {"smooth_l1", smooth_l1},
        {"_contrib_quadratic", quadratic},
        {"_contrib_div_sqrt_dim", divide_by_root_of_width},
        {"where", where},
        {"_npi_where", where},
    };
    for (std::string_view op : {"relu",
                                "sigmoid",
                                "tanh",
                                "softsign",
                                "exp",
                                "log",
                                "sqrt",
                                "abs",
                                "_abs",
                                "reciprocal",
                                "negative",
                                "sin",
                                "cos",
                                "tan",
                                "arcsin",
                                "arccos",
                                "arctan",
                                "sinh",
                                "cosh",
                                "arcsinh",
                                "arccosh",
                                "arctanh",
                                "erf",
                                "floor",
                                "ceil",
                                "sign",
                                "mish",
                                "_contrib_sign_ste",
                                "square",
                                "rsqrt",
                                "cbrt",
                                "rcbrt",
                                "log2",
                                "log10",
                                "log1p",
                                "expm1",
                                "degrees",
                                "radians",
                                "trunc",
                                "fix",
                                "round",
                                "rint",
                                "log_sigmoid",
                                "zeros_like",
                                "ones_like",
                                "logical_not",
                                "_contrib_isnan",
                                "_contrib_isinf",
                                "_contrib_round_ste"})
      list.push_back({op, unary});
    for (std::string_view op : {"gamma", "gammaln", "digamma", "erfinv"}) list.push_back({op, no_function});
    for (std::string_view op : {"elemwise_add",
                                "elemwise_sub",
                                "elemwise_mul",
                                "elemwise_div",
                                "_add",
                                "_sub",
                                "_plus",
                                "_Plus",
                                "_minus",
                                "_Minus",
                                "_mul",
                                "_Mul",
                                "_div",
                                "_Div",
                                "_grad_add",
                                "_mod",
                                "_Mod",
                                "_power",
                                "_Power",
                                "_maximum",
                                "_Maximum",
                                "_minimum",
                                "_Minimum",
                                "_hypot",
                                "_Hypot",
                                "_equal",
                                "_Equal",
                                "_not_equal",
                                "_Not_Equal",
                                "_greater",
                                "_Greater",
                                "_greater_equal",
                                "_Greater_Equal",
                                "_lesser",
                                "_Lesser",
                                "_lesser_equal",
                                "_Lesser_Equal",
                                "_logical_and",
                                "_Logical_And",
                                "_logical_or",
                                "_Logical_Or",
                                "_logical_xor",
                                "_Logical_Xor",
                                "_scatter_elemwise_div",
                                "broadcast_add",
                                "broadcast_plus",
                                "broadcast_sub",
                                "broadcast_minus",
                                "broadcast_mul",
                                "broadcast_div",
                                "broadcast_mod",
                                "broadcast_power",
                                "broadcast_maximum",
                                "broadcast_minimum",
                                "broadcast_hypot",
                                "broadcast_equal",
                                "broadcast_not_equal",
                                "broadcast_greater",
                                "broadcast_greater_equal",
                                "broadcast_lesser",
                                "broadcast_lesser_equal",
                                "broadcast_logical_and",
                                "broadcast_logical_or",
                                "broadcast_logical_xor",
                                "_npi_add",
                                "_npi_subtract",
                                "_npi_multiply",
                                "_npi_true_divide",
                                "_npi_power",
                                "_npi_maximum",
                                "_npi_minimum",
                                "_npi_mod",
                                "_npi_equal",
                                "_npi_not_equal",
                                "_npi_greater",
                                "_npi_greater_equal",
                                "_npi_less",
                                "_npi_less_equal"})
      list.push_back({op, binary});
    for (std::string_view op : {"_plus_scalar",
                                "_PlusScalar",
                                "_minus_scalar",
                                "_MinusScalar",
                                "_rminus_scalar",
                                "_RMinusScalar",
                                "_mul_scalar",
                                "_MulScalar",
                                "_div_scalar",
                                "_DivScalar",
                                "_rdiv_scalar",
                                "_RDivScalar",
                                "_mod_scalar",
                                "_ModScalar",
                                "_rmod_scalar",
                                "_RModScalar",
                                "_power_scalar",
                                "_PowerScalar",
                                "_rpower_scalar",
                                "_RPowerScalar",
                                "_maximum_scalar",
                                "_MaximumScalar",
                                "_minimum_scalar",
                                "_MinimumScalar",
                                "_hypot_scalar",
                                "_HypotScalar",
                                "_equal_scalar",
                                "_EqualScalar",
                                "_not_equal_scalar",
                                "_NotEqualScalar",
                                "_greater_scalar",
                                "_GreaterScalar",
                                "_greater_equal_scalar",
                                "_GreaterEqualScalar",
                                "_lesser_scalar",
                                "_LesserScalar",
                                "_lesser_equal_scalar",
                                "_LesserEqualScalar",
                                "_logical_and_scalar",
                                "_LogicalAndScalar",
                                "_logical_or_scalar",
                                "_LogicalOrScalar",
                                "_logical_xor_scalar",
                                "_LogicalXorScalar",
                                "_scatter_plus_scalar",
                                "_scatter_minus_scalar",
                                "_npi_add_scalar",
                                "_npi_subtract_scalar",
                                "_npi_rsubtract_scalar",
                                "_npi_multiply_scalar",
                                "_npi_true_divide_scalar",
                                "_npi_rtrue_divide_scalar",
                                "_npi_power_scalar",
                                "_npi_rpower_scalar",
                                "_npi_maximum_scalar",
                                "_npi_minimum_scalar",
                                "_npi_mod_scalar",
                                "_npi_rmod_scalar",
                                "_npi_equal_scalar",
                                "_npi_not_equal_scalar",
                                "_npi_greater_scalar",
                                "_npi_greater_equal_scalar",
                                "_npi_less_scalar",
                                "_npi_less_equal_scalar"})
      list.push_back({op, scalar});
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::mxnet
