// Convolutions: channels last becomes channels first around them, weights OHWI become OIHW.
#include <algorithm>

#include "import/tflite/graph_builder.h"
#include "import/tflite/window.h"

namespace orknn::importer::tflite {
using namespace ir;

Status Window::check() const {
  for (const auto& [values, what] :
       {std::pair(&strides, "strides"), std::pair(&dilations, "dilations"), std::pair(&kernel, "a window")})
    if (std::any_of(values->begin(), values->end(), [](int64_t v) { return v < 1 || v > kMaxWindow; }))
      return invalid_model("the operator has impossible " + std::string(what))
          .expected("from 1 to " + std::to_string(kMaxWindow))
          .found(to_string(*values));
  if (padding != Padding::Same && padding != Padding::Valid)
    return invalid_model("the padding is unknown").expected("SAME or VALID").found(std::to_string(static_cast<int>(padding)));
  return {};
}

Attributes Window::attributes() const {
  Attributes a{{"auto_pad", std::string(padding == Padding::Same ? "SAME_UPPER" : "VALID")}, {"strides", strides}};
  if (!kernel.empty()) a.set("kernel_shape", kernel);
  if (!dilations.empty()) a.set("dilations", dilations);
  return a;
}

namespace {
// Adds the convolution with bias and fused activation in channels-first order and sets output 0.
Status finish_conv(Layer& l, std::string op, TensorId x, TensorId w, TensorId bias, Attributes attributes,
                   Activation activation) {
  std::vector<TensorId> inputs{x, w};
  if (bias) inputs.push_back(bias);
  ORKNN_TRY_ASSIGN(const TensorId y, l.activate(l.emit(std::move(op), std::move(inputs), std::move(attributes)), activation));
  ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(y));
  return l.set(0, last);
}

Result<TensorId> need_image(Layer& l, size_t i, int64_t rank) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(i));
  ORKNN_TRY_ASSIGN(const int64_t found, l.need_rank(x, "to convolve it"));
  if (found != rank)
    return invalid_model("the input has the wrong number of dimensions")
        .expected(std::to_string(rank))
        .found(std::to_string(found));
  return l.channels_first(x);
}

Status conv_2d(Layer& l) {
  const Table& o = l.options();
  const Window window{static_cast<Padding>(o.number<int8_t>(0)),
                      {},
                      {o.number<int32_t>(2), o.number<int32_t>(1)},
                      {o.number<int32_t>(5, 1), o.number<int32_t>(4, 1)}};
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 0, 4));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {0, 3, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
  Attributes attributes = window.attributes();
  // Weights with fewer input channels than the input has: a grouped convolution.
  const auto image = l.dims_of(x), kernel = l.dims_of(w);
  if (image && kernel && (*kernel)[1] > 0 && (*image)[1] != (*kernel)[1]) {
    if ((*image)[1] % (*kernel)[1] != 0)
      return invalid_model("the weights do not fit the channels of the input")
          .expected("a divisor of " + std::to_string((*image)[1]))
          .found(std::to_string((*kernel)[1]));
    attributes.set("group", (*image)[1] / (*kernel)[1]);
  }
  return finish_conv(l, "Conv", x, w, bias, std::move(attributes), l.activation(3));
}

Status depthwise_conv_2d(Layer& l) {
  const Table& o = l.options();
  const Window window{static_cast<Padding>(o.number<int8_t>(0)),
                      {},
                      {o.number<int32_t>(2), o.number<int32_t>(1)},
                      {o.number<int32_t>(6, 1), o.number<int32_t>(5, 1)}};
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 0, 4));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {3, 0, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
  ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(x, "to convolve its channels one by one"));
  Attributes attributes = window.attributes();
  attributes.set("group", image[1]);
  return finish_conv(l, "Conv", x, w, bias, std::move(attributes), l.activation(4));
}

Status conv_3d(Layer& l) {
  const Table& o = l.options();
  const Window window{static_cast<Padding>(o.number<int8_t>(0)),
                      {},
                      {o.number<int32_t>(1), o.number<int32_t>(3), o.number<int32_t>(2)},
                      {o.number<int32_t>(5, 1), o.number<int32_t>(7, 1), o.number<int32_t>(6, 1)}};
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 0, 5));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {4, 3, 0, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
  return finish_conv(l, "Conv", x, w, bias, window.attributes(), l.activation(4));
}

