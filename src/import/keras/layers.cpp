#include "import/keras/layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include "import/keras/operations.h"
#include "import/keras/sequences.h"

namespace orknn::importer::keras {
namespace {

using Lower = Result<Tensor> (*)(LayerCall&);

// --- activations

Tensor one_input(GraphWriter& g, const char* op, const Tensor& x) { return g.like(op, {x}); }

Tensor clipped(GraphWriter& g, const Tensor& x, double low, double high) {
  return g.like("Minimum", {g.like("Maximum", {x, g.scalar(static_cast<float>(low))}), g.scalar(static_cast<float>(high))});
}

Tensor leaky(GraphWriter& g, const Tensor& x, double slope) {
  return g.like("LeakyRelu", {x}, Attributes().real("alpha", static_cast<float>(slope)));
}

// Keras 2 has x * 0.2 + 0.5 between 0 and 1, Keras 3 relu6(x + 3) / 6.
Tensor hard_sigmoid(GraphWriter& g, const Tensor& x, bool is_third) {
  const Tensor scaled = is_third ? g.like("AddV2", {g.like("Mul", {x, g.scalar(1.0F / 6)}), g.scalar(0.5F)})
                                 : g.like("AddV2", {g.like("Mul", {x, g.scalar(0.2F)}), g.scalar(0.5F)});
  return clipped(g, scaled, 0, 1);
}

// The exact form, x * (1 + erf(x / sqrt(2))) / 2.
Tensor gelu(GraphWriter& g, const Tensor& x) {
  const Tensor erf = one_input(g, "Erf", g.like("Mul", {x, g.scalar(static_cast<float>(std::sqrt(0.5)))}));
  return g.like("Mul", {g.like("Mul", {x, g.scalar(0.5F)}), g.like("AddV2", {erf, g.scalar(1)})});
}

// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
Tensor gelu_by_tanh(GraphWriter& g, const Tensor& x) {
  const Tensor cube = g.like("Mul", {g.like("Mul", {x, x}), g.like("Mul", {x, g.scalar(0.044715F)})});
  const Tensor inner = g.like("Mul", {g.like("AddV2", {x, cube}), g.scalar(static_cast<float>(std::sqrt(2 / std::numbers::pi)))});
  return g.like("Mul", {g.like("Mul", {x, g.scalar(0.5F)}), g.like("AddV2", {one_input(g, "Tanh", inner), g.scalar(1)})});
}
}  // namespace

Result<Tensor> softmax(GraphWriter& g, const Tensor& x, int64_t axis) {
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return invalid_model("the axis is outside of the tensor").found(std::to_string(axis));
  if (axis == x.rank - 1) return one_input(g, "Softmax", x);
  std::vector<int64_t> swapped(static_cast<size_t>(x.rank));
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[static_cast<size_t>(axis)], swapped.back());
  return g.like("Transpose", {one_input(g, "Softmax", g.like("Transpose", {x, g.ints(swapped)})), g.ints(swapped)});
}

Result<Tensor> activated(LayerCall& call, const Tensor& x, const Json& activation) {
  GraphWriter& g = call.graph;
  // An activation is a name, or a layer of its own.
  const std::string own = activation["config"].string(activation["class_name"].string());
  const std::string name = activation.kind == Json::Kind::Text ? activation.text : own;
  static const std::map<std::string, const char*, std::less<>> plain{
      {"relu", "Relu"}, {"relu6", "Relu6"},     {"sigmoid", "Sigmoid"},   {"tanh", "Tanh"},        {"elu", "Elu"},
      {"selu", "Selu"}, {"exponential", "Exp"}, {"softplus", "Softplus"}, {"softsign", "Softsign"}};
  if (activation.is_null() || name == "linear") return x;
  if (const auto op = plain.find(name); op != plain.end()) return one_input(g, op->second, x);
  if (name == "softmax") return softmax(g, x, -1);
  if (name == "log_softmax") return one_input(g, "LogSoftmax", x);
  if (name == "swish" || name == "silu") return g.like("Mul", {x, one_input(g, "Sigmoid", x)});
  if (name == "mish") return g.like("Mul", {x, one_input(g, "Tanh", one_input(g, "Softplus", x))});
  if (name == "gelu") return gelu(g, x);
  if (name == "gelu_tanh") return gelu_by_tanh(g, x);
  if (name == "leaky_relu") return leaky(g, x, 0.2);
  if (name == "hard_tanh") return clipped(g, x, -1, 1);
  if (name == "log_sigmoid") return one_input(g, "Neg", one_input(g, "Softplus", one_input(g, "Neg", x)));
  if (name == "tanh_shrink") return g.like("Sub", {x, one_input(g, "Tanh", x)});
  if (name == "celu") return one_input(g, "Elu", x);
  if (name == "hard_sigmoid") return hard_sigmoid(g, x, call.generation >= 3);
  if (name == "hard_silu" || name == "hard_swish") return g.like("Mul", {x, hard_sigmoid(g, x, true)});
  return unsupported("the activation '" + name + "' is not supported");
}

