// What users feed and fetch against what a program computes with: element types, axis order, normalization, quantization.
#pragma once

#include "base/threads.h"
#include "format/program.h"

namespace orknn::runtime {

// Data of one model input as the user holds it.
struct InputData {
  DType dtype = DType::Float32;
  const void* data = nullptr;
  size_t bytes = 0;
  ir::Layout layout = ir::Layout::Undefined;  // of 4-D data; Undefined = the model's own. Ignored for other ranks.
  // The numbers are what the model computes with: no (x - mean) / std, no quantization. Types are still converted.
  bool pass_through = false;
  // Extents in the order of `layout`, needed only where the model leaves some open.
  std::span<const int64_t> dims = {};
};

// Extents of a 4-D tensor in the other axis order.
ir::Dims nhwc_from_nchw(std::span<const int64_t> dims);
ir::Dims nchw_from_nhwc(std::span<const int64_t> dims);

// Axis order of a 4-D port; what a source model leaves open is NCHW.
ir::Layout port_layout(const format::Port& port, const ir::Tensor& tensor);

// The value of an input in the program's type and order. Floating-point steps are done in float32, element by element, so the
// result depends on nothing but the data.
Result<ir::TensorData> convert_input(const format::Port& port, const ir::Tensor& tensor, const InputData& data, ThreadPool& pool);

// Writes `value` (a result of `tensor`) as type `dtype`; quantized values become real ones when `dtype` is a float type.
// `to` holds as many elements.
void convert_output(const ir::Tensor& tensor, const ir::TensorView& value, DType dtype, void* to, ThreadPool& pool);

}  // namespace orknn::runtime
