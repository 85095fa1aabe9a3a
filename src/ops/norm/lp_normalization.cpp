// LpNormalization: vectors along an axis divided by their 1- or 2-norm. A zero vector stays zero.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/floating.h"
#include "ops/support/moments.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  if (c.get_int("p") != 1 && c.get_int("p") != 2)
    return invalid_model("p is out of range").expected("1 or 2").found(std::to_string(c.get_int("p")));
  if (const Shape* x = c.shape(0)) ORKNN_TRY(normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())).status());
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const AxisSplit split = split_at(x.dims, axis);
  const bool euclidean = c.get_int("p") == 2;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t item = 0; item < split.outer * split.inner; ++item) {
      const int64_t start = item / split.inner * split.extent * split.inner + item % split.inner,
                    end = start + split.extent * split.inner;
      double sum = 0;
      for (int64_t i = start; i < end; i += split.inner) {
        const auto v = static_cast<double>(x.as<T>()[i]);
        sum += euclidean ? v * v : std::abs(v);
      }
      const double norm = euclidean ? std::sqrt(sum) : sum;
      for (int64_t i = start; i < end; i += split.inner)
        y.as<T>()[i] = static_cast<T>(norm == 0 ? 0.0 : static_cast<double>(x.as<T>()[i]) / norm);
    }
    return Status();
  });
}
}  // namespace

std::span<const OpDef> lp_normalization() {
  static const OpDef def{.name = "LpNormalization",
                         .summary = "vectors along an axis divided by their norm",
                         .attributes = {axes_of_input(attr_int("axis", -1)), attr_int("p", 2)},
                         .infer = infer,
                         .run = run,
                         .engine = Engine::Norm,
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
