// MeanVarianceNormalization: mean 0 and deviation 1 over the given axes.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/floating.h"
#include "ops/support/moments.h"
#include "ops/support/window.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  if (const Shape* x = c.shape(0))
    for (int64_t axis : c.get_ints("axes")) ORKNN_TRY(normalize_axis(axis, static_cast<int64_t>(x->size())).status());
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  std::vector<bool> reduced(x.dims.size(), false);
  for (int64_t a : c.get_ints("axes")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(a, x.rank()));
    reduced[static_cast<size_t>(axis)] = true;
  }
  Dims kept(x.dims.begin(), x.dims.end());
  for (size_t i = 0; i < kept.size(); ++i)
    if (reduced[i]) kept[i] = 1;
  Dims strides = strides_of(kept);
  for (size_t i = 0; i < kept.size(); ++i)
    if (reduced[i]) strides[i] = 0;
  const auto groups = static_cast<size_t>(element_count(kept));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  if (x.count() == 0) return {};
  const double count = static_cast<double>(x.count()) / static_cast<double>(groups);
  // f(element, group it belongs to)
  const auto each = [&](auto&& f) {
    Dims at(x.dims.size(), 0);
    for (int64_t i = 0; i < x.count(); ++i, next_index(at, x.dims)) {
      int64_t group = 0;
      for (size_t k = 0; k < at.size(); ++k) group += at[k] * strides[k];
      f(i, static_cast<size_t>(group));
    }
  };
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    std::vector<double> mean(groups, 0), deviation(groups, 0);
    each([&](int64_t i, size_t g) { mean[g] += static_cast<double>(x.as<T>()[i]) / count; });
    each([&](int64_t i, size_t g) {
      const double d = static_cast<double>(x.as<T>()[i]) - mean[g];
      deviation[g] += d * d / count;
    });
    for (double& d : deviation) d = std::sqrt(d) + 1e-9;  // the constant of the operator's definition
    each([&](int64_t i, size_t g) {
      y.as<T>()[i] = static_cast<T>((static_cast<double>(x.as<T>()[i]) - mean[g]) / deviation[g]);
    });
    return Status();
  });
}
}  // namespace

std::span<const OpDef> mean_variance_normalization() {
  static const OpDef def{.name = "MeanVarianceNormalization",
                         .summary = "mean 0 and deviation 1 over given axes",
                         .attributes = {axes_of_input(attr_ints("axes", {0, 2, 3}))},
                         .infer = infer,
                         .run = run,
                         .engine = Engine::Norm,
                         .npu = {.form = NpuForm::MeanVarianceNorm, .listed_as = "exNorm"},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
