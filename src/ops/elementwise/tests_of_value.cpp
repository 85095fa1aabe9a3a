// Ops whose result tells something about a value, or inverts it: IsInf, IsNaN, Not, BitwiseNot.
#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_float_test(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return is_float(t); }, "a floating-point type"));
  c.set_output(0, DType::Bool, c.input(0).shape);
  return {};
}
template <class F>
Status map_to_bool(RunContext& c, F&& f) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Bool, x.dims));
  visit_real(x.dtype, [&]<class T>(TypeTag<T>) { map_elements(c.pool, x.as<T>(), y.as<bool>(), x.count(), f); });
  return {};
}
Status run_is_inf(RunContext& c) {
  const bool negative = c.get_int("detect_negative") != 0, positive = c.get_int("detect_positive") != 0;
  return map_to_bool(c, [&](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}
Status run_is_nan(RunContext& c) {
  return map_to_bool(c, [](auto x) { return std::isnan(x); });
}
Status infer_not(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return t == DType::Bool; }, "bool"));
  ORKNN_TRY(same_as_input(c));
  fold_content(c, [](std::span<const Dim> x) { return x[0].is_known() ? Dim(x[0].value() == 0 ? 1 : 0) : Dim(); });
  return {};
}
Status run_not(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Bool, x.dims));
  map_elements(c.pool, x.as<bool>(), y.as<bool>(), x.count(), [](bool v) { return !v; });
  return {};
}
Status infer_bitwise_not(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_wide_integer, "an integer type of at least 8 bits"));
  return same_as_input(c);
}
Status run_bitwise_not(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  visit_integer(x.dtype,
                [&]<class T>(TypeTag<T>) { map_elements(c.pool, x.as<T>(), y.as<T>(), x.count(), [](T v) { return ~v; }); });
  return {};
}
}  // namespace

std::span<const OpDef> tests_of_value() {
  static const OpDef defs[] = {
      {.name = "IsInf",
       .summary = "true where x is infinite",
       .attributes = {attr_int("detect_negative", 1), attr_int("detect_positive", 1)},
       .infer = infer_float_test,
       .run = run_is_inf,
       .pattern = Pattern::Pointwise},
      {.name = "IsNaN",
       .summary = "true where x is not a number",
       .infer = infer_float_test,
       .run = run_is_nan,
       .pattern = Pattern::Pointwise},
      {.name = "Not",
       .summary = "logical inversion",
       .infer = infer_not,
       .run = run_not,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Pointwise,
       .cpu = {CpuList::LargeChips}},
      {.name = "BitwiseNot",
       .summary = "inverts every bit",
       .infer = infer_bitwise_not,
       .run = run_bitwise_not,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Pointwise},
  };
  return defs;
}
}  // namespace orknn::ops
