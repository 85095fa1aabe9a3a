// Type checks and dispatch for kernels that are defined on floating-point data only.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

// Checks that input i is of a floating-point type.
Status require_float(const ir::InferContext& c, size_t i);
// Checks that inputs i and j, where both are present, have the same type.
Status require_same_type(const ir::InferContext& c, size_t i, size_t j);
Status require_type(const ir::InferContext& c, size_t i, DType expected);
Status require_rank(const ir::InferContext& c, size_t i, size_t rank);
Status wrong_shape(std::string_view what, std::string expected, std::span<const int64_t> found);

// Calls f(TypeTag<T>) with float or double. Half types are widened before a kernel sees them.
template <class F>
Status run_as_float(DType t, F&& f) {
  if (t == DType::Float32) return f(TypeTag<float>{});
  if (t == DType::Float64) return f(TypeTag<double>{});
  return unsupported("element type is not supported").expected("a floating-point type").found(std::string(dtype_name(t)));
}

}  // namespace orknn::ops