namespace {
Result<Tensor> with_bias_and_activation(LayerCall& call, Tensor x, size_t bias_index) {
  if (call.config["use_bias"].flag(true)) {
    ORKNN_TRY_ASSIGN(const Weight bias, call.weight(bias_index));
    x = call.graph.like("BiasAdd", {x, call.graph.floats(bias)},
                        Attributes().text("data_format", call.channels_last() ? "NHWC" : "NCHW"));
  }
  return activated(call, x, call.config["activation"]);
}

Result<Tensor> activation_layer(LayerCall& call) { return activated(call, call.input(), call.config["activation"]); }
Result<Tensor> leaky_layer(LayerCall& call) {
  const Json& slope = call.config["negative_slope"];
  return leaky(call.graph, call.input(), slope.number(call.config["alpha"].number(0.3)));
}
Result<Tensor> elu_layer(LayerCall& call) {
  GraphWriter& g = call.graph;
  const double alpha = call.config["alpha"].number(1);
  if (alpha == 1) return one_input(g, "Elu", call.input());
  const Tensor negative = one_input(g, "Expm1", g.like("Minimum", {call.input(), g.scalar(0)}));
  return g.like("AddV2", {one_input(g, "Relu", call.input()), g.like("Mul", {negative, g.scalar(static_cast<float>(alpha))})});
}
Result<Tensor> softmax_layer(LayerCall& call) {
  const Json& axis = call.config["axis"];
  return softmax(call.graph, call.input(),
                 axis.kind == Json::Kind::List && axis.items.size() == 1 ? axis.items[0].integer(-1) : axis.integer(-1));
}

Result<Tensor> relu_layer(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (call.config["threshold"].number(0) != 0) return unsupported("ReLU with a threshold is not supported");
  const double slope = call.config["negative_slope"].number(0);
  const Tensor x = slope == 0 ? one_input(g, "Relu", call.input()) : leaky(g, call.input(), slope);
  if (call.config["max_value"].is_null()) return x;
  return g.like("Minimum", {x, g.scalar(static_cast<float>(call.config["max_value"].number(6)))});
}

Result<Tensor> prelu_layer(LayerCall& call) {
  GraphWriter& g = call.graph;
  ORKNN_TRY_ASSIGN(const Weight alpha, call.weight(0));
  const Tensor negative = g.like("Minimum", {call.input(), g.scalar(0)});
  return g.like("AddV2", {one_input(g, "Relu", call.input()), g.like("Mul", {negative, g.floats(alpha)})});
}

// --- convolutions

// One entry per axis of the tensor, with ones for batch and channels.
std::vector<int64_t> per_axis(const LayerCall& call, const char* key, size_t spatial) {
  std::vector<int64_t> values = call.config[key].integers(spatial);
  if (values.size() != spatial) values.assign(spatial, 1);
  values.insert(values.begin(), 1);
  values.insert(call.channels_last() ? values.end() : values.begin() + 1, 1);
  return values;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

const char* data_format(const LayerCall& call, size_t spatial) {
  if (spatial == 3) return call.channels_last() ? "NDHWC" : "NCDHW";
  return call.channels_last() ? "NHWC" : "NCHW";
}

Attributes window(const LayerCall& call, bool dilated, size_t spatial = 2) {
  Attributes attributes;
  attributes.ints("strides", per_axis(call, "strides", spatial)).text("padding", upper(call.config["padding"].string("valid")));
  attributes.text("data_format", data_format(call, spatial));
  if (dilated) attributes.ints("dilations", per_axis(call, "dilation_rate", spatial));
  return attributes;
}

Result<Tensor> convolution(LayerCall& call, const char* op, size_t spatial) {
  ORKNN_TRY_ASSIGN(const Weight kernel, call.weight(0));
  const Tensor x = call.graph.like(op, {call.input(), call.graph.floats(kernel)}, window(call, true, spatial));
  return with_bias_and_activation(call, x, 1);
}
Result<Tensor> conv2d(LayerCall& call) { return convolution(call, "Conv2D", 2); }
Result<Tensor> depthwise(LayerCall& call) { return convolution(call, "DepthwiseConv2dNative", 2); }
Result<Tensor> conv3d(LayerCall& call) {
  if (!call.channels_last()) return unsupported("Conv3D with channels first is not supported");
  return convolution(call, "Conv3D", 3);
}

Result<Tensor> separable(LayerCall& call) {
  ORKNN_TRY_ASSIGN(const Weight first, call.weight(0));
  ORKNN_TRY_ASSIGN(const Weight second, call.weight(1));
  const Tensor each = call.graph.like("DepthwiseConv2dNative", {call.input(), call.graph.floats(first)}, window(call, true));
  Attributes point;
  point.ints("strides", {1, 1, 1, 1}).text("padding", "VALID").text("data_format", call.channels_last() ? "NHWC" : "NCHW");
  return with_bias_and_activation(call, call.graph.like("Conv2D", {each, call.graph.floats(second)}, point), 2);
}

// A convolution along one axis is one over pictures of one row.
Result<Tensor> conv1d(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (!call.channels_last()) return unsupported("Conv1D with channels first is not supported");
  ORKNN_TRY_ASSIGN(Weight kernel, call.weight(0));
  if (kernel.dims.size() != 3) return shape_mismatch("the kernel has the wrong rank").found(ir::to_string(kernel.dims));
  const auto one = [&](const char* key) {
    const std::vector<int64_t> values = call.config[key].integers();
    return values.empty() ? 1 : values[0];
  };
  Tensor x = call.input();
  std::string padding = call.config["padding"].string("valid");
  if (padding == "causal") {
    const std::vector<int64_t> pads{0, 0, one("dilation_rate") * (kernel.dims[0] - 1), 0, 0, 0};
    const Tensor rows = g.node("Reshape", {g.ints(pads), g.ints({3, 2})}, 2);
    x = g.like("Pad", {x, rows});
    padding = "valid";
  }
  kernel.dims.insert(kernel.dims.begin(), 1);
  Attributes attributes;
  attributes.ints("strides", {1, 1, one("strides"), 1})
      .ints("dilations", {1, 1, one("dilation_rate"), 1})
      .text("padding", upper(padding));
  const Tensor wide = g.node("ExpandDims", {x, g.integer(1)}, 4);
  const Tensor result = g.like("Conv2D", {wide, g.floats(kernel)}, attributes);
  return with_bias_and_activation(call, g.node("Squeeze", {result}, 3, Attributes().ints("squeeze_dims", {1})), 1);
}

// Filters of their own for each channel of a sequence, then, for `SeparableConv1D`, a product over channels.
Result<Tensor> depthwise1d(LayerCall& call) {
  GraphWriter& g = call.graph;
  const std::string padding = call.config["padding"].string("valid");
  const bool is_separable = call.layer["class_name"].string() == "SeparableConv1D";
  if (!call.channels_last() || padding == "causal") return unsupported("only channels last without causal padding are supported");
  ORKNN_TRY_ASSIGN(Weight kernel, call.weight(0));
  if (kernel.dims.size() != 3) return shape_mismatch("the kernel has the wrong rank").found(ir::to_string(kernel.dims));
  kernel.dims.insert(kernel.dims.begin(), 1);
  const auto one = [&](const char* key) {
    return std::max<int64_t>(call.config[key].integers().empty() ? 1 : call.config[key].integers()[0], 1);
  };
  Attributes attributes;
  attributes.ints("strides", {1, one("strides"), one("strides"), 1}).ints("dilations", {1, 1, one("dilation_rate"), 1});
  attributes.text("padding", upper(padding));
  Tensor x = g.node("ExpandDims", {call.input(), g.integer(1)}, 4);
  x = g.like("DepthwiseConv2dNative", {x, g.floats(kernel)}, attributes);
  if (is_separable) {
    ORKNN_TRY_ASSIGN(Weight point, call.weight(1));
    point.dims.insert(point.dims.begin(), 1);
    x = g.like("Conv2D", {x, g.floats(point)}, Attributes().ints("strides", {1, 1, 1, 1}).text("padding", "VALID"));
  }
  return with_bias_and_activation(call, g.node("Squeeze", {x}, 3, Attributes().ints("squeeze_dims", {1})), is_separable ? 2 : 1);
}

// Its result is (n - 1) * stride + kernel long, at least n * stride; with 'same' n * stride.
Result<Tensor> transposed(LayerCall& call) {
  GraphWriter& g = call.graph;
  ORKNN_TRY_ASSIGN(const Weight kernel, call.weight(0));
  if (kernel.dims.size() != 4) return shape_mismatch("the kernel has the wrong rank").found(ir::to_string(kernel.dims));
  if (!call.channels_last()) return unsupported("Conv2DTranspose with channels first is not supported");
  if (!call.config["output_padding"].is_null()) return unsupported("Conv2DTranspose with output_padding is not supported");
  const std::vector<int64_t> strides = per_axis(call, "strides", 2), dilations = per_axis(call, "dilation_rate", 2);
  if (dilations != std::vector<int64_t>(4, 1)) return unsupported("Conv2DTranspose with dilation is not supported");
  const bool same = call.config["padding"].string("valid") == "same";
  const auto more = [&](size_t axis) { return same ? 0 : std::max<int64_t>(kernel.dims[axis] - strides[axis + 1], 0); };
  const Tensor extents = g.node("Shape", {call.input()}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor scaled = g.like("Mul", {extents, g.ints({1, strides[1], strides[2], 0})});
  const Tensor sizes = g.like("AddV2", {scaled, g.ints({0, more(0), more(1), kernel.dims[2]})});
  const Tensor x = g.node("Conv2DBackpropInput", {sizes, g.floats(kernel), call.input()}, 4, window(call, false));
  return with_bias_and_activation(call, x, 1);
}

// --- dense layers and lookups

Result<Tensor> dense(LayerCall& call) {
  ORKNN_TRY_ASSIGN(const Weight kernel, call.weight(0));
  const Tensor x = call.graph.like("BatchMatMulV2", {call.input(), call.graph.floats(kernel)});
  if (!call.config["use_bias"].flag(true)) return activated(call, x, call.config["activation"]);
  ORKNN_TRY_ASSIGN(const Weight bias, call.weight(1));
  return activated(call, call.graph.like("AddV2", {x, call.graph.floats(bias)}), call.config["activation"]);
}

Result<Tensor> embedding(LayerCall& call) {
  GraphWriter& g = call.graph;
  ORKNN_TRY_ASSIGN(const Weight table, call.weight(0));
  const Tensor index = g.like("Cast", {call.input()}, Attributes().type("DstT", kTfInt32));
  return g.node("GatherV2", {g.floats(table), index, g.integer(0)}, call.input().rank + 1);
}

// --- normalization

// `values` along one axis of a tensor, as a constant that broadcasts over it.
Tensor along(GraphWriter& g, const std::vector<float>& values, int64_t axis, int64_t rank) {
  ir::Dims dims(static_cast<size_t>(std::max<int64_t>(rank - axis, 1)), 1);
  dims[0] = static_cast<int64_t>(values.size());
  return g.floats(dims, values);
}

Result<int64_t> axis_of(const LayerCall& call) {
  const std::vector<int64_t> axes = call.config["axis"].integers();
  int64_t axis = axes.size() == 1 ? axes[0] : -1;
  if (axis < 0) axis += call.input().rank;
  if (axes.size() > 1 || axis < 0 || axis >= call.input().rank) return unsupported("the axis of the layer is not supported");
  return axis;
}

Result<Tensor> batch_normalization(LayerCall& call) {
  GraphWriter& g = call.graph;
  size_t next = 0;
  const bool scales = call.config["scale"].flag(true), shifts = call.config["center"].flag(true);
  Weight gamma, beta;
  if (scales) {
    ORKNN_TRY_ASSIGN(gamma, call.weight(next++));
  }
  if (shifts) {
    ORKNN_TRY_ASSIGN(beta, call.weight(next++));
  }
  ORKNN_TRY_ASSIGN(const Weight mean, call.weight(next));
  ORKNN_TRY_ASSIGN(const Weight variance, call.weight(next + 1));
  const size_t channels = mean.values.size();
  if (!scales) gamma = {{static_cast<int64_t>(channels)}, std::vector<float>(channels, 1)};
  if (!shifts) beta = {{static_cast<int64_t>(channels)}, std::vector<float>(channels, 0)};
  if (gamma.values.size() != channels || beta.values.size() != channels || variance.values.size() != channels)
    return shape_mismatch("the weights of the layer have different sizes");
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(call));
  const double epsilon = call.config["epsilon"].number(1e-3);
  if (call.input().rank == 4 && (axis == 3 || axis == 1)) {
    Attributes attributes;
    attributes.real("epsilon", static_cast<float>(epsilon))
        .flag("is_training", false)
        .text("data_format", axis == 3 ? "NHWC" : "NCHW");
    return g.like("FusedBatchNormV3", {call.input(), g.floats(gamma), g.floats(beta), g.floats(mean), g.floats(variance)},
                  attributes);
  }
  std::vector<float> factor(channels), offset(channels);
  for (size_t i = 0; i < channels; ++i) {
    const double f = gamma.values[i] / std::sqrt(variance.values[i] + epsilon);
    factor[i] = static_cast<float>(f);
    offset[i] = static_cast<float>(beta.values[i] - mean.values[i] * f);
  }
  const int64_t rank = call.input().rank;
  return g.like("AddV2", {g.like("Mul", {call.input(), along(g, factor, axis, rank)}), along(g, offset, axis, rank)});
}

// Mean 0 and variance 1 along the axes.
Tensor standardized(LayerCall& call, const Tensor& x, const std::vector<int64_t>& along_axes) {
  GraphWriter& g = call.graph;
  const Tensor axes = g.ints(along_axes);
  const Attributes keep = Attributes().flag("keep_dims", true);
  const Tensor mean = g.like("Mean", {x, axes}, keep);
  const Tensor variance = g.like("Mean", {g.like("SquaredDifference", {x, mean}), axes}, keep);
  const float epsilon = static_cast<float>(call.config["epsilon"].number(1e-3));
  return g.like("Mul", {g.like("Sub", {x, mean}), g.like("Rsqrt", {g.like("AddV2", {variance, g.scalar(epsilon)})})});
}

// With the factors and offsets that the layer learned, if it did.
Result<Tensor> scaled_and_shifted(LayerCall& call, Tensor y, int64_t axis) {
  GraphWriter& g = call.graph;
  size_t next = 0;
  if (call.config["scale"].flag(true)) {
    ORKNN_TRY_ASSIGN(const Weight gamma, call.weight(next++));
    y = g.like("Mul", {y, along(g, gamma.values, axis, y.rank)});
  }
  if (!call.config["center"].flag(true)) return y;
  ORKNN_TRY_ASSIGN(const Weight beta, call.weight(next));
  return g.like("AddV2", {y, along(g, beta.values, axis, y.rank)});
}

Result<Tensor> layer_normalization(LayerCall& call) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(call));
  return scaled_and_shifted(call, standardized(call, call.input(), {axis}), axis);
}

