// Add, Sub, Mul and Div with NumPy broadcasting.
#include "ops/support/broadcast_ops.h"
#include "ops/support/copies.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class F>
Status run(RunContext& c) {
  return run_binary(c, F{});
}

template <Arithmetic step>
Status infer(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  ORKNN_TRY(broadcast_inputs(c));
  if (!is_integer(c.dtype(0))) return {};
  fold_content(c, [](std::span<const Dim> x) -> Dim {
    switch (step) {
      case Arithmetic::Add: return x[0] + x[1];
      case Arithmetic::Sub: return x[0] - x[1];
      case Arithmetic::Mul: return x[0] * x[1];
      case Arithmetic::Div: return x[0] / x[1];
      default: return {};
    }
  });
  return {};
}

// The constant operand changes nothing and does not broadcast the other one.
template <Arithmetic step>
int copied(const InferContext& c) {
  constexpr bool additive = step == Arithmetic::Add || step == Arithmetic::Sub;
  constexpr bool either_side = step == Arithmetic::Add || step == Arithmetic::Mul;
  constexpr double neutral = additive ? 0 : 1;
  if (either_side && splat_of(c, 0) == neutral && keeps_shape(c, 1)) return 1;
  return splat_of(c, 1) == neutral && keeps_shape(c, 0) ? 0 : kNoCopy;
}

template <Arithmetic step, class F>
OpDef define(std::string_view name, std::string_view summary, F, NpuFacts npu, CpuList cpu = CpuList::LargeChips) {
  return {.name = name,
          .summary = summary,
          .inputs = {2, 2},
          .infer = infer<step>,
          .run = run<F>,
          .quant = QuantRule::Compute,
          .engine = Engine::Elementwise,
          .pattern = Pattern::Broadcast,
          .arithmetic = step,
          .copied_input = copied<step>,
          .npu = npu,
          .cpu = {cpu}};
}
}  // namespace

std::span<const OpDef> arithmetic() {
  static const OpDef defs[] = {
      define<Arithmetic::Add>("Add", "a + b", WrappingAdd{},
                              {.form = NpuForm::Broadcast, .stage = OutputStage::Addend, .takes_tail = true}),
      define<Arithmetic::Sub>("Sub", "a - b", WrappingSub{}, {.form = NpuForm::ChannelBroadcast}),
      define<Arithmetic::Mul>("Mul", "a * b", WrappingMul{}, {.form = NpuForm::Broadcast, .takes_tail = true}),
      define<Arithmetic::Div>("Div", "a / b; integers round towards zero", CheckedDiv{}, {.form = NpuForm::Division},
                              CpuList::AllChips),
  };
  return defs;
}
}  // namespace orknn::ops
