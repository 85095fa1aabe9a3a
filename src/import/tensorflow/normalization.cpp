// Normalizations and softmax of TensorFlow.
#include "import/lower/functions.h"
#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> with_statistics(Layer& l, const PictureFormat& format, TensorId x, TensorId scale, TensorId offset,
                                 TensorId mean, TensorId variance, double epsilon) {
  return in_channels_first(l, format, x, [&](TensorId first) {
    return l.emit("BatchNormalization", {first, scale, offset, mean, variance}, {{"epsilon", epsilon}});
  });
}

// Statistics of the batch at hand: graphs frozen in training mode, and instance normalization written as batch normalization.
Result<std::vector<TensorId>> normalize_batch(Layer& l, const PictureFormat& format, TensorId x, TensorId scale, TensorId offset,
                                              double epsilon) {
  std::vector<int64_t> axes{0};
  for (size_t i = 0; i < format.spatial; ++i) axes.push_back(static_cast<int64_t>(format.axis(i)));
  const auto mean_of = [&](TensorId v, bool keeps) { return l.reduce("ReduceMean", v, axes, keeps); };
  const TensorId centered = l.sub(x, mean_of(x, true)), squared = square(l, centered);
  const Shape* shape = l.shape_of(x);
  TensorId y;
  if (shape && shape->size() == format.spatial + 2 && (*shape)[0].is_known() && (*shape)[0].value() == 1) {
    ORKNN_TRY_ASSIGN(y, in_channels_first(l, format, x, [&](TensorId first) {
                       return l.emit("InstanceNormalization", {first, scale, offset}, {{"epsilon", epsilon}});
                     }));
  } else {
    const TensorId deviation = l.unary("Sqrt", l.add(mean_of(squared, true), epsilon));
    const TensorId scaled = l.mul(l.div(centered, deviation), along_channels(l, format, scale));
    y = l.add(scaled, along_channels(l, format, offset));
  }
  // The statistics themselves: the variance of a sample.
  double correction = 1;
  if (const auto dims = l.dims_of(x)) {
    int64_t count = 1;
    for (int64_t axis : axes) count *= static_cast<size_t>(axis) < dims->size() ? (*dims)[static_cast<size_t>(axis)] : 1;
    if (count > 1) correction = static_cast<double>(count) / static_cast<double>(count - 1);
  }
  const TensorId mean = mean_of(x, false), variance = mean_of(squared, false);
  return std::vector{y, mean, l.mul(variance, correction), mean, variance};
}

Result<std::vector<TensorId>> fused_batch_norm(Layer& l, TensorId x, TensorId scale, TensorId offset, TensorId mean,
                                               TensorId variance) {
  const double epsilon = l.float_or("epsilon", 1e-4);
  ORKNN_TRY_ASSIGN(const PictureFormat format, data_format_of(l, l.string_or("data_format", "NHWC").size() == 5 ? 3 : 2));
  std::vector<TensorId> outputs{{}, mean, variance, mean, variance};
  if (l.bool_or("is_training", true)) {
    ORKNN_TRY_ASSIGN(outputs, normalize_batch(l, format, x, scale, offset, epsilon));
  } else {
    ORKNN_TRY_ASSIGN(outputs[0], with_statistics(l, format, x, scale, offset, mean, variance, epsilon));
  }
  // _FusedBatchNormEx adds another value and an activation.
  if (l.int_or("num_side_inputs", 0) == 1) {
    ORKNN_TRY_ASSIGN(const TensorId side, l.operand(5));
    outputs[0] = l.add(outputs[0], side);
  }
  const std::string_view activation = l.string_or("activation_mode", "Identity");
  if (activation == "Relu")
    outputs[0] = l.unary("Relu", outputs[0]);
  else if (activation != "Identity")
    return unsupported("the fused activation is not supported").found(std::string(activation));
  return outputs;
}

// The first form of batch normalization.
Result<TensorId> global_normalization(Layer& l, TensorId x, TensorId mean, TensorId variance, TensorId beta, TensorId gamma) {
  if (!l.bool_or("scale_after_normalization", false)) gamma = ones_like(l, gamma);
  return with_statistics(l, {}, x, gamma, beta, mean, variance, l.float_or("variance_epsilon", 1e-3));
}

Result<TensorId> lrn(Layer& l, TensorId x) {
  return local_response_normalization(l, x, l.int_or("depth_radius", 5), l.float_or("bias", 1), l.float_or("alpha", 1),
                                      l.float_or("beta", 0.5));
}

template <OpName Op>
TensorId along_last(Emitter& e, TensorId x) {
  return e.emit(Op.string(), {x}, {{"axis", int64_t{-1}}});
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"FusedBatchNorm|FusedBatchNormV2|FusedBatchNormV3|_FusedBatchNormEx", fused_batch_norm},
      {"BatchNormWithGlobalNormalization", global_normalization},
      {"LRN", lrn},
      {"Softmax", along_last<"Softmax">},
      {"LogSoftmax", along_last<"LogSoftmax">},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
