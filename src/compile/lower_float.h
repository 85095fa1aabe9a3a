// Chooses the number format of float32 tensors: the chip computes in float16.
#pragma once

#include <functional>
#include <string_view>

#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::compile {

// Every float32 tensor, constant and type attribute becomes float16, nested graphs included. Values that steer shapes or
// selections (scales of Resize, bounds of Range, quantization scales, ...) stay float32, and a Cast is put wherever
// an operator insists on one type. float64, bfloat16 and integers are left alone. Types and shapes are inferred again.
// Finite constants beyond the range of float16 are clamped to it (a mask of -3.4e38 must not turn 0 * mask into NaN).
// `converted` receives the bytes of each constant that became float16.
Status lower_float(ir::Graph& graph, const ir::OpSet& ops, const std::function<void(std::string_view)>& warn,
                   const std::function<void(uint64_t bytes)>& converted = {});

}  // namespace orknn::compile
