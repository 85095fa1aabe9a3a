// max(x, 0).
#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status run(RunContext& c) {
  return map_numeric(c, [](auto x) { return x > 0 || x != x ? x : decltype(x){0}; });
}
}  // namespace

std::span<const OpDef> relu() {
  static const OpDef def{.name = "Relu",
                         .summary = "max(x, 0)",
                         .infer = arithmetic_same_as_input,
                         .run = run,
                         .quant = QuantRule::Table,
                         .engine = Engine::Elementwise,
                         .pattern = Pattern::Pointwise,
                         .bounds = Bounds::Zero,
                         .never_negative = true,
                         .keeps_range = true,
                         .scales_through = true,
                         .npu = {.form = NpuForm::Function, .stage = OutputStage::Plain}};
  return {&def, 1};
}
}  // namespace orknn::ops
