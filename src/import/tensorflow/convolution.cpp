// Convolutions of TensorFlow. Weights are stored spatial axes first ([height, width, in, out]) whatever the data format;
// transposes on the constants bring them to ours.
#include <algorithm>

#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct Geometry {
  DataFormat format;
  std::vector<int64_t> strides, dilations, kernel, spread;  // spread: extents of the dilated kernel
  Dims weights;                                             // as stored
};

Result<Geometry> geometry_of(Layer& layer, size_t spatial, TensorId weights) {
  Geometry g;
  ORKNN_TRY_ASSIGN(g.format, data_format_of(layer, spatial));
  ORKNN_TRY_ASSIGN(g.strides,
                   spatial_entries(g.format, layer.ints_or("strides", std::vector<int64_t>(spatial + 2, 1)), "strides"));
  auto dilations = layer.ints_or("dilations");
  if (dilations.empty()) dilations.assign(spatial + 2, 1);
  ORKNN_TRY_ASSIGN(g.dilations, spatial_entries(g.format, dilations, "dilations"));
  ORKNN_TRY_ASSIGN(g.weights, layer.need_dims(weights, "to convolve with it"));
  if (g.weights.size() != spatial + 2)
    return shape_mismatch("the weights have the wrong rank").expected(std::to_string(spatial + 2)).found(to_string(g.weights));
  for (int64_t d : g.weights)
    if (d < 1) return shape_mismatch("the weights are empty").found(to_string(g.weights));
  for (size_t i = 0; i < spatial; ++i) {
    g.kernel.push_back(g.weights[i]);
    g.spread.push_back((g.weights[i] - 1) * g.dilations[i] + 1);
  }
  return g;
}

// Weights with the last two axes first, in this order.
std::vector<int64_t> weights_first(size_t spatial, bool swapped) {
  const auto n = static_cast<int64_t>(spatial);
  std::vector<int64_t> permutation = swapped ? std::vector<int64_t>{n + 1, n} : std::vector<int64_t>{n, n + 1};
  for (int64_t i = 0; i < n; ++i) permutation.push_back(i);
  return permutation;
}

std::optional<int64_t> channels_of(const Layer& layer, const DataFormat& format, TensorId x) {
  const Shape* shape = layer.shape_of(x);
  if (!shape || shape->size() != format.spatial + 2 || !(*shape)[format.channel_axis()].is_known()) return std::nullopt;
  return (*shape)[format.channel_axis()].value();
}

Result<TensorId> convolve(Layer& layer, const Geometry& g, TensorId x, TensorId weights, const Padding& padding) {
  const int64_t in = g.weights[g.format.spatial], out = g.weights[g.format.spatial + 1];
  const int64_t channels = channels_of(layer, g.format, x).value_or(in);
  if (channels % in != 0 || channels < in || out % (channels / in) != 0)
    return shape_mismatch("the weights do not fit the channels")
        .expected(std::to_string(channels) + " input channels")
        .found(to_string(g.weights));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, g.format, x));
  Attributes attributes{{"strides", g.strides}, {"dilations", g.dilations}, {"kernel_shape", g.kernel}, {"group", channels / in}};
  set_padding(attributes, padding);
  return layer.emit("Conv", {data, layer.transpose(weights, weights_first(g.format.spatial, true))}, std::move(attributes));
}

Result<TensorId> convolve_depthwise(Layer& layer, const Geometry& g, TensorId x, TensorId weights, const Padding& padding) {
  const int64_t channels = g.weights[2], multiplier = g.weights[3];
  if (const auto found = channels_of(layer, g.format, x); found && *found != channels)
    return shape_mismatch("the weights do not fit the channels")
        .expected(std::to_string(*found) + " input channels")
        .found(to_string(g.weights));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, g.format, x));
  const TensorId ours =
      layer.reshape(layer.transpose(weights, weights_first(2, false)), {channels * multiplier, 1, g.kernel[0], g.kernel[1]});
  Attributes attributes{{"strides", g.strides}, {"dilations", g.dilations}, {"kernel_shape", g.kernel}, {"group", channels}};
  set_padding(attributes, padding);
  return layer.emit("Conv", {data, ours}, std::move(attributes));
}

