// Convolutions of TensorFlow. Weights are stored spatial axes first ([height, width, in, out]) whatever the data format;
// transposes on the constants bring them to ours.
#include <algorithm>

#include "import/lower/functions.h"
#include "import/lower/gather.h"
#include "import/lower/strided_slice.h"
#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct Geometry {
  PictureFormat format;
  Window window;  // without padding
  Dims weights;   // as stored
};

Result<Geometry> geometry_of(Layer& l, size_t spatial, TensorId weights) {
  Geometry g;
  ORKNN_TRY_ASSIGN(g.format, data_format_of(l, spatial));
  const std::vector<int64_t> ones(spatial + 2, 1);
  ORKNN_TRY_ASSIGN(g.window.strides, spatial_entries(g.format, l.ints_or("strides", ones), "strides"));
  const auto dilations = l.ints_or("dilations");
  ORKNN_TRY_ASSIGN(g.window.dilations, spatial_entries(g.format, dilations.empty() ? ones : dilations, "dilations"));
  ORKNN_TRY_ASSIGN(g.weights, l.need_dims(weights, "to convolve with it"));
  if (g.weights.size() != spatial + 2)
    return shape_mismatch("the weights have the wrong rank").expected(std::to_string(spatial + 2)).found(to_string(g.weights));
  if (std::ranges::any_of(g.weights, [](int64_t d) { return d < 1; }))
    return shape_mismatch("the weights are empty").found(to_string(g.weights));
  g.window.kernel.assign(g.weights.begin(), g.weights.end() - 2);
  return g;
}

Result<TensorId> convolve(Layer& l, const Geometry& g, TensorId x, TensorId weights, bool is_depthwise) {
  ORKNN_TRY_ASSIGN(const Window window, with_padding(l, g.format, g.window, spatial_extents(l, g.format, x)));
  if (is_depthwise && channels_of(l, g.format, x).value_or(g.weights[2]) != g.weights[2])
    return shape_mismatch("the weights do not fit the channels")
        .expected(std::to_string(*channels_of(l, g.format, x)) + " input channels")
        .found(std::to_string(g.weights[2]));
  return in_channels_first(l, g.format, x, [&](TensorId first) {
    const TensorId ours =
        is_depthwise ? depthwise_filters_first(l, weights, g.weights) : filters_first(l, weights, g.format.spatial);
    return importer::convolution(l, first, ours, {}, window, g.weights[g.format.spatial]);
  });
}

// Steps grappler fuses after a convolution or matrix product: BiasAdd, FusedBatchNorm and an activation, in the layer's own
// layout.
Result<TensorId> with_fused_steps(Layer& l, TensorId y, const PictureFormat& format) {
  size_t next_input = 2;
  const auto next = [&]() -> Result<TensorId> { return l.operand(next_input++); };
  for (std::string_view step : l.strings_or_none("fused_ops")) {
    if (step == "BiasAdd") {
      ORKNN_TRY_ASSIGN(const TensorId bias, next());
      y = l.add(y, along_channels(l, format, bias));
    } else if (step == "FusedBatchNorm") {
      ORKNN_TRY_ASSIGN(const TensorId scale, next());
      ORKNN_TRY_ASSIGN(const TensorId offset, next());
      ORKNN_TRY_ASSIGN(const TensorId mean, next());
      ORKNN_TRY_ASSIGN(const TensorId variance, next());
      const TensorId factor = l.div(scale, l.unary("Sqrt", l.add(variance, l.float_or("epsilon", 1e-4))));
      y = l.mul(l.sub(y, along_channels(l, format, mean)), along_channels(l, format, factor));
      y = l.add(y, along_channels(l, format, offset));
    } else if (step == "Add") {
      ORKNN_TRY_ASSIGN(const TensorId other, next());
      y = l.add(y, other);
    } else if (step == "Relu" || step == "Elu" || step == "Sigmoid" || step == "Tanh") {
      y = l.unary(step, y);
    } else if (step == "Relu6") {
      y = relu6(l, y);
    } else if (step == "LeakyRelu") {
      y = with_alpha<"LeakyRelu">(l, y, l.float_or("leakyrelu_alpha", 0.2));
    } else if (step == "GeluExact" || step == "GeluApproximate") {
      y = gelu(l, y, step == "GeluApproximate");
    } else {
      return unsupported("the fused step is not supported").found(std::string(step));
    }
  }
  return y;
}

