#include "import/pytorch/normalization.h"

#include "import/lower/norms.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
using ir::TensorId;

Result<TensorId> group_norm_layer(Call& c, TensorId x, TensorId weight, TensorId bias) {
  return group_norm(c, x, c.integer("num_groups"), {weight, bias, c.number("eps")});
}
Result<TensorId> layer_norm_layer(Call& c, TensorId x, TensorId weight, TensorId bias) {
  return layer_norm(c, x, c.ints("normalized_shape"), {weight, bias, c.number("eps")});
}
Result<TensorId> batch_norm_by_stored(Call& c, TensorId x, TensorId weight, TensorId bias, TensorId mean, TensorId variance) {
  return batch_norm(c, x, {weight, bias, c.number("eps")}, {mean, variance});
}
Result<TensorId> instance_norm_by_own(Call& c, TensorId x, TensorId weight, TensorId bias) {
  return instance_norm(c, x, {weight, bias, c.number("eps")});
}

namespace {
// The arguments come in different orders. Statistics of the batch only count where none are stored.
Result<TensorId> batch_norm_layer(Call& c) {
  const TensorId mean = c.optional_tensor("running_mean"), variance = c.optional_tensor("running_var");
  if (c.flag("training") && mean && variance) c.warn_of_training("batch normalization");
  return batch_norm_by_stored(c, c.tensor("input"), c.optional_tensor("weight"), c.optional_tensor("bias"), mean, variance);
}
Result<TensorId> instance_norm_layer(Call& c, TensorId x, TensorId weight, TensorId bias, TensorId mean, TensorId variance) {
  return c.flag("use_input_stats") ? instance_norm_by_own(c, x, weight, bias)
                                   : batch_norm_by_stored(c, x, weight, bias, mean, variance);
}
Result<TensorId> native_group_norm(Call& c, TensorId x, TensorId weight, TensorId bias) {
  return group_norm(c, x, c.integer("group"), {weight, bias, c.number("eps")});
}
Result<TensorId> rms_norm_layer(Call& c, TensorId x, TensorId weight) {
  const DType t = c.dtype_of(x);
  const double smallest = t == DType::Float64   ? 2.220446049250313e-16
                          : t == DType::Float16 ? 0.0009765625
                                                : 1.1920928955078125e-07;
  return rms_norm(c, x, c.ints("normalized_shape"), {weight, {}, c.number_or("eps", smallest)});
}

// The length of v along all axes but one, or along all.
TensorId length_except(Call& c, const char* op, TensorId v) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("v"); ++i)
    if (c.integer("dim") == -1 || i != c.integer("dim")) axes.push_back(i);
  return c.reduce(op, v, axes, true);
}
TensorId weight_norm(Call& c, TensorId v, TensorId g) { return c.mul(v, c.div(g, length_except(c, "ReduceL2", v))); }
TensorId norm_except_dim(Call& c, TensorId v) { return length_except(c, c.integer("pow") == 1 ? "ReduceL1" : "ReduceL2", v); }

#define ORKNN_STORED "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"batch_norm(" ORKNN_STORED "bool training, float momentum, float eps, any cudnn=None)", batch_norm_layer},
      {"native_batch_norm|_native_batch_norm_legit(" ORKNN_STORED "bool training, float momentum, float eps)",
       with_unused<batch_norm_layer, 2>},
      {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, Tensor? "
       "running_mean=None, Tensor? running_var=None)",
       with_unused<batch_norm_layer, 2>},
      {"_native_batch_norm_legit_no_training(" ORKNN_STORED "float momentum, float eps)", with_unused<batch_norm_by_stored, 2>},
      {"instance_norm(" ORKNN_STORED "bool use_input_stats, float momentum, float eps, any cudnn=None)", instance_norm_layer},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, any cudnn=None)",
       group_norm_layer},
      {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, any n, any c, any hw, int group, float eps)",
       with_unused<native_group_norm, 2>},
      {"layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, any "
       "cudnn=None)",
       layer_norm_layer},
      {"native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)",
       with_unused<layer_norm_layer, 2>},
      {"rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)", rms_norm_layer},
      {"_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)", with_unused<rms_norm_layer, 1>},
      {"_weight_norm(Tensor v, Tensor g, int dim=0)", weight_norm},
      {"_weight_norm_interface(Tensor v, Tensor g, int dim=0)", with_unused<weight_norm, 1>},
      {"norm_except_dim(Tensor v, int pow=2, int dim=0)", norm_except_dim},
  };
  return rows;
}
#undef ORKNN_STORED

}  // namespace orknn::importer::pytorch
