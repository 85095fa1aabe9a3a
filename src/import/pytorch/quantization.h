// Quantized tensors in the graph: real values that went through QuantizeLinear and DequantizeLinear.
#pragma once

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {

ir::TensorId quantize_dequantize(Call& c, ir::TensorId x, const Quantization& q);
// Positive scales, zero points within the type.
Status check_quantization(const Quantization& q);
// The quantization of `self`; `as_a_whole`: another than one scale for the whole tensor is an error.
Result<Quantization> quantization_of(Call& c, bool as_a_whole);
// A new quantized tensor.
Result<Value> made_quantized(Call& c, ir::TensorId x, Quantization q);
// Operators that PyTorch has for quantized tensors too give a tensor quantized like their first one: the result of such a call,
// quantized if need be.
Result<Value> quantized_like_input(Call& c, const Value& result);

// The arguments scale and zero_point of a layer.
Result<Quantization> output_quantization(Call& c, DType dtype);
// The result of a layer, with its scale and zero point and the element type of argument `self`.
Result<Value> quantized_result(Call& c, ir::TensorId y);
// What another lowering makes of the call, quantized like that.
template <auto F>
Result<Value> requantized(Call& c) {
  ORKNN_TRY_ASSIGN(const ir::TensorId y, result_of<F>(c));
  return quantized_result(c, y);
}
// Quantized and back by the range of the data, which decides when the network runs.
ir::TensorId dynamically_quantized(Call& c, ir::TensorId x, double levels);

}  // namespace orknn::importer::pytorch
