// Quantized tensors in the graph: real values that went through QuantizeLinear and DequantizeLinear.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

ir::TensorId quantize_dequantize(Call& c, ir::TensorId x, const Quantization& q);
// Positive scales, zero points within the type.
Status check_quantization(const Quantization& q);
// A new quantized tensor.
Result<Value> made_quantized(Call& c, ir::TensorId x, Quantization q);
// Operators that PyTorch has for quantized tensors too answer with a tensor quantized like their first one: the result of such a
// call, quantized if need be.
Result<Value> quantized_like_input(Call& c, const Value& result);

}  // namespace orknn::importer::pytorch