// Mean and variance of each group of channels; as many groups as channels where it states none.
Result<Tensor> group_normalization(LayerCall& call) {
  GraphWriter& g = call.graph;
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(call));
  const Tensor x = call.input();
  if (axis != x.rank - 1 || x.rank < 2) return unsupported("GroupNormalization needs channels last");
  const int64_t groups = call.config["groups"].integer(32);
  const Tensor extents = g.node("Shape", {x}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor rest = g.node("StridedSlice", {extents, g.ints({0}), g.ints({axis}), g.ints({1})}, 1);
  const Tensor parts = g.ints(groups > 0 ? std::vector<int64_t>{groups, -1} : std::vector<int64_t>{-1, 1});
  const Tensor shape = g.node("ConcatV2", {rest, parts, g.integer(0)}, 1, Attributes().integer("N", 2));
  const Tensor grouped = g.node("Reshape", {x, shape}, x.rank + 1);
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < axis; ++i) axes.push_back(i);
  axes.push_back(axis + 1);
  return scaled_and_shifted(call, g.node("Reshape", {standardized(call, grouped, axes), extents}, x.rank), axis);
}

Result<Tensor> rms_normalization(LayerCall& call) {
  GraphWriter& g = call.graph;
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(call));
  const Tensor x = call.input();
  const Tensor mean = g.like("Mean", {g.like("Mul", {x, x}), g.ints({axis})}, Attributes().flag("keep_dims", true));
  const Tensor size = g.like("AddV2", {mean, g.scalar(static_cast<float>(call.config["epsilon"].number(1e-6)))});
  ORKNN_TRY_ASSIGN(const Weight scale, call.weight(0));
  return g.like("Mul", {g.like("Mul", {x, g.like("Rsqrt", {size})}), along(g, scale.values, axis, x.rank)});
}

