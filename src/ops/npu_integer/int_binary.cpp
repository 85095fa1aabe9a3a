// Two-operand arithmetic as the chip computes it on integers: both operands are brought to one scale by their multipliers, the
// result is rounded once. Inputs: a, b, optional table. `multiplier` belongs to a (to the product for int:Mul), `b_multiplier` to
// b.
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
  std::optional<Shape> shape;
  if (c.shape(0) && c.shape(1)) {
    ORKNN_TRY_ASSIGN(shape, broadcast(*c.shape(0), *c.shape(1)));
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

// combine(a, b) with centred operands gives a scaled sum.
template <class Combine>
Status run(RunContext& c, Combine&& combine, int64_t max_factor = int64_t{1} << 30) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, 1, kTable, max_factor));
  ORKNN_TRY_ASSIGN(const int64_t a_zero, read_zero_point(c, "a_zero_point"));
  ORKNN_TRY_ASSIGN(const int64_t b_zero, read_zero_point(c, "b_zero_point"));
  const int64_t factor = stage.factor[0], b_factor = c.get_int("b_multiplier");
  if (b_factor < -(int64_t{1} << 30) || b_factor > int64_t{1} << 30)
    return invalid_model("b_multiplier is out of range").found(std::to_string(b_factor));
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, plan.dims()));
  visit_npu_integer(a.dtype, [&]<class A>(TypeTag<A>) {
    visit_npu_integer(b.dtype, [&]<class B>(TypeTag<B>) {
      visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
        map_rows(c.pool, plan, a.as<A>(), b.as<B>(), y.as<Y>(),
                 [&](A p, B q) { return stage.finish(combine(p - a_zero, q - b_zero, factor, b_factor), 0); });
      });
    });
  });
  return {};
}

Status run_add(RunContext& c) {
  return run(c, [](int64_t a, int64_t b, int64_t f, int64_t g) { return a * f + b * g; });
}
// Operands below 2^17.
Status run_mul(RunContext& c) {
  return run(
      c, [](int64_t a, int64_t b, int64_t f, int64_t) { return a * b * f; }, int64_t{1} << 28);
}
Status run_max(RunContext& c) {
  return run(c, [](int64_t a, int64_t b, int64_t f, int64_t g) { return std::max(a * f, b * g); });
}
Status run_min(RunContext& c) {
  return run(c, [](int64_t a, int64_t b, int64_t f, int64_t g) { return std::min(a * f, b * g); });
}

OpDef def(std::string_view name, std::string_view summary, RunFn run, std::string_view integer_form_of) {
  return {.name = name,
          .summary = summary,
          .inputs = {2, 3},
          .attributes =
              output_stage_attributes({attr_int("a_zero_point", 0), attr_int("b_zero_point", 0), attr_int("b_multiplier", 0)}),
          .infer = infer,
          .run = run,
          .widen_half = false,
          .quant = QuantRule::Integer,
          .engine = Engine::Elementwise,
          .pattern = Pattern::Broadcast,
          .integer_form_of = integer_form_of};
}
}  // namespace

std::span<const OpDef> int_binary() {
  static const OpDef defs[] = {
      def("int:Add", "sum of integers of different scales (a negative b_multiplier subtracts)", run_add, "Add"),
      def("int:Mul", "product of integers of different scales", run_mul, "Mul"),
      def("int:Max", "larger of integers of different scales", run_max, "Max"),
      def("int:Min", "smaller of integers of different scales", run_min, "Min"),
  };
  return defs;
}
}  // namespace orknn::ops
