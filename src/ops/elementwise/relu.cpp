// max(x, 0).
#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
Status run(ir::RunContext& c) {
  return map_numeric(c, [](auto x) { return x > 0 || x != x ? x : decltype(x){0}; });
}
}  // namespace

std::span<const ir::OpDef> relu() {
  static const ir::OpDef def{.name = "Relu",
                             .summary = "max(x, 0)",
                             .infer = arithmetic_same_as_input,
                             .run = run,
                             .quant = ir::QuantRule::Table,
                             .engine = ir::Engine::Elementwise};
  return {&def, 1};
}
}  // namespace orknn::ops