// Vectors of length 1. What is too short for that stays short: Keras 2 and 3 draw the line at different lengths.
Result<Tensor> unit_normalization(LayerCall& call) {
  GraphWriter& g = call.graph;
  std::vector<int64_t> axes = call.config["axis"].integers();
  if (axes.empty()) axes = {-1};
  const Tensor x = call.input();
  const Tensor sum = g.like("Sum", {g.like("Mul", {x, x}), g.ints(axes)}, Attributes().flag("keep_dims", true));
  const Tensor least = g.scalar(call.generation >= 3 ? 1e-24F : 1e-12F);
  return g.like("Mul", {x, g.like("Rsqrt", {g.like("Maximum", {sum, least})})});
}

// Of ConvNeXt: a factor for each channel.
Result<Tensor> layer_scale(LayerCall& call) {
  ORKNN_TRY_ASSIGN(const Weight factors, call.weight(0));
  return call.graph.like("Mul", {call.input(), call.graph.floats(factors)});
}

// (x - mean) / sqrt(variance), from the configuration or from weights.
Result<Tensor> normalization(LayerCall& call) {
  GraphWriter& g = call.graph;
  const auto stated = [](const Json& value) {
    Weight weight;
    for (const Json& item : value.items) weight.values.push_back(static_cast<float>(item.number(0)));
    if (value.kind == Json::Kind::Scalar) weight.values.push_back(static_cast<float>(value.number(0)));
    return weight;
  };
  Weight mean = stated(call.config["mean"]), variance = stated(call.config["variance"]);
  if (mean.values.empty()) {
    ORKNN_TRY_ASSIGN(mean, call.weight(0));
    ORKNN_TRY_ASSIGN(variance, call.weight(1));
  }
  if (mean.values.size() != variance.values.size()) return shape_mismatch("mean and variance have different sizes");
  if (call.config["invert"].flag(false)) return unsupported("Normalization with invert is not supported");
  const int64_t size = static_cast<int64_t>(mean.values.size());
  for (float& v : variance.values) v = 1 / std::max(std::sqrt(v), 1e-7F);
  const ir::Dims dims{size};
  return g.like("Mul", {g.like("Sub", {call.input(), g.floats(dims, mean.values)}), g.floats(dims, variance.values)});
}

