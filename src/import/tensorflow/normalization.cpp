// Normalizations and softmax of TensorFlow.
#include <algorithm>

#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// Vectors of one value per channel, shaped to broadcast over a value of this format.
TensorId along_channels(Layer& layer, const DataFormat& format, TensorId v) {
  if (format.channels_last) return v;
  std::vector<int64_t> shape(format.spatial + 1, 1);
  shape[0] = -1;
  return layer.reshape(v, std::move(shape));
}

Result<TensorId> with_statistics(Layer& layer, const DataFormat& format, TensorId x, TensorId scale, TensorId offset,
                                 TensorId mean, TensorId variance, double epsilon) {
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(layer, format, x));
  const TensorId y = layer.emit("BatchNormalization", {first, scale, offset, mean, variance}, {{"epsilon", epsilon}});
  return from_channels_first(layer, format, y);
}

// Statistics of the batch at hand: graphs frozen in training mode, and instance normalization written as batch normalization.
Status normalize_batch(Layer& layer, const DataFormat& format, TensorId x, TensorId scale, TensorId offset, double epsilon) {
  std::vector<int64_t> axes{0};
  for (size_t i = 0; i < format.spatial; ++i) axes.push_back(static_cast<int64_t>(format.axis(i)));
  const auto mean_of = [&](TensorId v, bool keeps) {
    return layer.emit("ReduceMean", {v, layer.add_ints("axes", axes)}, {{"keepdims", int64_t{keeps}}});
  };
  const TensorId mean = mean_of(x, true), centered = layer.emit("Sub", {x, mean}),
                 squared = layer.emit("Mul", {centered, centered});
  const Shape* shape = layer.shape_of(x);
  const bool is_single = shape && shape->size() == format.spatial + 2 && (*shape)[0].is_known() && (*shape)[0].value() == 1;
  if (is_single) {
    ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(layer, format, x));
    const TensorId y = layer.emit("InstanceNormalization", {first, scale, offset}, {{"epsilon", epsilon}});
    ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, format, y));
    layer.set(0, result);
  } else {
    const TensorId deviation =
        layer.emit("Sqrt", {layer.emit("Add", {mean_of(squared, true), layer.constant_like(x, "epsilon", epsilon)})});
    const TensorId y = layer.emit("Mul", {layer.emit("Div", {centered, deviation}), along_channels(layer, format, scale)});
    layer.set(0, layer.emit("Add", {y, along_channels(layer, format, offset)}));
  }
  // The statistics themselves: the variance of a sample.
  double correction = 1;
  if (const auto dims = layer.dims_of(x)) {
    int64_t count = 1;
    for (int64_t axis : axes) count *= static_cast<size_t>(axis) < dims->size() ? (*dims)[static_cast<size_t>(axis)] : 1;
    if (count > 1) correction = static_cast<double>(count) / static_cast<double>(count - 1);
  }
  const TensorId variance = mean_of(squared, false);
  layer.set(1, mean_of(x, false));
  layer.set(2, layer.emit("Mul", {variance, layer.constant_like(variance, "correction", correction)}));
  layer.set(3, layer.outputs[1]);
  layer.set(4, variance);
  return {};
}

Status lower_fused_batch_norm(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId scale, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId offset, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId mean, layer.input(3));
  ORKNN_TRY_ASSIGN(const TensorId variance, layer.input(4));
  const double epsilon = layer.float_or("epsilon", 1e-4);
  const std::string_view text = layer.string_or("data_format", "NHWC");
  ORKNN_TRY_ASSIGN(const DataFormat format, data_format_of(layer, text.size() == 5 ? 3 : 2));
  if (layer.bool_or("is_training", true)) {
    ORKNN_TRY(normalize_batch(layer, format, x, scale, offset, epsilon));
  } else {
    ORKNN_TRY_ASSIGN(const TensorId y, with_statistics(layer, format, x, scale, offset, mean, variance, epsilon));
    layer.set(0, y);
    for (size_t i = 1; i < 5; ++i) layer.set(i, i % 2 ? mean : variance);
  }
  // _FusedBatchNormEx adds another value and an activation.
  TensorId y = layer.outputs[0].tensor;
  if (layer.int_or("num_side_inputs", 0) == 1) {
    ORKNN_TRY_ASSIGN(const TensorId side, layer.input(5));
    y = layer.emit("Add", {y, side});
  }
  const std::string_view activation = layer.string_or("activation_mode", "Identity");
  if (activation == "Relu")
    y = layer.emit("Relu", {y});
  else if (activation != "Identity")
    return unsupported("the fused activation is not supported").found(std::string(activation));
  layer.outputs[0] = y;
  return {};
}

// The first form of batch normalization: inputs t, mean, variance, beta, gamma.
Status lower_global_normalization(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId mean, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId variance, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId beta, layer.input(3));
  ORKNN_TRY_ASSIGN(TensorId gamma, layer.input(4));
  if (!layer.bool_or("scale_after_normalization", false))
    gamma = layer.emit("Expand", {layer.constant_like(gamma, "one", 1), layer.emit("Shape", {gamma})});
  ORKNN_TRY_ASSIGN(const TensorId y,
                   with_statistics(layer, {true, 2}, x, gamma, beta, mean, variance, layer.float_or("variance_epsilon", 1e-3)));
  layer.set(y);
  return {};
}

Status lower_lrn(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const int64_t radius = layer.int_or("depth_radius", 5);
  if (radius < 0 || radius > (1 << 20)) return invalid_model("depth_radius is out of range").found(std::to_string(radius));
  const int64_t size = 2 * radius + 1;
  const DataFormat format{true, 2};
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(layer, format, x));
  // Ours divides alpha by the size, theirs does not.
  const TensorId y = layer.emit("LRN", {first},
                                {{"size", size},
                                 {"alpha", layer.float_or("alpha", 1) * static_cast<double>(size)},
                                 {"beta", layer.float_or("beta", 0.5)},
                                 {"bias", layer.float_or("bias", 1)}});
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, format, y));
  layer.set(result);
  return {};
}

Status lower_softmax(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit(std::string(layer.op()), {x}, {{"axis", int64_t{-1}}}));
  return {};
}
}  // namespace

std::span<const Row> normalization_rows() {
  static constexpr Row kRows[] = {
      {"FusedBatchNorm", lower_fused_batch_norm},
      {"FusedBatchNormV2", lower_fused_batch_norm},
      {"FusedBatchNormV3", lower_fused_batch_norm},
      {"_FusedBatchNormEx", lower_fused_batch_norm},
      {"BatchNormWithGlobalNormalization", lower_global_normalization},
      {"LRN", lower_lrn},
      {"Softmax", lower_softmax},
      {"LogSoftmax", lower_softmax},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
