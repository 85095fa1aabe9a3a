// Extents, axes, strides and indices that a kernel computes in every run.
#pragma once

#include <span>

#include "base/scratch.h"
#include "ir/tensor_data.h"

namespace orknn::ops {

using ScratchDims = Scratch<int64_t>;

inline ScratchDims scratch_dims(std::span<const int64_t> dims) { return {dims.begin(), dims.end()}; }
// Row-major strides in elements.
ScratchDims scratch_strides(std::span<const int64_t> dims);
// Contents of an integer or bool tensor, as ir::to_ints gives them.
ScratchDims scratch_ints(const ir::TensorView& t);
// NumPy broadcasting of two shapes.
Result<ScratchDims> scratch_broadcast(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace orknn::ops