Result<Tensor> rescaling(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (call.config["scale"].kind == Json::Kind::List) return unsupported("Rescaling with a list is not supported");
  const Tensor x = g.like("Cast", {call.input()}, Attributes().type("DstT", kTfFloat));
  const Tensor scaled = g.like("Mul", {x, g.scalar(static_cast<float>(call.config["scale"].number(1)))});
  return g.like("AddV2", {scaled, g.scalar(static_cast<float>(call.config["offset"].number(0)))});
}

// --- pooling

Result<Tensor> pool(LayerCall& call, const char* op, size_t spatial) {
  Attributes attributes;
  attributes.ints("ksize", per_axis(call, "pool_size", spatial));
  attributes.ints("strides", per_axis(call, call.config["strides"].is_null() ? "pool_size" : "strides", spatial));
  attributes.text("padding", upper(call.config["padding"].string("valid"))).text("data_format", data_format(call, spatial));
  return call.graph.like(op, {call.input()}, attributes);
}

Result<Tensor> pool1d(LayerCall& call, const char* op) {
  GraphWriter& g = call.graph;
  if (!call.channels_last()) return unsupported("pooling of sequences with channels first is not supported");
  const std::vector<int64_t> size = call.config["pool_size"].integers(), given = call.config["strides"].integers();
  if (size.empty()) return invalid_model("the layer has no pool_size");
  const int64_t stride = given.empty() ? size[0] : given[0];
  Attributes attributes;
  attributes.ints("ksize", {1, 1, size[0], 1})
      .ints("strides", {1, 1, stride, 1})
      .text("padding", upper(call.config["padding"].string("valid")));
  const Tensor wide = g.node("ExpandDims", {call.input(), g.integer(1)}, 4);
  return g.node("Squeeze", {g.like(op, {wide}, attributes)}, 3, Attributes().ints("squeeze_dims", {1}));
}

Result<Tensor> global_pool(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank;
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(call.channels_last() ? i : i + 1);
  const bool keeps = call.config["keepdims"].flag(false);
  return call.graph.node(op, {call.input(), call.graph.ints(axes)}, keeps ? rank : 2, Attributes().flag("keep_dims", keeps));
}

