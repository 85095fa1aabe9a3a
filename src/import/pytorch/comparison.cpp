// Comparisons, truth values, bits and choices between values.
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

template <OpName Op, bool Negated = false>
Result<TensorId> compare(Call& c) {
  ORKNN_TRY_ASSIGN(auto x, c.promoted());
  if (c.dtype_of(x[0]) == DType::Bool && Op.string() != "Equal")
    for (TensorId& id : x) id = c.cast(id, DType::Int32);
  const TensorId result = c.binary(Op.chars, x[0], x[1]);
  return Negated ? c.unary("Not", result) : result;
}

template <OpName Op>
Result<TensorId> logical(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId a, c.as_bool("self"));
  ORKNN_TRY_ASSIGN(const TensorId b, c.as_bool("other"));
  return c.binary(Op.chars, a, b);
}
Result<TensorId> logical_not(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId a, c.as_bool("self"));
  return c.unary("Not", a);
}

// Bitwise on integers, logical on truth values. A float input of the model becomes one of truth values.
template <OpName Bitwise, OpName Logical>
Result<TensorId> bits(Call& c) {
  for (const char* name : {"self", "other"})
    if (c.value(name).is_tensor() && is_float(c.dtype(name))) ORKNN_TRY(c.as_bool(name).status());
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  const DType t = c.dtype_of(x[0]);
  if (is_float(t)) return invalid_model("bitwise operators work on integers and truth values").found(std::string(dtype_name(t)));
  return c.binary(t == DType::Bool ? Logical.chars : Bitwise.chars, x[0], x[1]);
}
Result<TensorId> bitwise_not(Call& c, TensorId x) {
  if (is_float(c.dtype())) ORKNN_TRY(c.as_bool("self").status());
  return c.unary(c.dtype() == DType::Bool ? "Not" : "BitwiseNot", x);
}
// Signed integers: a multiplication or a division that rounds down.
template <bool Left>
Result<TensorId> shift(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  const DType t = c.dtype_of(x[0]);
  if (is_float(t)) return invalid_model("shifts work on integers").found(std::string(dtype_name(t)));
  return c.emit("BitShift", x, {{"direction", std::string(Left ? "LEFT" : "RIGHT")}});
}

// --- questions
// What holds for no integer.
TensorId never(Call& c) { return c.full(c.dims(), 0, DType::Bool); }
template <OpName Op>
TensorId float_test(Call& c, TensorId x) {
  return is_float(c.dtype()) ? c.unary(Op.chars, x) : never(c);
}
template <OpName Attribute>
TensorId infinity_of_sign(Call& c, TensorId x) {
  return is_float(c.dtype()) ? c.emit("IsInf", {x}, {{Attribute.string(), int64_t{0}}}) : never(c);
}
TensorId finite_test(Call& c, TensorId x) { return is_float(c.dtype()) ? is_finite(c, x) : c.full(c.dims(), 1, DType::Bool); }
TensorId sign_bit(Call& c, TensorId x) {
  if (c.dtype() == DType::Bool) return never(c);
  // Zeros have signs too, which only CopySign sees.
  return c.with_scalar("Less", is_float(c.dtype()) ? c.binary("CopySign", c.scalar_like(x, 1), x) : x, 0);
}
TensorId is_close(Call& c, TensorId a, TensorId b) {
  a = c.cast(a, DType::Float32), b = c.cast(b, DType::Float32);
  const TensorId allowed = c.add(c.mul(c.unary("Abs", b), c.number("rtol")), c.number("atol"));
  return c.binary("LessOrEqual", c.unary("Abs", c.sub(a, b)), allowed);
}
// Whether each element is one of the tests: all are compared with all, along a new last axis.
Result<TensorId> is_among(Call& c, TensorId elements, TensorId tests) {
  const bool is_inverted = c.flag("invert");
  const auto dims = c.dims_of(elements), test_dims = c.dims_of(tests);
  const int64_t count = ir::element_count(*test_dims);
  if (count == 0) return c.full(*dims, is_inverted, DType::Bool);
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  const TensorId equal = c.binary("Equal", c.unsqueeze(x[0], {-1}), c.reshape(x[1], {count}));
  const TensorId any = c.cast(c.reduce("ReduceMax", c.cast(equal, DType::Int32), {-1}, false), DType::Bool);
  return is_inverted ? c.unary("Not", any) : any;
}

// --- choices
Result<TensorId> where(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId condition, c.as_bool("condition"));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({"self", "other"}));
  return c.where(condition, c.as("self", t), c.as("other", t));
}
Result<TensorId> masked_fill(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId mask, c.as_bool("mask"));
  return c.where(mask, c.as("value", c.dtype()), c.tensor("self"));
}
}  // namespace

std::span<const Row> comparison_rows() {
  static const Row rows[] = {
      {"eq(Tensor self, operand other)", compare<"Equal">},
      {"ne|not_equal(Tensor self, operand other)", compare<"Equal", true>},
      {"lt|less(Tensor self, operand other)", compare<"Less">},
      {"le|less_equal(Tensor self, operand other)", compare<"LessOrEqual">},
      {"gt|greater(Tensor self, operand other)", compare<"Greater">},
      {"ge|greater_equal(Tensor self, operand other)", compare<"GreaterOrEqual">},
      {"logical_and(Tensor self, Tensor other)", logical<"And">},
      {"logical_or(Tensor self, Tensor other)", logical<"Or">},
      {"logical_xor(Tensor self, Tensor other)", logical<"Xor">},
      {"logical_not|__not__(Tensor self)", logical_not},
      {"__and__|__iand__(Tensor self, operand other)", bits<"BitwiseAnd", "And">},
      {"__or__|__ior__(Tensor self, operand other)", bits<"BitwiseOr", "Or">},
      {"__xor__(Tensor self, operand other)", bits<"BitwiseXor", "Xor">},
      {"bitwise_and(operand self, operand other)", bits<"BitwiseAnd", "And">},
      {"bitwise_or(operand self, operand other)", bits<"BitwiseOr", "Or">},
      {"bitwise_xor(operand self, operand other)", bits<"BitwiseXor", "Xor">},
      {"bitwise_not(Tensor self)", bitwise_not},
      {"bitwise_left_shift|__lshift__(Tensor self, operand other)", shift<true>},
      {"bitwise_right_shift|__rshift__(Tensor self, operand other)", shift<false>},
      {"isnan(Tensor self)", float_test<"IsNaN">},
      {"isinf(Tensor self)", float_test<"IsInf">},
      {"isposinf(Tensor self)", infinity_of_sign<"detect_negative">},
      {"isneginf(Tensor self)", infinity_of_sign<"detect_positive">},
      {"isfinite(Tensor self)", finite_test},
      {"signbit(Tensor self)", sign_bit},
      {"isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False)", is_among},
      {"isin(Tensor elements, operand test_element, *, bool assume_unique=False, bool invert=False)", is_among},
      {"isin(operand element, Tensor test_elements, *, bool assume_unique=False, bool invert=False)", is_among},
      {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", is_close},
      {"where(Tensor condition, operand self, operand other)", where},
      {"masked_fill(Tensor self, Tensor mask, operand value)", masked_fill},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