// Steps grappler fuses behind a convolution or matrix product: BiasAdd, FusedBatchNorm and an activation, in the layer's own
// layout.
Status apply_fused_steps(Layer& layer, TensorId y, size_t next_input, const DataFormat* format) {
  for (std::string_view step : layer.strings_or_none("fused_ops")) {
    const auto channelwise = [&](TensorId v) {
      if (!format || format->channels_last) return v;
      std::vector<int64_t> shape(format->spatial + 1, 1);
      shape[0] = -1;
      return layer.reshape(v, std::move(shape));
    };
    if (step == "BiasAdd") {
      ORKNN_TRY_ASSIGN(const TensorId bias, layer.input(next_input++));
      y = layer.emit("Add", {y, channelwise(bias)});
    } else if (step == "FusedBatchNorm") {
      ORKNN_TRY_ASSIGN(const TensorId scale, layer.input(next_input));
      ORKNN_TRY_ASSIGN(const TensorId offset, layer.input(next_input + 1));
      ORKNN_TRY_ASSIGN(const TensorId mean, layer.input(next_input + 2));
      ORKNN_TRY_ASSIGN(const TensorId variance, layer.input(next_input + 3));
      next_input += 4;
      const TensorId epsilon = layer.constant_like(variance, "epsilon", layer.float_or("epsilon", 1e-4));
      const TensorId factor = layer.emit("Div", {scale, layer.emit("Sqrt", {layer.emit("Add", {variance, epsilon})})});
      y = layer.emit("Mul", {layer.emit("Sub", {y, channelwise(mean)}), channelwise(factor)});
      y = layer.emit("Add", {y, channelwise(offset)});
    } else if (step == "Add") {
      ORKNN_TRY_ASSIGN(const TensorId other, layer.input(next_input++));
      y = layer.emit("Add", {y, other});
    } else if (step == "Relu" || step == "Elu" || step == "Sigmoid" || step == "Tanh") {
      y = layer.emit(std::string(step), {y});
    } else if (step == "Relu6") {
      y = layer.emit("Clip", {y, layer.constant_like(y, "low", 0), layer.constant_like(y, "high", 6)});
    } else if (step == "LeakyRelu") {
      y = layer.emit("LeakyRelu", {y}, {{"alpha", layer.float_or("leakyrelu_alpha", 0.2)}});
    } else if (step == "GeluExact" || step == "GeluApproximate") {
      y = layer.emit("Gelu", {y}, {{"approximate", std::string(step == "GeluExact" ? "none" : "tanh")}});
    } else {
      return unsupported("the fused step is not supported").found(std::string(step));
    }
  }
  layer.set(y);
  return {};
}

Status lower_convolution(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId weights, layer.input(1));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(layer, layer.op() == "Conv3D" ? 3 : 2, weights));
  ORKNN_TRY_ASSIGN(const Padding padding, padding_of(layer, g.format, spatial_extents(layer, g.format, x), g.spread, g.strides));
  const bool is_depthwise = layer.op().find("Depthwise") != std::string_view::npos;
  ORKNN_TRY_ASSIGN(const TensorId y,
                   is_depthwise ? convolve_depthwise(layer, g, x, weights, padding) : convolve(layer, g, x, weights, padding));
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, g.format, y));
  return apply_fused_steps(layer, result, 2, &g.format);
}

Status lower_fused_matmul(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId a, layer.input(0));
  ORKNN_TRY_ASSIGN(TensorId b, layer.input(1));
  if (layer.bool_or("transpose_a", false)) a = layer.transpose(a, {1, 0});
  if (layer.bool_or("transpose_b", false)) b = layer.transpose(b, {1, 0});
  return apply_fused_steps(layer, layer.emit("MatMul", {a, b}), 2, nullptr);
}

// The gradient of a convolution by its input: what decoders use to enlarge. Input 0 is the shape of the answer, whose forward
// convolution states the padding.
Status lower_transposed(Layer& layer) {
  const bool is_depthwise = layer.op().starts_with("Depthwise"), is_3d = layer.op().starts_with("Conv3D");
  ORKNN_TRY_ASSIGN(std::vector<int64_t> size, layer.ints(0, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId weights, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(2));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(layer, is_3d ? 3 : 2, weights));
  const size_t spatial = g.format.spatial;
  if (size.size() != spatial + 2 && size.size() != spatial)
    return invalid_model("the shape of the result has the wrong length").found(to_string(size));
  const bool spatial_only = size.size() == spatial;
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to size the result"));
  if (dims.size() != spatial + 2)
    return shape_mismatch("the value has the wrong rank").expected(std::to_string(spatial + 2)).found(to_string(dims));
  std::vector<std::optional<int64_t>> out;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = spatial_only ? size[i] : size[g.format.axis(i)];
    constexpr int64_t kMost = int64_t{1} << 31;
    if (extent < 1 || extent > kMost) return invalid_model("the shape of the result must be positive").found(to_string(size));
    out.emplace_back(extent);
  }
  ORKNN_TRY_ASSIGN(Padding padding, padding_of(layer, g.format, out, g.spread, g.strides));
  // What the strided steps reach from the padded start; the rest of the asked extent is never written, so zero.
  std::vector<int64_t> missing(spatial, 0), surplus(spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t in = dims[g.format.axis(i)];
    if (in < 1) return shape_mismatch("the value is empty").found(to_string(dims));
    const int64_t reached = (in - 1) * g.strides[i] + g.spread[i] - padding.begin[i];
    padding.end[i] = std::max<int64_t>(reached - *out[i], 0);
    missing[i] = std::max<int64_t>(*out[i] - reached, 0);
    if (missing[i] >= std::max(g.strides[i], g.dilations[i]) || reached < 1) {
      // Not the size of any forward convolution: pad with zeros behind it.
      surplus[i] = missing[i];
      missing[i] = 0;
    }
  }
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, g.format, x));
  const int64_t channels = dims[g.format.channel_axis()];
  TensorId ours;
  int64_t group = 1;
  if (is_depthwise) {
    group = g.weights[2];
    if (channels != g.weights[2] * g.weights[3])
      return shape_mismatch("the weights do not fit the channels").found(to_string(g.weights));
    ours = layer.reshape(layer.transpose(weights, weights_first(spatial, false)), {channels, 1, g.kernel[0], g.kernel[1]});
  } else {
    const int64_t out_channels = spatial_only ? g.weights[spatial] : size[g.format.channel_axis()];
    if (channels != g.weights[spatial + 1] || g.weights[spatial] < 1 || out_channels % g.weights[spatial] != 0)
      return shape_mismatch("the weights do not fit the channels")
          .expected(std::to_string(channels) + " input channels")
          .found(to_string(g.weights));
    group = std::max<int64_t>(out_channels / g.weights[spatial], 1);
    if (channels % group != 0) return shape_mismatch("the weights do not fit the channels").found(to_string(g.weights));
    ours = layer.transpose(weights, weights_first(spatial, true));
  }
  Attributes attributes{{"strides", g.strides},
                        {"dilations", g.dilations},
                        {"kernel_shape", g.kernel},
                        {"group", group},
                        {"pads", joined(padding.begin, padding.end)},
                        {"output_padding", missing}};
  TensorId y = layer.emit("ConvTranspose", {data, ours}, std::move(attributes));
  if (std::any_of(surplus.begin(), surplus.end(), [](int64_t n) { return n > 0; })) {
    std::vector<int64_t> pads(2 * (spatial + 2), 0);
    for (size_t i = 0; i < spatial; ++i) pads[spatial + 4 + i] = surplus[i];
    y = layer.emit("Pad", {y, layer.add_ints("pads", pads)});
  }
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, g.format, y));
  layer.set(result);
  return {};
}

