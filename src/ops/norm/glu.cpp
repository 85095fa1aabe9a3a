// Glu (ours): the input is cut in two halves along an axis; the first is gated by the sigmoid of the second.
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/moments.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  std::optional<Shape> out = c.input(0).shape;
  if (out) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(out->size())));
    Dim& extent = (*out)[static_cast<size_t>(axis)];
    if (extent.is_known() && extent.value() % 2 != 0)
      return shape_mismatch("the axis cannot be halved").expected("an even extent").found(extent.to_string());
    extent = extent / Dim(2);
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const AxisSplit split = split_at(x.dims, axis);
  const int64_t half = split.extent / 2 * split.inner;
  Dims dims(x.dims.begin(), x.dims.end());
  dims[static_cast<size_t>(axis)] /= 2;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t o = 0; o < split.outer; ++o) {
      const T* from = x.as<T>() + o * 2 * half;
      T* to = y.as<T>() + o * half;
      for (int64_t i = 0; i < half; ++i)
        to[i] = static_cast<T>(static_cast<double>(from[i]) / (1 + std::exp(-static_cast<double>(from[half + i]))));
    }
    return Status();
  });
}
}  // namespace

std::span<const OpDef> glu() {
  static const OpDef def{.name = "Glu",
                         .summary = "first half of an axis times the sigmoid of the second",
                         .attributes = {axes_of_input(attr_int("axis", -1))},
                         .infer = infer,
                         .run = run,
                         .engine = Engine::Elementwise,
                         .npu = {.form = NpuForm::Glu, .listed_as = "exGlu"},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
