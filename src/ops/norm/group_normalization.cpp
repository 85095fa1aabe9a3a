// InstanceNormalization and GroupNormalization: each channel, or each group of channels, of each image gets mean 0 and
// variance 1, then a scale and bias per channel.
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/moments.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  for (size_t i = 1; i < 3; ++i) {
    ORKNN_TRY(require_same_type(c, 0, i));
    ORKNN_TRY(require_rank(c, i, 1));
  }
  if (const Shape* x = c.shape(0)) {
    if (x->size() < 2) return shape_mismatch("input 0 has the wrong rank").expected("2 or more").found(to_string(*x));
    ORKNN_TRY(require_shape(c, 1, "scale", {(*x)[1]}));
    ORKNN_TRY(require_shape(c, 2, "bias", {(*x)[1]}));
  }
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status check_groups(int64_t groups, int64_t channels) {
  if (groups >= 1 && channels % groups == 0) return {};
  return invalid_model("num_groups is out of range")
      .expected("a divisor of " + std::to_string(channels))
      .found(std::to_string(groups));
}

Status infer_group(InferContext& c) {
  ORKNN_TRY(infer(c));
  const Shape* x = c.shape(0);
  return x && (*x)[1].is_known() ? check_groups(c.get_int("num_groups"), (*x)[1].value()) : Status();
}

Status run(RunContext& c, int64_t groups) {
  const TensorView x = c.input(0);
  const int64_t batch = x.dims[0], channels = x.dims[1], inner = element_count(x.dims.subspan(2));
  ORKNN_TRY(check_groups(groups, channels));
  ORKNN_TRY_ASSIGN(const std::vector<double> scale, channel_values(c.input(1), channels, "scale"));
  ORKNN_TRY_ASSIGN(const std::vector<double> bias, channel_values(c.input(2), channels, "bias"));
  const double epsilon = c.get_float("epsilon");
  const int64_t per_group = channels / groups;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(batch * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const T* from = x.as<T>() + group * per_group * inner;
        T* to = y.as<T>() + group * per_group * inner;
        const Moments m = moments(from, per_group * inner);
        const double inverse = 1 / std::sqrt(m.variance + epsilon);
        for (int64_t k = 0; k < per_group; ++k) {
          const auto ch = static_cast<size_t>(group % groups * per_group + k);
          for (int64_t i = k * inner; i < (k + 1) * inner; ++i)
            to[i] = static_cast<T>((static_cast<double>(from[i]) - m.mean) * inverse * scale[ch] + bias[ch]);
        }
      }
    });
    return Status();
  });
}

Status run_instance(RunContext& c) { return run(c, std::max<int64_t>(c.input(0).dims[1], 1)); }
Status run_group(RunContext& c) { return run(c, c.get_int("num_groups")); }
}  // namespace

std::span<const OpDef> group_normalization() {
  static const OpDef defs[] = {
      {.name = "InstanceNormalization",
       .summary = "normalization of each channel of each image",
       .inputs = {3, 3},
       .attributes = {attr_float("epsilon", 1e-5)},
       .infer = infer,
       .run = run_instance,
       .engine = Engine::Norm,
       .samples_apart = true,
       .channels_apart = true,
       .cpu = {CpuList::LargeChips}},
      {.name = "GroupNormalization",
       .summary = "normalization of groups of channels of each image",
       .inputs = {3, 3},
       .attributes = {attr_float("epsilon", 1e-5), required(attr_int("num_groups")), attr_int("stash_type", 1)},
       .infer = infer_group,
       .run = run_group,
       .engine = Engine::Norm,
       .samples_apart = true},
  };
  return defs;
}
}  // namespace orknn::ops
