// Comparisons, truth values, bits and choices between values.
#include <limits>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

template <OpName Op, bool Negated = false>
Result<Value> compare(Call& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  ORKNN_TRY_ASSIGN(DType t, c.common_type({&a, &b}));
  TensorId x = c.as(a, t), y = c.as(b, t);
  if (t == DType::Bool && Op.string() != "Equal") {
    x = c.cast(x, DType::Int32);
    y = c.cast(y, DType::Int32);
  }
  const TensorId result = c.emit(Op.string(), {x, y});
  return c.made(Negated ? c.emit("Not", {result}) : result);
}

template <OpName Op>
Result<Value> logical(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId a, c.as_bool(c.handle("self")));
  ORKNN_TRY_ASSIGN(const TensorId b, c.as_bool(c.handle("other")));
  return c.made(c.emit(Op.string(), {a, b}));
}
Result<Value> logical_not(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId a, c.as_bool(c.handle("self")));
  return c.made(c.emit("Not", {a}));
}

// Bitwise on integers, logical on truth values. A float input of the model turns out to hold truth values.
template <OpName Bitwise, OpName Logical>
Result<Value> bits(Call& c) {
  for (const char* name : {"self", "other"})
    if (c.value(name).is_tensor() && is_float(c.dtype(name))) ORKNN_TRY(c.as_bool(c.handle(name)).status());
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("other")}));
  if (is_float(t)) return invalid_model("bitwise operators work on integers and truth values").found(std::string(dtype_name(t)));
  return c.made(
      c.emit(t == DType::Bool ? Logical.string() : Bitwise.string(), {c.as(c.value("self"), t), c.as(c.value("other"), t)}));
}
Result<Value> bitwise_not(Call& c) {
  if (is_float(c.dtype("self"))) ORKNN_TRY(c.as_bool(c.handle("self")).status());
  return c.made(c.emit(c.dtype("self") == DType::Bool ? "Not" : "BitwiseNot", {c.tensor("self")}));
}
template <OpName Direction>
Result<Value> shift(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("other")}));
  if (is_float(t)) return invalid_model("shifts work on integers").found(std::string(dtype_name(t)));
  // Signed integers: a multiplication or a division that rounds down.
  const TensorId x = c.as(c.value("self"), t), power = c.emit("Pow", {c.int_scalar(2, t), c.as(c.value("other"), t)});
  if (Direction.string() == "LEFT") return c.made(c.mul(x, power));
  return c.made(c.div(c.sub(x, c.emit("Mod", {x, power})), power));
}

// --- questions
template <OpName Op>
Result<Value> float_test(Call& c) {
  if (!is_float(c.dtype("self"))) return c.made(c.full(c.dims("self"), 0, DType::Bool));
  return c.made(c.emit(Op.string(), {c.tensor("self")}));
}
template <OpName Attribute>
Result<Value> infinity_of_sign(Call& c) {
  if (!is_float(c.dtype("self"))) return c.made(c.full(c.dims("self"), 0, DType::Bool));
  return c.made(c.emit("IsInf", {c.tensor("self")}, {{Attribute.string(), int64_t{0}}}));
}
Result<Value> is_finite(Call& c) {
  if (!is_float(c.dtype("self"))) return c.made(c.full(c.dims("self"), 1, DType::Bool));
  return c.made(c.emit("Not", {c.emit("Or", {c.emit("IsInf", {c.tensor("self")}), c.emit("IsNaN", {c.tensor("self")})})}));
}
Result<Value> sign_bit(Call& c) {
  if (c.dtype("self") == DType::Bool) return c.made(c.full(c.dims("self"), 0, DType::Bool));
  return c.made(c.emit("Less", {c.tensor("self"), c.scalar(0, c.dtype("self"))}));
}
TensorId close(Call& c) {
  const TensorId a = c.cast(c.tensor("self"), DType::Float32), b = c.cast(c.tensor("other"), DType::Float32);
  const TensorId allowed =
      c.add(c.scalar(c.number("atol"), DType::Float32), c.mul(c.scalar(c.number("rtol"), DType::Float32), c.emit("Abs", {b})));
  return c.emit("LessOrEqual", {c.emit("Abs", {c.sub(a, b)}), allowed});
}
// Whether each element is one of the tests: all are compared with all, along a new last axis.
Result<Value> is_among(Call& c, const Value& elements, const Value& tests) {
  const bool is_inverted = c.flag("invert");
  const int64_t count = tests.is_tensor() ? ir::element_count(tests.tensor().dims) : 1;
  if (count == 0) return c.made(c.full(elements.is_tensor() ? elements.tensor().dims : ir::Dims{}, is_inverted, DType::Bool));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&elements, &tests}));
  const TensorId same = c.emit("Equal", {c.unsqueeze(c.as(elements, t), {-1}), c.reshape(c.as(tests, t), {count})});
  const TensorId any = c.cast(c.reduce("ReduceMax", c.cast(same, DType::Int32), {-1}, false), DType::Bool);
  return c.made(is_inverted ? c.emit("Not", {any}) : any);
}
Result<Value> tensor_in_tensor(Call& c) { return is_among(c, c.value("elements"), c.value("test_elements")); }
Result<Value> tensor_in_number(Call& c) { return is_among(c, c.value("elements"), c.value("test_element")); }
Result<Value> number_in_tensor(Call& c) { return is_among(c, c.value("element"), c.value("test_elements")); }
Result<Value> is_close(Call& c) { return c.made(close(c)); }

