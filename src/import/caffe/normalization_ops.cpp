// Layers that normalize: BatchNorm in its variants, MVN, LRN, Normalize, Softmax.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
TensorId reduce(Layer& l, const char* op, TensorId x, std::vector<int64_t> axes, bool keep = true) {
  return l.emit(op, {x, l.add_ints("axes", axes)}, {{"keepdims", int64_t{keep}}});
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> list;
  for (int64_t i = begin; i < end; ++i) list.push_back(i);
  return list;
}

Result<TensorId> vector_blob(Layer& l, size_t i, std::string_view role, int64_t channels, Filling filling) {
  return l.blob(i, {.role = role, .dims = {channels}, .filling = filling});
}

// Statistics of the batch itself, for networks that say so even in use.
Result<TensorId> normalized_by_batch(Layer& l, TensorId x, int64_t rank, double epsilon) {
  std::vector<int64_t> axes = range(2, rank);
  axes.insert(axes.begin(), 0);
  const TensorId centered = l.emit("Sub", {x, reduce(l, "ReduceMean", x, axes)});
  const TensorId variance = reduce(l, "ReduceMean", l.emit("Mul", {centered, centered}), axes);
  return l.emit("Div", {centered, l.emit("Sqrt", {l.shifted(variance, epsilon)})});
}

// Blobs: mean, variance and the factor both were multiplied with; forks that fuse the Scale layer add scale and bias.
Status batch_norm(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("batch_norm_param");
  ORKNN_TRY_ASSIGN(const double epsilon, p.get_double("eps", 1e-5));
  ORKNN_TRY_ASSIGN(const bool by_file, p.get_bool("use_global_stats", true));
  ORKNN_TRY_ASSIGN(const bool has_scale, p.get_bool("scale_bias", l.blob_count() == 5));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to normalize it"));
  if (rank < 2) return unsupported("BatchNorm needs a channel axis").found(std::to_string(rank) + " axes");
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(l.bottom(), 1, "to read the statistics"));
  ORKNN_TRY_ASSIGN(TensorId scale, l.uniform("ones", {channels}, 1));
  ORKNN_TRY_ASSIGN(TensorId bias, l.uniform("zeros", {channels}, 0));
  if (has_scale) {
    ORKNN_TRY_ASSIGN(scale, vector_blob(l, 3, "scale", channels, Filling::Ones));
    ORKNN_TRY_ASSIGN(bias, vector_blob(l, 4, "bias", channels, Filling::Zeros));
  }
  if (!by_file) {
    ORKNN_TRY_ASSIGN(TensorId y, normalized_by_batch(l, l.bottom(), rank, epsilon));
    if (has_scale)
      y = l.emit("Add", {l.emit("Mul", {y, l.along_axis(scale, {channels}, 1, rank)}), l.along_axis(bias, {channels}, 1, rank)});
    return l.set_top(y);
  }
  ORKNN_TRY_ASSIGN(TensorId mean, vector_blob(l, 0, "mean", channels, Filling::Zeros));
  ORKNN_TRY_ASSIGN(TensorId variance, vector_blob(l, 1, "variance", channels, Filling::Ones));
  if (const Blob* factor = l.stored(2); factor && factor->values.count() == 1) {
    const float value = factor->values.as<float>()[0];
    mean = l.scaled(mean, value == 0 ? 0 : 1 / static_cast<double>(value));
    variance = l.scaled(variance, value == 0 ? 0 : 1 / static_cast<double>(value));
  }
  return l.set_top(l.emit("BatchNormalization", {l.bottom(), scale, bias, mean, variance}, {{"epsilon", epsilon}}));
}

// SegNet's layer: scale and shift, and the statistics unless they were folded before export.
Status fused_batch_norm(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("bn_param");
  ORKNN_TRY_ASSIGN(const double epsilon, p.get_double("eps", 1e-5));
  ORKNN_TRY_ASSIGN(const std::string mode, p.get_word("bn_mode", ""));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to normalize it"));
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(l.bottom(), 1, "to read the statistics"));
  ORKNN_TRY_ASSIGN(const TensorId scale, vector_blob(l, 0, "scale", channels, Filling::Ones));
  ORKNN_TRY_ASSIGN(const TensorId shift, vector_blob(l, 1, "shift", channels, Filling::Zeros));
  const bool has_statistics = l.blob_count() >= 4 || (l.blob_count() == 0 && mode != "INFERENCE");
  if (!has_statistics)
    return l.set_top(l.emit("Add", {l.emit("Mul", {l.bottom(), l.along_axis(scale, {channels}, 1, rank)}),
                                    l.along_axis(shift, {channels}, 1, rank)}));
  ORKNN_TRY_ASSIGN(const TensorId mean, vector_blob(l, 2, "mean", channels, Filling::Zeros));
  ORKNN_TRY_ASSIGN(const TensorId variance, vector_blob(l, 3, "variance", channels, Filling::Ones));
  return l.set_top(l.emit("BatchNormalization", {l.bottom(), scale, shift, mean, variance}, {{"epsilon", epsilon}}));
}

