// Layers that normalize: BatchNorm in its variants, MVN, LRN, Normalize, Softmax.
#include "import/caffe/layer.h"
#include "import/lower/functions.h"
#include "import/lower/norms.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
TensorId scaled_and_shifted(Layer& l, TensorId x, TensorId scale, TensorId shift, int64_t channels, int64_t rank) {
  return l.add(l.mul(x, l.along_axis(scale, {channels}, 1, rank)), l.along_axis(shift, {channels}, 1, rank));
}

// Blobs: mean, variance and the factor both were multiplied with; forks that fuse the Scale layer add scale and bias.
Result<TensorId> batch_norm(Layer& l, TensorId x) {
  const Parameters p = l.parameters("batch_norm_param");
  const double epsilon = p.number("eps", 1e-5);
  const bool has_scale = p.flag("scale_bias", l.blob_count() == 5);
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(x, 1, "to read the statistics"));
  ORKNN_TRY_ASSIGN(TensorId scale, l.uniform("ones", {channels}, 1));
  ORKNN_TRY_ASSIGN(TensorId bias, l.uniform("zeros", {channels}, 0));
  if (has_scale) {
    ORKNN_TRY_ASSIGN(scale, l.blob(3, {"scale", {channels}, Fill::Ones}));
    ORKNN_TRY_ASSIGN(bias, l.blob(4, {"bias", {channels}, Fill::Zeros}));
  }
  if (!p.flag("use_global_stats", true)) {  // the batch's own, for networks that say so even in use
    const int64_t rank = *l.rank_of(x);
    const TensorId y = standardized(l, x, joined({0}, axes_between(2, rank)), epsilon);
    return has_scale ? scaled_and_shifted(l, y, scale, bias, channels, rank) : y;
  }
  ORKNN_TRY_ASSIGN(TensorId mean, l.blob(0, {"mean", {channels}, Fill::Zeros}));
  ORKNN_TRY_ASSIGN(TensorId variance, l.blob(1, {"variance", {channels}, Fill::Ones}));
  if (const Blob* factor = l.stored(2); factor && factor->values.count() == 1) {
    const float value = factor->values.as<float>()[0];
    const double inverse = value == 0 ? 0 : 1 / static_cast<double>(value);
    mean = l.scaled(mean, inverse);
    variance = l.scaled(variance, inverse);
  }
  return l.emit("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}

// SegNet's layer: scale and shift, and the statistics unless they were folded before export.
Result<TensorId> fused_batch_norm(Layer& l, TensorId x) {
  const Parameters p = l.parameters("bn_param");
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(x, 1, "to read the statistics"));
  ORKNN_TRY_ASSIGN(const TensorId scale, l.blob(0, {"scale", {channels}, Fill::Ones}));
  ORKNN_TRY_ASSIGN(const TensorId shift, l.blob(1, {"shift", {channels}, Fill::Zeros}));
  const bool has_statistics = l.blob_count() >= 4 || (l.blob_count() == 0 && p.word("bn_mode", "") != "INFERENCE");
  if (!has_statistics) return scaled_and_shifted(l, x, scale, shift, channels, *l.rank_of(x));
  ORKNN_TRY_ASSIGN(const TensorId mean, l.blob(2, {"mean", {channels}, Fill::Zeros}));
  ORKNN_TRY_ASSIGN(const TensorId variance, l.blob(3, {"variance", {channels}, Fill::Ones}));
  return l.emit("BatchNormalization", {x, scale, shift, mean, variance}, {{"epsilon", p.number("eps", 1e-5)}});
}

// Divides by the deviation plus epsilon: the epsilon stands outside of the root.
Result<TensorId> mean_variance(Layer& l, TensorId x) {
  const Parameters p = l.parameters("mvn_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize it"));
  const std::vector<int64_t> axes = axes_between(p.flag("across_channels", false) ? 1 : 2, rank);
  if (axes.empty()) return unsupported("there are no axes to normalize over").found(std::to_string(rank) + " axes");
  const TensorId y = l.sub(x, l.reduce("ReduceMean", x, axes, true));
  if (!p.flag("normalize_variance", true)) return y;
  const TensorId variance = l.reduce("ReduceMean", square(l, y), axes, true);
  return l.div(y, l.shifted(l.unary("Sqrt", variance), p.number("eps", 1e-9)));
}

Result<TensorId> local_response(Layer& l, TensorId x) {
  const Parameters p = l.parameters("lrn_param");
  const int64_t size = p.integer("local_size", 5, 1, 4095);
  const double alpha = p.number("alpha", 1), beta = p.number("beta", 0.75);
  if (size % 2 == 0) return invalid_model("'local_size' must be odd").found(std::to_string(size));
  if (p.choice("norm_region", 0, {"ACROSS_CHANNELS", "WITHIN_CHANNEL"}) == 0)
    return l.emit("LRN", {x}, {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", p.number("k", 1)}});
  const std::vector<int64_t> pads(2, (size - 1) / 2);
  const Window window{.kernel = {size, size}, .pads_begin = pads, .pads_end = pads, .counts_padding = true};
  const TensorId mean = l.emit("AveragePool", {square(l, x)}, window.attributes());
  return l.mul(x, l.power(l.shifted(l.scaled(mean, alpha), 1), -beta));
}

// SSD's layer: each pixel (or each image) divided by its length, times a learned scale.
Result<TensorId> normalize(Layer& l, TensorId x) {
  const Parameters p = l.parameters("norm_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize it"));
  if (rank < 2) return unsupported("Normalize needs a channel axis").found(std::to_string(rank) + " axes");
  ORKNN_TRY_ASSIGN(const TensorId scale,
                   l.channel_blob(x, p.flag("channel_shared", true), {"scale", {}, Fill::Ones, 1, p.filler("scale_filler")}));
  const std::vector<int64_t> axes = axes_between(1, p.flag("across_spatial", true) ? rank : 2);
  return l.mul(l2_normalized(l, x, axes, p.number("eps", 1e-10)), scale);
}

TensorId channel_norm(Layer& l, TensorId x) { return l.reduce("ReduceL2", x, {1}, true); }

Result<TensorId> softmax(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, l.parameters("softmax_param"), "axis", 1));
  return l.softmax(x, axis);
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"BatchNorm", batch_norm, kOne},    {"BN|Bn|bn", fused_batch_norm, kOne},         {"MVN", mean_variance, kOne},
      {"LRN", local_response, kOne},      {"Normalize|NormalizeBBox", normalize, kOne}, {"ChannelNorm", channel_norm, kOne},
      {"Softmax|SoftMax", softmax, kOne},
  };
  return rows;
}

}  // namespace orknn::importer::caffe