// --- choices
Result<Value> where(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId condition, c.as_bool(c.handle("condition")));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("other")}));
  return c.made(c.where(condition, c.as(c.value("self"), t), c.as(c.value("other"), t)));
}
Result<Value> masked_fill(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId mask, c.as_bool(c.handle("mask")));
  return c.made(c.where(mask, c.as(c.value("value"), c.dtype("self")), c.tensor("self")));
}
}  // namespace

std::span<const Row> compare_rows() {
  static constexpr Row kRows[] = {
      {"eq(Tensor self, operand other)", compare<"Equal">},
      {"ne(Tensor self, operand other)", compare<"Equal", true>},
      {"lt(Tensor self, operand other)", compare<"Less">},
      {"le(Tensor self, operand other)", compare<"LessOrEqual">},
      {"gt(Tensor self, operand other)", compare<"Greater">},
      {"ge(Tensor self, operand other)", compare<"GreaterOrEqual">},
      {"not_equal(Tensor self, operand other)", compare<"Equal", true>},
      {"less(Tensor self, operand other)", compare<"Less">},
      {"less_equal(Tensor self, operand other)", compare<"LessOrEqual">},
      {"greater(Tensor self, operand other)", compare<"Greater">},
      {"greater_equal(Tensor self, operand other)", compare<"GreaterOrEqual">},
      {"logical_and(Tensor self, Tensor other)", logical<"And">},
      {"logical_or(Tensor self, Tensor other)", logical<"Or">},
      {"logical_xor(Tensor self, Tensor other)", logical<"Xor">},
      {"logical_not(Tensor self)", logical_not},
      {"__not__(Tensor self)", logical_not},
      {"__and__(Tensor self, operand other)", bits<"BitwiseAnd", "And">},
      {"__or__(Tensor self, operand other)", bits<"BitwiseOr", "Or">},
      {"__xor__(Tensor self, operand other)", bits<"BitwiseXor", "Xor">},
      {"__iand__(Tensor self, operand other)", bits<"BitwiseAnd", "And">},
      {"__ior__(Tensor self, operand other)", bits<"BitwiseOr", "Or">},
      {"bitwise_and(operand self, operand other)", bits<"BitwiseAnd", "And">},
      {"bitwise_or(operand self, operand other)", bits<"BitwiseOr", "Or">},
      {"bitwise_xor(operand self, operand other)", bits<"BitwiseXor", "Xor">},
      {"bitwise_not(Tensor self)", bitwise_not},
      {"bitwise_left_shift(Tensor self, operand other)", shift<"LEFT">},
      {"bitwise_right_shift(Tensor self, operand other)", shift<"RIGHT">},
      {"__lshift__(Tensor self, operand other)", shift<"LEFT">},
      {"__rshift__(Tensor self, operand other)", shift<"RIGHT">},
      {"isnan(Tensor self)", float_test<"IsNaN">},
      {"isinf(Tensor self)", float_test<"IsInf">},
      {"isposinf(Tensor self)", infinity_of_sign<"detect_negative">},
      {"isneginf(Tensor self)", infinity_of_sign<"detect_positive">},
      {"isfinite(Tensor self)", is_finite},
      {"signbit(Tensor self)", sign_bit},
      {"isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False)", tensor_in_tensor},
      {"isin(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False)", tensor_in_number},
      {"isin(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False)", number_in_tensor},
      {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", is_close},
      {"where(Tensor condition, operand self, operand other)", where},
      {"masked_fill(Tensor self, Tensor mask, operand value)", masked_fill},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