// Divides by the deviation plus epsilon: the epsilon stands outside of the root.
Status mean_variance(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("mvn_param");
  ORKNN_TRY_ASSIGN(const bool with_variance, p.get_bool("normalize_variance", true));
  ORKNN_TRY_ASSIGN(const bool across_channels, p.get_bool("across_channels", false));
  ORKNN_TRY_ASSIGN(const double epsilon, p.get_double("eps", 1e-9));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to normalize it"));
  const std::vector<int64_t> axes = range(across_channels ? 1 : 2, rank);
  if (axes.empty()) return unsupported("there are no axes to normalize over").found(std::to_string(rank) + " axes");
  const TensorId centered = l.emit("Sub", {l.bottom(), reduce(l, "ReduceMean", l.bottom(), axes)});
  if (!with_variance) return l.set_top(centered);
  const TensorId variance = reduce(l, "ReduceMean", l.emit("Mul", {centered, centered}), axes);
  return l.set_top(l.emit("Div", {centered, l.shifted(l.emit("Sqrt", {variance}), epsilon)}));
}

Status local_response(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("lrn_param");
  ORKNN_TRY_ASSIGN(const int64_t size, p.get_int("local_size", 5));
  ORKNN_TRY_ASSIGN(const double alpha, p.get_double("alpha", 1));
  ORKNN_TRY_ASSIGN(const double beta, p.get_double("beta", 0.75));
  ORKNN_TRY_ASSIGN(const double k, p.get_double("k", 1));
  ORKNN_TRY_ASSIGN(const std::string region, p.get_word("norm_region", "ACROSS_CHANNELS"));
  if (size < 1 || size > 4096 || size % 2 == 0) return invalid_model("'local_size' must be odd").found(std::to_string(size));
  if (region == "ACROSS_CHANNELS" || region == "0")
    return l.set_top(l.emit("LRN", {l.bottom()}, {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", k}}));
  if (region != "WITHIN_CHANNEL" && region != "1")
    return unsupported("unknown norm_region").expected("ACROSS_CHANNELS or WITHIN_CHANNEL").found(region);
  const std::vector<int64_t> window{size, size}, pads(4, (size - 1) / 2);
  const TensorId mean = l.emit("AveragePool", {l.emit("Mul", {l.bottom(), l.bottom()})},
                               {{"kernel_shape", window}, {"pads", pads}, {"count_include_pad", int64_t{1}}});
  return l.set_top(l.emit("Mul", {l.bottom(), l.power(l.shifted(l.scaled(mean, alpha), 1), -beta)}));
}

// SSD's layer: each pixel (or each image) divided by its length, times a learned scale.
Status normalize(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("norm_param");
  ORKNN_TRY_ASSIGN(const bool across_spatial, p.get_bool("across_spatial", true));
  ORKNN_TRY_ASSIGN(const bool shared, p.get_bool("channel_shared", true));
  ORKNN_TRY_ASSIGN(const double epsilon, p.get_double("eps", 1e-10));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to normalize it"));
  if (rank < 2) return unsupported("Normalize needs a channel axis").found(std::to_string(rank) + " axes");
  int64_t channels = 1;
  if (!shared) {
    ORKNN_TRY_ASSIGN(channels, l.extent(l.bottom(), 1, "to read the scale"));
  }
  if (const Blob* stored = l.stored(0); stored && stored->values.count() == 1) channels = 1;
  ORKNN_TRY_ASSIGN(
      const TensorId scale,
      l.blob(0,
             {.role = "scale", .dims = {channels}, .filling = Filling::Ones, .fan_in = 1, .filler = &p.message("scale_filler")}));
  const TensorId sum =
      reduce(l, "ReduceSum", l.emit("Mul", {l.bottom(), l.bottom()}), across_spatial ? range(1, rank) : std::vector<int64_t>{1});
  const TensorId unit = l.emit("Div", {l.bottom(), l.emit("Sqrt", {l.shifted(sum, epsilon)})});
  return l.set_top(l.emit("Mul", {unit, l.along_axis(scale, {channels}, 1, rank)}));
}

Status channel_norm(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  return l.set_top(reduce(l, "ReduceL2", l.bottom(), {1}));
}

Status softmax(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to find the axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(l.parameters("softmax_param"), "axis", 1, rank));
  return l.set_top(l.emit("Softmax", {l.bottom()}, {{"axis", axis}}));
}
}  // namespace

std::span<const Row> normalization_rows() {
  static constexpr Row kRows[] = {
      {"BatchNorm", batch_norm},     {"BN", fused_batch_norm}, {"Bn", fused_batch_norm}, {"bn", fused_batch_norm},
      {"MVN", mean_variance},        {"LRN", local_response},  {"Normalize", normalize}, {"NormalizeBBox", normalize},
      {"ChannelNorm", channel_norm}, {"Softmax", softmax},     {"SoftMax", softmax},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
