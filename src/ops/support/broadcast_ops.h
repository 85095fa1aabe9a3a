// Kernels of two-operand element-wise ops over broadcast inputs.
#pragma once

#include "ops/support/elementwise.h"

namespace orknn::ops {

// y = f(a, b), all of one arithmetic type.
template <class F>
Status run_binary(ir::RunContext& c, F&& f) {
  const ir::TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const ir::MutableTensorView y, c.output(0, a.dtype, plan.dims()));
  visit_arithmetic(a.dtype, [&]<class T>(TypeTag<T>) { map_rows(c.pool, plan, a.as<T>(), b.as<T>(), y.as<T>(), f); });
  return {};
}

// Integers wrap around instead of overflowing.
struct WrappingAdd {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct WrappingSub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct WrappingMul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
// Rounds towards zero; an integer divided by zero is zero, as a model cannot be allowed to stop the process.
struct CheckedDiv {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
      return static_cast<T>(a / b);
    }
  }
};
// NaN wins, as in NumPy.
struct NanMax {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct NanMin {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace orknn::ops