// The output of a transposed convolution has `wanted` elements along each axis; SAME cuts what is too much, half in front.
Status transposed(Layer& l, TensorId x, TensorId w, TensorId bias, const Window& window, const std::vector<int64_t>& wanted,
                  Activation activation) {
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(x, "to size the transposed convolution"));
  ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(w, "to size the transposed convolution"));
  const size_t axes = wanted.size();
  std::vector<int64_t> pads(2 * axes, 0), extra(axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t stride = window.strides[i], reach = (kernel[i + 2] - 1) * window.dilations[i] + 1;
    const int64_t full = (image[i + 2] - 1) * stride + reach;
    if (wanted[i] < 1 || wanted[i] > INT32_MAX)
      return invalid_model("the stated output shape is impossible").found(to_string(wanted));
    if (window.padding == Padding::Same) {
      const int64_t forward = (wanted[i] + stride - 1) / stride;
      pads[i] = std::max<int64_t>((forward - 1) * stride + reach - wanted[i], 0) / 2;
    }
    const int64_t behind = full - pads[i] - wanted[i];
    pads[axes + i] = std::max<int64_t>(behind, 0);
    extra[i] = std::max<int64_t>(-behind, 0);
    if (extra[i] >= stride && extra[i] > 0 && extra[i] >= window.dilations[i])
      return unsupported("the stated output shape is larger than the transposed convolution reaches")
          .expected("at most " + std::to_string(full + stride - 1))
          .found(std::to_string(wanted[i]));
  }
  Attributes attributes{{"strides", window.strides}, {"dilations", window.dilations}, {"pads", pads}, {"output_padding", extra}};
  return finish_conv(l, "ConvTranspose", x, w, bias, std::move(attributes), activation);
}

// The first input states the output shape. Where it is computed while running, the output's own shape is what the converter
// found.
Result<std::vector<int64_t>> stated_output(Layer& l, size_t rank) {
  std::vector<int64_t> dims;
  ORKNN_TRY_ASSIGN(const TensorId shape, l.stored(0));
  if (l.constant_of(shape)) {
    ORKNN_TRY_ASSIGN(dims, l.ints(0, "to size the output"));
  } else {
    dims = l.output_info(0).shape.to_ints();
  }
  if (dims.size() != rank)
    return invalid_model("the stated output shape has the wrong length").expected(std::to_string(rank)).found(to_string(dims));
  return std::vector<int64_t>(dims.begin() + 1, dims.end() - 1);
}

Status transpose_conv(Layer& l) {
  if (!l.has_output(0)) return {};
  const Table& o = l.options();
  const Window window{static_cast<Padding>(o.number<int8_t>(0)), {}, {o.number<int32_t>(2), o.number<int32_t>(1)}, {1, 1}};
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> wanted, stated_output(l, 4));
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 2, 4));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {3, 0, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(3, 2, 1));
  return transposed(l, x, w, bias, window, wanted, l.activation(3));
}

Status conv_3d_transpose(Layer& l) {
  if (!l.has_output(0)) return {};
  const Table& o = l.options();
  const Window window{static_cast<Padding>(o.number<int8_t>(0)),
                      {},
                      {o.number<int32_t>(1), o.number<int32_t>(3), o.number<int32_t>(2)},
                      {o.number<int32_t>(5, 1), o.number<int32_t>(7, 1), o.number<int32_t>(6, 1)}};
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> wanted, stated_output(l, 5));
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 2, 5));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {4, 3, 0, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(3, 2, 1));
  return transposed(l, x, w, bias, window, wanted, l.activation(4));
}
// MediaPipe's: the stride decides how much SAME cuts, and the options are a C structure of padding, stride width and stride
// height.
Status transposed_with_bias(Layer& l) {
  const auto bytes = l.op().custom_options;
  if (bytes.size() < 12)
    return invalid_model("the options of the custom operator are too short")
        .expected("12 bytes")
        .found(std::to_string(bytes.size()));
  int32_t fields[3];
  std::memcpy(fields, bytes.data(), sizeof fields);
  if (fields[1] < 1 || fields[2] < 1 || fields[1] > kMaxWindow || fields[2] > kMaxWindow)
    return invalid_model("the operator has impossible strides")
        .found(std::to_string(fields[2]) + " and " + std::to_string(fields[1]));
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(l, 0, 4));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {3, 0, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
  ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(x, "to size the transposed convolution"));
  ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(w, "to size the transposed convolution"));
  const std::vector<int64_t> strides{fields[2], fields[1]};
  std::vector<int64_t> pads(4, 0);
  constexpr int32_t kSame = 1;
  for (size_t i = 0; fields[0] == kSame && i < 2; ++i) {
    const int64_t cut = std::max<int64_t>(0, kernel[i + 2] - (image[i + 2] - 1) % strides[i] - 1);
    pads[i] = cut / 2;
    pads[i + 2] = cut - cut / 2;
  }
  return finish_conv(l, "ConvTranspose", x, w, bias, {{"strides", strides}, {"pads", pads}}, Activation::None);
}
}  // namespace

