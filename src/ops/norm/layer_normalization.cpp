// LayerNormalization and RMSNormalization: the axes from `axis` on are normalized together, then scaled.
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/moments.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

// The type in which mean and deviation are handed out.
Result<DType> stash_type(const NodeReader& node) {
  const int64_t number = node.get_int("stash_type");
  const auto t = static_cast<DType>(number);
  if (number < 0 || number > 255 || !is_float(t))
    return invalid_model("unknown stash_type").expected("a floating-point type").found(std::to_string(number));
  return t;
}

Status infer_common(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_float(c, 1));
  ORKNN_TRY_ASSIGN([[maybe_unused]] const DType stash, stash_type(c));
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY(normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())).status());
    ORKNN_TRY(require_broadcast(c, 1, "scale", *x));
    ORKNN_TRY(require_broadcast(c, 2, "bias", *x));
  }
  return {};
}

Status infer_layer(InferContext& c) {
  ORKNN_TRY(infer_common(c));
  ORKNN_TRY(require_float(c, 2));
  c.set_output(0, c.dtype(0), c.input(0).shape);
  ORKNN_TRY_ASSIGN(const DType stash, stash_type(c));
  std::optional<Shape> statistics = c.input(0).shape;
  if (statistics) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(statistics->size())));
    std::fill(statistics->begin() + axis, statistics->end(), Dim(1));
  }
  c.set_output(1, stash, statistics);
  c.set_output(2, stash, statistics);
  return {};
}

Status infer_rms(InferContext& c) {
  ORKNN_TRY(infer_common(c));
  c.set_output(0, c.dtype(1), c.input(0).shape);
  return {};
}

// Statistics in the stashed type; half types are narrowed by whoever called the kernel.
Status write_statistics(RunContext& c, size_t output, const Dims& dims, const std::vector<double>& values) {
  if (!c.has_output(output)) return {};
  ORKNN_TRY_ASSIGN(const DType stash, stash_type(c));
  ORKNN_TRY_ASSIGN(const MutableTensorView out,
                   c.output(output, stash == DType::Float64 ? DType::Float64 : DType::Float32, dims));
  return run_as_float(out.dtype, [&]<class T>(TypeTag<T>) {
    std::transform(values.begin(), values.end(), out.as<T>(), [](double v) { return static_cast<T>(v); });
    return Status();
  });
}

Status run(RunContext& c, bool subtract_mean) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const std::span<const int64_t> inner = x.dims.subspan(static_cast<size_t>(axis));
  const int64_t count = element_count(inner), rows = element_count(x.dims.first(static_cast<size_t>(axis)));
  std::vector<double> scale{1}, bias{0};
  ORKNN_TRY_ASSIGN(scale, repeating_values(c.input(1), x.dims, inner.size()));
  if (c.has_input(2)) {
    ORKNN_TRY_ASSIGN(bias, repeating_values(c.input(2), x.dims, inner.size()));
  }
  const double epsilon = c.get_float("epsilon");
  std::vector<double> means(static_cast<size_t>(rows)), inverses(static_cast<size_t>(rows));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, subtract_mean ? x.dtype : c.input(1).dtype, x.dims));
  ORKNN_TRY(run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    return run_as_float(y.dtype, [&]<class Y>(TypeTag<Y>) {
      c.pool.parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x.as<T>() + row * count;
          Moments m = moments(from, count);
          if (!subtract_mean) m = {0, m.variance + m.mean * m.mean};
          const double inverse = 1 / std::sqrt(m.variance + epsilon);
          means[static_cast<size_t>(row)] = m.mean;
          inverses[static_cast<size_t>(row)] = inverse;
          for (int64_t i = 0; i < count; ++i) {
            const auto at = static_cast<size_t>(row * count + i);
            y.as<Y>()[at] = static_cast<Y>((static_cast<double>(from[i]) - m.mean) * inverse * scale[at % scale.size()] +
                                           bias[at % bias.size()]);
          }
        }
      });
      return Status();
    });
  }));
  if (!subtract_mean) return {};
  Dims dims(x.dims.begin(), x.dims.end());
  std::fill(dims.begin() + axis, dims.end(), 1);
  ORKNN_TRY(write_statistics(c, 1, dims, means));
  return write_statistics(c, 2, dims, inverses);
}

Status run_layer(RunContext& c) { return run(c, true); }
Status run_rms(RunContext& c) { return run(c, false); }
}  // namespace

std::span<const OpDef> layer_normalization() {
  static const OpDef defs[] = {
      {.name = "LayerNormalization",
       .summary = "normalization of the last axes",
       .inputs = {2, 3},
       .outputs = {1, 3},
       .attributes = {axes_of_input(attr_int("axis", -1)), attr_float("epsilon", 1e-5), attr_int("stash_type", 1)},
       .infer = infer_layer,
       .run = run_layer,
       .engine = Engine::Norm,
       .axes = AxisNames::FromAttribute,
       .npu = {.form = NpuForm::Norm, .listed_as = "exNorm"},
       .cpu = {CpuList::AllChips}},
      {.name = "RMSNormalization",
       .summary = "last axes divided by their root mean square",
       .inputs = {2, 2},
       .attributes = {axes_of_input(attr_int("axis", -1)), attr_float("epsilon", 1e-5), attr_int("stash_type", 1)},
       .infer = infer_rms,
       .run = run_rms,
       .engine = Engine::Norm,
       .axes = AxisNames::FromAttribute,
       .npu = {.form = NpuForm::Norm, .listed_as = "exNorm"},
       .cpu = {CpuList::LargeChips}},
  };
  return defs;
}
}  // namespace orknn::ops
