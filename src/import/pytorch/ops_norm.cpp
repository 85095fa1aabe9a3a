// Normalization layers.
#include <numeric>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

TensorId parameter(Call& c, std::string_view name, int64_t count, double fallback) {
  const DType t = c.dtype("input");
  return c.has(name) ? c.cast(c.tensor(name), t) : c.full(Dims{count}, fallback, t);
}
// A vector per channel against [N, C, ...].
TensorId per_channel(Call& c, TensorId vector, int64_t channels, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), 1);
  shape[0] = channels;
  return c.reshape(vector, shape);
}

// Mean and variance of the batch itself.
TensorId by_own_statistics(Call& c, TensorId x, std::vector<int64_t> axes, double eps) {
  const DType t = c.dtype_of(x);
  const TensorId deviation = c.sub(x, c.reduce("ReduceMean", x, axes, true));
  const TensorId variance = c.reduce("ReduceMean", c.mul(deviation, deviation), axes, true);
  return c.div(deviation, c.emit("Sqrt", {c.add(variance, c.scalar(eps, t))}));
}

Result<Value> batch_normalized(Call& c, bool by_batch) {
  const int64_t rank = c.rank("input");
  if (rank < 2) return invalid_model("batch normalization needs channels").found(ir::to_string(c.dims("input")));
  const int64_t channels = c.dims("input")[1];
  const TensorId x = c.tensor("input");
  if (by_batch && c.has("running_mean") && c.has("running_var")) {
    c.warn_of_training("batch normalization");
    by_batch = false;
  }
  if (by_batch || !c.has("running_mean") || !c.has("running_var")) {
    std::vector<int64_t> axes{0};
    for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
    TensorId y = by_own_statistics(c, x, axes, c.number("eps"));
    if (c.has("weight")) y = c.mul(y, per_channel(c, c.tensor("weight"), channels, rank));
    if (c.has("bias")) y = c.add(y, per_channel(c, c.tensor("bias"), channels, rank));
    return c.made(y);
  }
  return c.made(c.emit("BatchNormalization",
                       {x, parameter(c, "weight", channels, 1), parameter(c, "bias", channels, 0),
                        parameter(c, "running_mean", channels, 0), parameter(c, "running_var", channels, 1)},
                       {{"epsilon", c.number("eps")}}));
}
Result<Value> batch_norm(Call& c) { return batch_normalized(c, c.flag("training")); }
// Forms with more results: what was saved for training is not needed.
Result<Value> native_batch_norm(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, batch_normalized(c, c.flag("training")));
  return c.tuple({y, Value::uninitialized(), Value::uninitialized()});
}
Result<Value> batch_norm_no_training(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, batch_normalized(c, false));
  return c.tuple({y, Value::uninitialized(), Value::uninitialized()});
}

Result<Value> instance_norm(Call& c) {
  if (!c.flag("use_input_stats")) return batch_normalized(c, false);
  const int64_t rank = c.rank("input");
  if (rank < 3) return invalid_model("instance normalization needs images").found(ir::to_string(c.dims("input")));
  const int64_t channels = c.dims("input")[1];
  return c.made(c.emit("InstanceNormalization",
                       {c.tensor("input"), parameter(c, "weight", channels, 1), parameter(c, "bias", channels, 0)},
                       {{"epsilon", c.number("eps")}}));
}

Result<Value> group_norm(Call& c) {
  if (c.rank("input") < 2) return invalid_model("group normalization needs channels").found(ir::to_string(c.dims("input")));
  const int64_t channels = c.dims("input")[1], groups = c.integer("num_groups");
  if (groups < 1 || channels % groups != 0)
    return invalid_model("the channels do not divide into groups")
        .found(std::to_string(channels) + " channels, " + std::to_string(groups) + " groups");
  return c.made(c.emit("GroupNormalization",
                       {c.tensor("input"), parameter(c, "weight", channels, 1), parameter(c, "bias", channels, 0)},
                       {{"epsilon", c.number("eps")}, {"num_groups", groups}}));
}
Result<Value> native_group_norm(Call& c) {
  const int64_t channels = c.rank("input") < 2 ? 0 : c.dims("input")[1], groups = c.integer("group");
  if (groups < 1 || channels % groups != 0) return invalid_model("the channels do not divide into groups");
  ORKNN_TRY_ASSIGN(const Value y,
                   c.made(c.emit("GroupNormalization",
                                 {c.tensor("input"), parameter(c, "weight", channels, 1), parameter(c, "bias", channels, 0)},
                                 {{"epsilon", c.number("eps")}, {"num_groups", groups}})));
  return c.tuple({y, Value::uninitialized(), Value::uninitialized()});
}

