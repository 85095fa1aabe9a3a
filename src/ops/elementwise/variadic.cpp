// Max, Min, Sum and Mean of any number of broadcast inputs.
#include <algorithm>

#include "ops/support/broadcast_ops.h"
#include "ops/support/copies.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_numbers(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  return broadcast_inputs(c);
}
Status infer_floats(InferContext& c) {
  ORKNN_TRY(check_types(
      c, [](DType t) { return is_float(t); }, "a floating-point type"));
  return broadcast_inputs(c);
}
// Of unequal extents at least one of which is unknown, nothing can be said.
template <bool greatest>
Status infer_extreme(InferContext& c) {
  ORKNN_TRY(infer_numbers(c));
  if (!is_integer(c.dtype(0))) return {};
  fold_content(c, [](std::span<const Dim> x) {
    Dim best = x[0];
    for (const Dim& d : x.subspan(1)) {
      if (best == d) continue;
      if (!best.is_known() || !d.is_known()) return Dim();
      best = greatest ? std::max(best.value(), d.value()) : std::min(best.value(), d.value());
    }
    return best;
  });
  return {};
}

// Result = f(... f(f(x0, x1), x2) ...), then multiplied by `factor`.
template <class F>
Status fold_inputs(RunContext& c, F f, double factor = 1) {
  ScratchDims dims = scratch_dims(c.input(0).dims);
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    ORKNN_TRY_ASSIGN(dims, scratch_broadcast(dims, c.input(i).dims));
  }
  const TensorView first = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, first.dtype, dims));
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    const TensorView x = c.input(i);
    ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({y.dims, x.dims}));
    visit_arithmetic(first.dtype, [&]<class T>(TypeTag<T>) {
      if (i == 0)
        map_rows(c.pool, plan, y.as<T>(), x.as<T>(), y.as<T>(), [](T, T v) { return v; });
      else
        map_rows(c.pool, plan, y.as<T>(), x.as<T>(), y.as<T>(), f);
    });
  }
  if (factor != 1)
    visit_real(y.dtype, [&]<class T>(TypeTag<T>) {
      map_elements(c.pool, y.as<T>(), y.as<T>(), y.count(), [&](T v) { return v * static_cast<T>(factor); });
    });
  return {};
}

Status run_max(RunContext& c) { return fold_inputs(c, NanMax{}); }
Status run_min(RunContext& c) { return fold_inputs(c, NanMin{}); }
Status run_sum(RunContext& c) { return fold_inputs(c, WrappingAdd{}); }
Status run_mean(RunContext& c) {
  int64_t present = 0;
  for (size_t i = 0; i < c.input_count(); ++i) present += c.has_input(i);
  return fold_inputs(c, WrappingAdd{}, 1.0 / static_cast<double>(present));
}
}  // namespace

std::span<const OpDef> variadic() {
  constexpr Arity kAny{1, Arity::kMany};
  static const OpDef defs[] = {
      {.name = "Max",
       .summary = "greatest of all inputs",
       .inputs = kAny,
       .infer = infer_extreme<true>,
       .run = run_max,
       .quant = QuantRule::Compute,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .arithmetic = Arithmetic::Max,
       .copied_input = copies_single_input,
       .npu = {.form = NpuForm::Maximum},
       .cpu = {CpuList::LargeChips}},
      {.name = "Min",
       .summary = "least of all inputs",
       .inputs = kAny,
       .infer = infer_extreme<false>,
       .run = run_min,
       .quant = QuantRule::Compute,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .arithmetic = Arithmetic::Min,
       .copied_input = copies_single_input,
       .npu = {.form = NpuForm::Minimum},
       .cpu = {CpuList::LargeChips}},
      {.name = "Sum",
       .summary = "sum of all inputs",
       .inputs = kAny,
       .infer = infer_floats,
       .run = run_sum,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .copied_input = copies_single_input},
      {.name = "Mean",
       .summary = "mean of all inputs",
       .inputs = kAny,
       .infer = infer_floats,
       .run = run_mean,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .copied_input = copies_single_input},
  };
  return defs;
}
}  // namespace orknn::ops
