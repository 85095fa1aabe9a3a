#include "import/lower/norms.h"

#include <algorithm>

#include "import/lower/functions.h"

namespace orknn::importer {
using namespace ir;

namespace {
TensorId parameter(Emitter& e, TensorId given, const Dims& dims, double fallback, DType dtype) {
  return given ? e.cast(given, dtype) : e.full(dims, fallback, dtype);
}

// The extent of the channels.
Result<int64_t> channels_of(Emitter& e, TensorId x, size_t least_rank, const char* problem) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to normalize it"));
  if (dims.size() < least_rank) return invalid_model(problem).found(to_string(dims));
  return dims[1];
}

Status check_trailing(Emitter& e, TensorId x, const Dims& wanted) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to normalize it"));
  if (!wanted.empty() && wanted.size() <= dims.size() && std::equal(wanted.rbegin(), wanted.rend(), dims.rbegin())) return {};
  return shape_mismatch("the normalized shape does not fit the input")
      .expected("the end of " + to_string(dims))
      .found(to_string(wanted));
}
}  // namespace

Moments moments(Emitter& e, TensorId x, const std::vector<int64_t>& axes, bool keep) {
  const TensorId mean = e.reduce("ReduceMean", x, axes, true);
  const TensorId variance = e.reduce("ReduceMean", square(e, e.sub(x, mean)), axes, keep);
  return {keep ? mean : e.squeeze(mean, axes), variance};
}

TensorId standardized(Emitter& e, TensorId x, const std::vector<int64_t>& axes, double epsilon) {
  const TensorId deviation = e.sub(x, e.reduce("ReduceMean", x, axes, true));
  const TensorId variance = e.reduce("ReduceMean", square(e, deviation), axes, true);
  return e.div(deviation, e.unary("Sqrt", e.add(variance, epsilon)));
}

TensorId per_channel(Emitter& e, TensorId vector, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), 1);
  shape[0] = -1;
  return e.reshape(vector, shape);
}

Result<TensorId> batch_norm(Emitter& e, TensorId x, const NormParameters& p, const Moments& stored) {
  ORKNN_TRY_ASSIGN(const int64_t channels, channels_of(e, x, 2, "batch normalization needs channels"));
  const DType t = e.dtype_of(x);
  if (stored.mean && stored.variance)
    return e.emit("BatchNormalization",
                  {x, parameter(e, p.scale, {channels}, 1, t), parameter(e, p.shift, {channels}, 0, t), e.cast(stored.mean, t),
                   e.cast(stored.variance, t)},
                  {{"epsilon", p.epsilon}});
  const int64_t rank = *e.rank_of(x);
  std::vector<int64_t> axes{0};
  for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
  TensorId y = standardized(e, x, axes, p.epsilon);
  if (p.scale) y = e.mul(y, per_channel(e, p.scale, rank));
  return p.shift ? e.add(y, per_channel(e, p.shift, rank)) : y;
}

Result<TensorId> instance_norm(Emitter& e, TensorId x, const NormParameters& p) {
  ORKNN_TRY_ASSIGN(const int64_t channels, channels_of(e, x, 3, "instance normalization needs images"));
  const DType t = e.dtype_of(x);
  return e.emit("InstanceNormalization", {x, parameter(e, p.scale, {channels}, 1, t), parameter(e, p.shift, {channels}, 0, t)},
                {{"epsilon", p.epsilon}});
}

Result<TensorId> group_norm(Emitter& e, TensorId x, int64_t groups, const NormParameters& p) {
  ORKNN_TRY_ASSIGN(const int64_t channels, channels_of(e, x, 2, "group normalization needs channels"));
  if (groups < 1 || channels % groups != 0)
    return invalid_model("the channels do not divide into groups")
        .found(std::to_string(channels) + " channels, " + std::to_string(groups) + " groups");
  const DType t = e.dtype_of(x);
  return e.emit("GroupNormalization", {x, parameter(e, p.scale, {channels}, 1, t), parameter(e, p.shift, {channels}, 0, t)},
                {{"epsilon", p.epsilon}, {"num_groups", groups}});
}

Result<TensorId> layer_norm(Emitter& e, TensorId x, const Dims& dims, const NormParameters& p) {
  ORKNN_TRY(check_trailing(e, x, dims));
  std::vector<TensorId> inputs{x, parameter(e, p.scale, dims, 1, e.dtype_of(x))};
  if (p.shift) inputs.push_back(e.cast(p.shift, e.dtype_of(x)));
  return e.emit("LayerNormalization", std::move(inputs), {{"axis", -static_cast<int64_t>(dims.size())}, {"epsilon", p.epsilon}});
}

Result<TensorId> rms_norm(Emitter& e, TensorId x, const Dims& dims, const NormParameters& p) {
  ORKNN_TRY(check_trailing(e, x, dims));
  return e.emit("RMSNormalization", {x, parameter(e, p.scale, dims, 1, e.dtype_of(x))},
                {{"axis", -static_cast<int64_t>(dims.size())}, {"epsilon", p.epsilon}});
}

TensorId l2_normalized(Emitter& e, TensorId x, const std::vector<int64_t>& axes, double epsilon) {
  const TensorId sum = e.reduce("ReduceSum", square(e, x), axes, true);
  return e.div(x, e.unary("Sqrt", e.add(sum, epsilon)));
}

}  // namespace orknn::importer
