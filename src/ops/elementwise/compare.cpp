// Comparisons with NumPy broadcasting.
#include "ops/support/broadcast_ops.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class F>
Status run(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Bool, plan.dims()));
  const DType type = a.dtype == DType::Bool ? DType::UInt8 : a.dtype;  // bool is stored as 0 and 1
  visit_arithmetic(type, [&]<class T>(TypeTag<T>) { map_rows(c.pool, plan, a.as<T>(), b.as<T>(), y.as<bool>(), F{}); });
  return {};
}

Status infer_equal(InferContext& c) {
  ORKNN_TRY(check_types(c, is_any, ""));
  ORKNN_TRY(broadcast_to_bool(c));
  if (is_integer(c.dtype(0)))
    fold_content(c, [](std::span<const Dim> x) -> Dim {
      if (x[0] == x[1]) return 1;
      return x[0].is_known() && x[1].is_known() ? Dim(0) : Dim();
    });
  return {};
}

template <class F>
Status infer_order(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  ORKNN_TRY(broadcast_to_bool(c));
  if (is_integer(c.dtype(0)))
    fold_content(c, [](std::span<const Dim> x) {
      return x[0].is_known() && x[1].is_known() ? Dim(F{}(x[0].value(), x[1].value()) ? 1 : 0) : Dim();
    });
  return {};
}

template <class F>
OpDef order(std::string_view name, std::string_view summary, F, NpuFacts npu = {}) {
  return {.name = name,
          .summary = summary,
          .inputs = {2, 2},
          .infer = infer_order<F>,
          .run = run<F>,
          .engine = Engine::Elementwise,
          .pattern = Pattern::Broadcast,
          .npu = npu,
          .cpu = {CpuList::LargeChips}};
}
}  // namespace

std::span<const OpDef> compare() {
  static const OpDef defs[] = {
      {.name = "Equal",
       .summary = "a == b",
       .inputs = {2, 2},
       .infer = infer_equal,
       .run = run<std::equal_to<>>,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .cpu = {CpuList::LargeChips}},
      order("Greater", "a > b", std::greater<>{}, {.form = NpuForm::Comparison}),
      order("GreaterOrEqual", "a >= b", std::greater_equal<>{}),
      order("Less", "a < b", std::less<>{}),
      order("LessOrEqual", "a <= b", std::less_equal<>{}),
  };
  return defs;
}
}  // namespace orknn::ops
