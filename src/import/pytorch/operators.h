// The tables of operators, one per family, and forms that many of their rows have. Adding an operator is one row, or a row and a
// small function.
#pragma once

#include "import/lower/functions.h"
#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

std::span<const Row> python_rows();  // numbers, strings, questions about tensors: computed while importing
std::span<const Row> container_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> activation_rows();
std::span<const Row> comparison_rows();
std::span<const Row> reduction_rows();
std::span<const Row> shape_rows();  // views and copies of other shape
std::span<const Row> join_rows();   // cat, stack, pad, roll, ...
std::span<const Row> indexing_rows();
std::span<const Row> creation_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pooling_rows();
std::span<const Row> normalization_rows();
std::span<const Row> matrix_rows();
std::span<const Row> attention_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> resize_rows();
std::span<const Row> quantize_rows();   // to and from quantized tensors
std::span<const Row> packed_rows();     // quantized layers with packed weights
std::span<const Row> quantized_rows();  // other quantized layers
std::span<const Row> detection_rows();  // torchvision::
std::span<const Row> signal_rows();
std::span<const Row> loss_rows();

// --- forms of rows
using UnaryFunction = ir::TensorId (*)(Emitter&, ir::TensorId);
using BinaryFunction = ir::TensorId (*)(Emitter&, ir::TensorId, ir::TensorId);

// Our operator, or a composed function, of the operands in their common type.
template <OpName Op>
Result<ir::TensorId> promoted(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  return c.emit_same(Op.chars, x);
}
template <BinaryFunction F>
Result<ir::TensorId> promoted(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  return F(c, x[0], x[1]);
}
// The same with integers made float32 first.
template <OpName Op>
Result<ir::TensorId> floats(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted(true));
  return c.emit_same(Op.chars, x);
}
template <UnaryFunction F>
Result<ir::TensorId> floats(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted(true));
  return F(c, x[0]);
}
template <BinaryFunction F>
Result<ir::TensorId> floats(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted(true));
  return F(c, x[0], x[1]);
}

// What another lowering makes of the call, as a tensor.
template <auto F>
Result<ir::TensorId> result_of(Call& c) {
  static const Lowering<Call> lower(F);
  ORKNN_TRY_ASSIGN(const Value y, lower(c));
  ORKNN_ASSERT(y.is_tensor(), "the lowering makes one tensor");
  return y.tensor().id;
}
// The same among further results that only training needs.
template <auto F, size_t More>
Result<Value> with_unused(Call& c) {
  ORKNN_TRY_ASSIGN(const ir::TensorId y, result_of<F>(c));
  std::vector<Value> results(1 + More, Value::uninitialized());
  ORKNN_TRY_ASSIGN(results[0], c.made(y));
  return c.made(std::move(results));
}
template <auto F>
Result<ir::TensorId> relu_of(Call& c) {
  ORKNN_TRY_ASSIGN(const ir::TensorId y, result_of<F>(c));
  return c.unary("Relu", y);
}
// Where the elements of a diagonal lie in a matrix laid out row by row.
Result<std::vector<int64_t>> diagonal_positions(int64_t rows, int64_t columns, int64_t offset);
// Activations that quantized layers have too.
template <OpName Op>
ir::TensorId stated_alpha(Call& c, ir::TensorId x) {
  return with_alpha<Op>(c, x, c.number("alpha"));
}
ir::TensorId leaky_relu(Call& c, ir::TensorId x);
ir::TensorId prelu(Call& c, ir::TensorId x, ir::TensorId weight);
// An argument handed on.
inline Value itself(Call& c) { return c.value("self"); }

}  // namespace orknn::importer::pytorch
