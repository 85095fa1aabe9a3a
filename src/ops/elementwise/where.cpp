// Picks elements of x or y by a condition.
#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return t == DType::Bool; }, "bool"));
  if (c.dtype(1) != c.dtype(2))
    return invalid_model("both choices have one type")
        .expected(std::string(dtype_name(c.dtype(1))))
        .found(std::string(dtype_name(c.dtype(2))));
  ORKNN_TRY(broadcast_all(c, c.dtype(1)));
  if (is_integer(c.dtype(1)))
    fold_content(c, [](std::span<const Dim> x) -> Dim {
      if (x[0].is_known()) return x[0].value() != 0 ? x[1] : x[2];
      return x[1] == x[2] ? x[1] : Dim();
    });
  return {};
}

Status run(RunContext& c) {
  const TensorView condition = c.input(0), x = c.input(1), y = c.input(2);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({condition.dims, x.dims, y.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView out, c.output(0, x.dtype, plan.dims()));
  const int64_t step_c = plan.step(0), step_x = plan.step(1), step_y = plan.step(2);
  visit_element_bytes(x.dtype, [&]<class T>(TypeTag<T>) {
    plan.for_rows(c.pool, [&](int64_t at, const int64_t* in, int64_t n) {
      const bool* pick = condition.as<bool>() + in[0];
      const T* px = x.as<T>() + in[1];
      const T* py = y.as<T>() + in[2];
      T* to = out.as<T>() + at;
      for (int64_t i = 0; i < n; ++i) to[i] = pick[i * step_c] ? px[i * step_x] : py[i * step_y];
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> where() {
  static const OpDef def{.name = "Where",
                         .summary = "x where the condition is true, otherwise y",
                         .inputs = {3, 3},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .engine = Engine::Elementwise,
                         .pattern = Pattern::Broadcast,
                         .selects = true,
                         .npu = {.form = NpuForm::Selection},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
