// x, or slope * x below zero, with a slope per element, row or channel.
#include <algorithm>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_shapes(std::span<const int64_t> x, std::span<const int64_t> slope) {
  const auto result = broadcast(x, slope_dims(x, slope));
  if (result && std::ranges::equal(*result, x)) return {};
  return shape_mismatch("the slope does not broadcast to x").expected(to_string(x)).found(to_string(slope));
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  if (c.shape(0) && c.shape(1)) {
    const std::optional<Dims> x = to_dims(*c.shape(0)), slope = to_dims(*c.shape(1));
    if (x && slope) ORKNN_TRY(check_shapes(*x, *slope));
  }
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), slope = c.input(1);
  ORKNN_TRY(check_shapes(x.dims, slope.dims));
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({x.dims, slope_dims(x.dims, slope.dims)}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  visit_arithmetic(x.dtype, [&]<class T>(TypeTag<T>) {
    map_rows(c.pool, plan, x.as<T>(), slope.as<T>(), y.as<T>(), [](T v, T s) -> T {
      if (!(v < 0)) return v;
      if constexpr (std::is_floating_point_v<T>)
        return s * v;
      else
        return static_cast<T>(static_cast<uint64_t>(s) * static_cast<uint64_t>(v));
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> prelu() {
  static const OpDef def{.name = "PRelu",
                         .summary = "x, or slope * x below zero",
                         .inputs = {2, 2},
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Slopes,
                         .engine = Engine::Elementwise,
                         .pattern = Pattern::Broadcast,
                         .scales_through = true,
                         .npu = {.form = NpuForm::Slope, .stage = OutputStage::Plain}};
  return {&def, 1};
}
}  // namespace orknn::ops