template <size_t Spatial, bool IsDepthwise = false>
Result<TensorId> convolution(Layer& l, TensorId x, TensorId weights) {
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(l, Spatial, weights));
  ORKNN_TRY_ASSIGN(const TensorId y, convolve(l, g, x, weights, IsDepthwise));
  return with_fused_steps(l, y, g.format);
}

Result<TensorId> fused_matmul(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const TensorId y, matrix_product(l, a, b, l.bool_or("transpose_a", false), l.bool_or("transpose_b", false)));
  return with_fused_steps(l, y, {});
}

// The gradient of a convolution by its input: what decoders use to enlarge. Input 0 is the shape of the result, whose forward
// convolution states the padding.
template <size_t Spatial, bool IsDepthwise = false>
Result<TensorId> transposed(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, l.ints(0, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId weights, l.operand(1));
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(2));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(l, Spatial, weights));
  if (size.size() != Spatial + 2 && size.size() != Spatial)
    return invalid_model("the shape of the result has the wrong length").found(to_string(size));
  const bool spatial_only = size.size() == Spatial;
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < Spatial; ++i) wanted.push_back(spatial_only ? size[i] : size[g.format.axis(i)]);
  if (std::ranges::any_of(wanted, [](int64_t n) { return n < 1 || n > INT32_MAX; }))
    return invalid_model("the shape of the result must be positive").found(to_string(size));
  ORKNN_TRY_ASSIGN(Window window, with_padding(l, g.format, g.window, {wanted.begin(), wanted.end()}));
  return in_channels_first(l, g.format, x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(first, "to size the result"));
    const int64_t channels = dims[1], in = g.weights[Spatial], out = g.weights[Spatial + 1];
    const int64_t out_channels = spatial_only ? in : size[g.format.channel_axis()];
    const int64_t groups = IsDepthwise ? in : std::max<int64_t>(out_channels / in, 1);
    if (IsDepthwise ? channels != in * out : channels != out || out_channels % in != 0 || channels % groups != 0)
      return shape_mismatch("the weights do not fit the channels")
          .expected(std::to_string(channels) + " input channels")
          .found(to_string(g.weights));
    const TensorId ours = IsDepthwise ? depthwise_filters_first(l, weights, g.weights) : filters_first(l, weights, Spatial);
    return transposed_convolution(l, first, ours, {}, window, wanted, groups);
  });
}

// A picture resized, then mirror-padded, then convolved; without the first step in FusedPadConv2D.
Result<TensorId> padded_convolution(Layer& l, TensorId x, size_t at) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> rows, l.ints(at, "to pad"));
  ORKNN_TRY_ASSIGN(const TensorId weights, l.operand(at + 1));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(l, 2, weights));
  if (rows.size() != 8) return invalid_model("the paddings must be of four axes").found(std::to_string(rows.size()) + " numbers");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, pads_of_rows(rows));
  ORKNN_TRY_ASSIGN(const TensorId padded, mirror_pad(l, x, pads, l.string_or("mode", "REFLECT") == "SYMMETRIC"));
  return convolve(l, g, padded, weights, false);
}
Result<TensorId> fused_pad(Layer& l, TensorId x) { return padded_convolution(l, x, 1); }
Result<TensorId> fused_resize_and_pad(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, l.ints(1, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId resized, resize(l, x, size, {"linear", l.bool_or("resize_align_corners", false), false}));
  return padded_convolution(l, resized, 2);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"Conv2D|_FusedConv2D", convolution<2>},
      {"Conv3D", convolution<3>},
      {"DepthwiseConv2dNative|_FusedDepthwiseConv2dNative", convolution<2, true>},
      {"_FusedMatMul", fused_matmul},
      {"Conv2DBackpropInput", transposed<2>},
      {"Conv3DBackpropInputV2|Conv3DBackpropInput", transposed<3>},
      {"DepthwiseConv2dNativeBackpropInput", transposed<2, true>},
      {"FusedResizeAndPadConv2D", fused_resize_and_pad},
      {"FusedPadConv2D", fused_pad},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
