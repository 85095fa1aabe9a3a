// Shape rules and loops shared by element-wise ops.
#pragma once

#include <span>

#include "ir/op_def.h"

namespace orknn::ops {

// Shape rule: output 0 has the type and shape of input 0.
Status same_as_input(ir::InferContext& c);
// Shape rule: outputs broadcast all inputs; type of input 0.
Status broadcast_inputs(ir::InferContext& c);
// The same with a bool result (comparisons).
Status broadcast_to_bool(ir::InferContext& c);

// Calls f on each element of input 0 in its own type (float, double, integers) and writes the result in that type.
template <class F>
Status map_numeric(ir::RunContext& c, F&& f) {
  const ir::TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const ir::MutableTensorView y, c.output(0, x.dtype, x.dims));
  const int64_t n = x.count();
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) {
      const T* from = x.as<T>();
      T* to = y.as<T>();
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(from[i]));
    }
  });
  return {};
}

}  // namespace orknn::ops
