// Two-operand arithmetic as the chip computes it on integers: a passes with a small factor, as through a convolution, b is
// brought to the scale of that by the operand converter, and what is made of both is rounded once more by the output converter. A
// product needs no common scale. Inputs: a, b, optional table.
#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr size_t kTable = 2;

Status infer(InferContext& c) {
  for (size_t i = 0; i < 2; ++i)
    if (!is_npu_integer(c.dtype(i)))
      return invalid_model("input " + std::to_string(i) + " has an unsupported type")
          .expected("int8, uint8 or int16")
          .found(std::string(dtype_name(c.dtype(i))));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kTable));
  ORKNN_TRY(check_output_stage(c, kTable, {.max_factor = kMaxBinaryFactor}));
  ORKNN_TRY(read_binary_scale(c).status());
  std::optional<Shape> shape;
  if (c.shape(0) && c.shape(1)) {
    ORKNN_TRY_ASSIGN(shape, broadcast(*c.shape(0), *c.shape(1)));
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

// combine(a, b) of centred operands, which are on one scale except for a product.
template <class Combine>
Status run(RunContext& c, bool on_one_scale, Combine&& combine) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, kTable, {.max_factor = kMaxBinaryFactor}));
  ORKNN_TRY_ASSIGN(const BinaryScale scale, read_binary_scale(c));
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, plan.dims()));
  visit_npu_integer(a.dtype, [&]<class A>(TypeTag<A>) {
    visit_npu_integer(b.dtype, [&]<class B>(TypeTag<B>) {
      visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
        map_rows(c.pool, plan, a.as<A>(), b.as<B>(), y.as<Y>(), [&](A p, B q) {
          const int64_t left = p - scale.a_zero, right = q - scale.b_zero;
          return stage.finish(on_one_scale ? combine(left * scale.a_factor, round_shift(right * scale.b_factor, scale.b_shift))
                                           : combine(left, right));
        });
      });
    });
  });
  return {};
}

Status run_add(RunContext& c) {
  return run(c, true, [](int64_t a, int64_t b) { return a + b; });
}
Status run_mul(RunContext& c) {
  return run(c, false, [](int64_t a, int64_t b) { return a * b; });
}
Status run_max(RunContext& c) {
  return run(c, true, [](int64_t a, int64_t b) { return std::max(a, b); });
}
Status run_min(RunContext& c) {
  return run(c, true, [](int64_t a, int64_t b) { return std::min(a, b); });
}

OpDef def(std::string_view name, std::string_view summary, RunFn run, std::string_view integer_form_of) {
  return {
      .name = name,
      .summary = summary,
      .inputs = {2, 3},
      .attributes = output_stage_attributes({attr_int("a_zero_point", 0), attr_int("b_zero_point", 0),
                                             attr_int("a_multiplier", 0), attr_int("b_multiplier", 0), attr_int("b_shift", 0)}),
      .infer = infer,
      .run = run,
      .widen_half = false,
      .quant = QuantRule::Integer,
      .engine = Engine::Elementwise,
      .pattern = Pattern::Broadcast,
      .integer_form_of = integer_form_of,
      .table_input = 2};
}
}  // namespace

std::span<const OpDef> int_binary() {
  static const OpDef defs[] = {
      def("int:Add", "sum of integers of different scales (a negative a_multiplier subtracts)", run_add, "Add"),
      def("int:Mul", "product of integers of different scales", run_mul, "Mul"),
      def("int:Max", "larger of integers of different scales", run_max, "Max"),
      def("int:Min", "smaller of integers of different scales", run_min, "Min"),
  };
  return defs;
}
}  // namespace orknn::ops