// The trailing axes that a layer normalizes over.
Result<Dims> normalized_dims(Call& c) {
  const Dims wanted = c.ints("normalized_shape"), &dims = c.dims("input");
  if (wanted.empty() || wanted.size() > dims.size() || !std::equal(wanted.rbegin(), wanted.rend(), dims.rbegin()))
    return shape_mismatch("the normalized shape does not fit the input")
        .expected("the end of " + ir::to_string(dims))
        .found(ir::to_string(wanted));
  return wanted;
}
TensorId shaped_parameter(Call& c, std::string_view name, const Dims& dims, double fallback) {
  const DType t = c.dtype("input");
  return c.has(name) ? c.cast(c.tensor(name), t) : c.full(dims, fallback, t);
}
Result<TensorId> layer_normalized(Call& c) {
  ORKNN_TRY_ASSIGN(const Dims dims, normalized_dims(c));
  std::vector<TensorId> inputs{c.tensor("input"), shaped_parameter(c, "weight", dims, 1)};
  if (c.has("bias")) inputs.push_back(shaped_parameter(c, "bias", dims, 0));
  return c.emit("LayerNormalization", std::move(inputs),
                {{"axis", -static_cast<int64_t>(dims.size())}, {"epsilon", c.number("eps")}});
}
Result<Value> layer_norm(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId y, layer_normalized(c));
  return c.made(y);
}
Result<Value> native_layer_norm(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId y, layer_normalized(c));
  ORKNN_TRY_ASSIGN(const Value v, c.made(y));
  return c.tuple({v, Value(), Value()});
}
Result<Value> rms_norm(Call& c) {
  ORKNN_TRY_ASSIGN(const Dims dims, normalized_dims(c));
  const DType t = c.dtype("input");
  const double smallest = t == DType::Float64   ? 2.220446049250313e-16
                          : t == DType::Float16 ? 0.0009765625
                                                : 1.1920928955078125e-07;
  return c.made(c.emit("RMSNormalization", {c.tensor("input"), shaped_parameter(c, "weight", dims, 1)},
                       {{"axis", -static_cast<int64_t>(dims.size())}, {"epsilon", c.has("eps") ? c.number("eps") : smallest}}));
}
Result<Value> fused_rms_norm(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, rms_norm(c));
  return c.tuple({y, Value()});
}

// v scaled to length g along all axes but one.
Result<Value> weight_norm(Call& c) {
  const int64_t rank = c.rank("v");
  const int64_t kept = c.integer("dim");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (kept == -1 || i != kept) axes.push_back(i);
  const TensorId v = c.tensor("v");
  const TensorId length = c.reduce("ReduceL2", v, axes, true);
  return c.made(c.mul(v, c.div(c.tensor("g"), length)));
}
Result<Value> weight_norm_interface(Call& c) {
  ORKNN_TRY_ASSIGN(const Value w, weight_norm(c));
  return c.tuple({w, Value()});
}
}  // namespace

std::span<const Row> norm_rows() {
  static constexpr Row kRows[] = {
      {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float "
       "momentum, float eps, any cudnn=None)",
       batch_norm},
      {"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
       "float momentum, float eps)",
       native_batch_norm},
      {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float momentum, float eps)",
       native_batch_norm},
      {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, Tensor? "
       "running_mean=None, Tensor? running_var=None)",
       native_batch_norm},
      {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
       "running_var, float momentum, float eps)",
       batch_norm_no_training},
      {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "use_input_stats, "
       "float momentum, float eps, any cudnn=None)",
       instance_norm},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, any cudnn=None)",
       group_norm},
      {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, any n, any c, any hw, int group, float eps)",
       native_group_norm},
      {"layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, any "
       "cudnn=None)",
       layer_norm},
      {"native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)", native_layer_norm},
      {"rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)", rms_norm},
      {"_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)", fused_rms_norm},
      {"_weight_norm(Tensor v, Tensor g, int dim=0)", weight_norm},
      {"_weight_norm_interface(Tensor v, Tensor g, int dim=0)", weight_norm_interface},
      {"norm_except_dim(Tensor v, int pow=2, int dim=0)",
       [](Call& c) {
         std::vector<int64_t> axes;
         for (int64_t i = 0; i < c.rank("v"); ++i)
           if (c.integer("dim") == -1 || i != c.integer("dim")) axes.push_back(i);
         return c.made(c.reduce(c.integer("pow") == 1 ? "ReduceL1" : "ReduceL2", c.tensor("v"), axes, true));
       }},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