// A picture resized, then mirror-padded, then convolved; without the first step in FusedPadConv2D.
Status lower_fused_pad(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  const bool resizes = layer.op() == "FusedResizeAndPadConv2D";
  const size_t at = resizes ? 2 : 1;
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, layer.ints(at, "to pad"));
  ORKNN_TRY_ASSIGN(const TensorId weights, layer.input(at + 1));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(layer, 2, weights));
  if (pads.size() != 8) return invalid_model("the paddings must be of four axes").found(std::to_string(pads.size()) + " numbers");
  if (resizes) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, layer.ints(1, "to size the result"));
    if (size.size() != 2 || size[0] < 1 || size[1] < 1)
      return invalid_model("the size must be a height and a width").found(to_string(size));
    ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to resize it"));
    if (dims.size() != 4) return shape_mismatch("the value has the wrong rank").expected("4").found(to_string(dims));
    ORKNN_TRY_ASSIGN(const TensorId first, layer.channels_first(x));
    const std::string mode = layer.bool_or("resize_align_corners", false) ? "align_corners" : "asymmetric";
    const TensorId resized = layer.emit("Resize", {first, {}, {}, layer.add_ints("sizes", {dims[0], dims[3], size[0], size[1]})},
                                        {{"mode", std::string("linear")}, {"coordinate_transformation_mode", mode}});
    ORKNN_TRY_ASSIGN(x, layer.channels_last(resized));
  }
  // SYMMETRIC repeats the edge, REFLECT does not; with one pixel of padding or none both are what Pad offers.
  std::vector<int64_t> ours;
  int64_t most = 0;
  for (size_t side = 0; side < 2; ++side)
    for (size_t axis = 0; axis < 4; ++axis) {
      const int64_t n = pads[2 * axis + side];
      if (n < 0) return invalid_model("the paddings must not be negative").found(to_string(pads));
      ours.push_back(n);
      most = std::max(most, n);
    }
  const bool symmetric = layer.string_or("mode", "REFLECT") == "SYMMETRIC";
  if (symmetric && most > 1)
    return unsupported("symmetric padding by more than one pixel is not supported here").found(to_string(pads));
  if (most > 0) x = layer.emit("Pad", {x, layer.add_ints("pads", ours)}, {{"mode", std::string(symmetric ? "edge" : "reflect")}});
  ORKNN_TRY_ASSIGN(const Padding padding, padding_of(layer, g.format, spatial_extents(layer, g.format, x), g.spread, g.strides));
  ORKNN_TRY_ASSIGN(const TensorId y, convolve(layer, g, x, weights, padding));
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, g.format, y));
  layer.set(result);
  return {};
}
}  // namespace

std::span<const Row> convolution_rows() {
  static constexpr Row kRows[] = {
      {"Conv2D", lower_convolution},
      {"Conv3D", lower_convolution},
      {"DepthwiseConv2dNative", lower_convolution},
      {"_FusedConv2D", lower_convolution},
      {"_FusedDepthwiseConv2dNative", lower_convolution},
      {"_FusedMatMul", lower_fused_matmul},
      {"Conv2DBackpropInput", lower_transposed},
      {"Conv3DBackpropInputV2", lower_transposed},
      {"Conv3DBackpropInput", lower_transposed},
      {"DepthwiseConv2dNativeBackpropInput", lower_transposed},
      {"FusedResizeAndPadConv2D", lower_fused_pad},
      {"FusedPadConv2D", lower_fused_pad},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