Result<bool> lower_dilated(Layer& l) {
  const Subgraph& g = l.scope().subgraph;
  const auto producer = [&](int32_t tensor) -> const Operator* {  // of a tensor nobody else reads
    const Usage& usage = l.builder().usage_of(g)[static_cast<size_t>(tensor)];
    return usage.producer && usage.readers == 1 && usage.producer->outputs.size() == 1 ? usage.producer : nullptr;
  };
  if (l.input_count() < 3 || !l.has_input(0)) return false;
  const Operator* conv = producer(l.op().inputs[0]);
  if (!conv || conv->is_custom || (conv->name != "CONV_2D" && conv->name != "DEPTHWISE_CONV_2D") || conv->inputs.size() < 2 ||
      conv->inputs[0] < 0)
    return false;
  const bool depthwise = conv->name == "DEPTHWISE_CONV_2D";
  const Operator* cut = producer(conv->inputs[0]);
  if (!cut || cut->is_custom || cut->name != "SPACE_TO_BATCH_ND" || cut->inputs.size() < 3) return false;
  const Table& o = conv->options;
  if (static_cast<Padding>(o.number<int8_t>(0)) != Padding::Valid || o.number<int32_t>(1) != 1 || o.number<int32_t>(2) != 1 ||
      o.number<int32_t>(depthwise ? 5 : 4, 1) != 1 || o.number<int32_t>(depthwise ? 6 : 5, 1) != 1)
    return false;
  Layer cutter(l.builder(), l.scope(), *cut, l.layer()), inner(l.builder(), l.scope(), *conv, l.layer());
  const auto block = l.ints(1, ""), same = cutter.ints(1, ""), crops = l.ints(2, ""), pads = cutter.ints(2, "");
  if (!block || !same || !crops || !pads || *block != *same || block->size() != 2 || crops->size() != 4 || pads->size() != 4)
    return false;
  // Rows of (before, behind) per axis; what is cropped was padded before.
  std::vector<int64_t> around(4);
  for (size_t i = 0; i < 4; ++i) {
    if ((*pads)[i] < 0 || (*pads)[i] > INT32_MAX || (*crops)[i] < 0 || (*crops)[i] > INT32_MAX) return false;
    around[i % 2 * 2 + i / 2] = (*pads)[i] - (*crops)[i];
  }
  if (std::any_of(around.begin(), around.end(), [](int64_t p) { return p < 0; })) return false;
  ORKNN_TRY_ASSIGN(const TensorId x, need_image(cutter, 0, 4));
  ORKNN_TRY_ASSIGN(const TensorId w,
                   inner.weights(1, depthwise ? std::vector<int64_t>{3, 0, 1, 2} : std::vector<int64_t>{0, 3, 1, 2}));
  ORKNN_TRY_ASSIGN(const TensorId bias, inner.bias(2, 0, 1));
  ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(x, "to convolve it"));
  ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(w, "to convolve with it"));
  if (!depthwise && kernel[1] != image[1]) return false;
  Attributes attributes{{"strides", std::vector<int64_t>{1, 1}},
                        {"dilations", *block},
                        {"pads", around},
                        {"group", depthwise ? image[1] : int64_t{1}}};
  ORKNN_TRY(finish_conv(l, "Conv", x, w, bias, std::move(attributes), inner.activation(depthwise ? 4 : 3)));
  return true;
}

std::span<const Row> conv_rows() {
  static constexpr Row rows[] = {
      {"CONV_2D", conv_2d},
      {"DEPTHWISE_CONV_2D", depthwise_conv_2d},
      {"CONV_3D", conv_3d},
      {"TRANSPOSE_CONV", transpose_conv},
      {"CONV_3D_TRANSPOSE", conv_3d_transpose},
  };
  return rows;
}

std::span<const Row> conv_custom_rows() {
  static constexpr Row rows[] = {{"Convolution2DTransposeBias", transposed_with_bias}};
  return rows;
}

}  // namespace orknn::importer::tflite