Result<Tensor> max_pool2d(LayerCall& call) { return pool(call, "MaxPool", 2); }
Result<Tensor> average_pool2d(LayerCall& call) { return pool(call, "AvgPool", 2); }
Result<Tensor> max_pool3d(LayerCall& call) { return pool(call, "MaxPool3D", 3); }
Result<Tensor> average_pool3d(LayerCall& call) { return pool(call, "AvgPool3D", 3); }
Result<Tensor> max_pool1d(LayerCall& call) { return pool1d(call, "MaxPool"); }
Result<Tensor> average_pool1d(LayerCall& call) { return pool1d(call, "AvgPool"); }
Result<Tensor> global_average(LayerCall& call) { return global_pool(call, "Mean"); }
Result<Tensor> global_max(LayerCall& call) { return global_pool(call, "Max"); }

// --- shapes

// [batch] + `rest`: the batch is that of the input.
Tensor reshaped(GraphWriter& g, const Tensor& x, std::vector<int64_t> rest) {
  const Tensor extents = g.node("Shape", {x}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor batch = g.node("StridedSlice", {extents, g.ints({0}), g.ints({1}), g.ints({1})}, 1);
  const auto rank = static_cast<int64_t>(rest.size()) + 1;
  return g.node("Reshape", {x, g.node("ConcatV2", {batch, g.ints(rest), g.integer(0)}, 1, Attributes().integer("N", 2))}, rank);
}

Result<Tensor> flatten(LayerCall& call) {
  if (!call.channels_last() && call.input().rank > 2) return unsupported("Flatten with channels first is not supported");
  return reshaped(call.graph, call.input(), {-1});
}
Result<Tensor> reshape(LayerCall& call) { return reshaped(call.graph, call.input(), call.config["target_shape"].integers()); }

Result<Tensor> permute(LayerCall& call) {
  std::vector<int64_t> order = call.config["dims"].integers();
  order.insert(order.begin(), 0);
  return call.graph.like("Transpose", {call.input(), call.graph.ints(order)});
}

// Pairs of numbers for the two axes of a picture: one for all, one per axis, or a pair per axis.
std::array<int64_t, 4> border(const Json& value) {
  const std::vector<int64_t> one = value.integers(2);
  if (value.kind != Json::Kind::List || value.items.size() != 2)
    return one.size() == 2 ? std::array{one[0], one[0], one[1], one[1]} : std::array<int64_t, 4>{};
  if (value.items[0].kind != Json::Kind::List) return {one[0], one[0], one[1], one[1]};
  const std::vector<int64_t> rows = value.items[0].integers(), columns = value.items[1].integers();
  return rows.size() == 2 && columns.size() == 2 ? std::array{rows[0], rows[1], columns[0], columns[1]}
                                                 : std::array<int64_t, 4>{};
}

Result<Tensor> zero_padding(LayerCall& call) {
  GraphWriter& g = call.graph;
  const auto b = border(call.config["padding"]);
  std::vector<int64_t> pads = call.channels_last() ? std::vector<int64_t>{0, 0, b[0], b[1], b[2], b[3], 0, 0}
                                                   : std::vector<int64_t>{0, 0, 0, 0, b[0], b[1], b[2], b[3]};
  return g.like("Pad", {call.input(), g.node("Reshape", {g.ints(pads), g.ints({4, 2})}, 2)});
}

Result<Tensor> zero_padding1d(LayerCall& call) {
  GraphWriter& g = call.graph;
  const std::vector<int64_t> pads = call.config["padding"].integers(2);
  if (pads.size() != 2) return invalid_model("'padding' must be two integers");
  return g.like("Pad", {call.input(), g.node("Reshape", {g.ints({0, 0, pads[0], pads[1], 0, 0}), g.ints({3, 2})}, 2)});
}

Result<Tensor> cropping(LayerCall& call) {
  GraphWriter& g = call.graph;
  const auto b = border(call.config["cropping"]);
  const bool last = call.channels_last();
  // An end of 0 stands for all of it.
  const std::vector<int64_t> begin = last ? std::vector<int64_t>{0, b[0], b[2], 0} : std::vector<int64_t>{0, 0, b[0], b[2]};
  const std::vector<int64_t> end = last ? std::vector<int64_t>{0, -b[1], -b[3], 0} : std::vector<int64_t>{0, 0, -b[1], -b[3]};
  int64_t open = 0;
  for (size_t i = 0; i < end.size(); ++i) open |= end[i] == 0 ? int64_t{1} << i : 0;
  return g.like("StridedSlice", {call.input(), g.ints(begin), g.ints(end), g.ints({1, 1, 1, 1})},
                Attributes().integer("end_mask", open));
}

Result<Tensor> cropping1d(LayerCall& call) {
  GraphWriter& g = call.graph;
  const std::vector<int64_t> cut = call.config["cropping"].integers(2);
  if (cut.size() != 2) return invalid_model("the layer has no cropping");
  return g.like("StridedSlice", {call.input(), g.ints({0, cut[0], 0}), g.ints({0, -cut[1], 0}), g.ints({1, 1, 1})},
                Attributes().integer("end_mask", cut[1] == 0 ? 7 : 5));
}

// Elements of each axis but the first and the last are repeated.
Result<Tensor> repeated(LayerCall& call) {
  GraphWriter& g = call.graph;
  Tensor x = call.input();
  const std::vector<int64_t> times = call.config["size"].integers(static_cast<size_t>(x.rank - 2));
  if (!call.channels_last() || static_cast<int64_t>(times.size()) != x.rank - 2)
    return unsupported("only channels last and one size per axis are supported");
  for (int64_t axis = 1; axis < x.rank - 1; ++axis) {
    std::vector<int64_t> copies(static_cast<size_t>(x.rank + 1), 1), factors(static_cast<size_t>(x.rank), 1);
    copies[static_cast<size_t>(axis + 1)] = factors[static_cast<size_t>(axis)] = times[static_cast<size_t>(axis - 1)];
    const Tensor extents = g.node("Shape", {x}, 1, Attributes().type("out_type", kTfInt64));
    const Tensor wide = g.node("Tile", {g.node("ExpandDims", {x, g.integer(axis + 1)}, x.rank + 1), g.ints(copies)}, x.rank + 1);
    x = g.node("Reshape", {wide, g.like("Mul", {extents, g.ints(factors)})}, x.rank);
  }
  return x;
}

Tensor resized(GraphWriter& g, const Tensor& x, const Tensor& size, bool bilinear) {
  const Tensor narrow = g.like("Cast", {size}, Attributes().type("DstT", kTfInt32));
  return g.like(bilinear ? "ResizeBilinear" : "ResizeNearestNeighbor", {x, narrow},
                Attributes().flag("half_pixel_centers", true));
}

Result<bool> is_bilinear(const LayerCall& call) {
  const std::string kind = call.config["interpolation"].string("nearest");
  if (kind != "nearest" && kind != "bilinear") return unsupported("the interpolation '" + kind + "' is not supported");
  return kind == "bilinear";
}

Result<Tensor> upsampling(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (!call.channels_last()) return unsupported("UpSampling2D with channels first is not supported");
  ORKNN_TRY_ASSIGN(const bool bilinear, is_bilinear(call));
  const std::vector<int64_t> factors = call.config["size"].integers(2);
  if (factors.size() != 2) return invalid_model("the layer has no size");
  const Tensor extents = g.node("Shape", {call.input()}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor old = g.node("StridedSlice", {extents, g.ints({1}), g.ints({3}), g.ints({1})}, 1);
  return resized(g, call.input(), g.like("Mul", {old, g.ints(factors)}), bilinear);
}

Result<Tensor> resizing(LayerCall& call) {
  if (!call.channels_last()) return unsupported("Resizing with channels first is not supported");
  ORKNN_TRY_ASSIGN(const bool bilinear, is_bilinear(call));
  return resized(call.graph, call.input(), call.graph.ints({call.config["height"].integer(0), call.config["width"].integer(0)}),
                 bilinear);
}

Result<Tensor> repeat_vector(LayerCall& call) {
  GraphWriter& g = call.graph;
  const Tensor wide = g.node("ExpandDims", {call.input(), g.integer(1)}, 3);
  return g.like("Tile", {wide, g.ints({1, call.config["n"].integer(1), 1})});
}

Result<Tensor> identity(LayerCall& call) { return call.graph.like("Identity", {call.input()}); }

// --- several inputs

Result<Tensor> concatenate(LayerCall& call) {
  int64_t axis = call.config["axis"].integer(-1);
  if (axis < 0) axis += call.input().rank;
  std::vector<Tensor> inputs = call.inputs;
  inputs.push_back(call.graph.integer(axis));
  return call.graph.like("ConcatV2", inputs, Attributes().integer("N", static_cast<int64_t>(call.inputs.size())));
}

Result<Tensor> folded(LayerCall& call, const char* op) {
  Tensor result = call.input();
  for (size_t i = 1; i < call.inputs.size(); ++i)
    result = call.graph.node(op, {result, call.inputs[i]}, std::max(result.rank, call.inputs[i].rank));
  return result;
}
Result<Tensor> add(LayerCall& call) { return folded(call, "AddV2"); }
Result<Tensor> subtract(LayerCall& call) { return folded(call, "Sub"); }
Result<Tensor> multiply(LayerCall& call) { return folded(call, "Mul"); }
Result<Tensor> maximum(LayerCall& call) { return folded(call, "Maximum"); }
Result<Tensor> minimum(LayerCall& call) { return folded(call, "Minimum"); }
Result<Tensor> average(LayerCall& call) {
  ORKNN_TRY_ASSIGN(const Tensor sum, folded(call, "AddV2"));
  return call.graph.like("Mul", {sum, call.graph.scalar(1.0F / static_cast<float>(call.inputs.size()))});
}

// Products of vectors, or of the vectors along one axis of each of two sequences.
Result<Tensor> dot(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (call.inputs.size() != 2 || call.inputs[0].rank != call.inputs[1].rank || call.input().rank < 2 || call.input().rank > 3)
    return unsupported("Dot needs two lists of vectors, or two sequences");
  const int64_t rank = call.input().rank;
  std::vector<int64_t> axes = call.config["axes"].integers(2);
  if (axes.size() != 2) return invalid_model("the layer has no axes");
  std::vector<Tensor> x = call.inputs;
  for (size_t i = 0; i < 2; ++i) {
    if (axes[i] < 0) axes[i] += rank;
    if (axes[i] < 1 || axes[i] >= rank) return unsupported("the axes of the layer are not supported");
    if (!call.config["normalize"].flag(false)) continue;
    const Tensor sum = g.like("Sum", {g.like("Mul", {x[i], x[i]}), g.ints({axes[i]})}, Attributes().flag("keep_dims", true));
    x[i] = g.like("Mul", {x[i], g.like("Rsqrt", {g.like("Maximum", {sum, g.scalar(1e-12F)})})});
  }
  if (rank == 2) return g.like("Sum", {g.like("Mul", x), g.ints({1})}, Attributes().flag("keep_dims", true));
  return g.like("BatchMatMulV2", x, Attributes().flag("adj_x", axes[0] == 1).flag("adj_y", axes[1] == 2));
}

const std::map<std::string, Lower, std::less<>>& layer_rows() {
  static const std::map<std::string, Lower, std::less<>> rows{
      {"Activation", activation_layer},
      {"ActivityRegularization", identity},
      {"Add", add},
      {"AlphaDropout", identity},
      {"Attention", attention},
      {"Average", average},
      {"AveragePooling1D", average_pool1d},
      {"AveragePooling2D", average_pool2d},
      {"AveragePooling3D", average_pool3d},
      {"BatchNormalization", batch_normalization},
      {"BatchNormalizationV1", batch_normalization},
      {"Bidirectional", bidirectional},
      {"Concatenate", concatenate},
      {"Conv1D", conv1d},
      {"Conv2D", conv2d},
      {"Conv2DTranspose", transposed},
      {"Conv3D", conv3d},
      {"Cropping1D", cropping1d},
      {"Cropping2D", cropping},
      {"Dense", dense},
      {"DepthwiseConv1D", depthwise1d},
      {"DepthwiseConv2D", depthwise},
      {"Dot", dot},
      {"Dropout", identity},
      {"ELU", elu_layer},
      {"Embedding", embedding},
      {"Flatten", flatten},
      {"GRU", recurrent},
      {"GaussianDropout", identity},
      {"GaussianNoise", identity},
      {"GlobalAveragePooling1D", global_average},
      {"GlobalAveragePooling2D", global_average},
      {"GlobalAveragePooling3D", global_average},
      {"GlobalMaxPooling1D", global_max},
      {"GlobalMaxPooling2D", global_max},
      {"GlobalMaxPooling3D", global_max},
      {"GroupNormalization", group_normalization},
      {"Identity", identity},
      {"LSTM", recurrent},
      {"LayerNormalization", layer_normalization},
      {"LayerScale", layer_scale},
      {"LeakyReLU", leaky_layer},
      {"MaxPooling1D", max_pool1d},
      {"MaxPooling2D", max_pool2d},
      {"MaxPooling3D", max_pool3d},
      {"Maximum", maximum},
      {"Minimum", minimum},
      {"MultiHeadAttention", multi_head_attention},
      {"Multiply", multiply},
      {"Normalization", normalization},
      {"PReLU", prelu_layer},
      {"Permute", permute},
      {"RMSNormalization", rms_normalization},
      {"ReLU", relu_layer},
      {"RepeatVector", repeat_vector},
      {"Rescaling", rescaling},
      {"Reshape", reshape},
      {"Resizing", resizing},
      {"SeparableConv1D", depthwise1d},
      {"SeparableConv2D", separable},
      {"SimpleRNN", recurrent},
      {"Softmax", softmax_layer},
      {"SpatialDropout1D", identity},
      {"SpatialDropout2D", identity},
      {"SpatialDropout3D", identity},
      {"Subtract", subtract},
      {"TimeDistributed", time_distributed},
      {"UnitNormalization", unit_normalization},
      {"UpSampling1D", repeated},
      {"UpSampling2D", upsampling},
      {"UpSampling3D", repeated},
      {"ZeroPadding1D", zero_padding1d},
      {"ZeroPadding2D", zero_padding},
  };
  return rows;
}
}  // namespace

Result<Weight> LayerCall::weight(size_t index, std::string_view below) const {
  const std::string where = below.empty() ? path : path + "/" + std::string(below);
  const auto found = weights.find(where);
  if (found == weights.end() || index >= found->second.size())
    return invalid_model("a weight of the layer is missing").expected("at least " + std::to_string(index + 1));
  return found->second[index];
}

bool is_known_layer(const Json& layer) {
  const std::string kind = layer["class_name"].string();
  return is_operation(layer) ? is_known_operation(layer) : layer_rows().count(kind) > 0;
}

Result<Tensor> lower_layer(LayerCall& call) {
  const std::string kind = call.layer["class_name"].string();
  if (call.inputs.empty()) return invalid_model("the layer has no input").node(call.path, kind);
  static const std::set<std::string, std::less<>> joining{
      "Add", "Attention", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "MultiHeadAttention", "Multiply", "Subtract"};
  if (call.inputs.size() > 1 && !is_operation(call.layer) && !joining.count(kind))  // a first state, a mask
    return unsupported("more than one tensor is given to the layer").node(call.path, kind);
  call.graph.begin_layer(call.path);
  auto result = is_operation(call.layer) ? lower_operation(call) : layer_rows().at(kind)(call);
  if (!result) return Status(result.status()).node(call.path, kind);
  return result;
}

}  // namespace orknn::importer::keras
