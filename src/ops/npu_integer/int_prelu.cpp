// x, or slope * x below zero, with a slope per channel, as the chip does it: values below zero are multiplied by the slope before
// the output converter.
#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr size_t kNoTable = 1;

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_npu_integer, "int8, uint8 or int16"));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kNoTable));
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    const Dim& channels = (*x)[static_cast<size_t>(axis)];
    if (channels.is_known()) ORKNN_TRY(check_output_stage(c, kNoTable, {.channels = channels.value()}));
  }
  c.set_output(0, type, c.shape(0) ? std::optional(*c.shape(0)) : std::nullopt);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x.dims.size())));
  const int64_t channels = x.dims[static_cast<size_t>(axis)],
                inner = element_count(x.dims.subspan(static_cast<size_t>(axis) + 1));
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, kNoTable, {.channels = channels}));
  ORKNN_TRY_ASSIGN(const int64_t zero, read_zero_point(c, "x_zero_point"));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, x.dims));
  visit_npu_integer(x.dtype, [&]<class X>(TypeTag<X>) {
    visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
      c.pool.parallel_for(x.count(), kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          y.as<Y>()[i] = static_cast<Y>(stage.finish(stage.scaled(x.as<X>()[i] - zero, i / inner % channels)));
      });
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> int_prelu() {
  static const OpDef defs[] = {
      {.name = "int:PRelu",
       .summary = "x, or slope * x below zero, of integers",
       .attributes = slope_attributes({attr_int("x_zero_point", 0), attr_int("axis", 1)}),
       .infer = infer,
       .run = run,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Rescale,
       .integer_form_of = "PRelu"},
  };
  return defs;
}
}  // namespace orknn::ops
