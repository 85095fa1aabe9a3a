// Convolutions: channels last becomes channels first around them, weights OHWI become OIHW.
#include <algorithm>

#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// A convolution with its fused activation, which the option `activation` names.
Result<TensorId> convolve(Layer& l, TensorId x, const Layer::WindowFields& fields, const std::vector<int64_t>& permutation,
                          unsigned activation) {
  ORKNN_TRY_ASSIGN(const Window window, l.window(fields));
  return in_channels_first(l, {true, fields.strides.size()}, x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, permutation));
    ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
    ORKNN_TRY_ASSIGN(const TensorId y, convolution(l, first, w, bias, window));
    return l.activate_by(y, activation);
  });
}

Result<TensorId> conv_2d(Layer& l, TensorId x) {
  return convolve(l, x, {.strides = {2, 1}, .dilations = {5, 4}}, {0, 3, 1, 2}, 3);
}
// One input channel per group.
Result<TensorId> depthwise_conv_2d(Layer& l, TensorId x) {
  ORKNN_TRY(l.need_dims(x, "to convolve its channels one by one").status());
  return convolve(l, x, {.strides = {2, 1}, .dilations = {6, 5}}, {3, 0, 1, 2}, 4);
}

const Layer::WindowFields kVolume{.strides = {1, 3, 2}, .dilations = {5, 7, 6}};
Result<TensorId> conv_3d(Layer& l, TensorId x) { return convolve(l, x, kVolume, {4, 3, 0, 1, 2}, 4); }

// The first input states the output shape. Where it is computed while running, the output's own shape is what the converter
// found.
Result<TensorId> transposed(Layer& l, const Layer::WindowFields& fields, const std::vector<int64_t>& permutation,
                            unsigned activation) {
  ORKNN_TRY_ASSIGN(Window window, l.window(fields));
  const size_t spatial = fields.strides.size();
  window.dilations.resize(spatial, 1);
  ORKNN_TRY_ASSIGN(const TensorId shape, l.stored(0));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> dims, l.constant_of(shape) ? l.ints(0, "to size the output") : l.stated_shape());
  if (dims.size() != spatial + 2)
    return invalid_model("the stated output shape has the wrong length")
        .expected(std::to_string(spatial + 2))
        .found(to_string(dims));
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(2));
  return in_channels_first(l, {true, spatial}, x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, permutation));
    ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(3, 2, 1));
    ORKNN_TRY_ASSIGN(const TensorId y, transposed_convolution(l, first, w, bias, window, {dims.begin() + 1, dims.end() - 1}));
    return l.activate_by(y, activation);
  });
}
Result<TensorId> transpose_conv(Layer& l) { return transposed(l, {.strides = {2, 1}}, {3, 0, 1, 2}, 3); }
Result<TensorId> conv_3d_transpose(Layer& l) { return transposed(l, kVolume, {4, 3, 0, 1, 2}, 4); }

// MediaPipe's: the stride decides how much SAME cuts.
Result<TensorId> transposed_with_bias(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> fields, l.custom_fields(3));
  Window window{.strides = {fields[2], fields[1]}, .pads_begin = {0, 0}, .pads_end = {0, 0}};
  ORKNN_TRY(window.check());
  return in_channels_first(l, {}, x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {3, 0, 1, 2}));
    ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
    ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(first, "to size the transposed convolution"));
    ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(w, "to size the transposed convolution"));
    constexpr int64_t kSame = 1;
    for (size_t i = 0; fields[0] == kSame && i < 2; ++i) {
      const int64_t cut = std::max<int64_t>(0, kernel[i + 2] - (image[i + 2] - 1) % window.strides[i] - 1);
      window.pads_begin[i] = cut / 2;
      window.pads_end[i] = cut - cut / 2;
    }
    return l.emit("ConvTranspose", Filter{w, bias}.inputs(first), window.attributes());
  });
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"CONV_2D", conv_2d},
      {"DEPTHWISE_CONV_2D", depthwise_conv_2d},
      {"CONV_3D", conv_3d},
      {"TRANSPOSE_CONV", transpose_conv},
      {"CONV_3D_TRANSPOSE", conv_3d_transpose},
  };
  return rows;
}

std::span<const Row> custom_convolution_rows() {
  static const Row rows[] = {{"Convolution2DTransposeBias", transposed_with_bias}};
  return rows;
}

}  // namespace orknn::importer::tflite
