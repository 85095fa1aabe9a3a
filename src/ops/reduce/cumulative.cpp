// Running sum, product and logarithm of a sum of exponentials along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/broadcast_ops.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

// log(e^total + e^x), which neither overflows nor loses a small x in a large total that comes later.
struct LogAddExp {
  template <class T>
  T operator()(T a, T b) const {
    if (a == b) return a + static_cast<T>(std::log(2.0));  // infinite ones have no difference
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
};

// What a run begins with: it changes no element.
template <class F, class T>
T neutral() {
  if constexpr (std::is_same_v<F, LogAddExp>) return -std::numeric_limits<T>::infinity();
  return std::is_same_v<F, WrappingMul> ? 1 : 0;
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 1, [](DType t) { return t == DType::Int32 || t == DType::Int64; }, "an int32 or int64 axis"));
  ORKNN_TRY(require_one_value(c, 1, "the axis"));
  if (const auto axis = c.ints(1)) {
    if (c.shape(0)) ORKNN_TRY(normalize_axis((*axis)[0], static_cast<int64_t>(c.shape(0)->size())).status());
  }
  return arithmetic_same_as_input(c);
}
Status infer_floats(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_float, "a float type"));
  return infer(c);
}

template <class F>
Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims axes = scratch_ints(c.input(1));
  if (axes.size() != 1) return shape_mismatch("the axis is one value").found(std::to_string(axes.size()) + " values");
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(axes[0], x.rank()));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  const int64_t extent = x.dims[static_cast<size_t>(axis)], stride = scratch_strides(x.dims)[static_cast<size_t>(axis)];
  if (x.count() == 0) return {};
  const bool exclusive = c.get_int("exclusive") != 0, reverse = c.get_int("reverse") != 0;
  const auto run_along = [&]<class T>(TypeTag<T>) {
    using Total = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    c.pool.parallel_for(x.count() / extent, std::max<int64_t>(1, kElementGrain / extent), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / stride * stride * extent + i % stride;
        Total total = neutral<F, Total>();
        for (int64_t k = 0; k < extent; ++k) {
          const int64_t at = start + (reverse ? extent - 1 - k : k) * stride;
          const Total next = F{}(total, static_cast<Total>(x.as<T>()[at]));
          y.as<T>()[at] = static_cast<T>(exclusive ? total : next);
          total = next;
        }
      }
    });
  };
  if constexpr (std::is_same_v<F, LogAddExp>)
    visit_real(x.dtype, run_along);
  else
    visit_arithmetic(x.dtype, run_along);
  return {};
}

OpDef define(std::string_view name, std::string_view summary, RunFn run_fn, InferFn infer_fn = infer) {
  return {.name = name,
          .summary = summary,
          .inputs = {2, 2},
          .attributes = {attr_int("exclusive", 0), attr_int("reverse", 0)},
          .infer = infer_fn,
          .run = run_fn};
}
}  // namespace

std::span<const OpDef> cumulative() {
  static const OpDef defs[] = {
      define("CumSum", "running sum along an axis", run<WrappingAdd>),
      define("CumProd", "running product along an axis", run<WrappingMul>),
      define("LogCumSumExp", "logarithm of the running sum of exponentials along an axis", run<LogAddExp>, infer_floats),
  };
  return defs;
}
}  // namespace orknn::ops
