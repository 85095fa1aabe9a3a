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

// A number or a constant of one element.
Result<double> number_argument(Call& c, std::string_view name);
// The arguments scale and zero_point of a layer.
Result<Quantization> output_quantization(Call& c, DType dtype);
// The element type of an argument, uint8 when it is not quantized.
DType quantized_type(Call& c, std::string_view name);
// The result of a layer, with its scale and zero point and the element type of an argument.
Result<Value> quantized_result(Call& c, ir::TensorId y, std::string_view like);
// Quantized and back by the range of the data, which decides when the network runs.
ir::TensorId dynamically_quantized(Call& c, ir::TensorId x, double levels);

}  // namespace orknn::importer::pytorch
