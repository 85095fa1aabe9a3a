// Normalizations. Batch, layer and group normalization hand out their statistics beside the result.
#include <numeric>

#include "import/lower/functions.h"
#include "import/lower/norms.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

Result<std::vector<TensorId>> batch_norm(Layer& l, TensorId x) {
  int64_t axis = l.integer("axis", 1);
  const auto rank = l.rank_of(x);
  if (axis < 0) {
    ORKNN_TRY_ASSIGN(const int64_t known_rank, l.need_rank(x, "to find the channels"));
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, known_rank));
  }
  if (rank && axis >= *rank)
    return invalid_model("illegal axis").expected("less than " + std::to_string(*rank)).found(std::to_string(axis));
  const int64_t channels = l.extent_of(x, axis);
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(TensorId gamma, l.vector(1, "gamma", channels, Fill::Ones, dtype));
  ORKNN_TRY_ASSIGN(const TensorId beta, l.vector(2, "beta", channels, Fill::Zeros, dtype));
  ORKNN_TRY_ASSIGN(const TensorId mean, l.vector(3, "moving_mean", channels, Fill::Zeros, dtype));
  ORKNN_TRY_ASSIGN(const TensorId variance, l.vector(4, "moving_var", channels, Fill::Ones, dtype));
  if (l.flag("fix_gamma", true)) {  // whatever the file holds, it means 1
    ORKNN_TRY_ASSIGN(const Dims gamma_dims, l.need_dims(gamma, "to replace it by ones"));
    gamma = l.expand(l.add_scalar("one", 1.0, dtype), gamma_dims);
  }
  const bool is_moved = axis != 1 && rank && *rank > 1;  // the axis takes the place of the channels
  if (is_moved) x = l.swap_axes(x, 1, axis);
  const double epsilon = l.number("eps", 1e-3);
  const TensorId y = l.emit("BatchNormalization", {x, gamma, beta, mean, variance}, {{"epsilon", epsilon}});
  // "var" is what the data was multiplied by.
  return std::vector{is_moved ? l.swap_axes(y, 1, axis) : y, mean, rsqrt(l, l.add(variance, epsilon))};
}

namespace {
Result<std::vector<TensorId>> batch_norm_with_relu(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<TensorId> results, batch_norm(l, x));
  results[0] = l.unary("Relu", results[0]);
  return results;
}

// Factors and terms of a normalization with so many of them.
struct Affine {
  TensorId gamma, beta;
};
Result<Affine> affine_of(Layer& l, TensorId x, int64_t count) {
  Affine a;
  ORKNN_TRY_ASSIGN(a.gamma, l.vector(1, "gamma", count, Fill::Ones, l.dtype_of(x)));
  ORKNN_TRY_ASSIGN(a.beta, l.vector(2, "beta", count, Fill::Zeros, l.dtype_of(x)));
  return a;
}

Result<TensorId> instance_norm(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Affine a, affine_of(l, x, l.extent_of(x, 1)));
  return l.emit("InstanceNormalization", {x, a.gamma, a.beta}, {{"epsilon", l.number("eps", 1e-3)}});
}

// The result, and mean and standard deviation where they are asked for.
std::vector<TensorId> with_moments(Layer& l, TensorId y, TensorId x, const std::vector<int64_t>& axes, double epsilon,
                                   bool keep) {
  if (!l.flag("output_mean_var", false)) return {y};
  const Moments m = importer::moments(l, x, axes, keep);
  return {y, m.mean, l.unary("Sqrt", l.add(m.variance, epsilon))};
}

Result<std::vector<TensorId>> layer_norm(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", -1, rank));
  const double epsilon = l.number("eps", 1e-5);
  ORKNN_TRY_ASSIGN(const Affine a, affine_of(l, x, l.extent_of(x, axis)));
  const TensorId y =
      l.emit("LayerNormalization", {l.swap_axes(x, axis, -1), a.gamma, a.beta}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return with_moments(l, l.swap_axes(y, axis, -1), x, {axis}, epsilon, true);
}

Result<std::vector<TensorId>> group_norm(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to form groups"));
  const int64_t groups = l.integer("num_groups", 1);
  if (dims.size() < 3 || groups < 1 || dims[1] % groups != 0)
    return invalid_model("the channels do not divide into groups")
        .expected("a multiple of " + std::to_string(groups) + " channels")
        .found(to_string(dims));
  const double epsilon = l.number("eps", 1e-5);
  ORKNN_TRY_ASSIGN(Affine a, affine_of(l, x, groups));
  for (TensorId* p : {&a.gamma, &a.beta}) {  // 1.6 to 1.9 keep one factor per group, later versions one per channel
    ORKNN_TRY_ASSIGN(const Dims have, l.need_dims(*p, "to apply it"));
    if (element_count(have) != dims[1]) {
      if (element_count(have) != groups)
        return shape_mismatch("the factors do not fit the groups").expected(std::to_string(groups)).found(to_string(have));
      *p = l.expand(l.reshape(*p, {groups, 1}), Dims{groups, dims[1] / groups});
    }
    *p = l.reshape(*p, {dims[1]});
  }
  const TensorId y = l.emit("GroupNormalization", {x, a.gamma, a.beta}, {{"num_groups", groups}, {"epsilon", epsilon}});
  return with_moments(l, y, l.reshape(x, {dims[0], groups, -1}), {2}, epsilon, false);
}

Result<TensorId> l2_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize it"));
  const std::string mode = l.text("mode", "instance");
  if (mode != "instance" && mode != "channel" && mode != "spatial")
    return unsupported("unknown mode").expected("instance, channel or spatial").found(mode);
  const int64_t first = mode == "spatial" ? 2 : 1;
  if (first >= rank) return shape_mismatch("the data has too few axes for mode " + mode).found(std::to_string(rank));
  std::vector<int64_t> axes(mode == "channel" ? 1 : static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return l2_normalized(l, x, axes, l.number("eps", 1e-10));
}

Result<TensorId> lrn(Layer& l, TensorId x) {
  const int64_t size = l.integer("nsize", 5);
  if (size < 1) return invalid_model("illegal nsize").found(std::to_string(size));
  return l.emit(
      "LRN", {x},
      {{"size", size}, {"alpha", l.number("alpha", 1e-4)}, {"beta", l.number("beta", 0.75)}, {"bias", l.number("knorm", 2.0)}});
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"BatchNorm|BatchNorm_v1|CuDNNBatchNorm|_contrib_SyncBatchNorm", batch_norm},
      {"_contrib_BatchNormWithReLU", batch_norm_with_relu},
      {"InstanceNorm", instance_norm},
      {"LayerNorm", layer_norm},
      {"GroupNorm", group_norm},
      {"L2Normalization", l2_normalization},
      {"LRN", lrn},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
