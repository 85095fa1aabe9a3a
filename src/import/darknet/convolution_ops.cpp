// Sections that multiply with weights: convolutional, deconvolutional, connected, local, batchnorm.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// The forks differ (1e-6 beside the root, 1e-5 under it); this one lies between them and is what other readers of these files
// use.
constexpr double kEpsilon = 1e-6;
constexpr int64_t kMaxFilters = int64_t{1} << 20, kMaxWindow = int64_t{1} << 12;

Result<TensorId> normalize(Layer& l, TensorId x, const Parameters& p) {
  return l.emit("BatchNormalization", {x, p.scale, p.bias, p.mean, p.variance}, {{"epsilon", kEpsilon}});
}

// scales, mean and variance follow each other in every kind of layer.
Status take_statistics(Layer& l, Parameters& p, int64_t channels, bool load, const std::string& prefix) {
  const auto next = [&](std::string_view role, Filling filling) -> Result<TensorId> {
    if (load) return l.take(prefix + std::string(role), {channels}, filling);
    ORKNN_TRY_ASSIGN(TensorData value, l.build().weights.invent(role, {channels}, filling));
    return l.add_constant(prefix + std::string(role), std::move(value));
  };
  ORKNN_TRY_ASSIGN(p.scale, next("scale", Filling::Ones));
  ORKNN_TRY_ASSIGN(p.mean, next("mean", Filling::Zeros));
  ORKNN_TRY_ASSIGN(p.variance, next("variance", Filling::Ones));
  return {};
}

// Weights become plus or minus the mean of their filter.
TensorId binarized_weights(Layer& l, TensorId weight) {
  const TensorId mean =
      l.emit("ReduceMean", {l.emit("Abs", {weight}), l.add_ints("axes", {1, 2, 3})}, {{"keepdims", int64_t{1}}});
  return l.emit("Where", {l.emit("Greater", {weight, l.add_scalar("zero", 0)}), mean, l.emit("Neg", {mean})});
}

TensorId binarized_input(Layer& l, TensorId x) {
  return l.emit("Where", {l.emit("Greater", {x, l.add_scalar("zero", 0)}), l.add_scalar("plus", 1), l.add_scalar("minus", -1)});
}

Status convolutional(Layer& l) {
  ORKNN_TRY_ASSIGN(Convolution c, convolution_options(l, 1, "logistic"));
  ORKNN_TRY_ASSIGN(c.filters, l.get_int("filters", 1, 1, kMaxFilters));
  for (const char* option : {"sway", "rotate", "stretch", "stretch_sway", "coordconv"})
    if (l.get_flag(option)) return unsupported("option '" + std::string(option) + "' of convolutions is not supported");
  ORKNN_TRY_ASSIGN(const int64_t antialiasing, l.get_int("antialiasing", 0, 0, 2));
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the weights"));
  const int64_t stride_x = c.stride_x, stride_y = c.stride_y;
  if (antialiasing) c.stride_x = c.stride_y = 1;

  auto& known = l.build().convolutions;
  known.resize(l.index() + 1);
  if (l.has("share_index")) {
    ORKNN_TRY_ASSIGN(const auto references, l.get_ints("share_index"));
    ORKNN_TRY(l.layer_at(references[0]).status());
    const auto source = static_cast<size_t>(references[0] < 0 ? static_cast<int64_t>(l.index()) + references[0] : references[0]);
    if (!known[source])
      return invalid_model("share_index names a layer that is no convolution").found(std::to_string(references[0]));
    if (known[source]->weight_dims != Dims{c.filters, dims[1] / c.groups, c.size, c.size} ||
        bool(known[source]->scale) != c.batch_normalize)
      return invalid_model("share_index names a convolution of another shape")
          .expected(to_string(Dims{c.filters, dims[1] / c.groups, c.size, c.size}))
          .found(to_string(known[source]->weight_dims));
    known.back() = known[source];
  } else {
    ORKNN_TRY_ASSIGN(known.back(), take_convolution(l, c, dims[1], ""));
  }
  ORKNN_TRY_ASSIGN(TensorId y, convolve(l, x, c, *known.back()));
  if (antialiasing) {
    ORKNN_TRY_ASSIGN(y, blur(l, y, c.filters, antialiasing, stride_x, stride_y));
  }
  return l.hand_on(y);
}

// A fork's spelling of a convolution with one filter per channel.
Status depthwise_convolutional(Layer& l) {
  ORKNN_TRY_ASSIGN(Convolution c, convolution_options(l, 1, "logistic"));
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the weights"));
  c.filters = c.groups = dims[1];
  ORKNN_TRY_ASSIGN(const Parameters p, take_convolution(l, c, dims[1], ""));
  ORKNN_TRY_ASSIGN(const TensorId y, convolve(l, x, c, p));
  return l.hand_on(y);
}

Status deconvolutional(Layer& l) {
  ORKNN_TRY_ASSIGN(Convolution c, convolution_options(l, 1, "logistic"));
  ORKNN_TRY_ASSIGN(c.filters, l.get_int("filters", 1, 1, kMaxFilters));
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the weights"));
  Parameters p;
  ORKNN_TRY_ASSIGN(p.bias, l.take("bias", {c.filters}, Filling::Zeros));
  if (c.batch_normalize) ORKNN_TRY(take_statistics(l, p, c.filters, c.load_scales, ""));
  ORKNN_TRY_ASSIGN(p.weight, l.take("weight", {dims[1], c.filters, c.size, c.size}, Filling::Random,
                                    dims[1] * c.size * c.size / (c.stride_x * c.stride_y) + 1));
  std::vector<TensorId> inputs{x, p.weight};
  if (!c.batch_normalize) inputs.push_back(p.bias);
  TensorId y = l.emit("ConvTranspose", inputs,
                      {{"kernel_shape", std::vector<int64_t>{c.size, c.size}},
                       {"strides", std::vector<int64_t>{c.stride_y, c.stride_x}},
                       {"pads", std::vector<int64_t>(4, c.padding)}});
  if (c.batch_normalize) {
    ORKNN_TRY_ASSIGN(y, normalize(l, y, p));
  }
  return l.finish(y, "logistic");
}

Status connected(Layer& l) {
  ORKNN_TRY_ASSIGN(const int64_t outputs, l.get_int("output", 1, 1, int64_t{1} << 26));
  ORKNN_TRY_ASSIGN(const TensorId rows, l.as_rows(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(rows, "to read the weights"));
  ORKNN_TRY_ASSIGN(const Parameters p, take_connected(l, dims[1], outputs, l.get_flag("batch_normalize"), ""));
  ORKNN_TRY_ASSIGN(const TensorId y, connect(l, rows, p, l.get_string("activation", "logistic")));
  return l.hand_on(y);
}

// A convolution whose weights differ from pixel to pixel: the windows of each pixel times the pixel's own matrix.
Status local(Layer& l) {
  ORKNN_TRY_ASSIGN(const int64_t filters, l.get_int("filters", 1, 1, kMaxFilters));
  ORKNN_TRY_ASSIGN(const int64_t size, l.get_int("size", 1, 1, 64));  // each pixel of the window is a node below
  ORKNN_TRY_ASSIGN(const int64_t stride, l.get_int("stride", 1, 1, kMaxWindow));
  const int64_t pad = l.get_flag("pad") ? size / 2 : 0;
  ORKNN_TRY_ASSIGN(TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the weights"));
  const int64_t channels = dims[1], out_height = (dims[2] + 2 * pad - size) / stride + 1,
                out_width = (dims[3] + 2 * pad - size) / stride + 1;
  if (dims[2] + 2 * pad < size || dims[3] + 2 * pad < size)
    return invalid_model("the window is larger than the picture")
        .expected("at most " + to_string(dims))
        .found(std::to_string(size));
  const int64_t places = out_height * out_width, depth = channels * size * size;
  ORKNN_TRY_ASSIGN(const TensorId bias, l.take("bias", {1, filters, out_height, out_width}, Filling::Zeros));
  ORKNN_TRY_ASSIGN(const TensorId weight, l.take("weight", {places, filters, depth}, Filling::Random, depth));
  if (pad) x = l.emit("Pad", {x, l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad})});
  std::vector<TensorId> windows;
  for (int64_t row = 0; row < size; ++row)
    for (int64_t column = 0; column < size; ++column) {
      const TensorId part =
          l.emit("Slice", {x, l.add_ints("starts", {row, column}),
                           l.add_ints("ends", {row + (out_height - 1) * stride + 1, column + (out_width - 1) * stride + 1}),
                           l.add_ints("axes", {2, 3}), l.add_ints("steps", {stride, stride})});
      windows.push_back(l.reshape(part, {dims[0], channels, 1, places}));
    }
  const TensorId stacked = windows.size() == 1 ? windows[0] : l.emit("Concat", windows, {{"axis", int64_t{2}}});
  const TensorId per_place = l.reshape(l.transpose(stacked, {3, 0, 1, 2}), {places, dims[0], depth});
  const TensorId products = l.emit("MatMul", {per_place, l.transpose(weight, {0, 2, 1})});
  const TensorId y = l.reshape(l.transpose(products, {1, 2, 0}), {dims[0], filters, out_height, out_width});
  return l.finish(l.emit("Add", {y, bias}), "logistic");
}

Status batchnorm(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the statistics"));
  Parameters p;
  if (l.build().weights.is_fork()) {
    ORKNN_TRY_ASSIGN(p.bias, l.take("bias", {dims[1]}, Filling::Zeros));
  } else {
    ORKNN_TRY_ASSIGN(TensorData zeros, l.build().weights.invent("bias", {dims[1]}, Filling::Zeros));
    p.bias = l.add_constant("bias", std::move(zeros));
  }
  ORKNN_TRY(take_statistics(l, p, dims[1], true, ""));
  ORKNN_TRY_ASSIGN(const TensorId y, normalize(l, x, p));
  return l.finish(y);
}

// Learned numbers that come from nowhere.
Status implicit(Layer& l) {
  ORKNN_TRY_ASSIGN(const int64_t filters, l.get_int("filters", 128, 1, kMaxFilters));
  ORKNN_TRY_ASSIGN(const int64_t atoms, l.get_int("atoms", 1, 1, kMaxFilters));
  ORKNN_TRY_ASSIGN(const TensorId y, l.take("value", {1, filters, atoms, 1}, Filling::Random));
  return l.hand_on(y);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static constexpr Row kRows[] = {
      {"convolutional", convolutional},
      {"conv", convolutional},
      {"depthwise_convolutional", depthwise_convolutional},
      {"depthwise", depthwise_convolutional},
      {"deconvolutional", deconvolutional},
      {"deconv", deconvolutional},
      {"connected", connected},
      {"conn", connected},
      {"local", local},
      {"batchnorm", batchnorm},
      {"implicit", implicit},
  };
  return kRows;
}

Result<Convolution> convolution_options(const Layer& l, int64_t default_size, std::string_view default_activation) {
  Convolution c;
  ORKNN_TRY_ASSIGN(c.size, l.get_int("size", default_size, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(const int64_t stride, l.get_int("stride", 1, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(c.stride_x, l.get_int("stride_x", stride, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(c.stride_y, l.get_int("stride_y", stride, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(c.dilation, l.get_int("dilation", 1, 1, kMaxWindow));
  if (c.size == 1) c.dilation = 1;
  ORKNN_TRY_ASSIGN(c.padding, l.get_int("padding", 0, 0, kMaxWindow));
  if (l.get_flag("pad")) c.padding = c.size / 2;
  ORKNN_TRY_ASSIGN(c.groups, l.get_int("groups", 1, 1, kMaxFilters));
  c.batch_normalize = l.get_flag("batch_normalize") || l.get_flag("cbn");
  c.load_scales = !l.get_flag("dontloadscales");
  c.flipped = l.get_flag("flipped");
  c.binary_input = l.get_flag("xnor");
  c.binary_weights = c.binary_input || l.get_flag("binary");
  c.activation = l.get_string("activation", default_activation);
  return c;
}

Result<Parameters> take_convolution(Layer& l, const Convolution& c, int64_t channels, const std::string& prefix) {
  if (channels % c.groups != 0 || c.filters % c.groups != 0)
    return invalid_model("the channels cannot be divided into groups")
        .expected("multiples of " + std::to_string(c.groups))
        .found(std::to_string(channels) + " to " + std::to_string(c.filters) + " channels");
  Parameters p;
  p.weight_dims = {c.filters, channels / c.groups, c.size, c.size};
  const int64_t fan_in = channels / c.groups * c.size * c.size;
  ORKNN_TRY_ASSIGN(p.bias, l.take(prefix + "bias", {c.filters}, Filling::Zeros));
  if (c.batch_normalize) ORKNN_TRY(take_statistics(l, p, c.filters, c.load_scales, prefix));
  if (c.flipped) {
    ORKNN_TRY_ASSIGN(const TensorId stored, l.take(prefix + "weight", {fan_in, c.filters}, Filling::Random, fan_in));
    p.weight = l.reshape(l.transpose(stored, {1, 0}), p.weight_dims);
  } else {
    ORKNN_TRY_ASSIGN(p.weight, l.take(prefix + "weight", p.weight_dims, Filling::Random, fan_in));
  }
  return p;
}

Result<TensorId> convolve(Layer& l, TensorId x, const Convolution& c, const Parameters& p) {
  std::vector<TensorId> inputs{c.binary_input ? binarized_input(l, x) : x,
                               c.binary_weights ? binarized_weights(l, p.weight) : p.weight};
  if (!c.batch_normalize) inputs.push_back(p.bias);
  TensorId y = l.emit("Conv", inputs,
                      {{"kernel_shape", std::vector<int64_t>{c.size, c.size}},
                       {"strides", std::vector<int64_t>{c.stride_y, c.stride_x}},
                       {"pads", std::vector<int64_t>(4, c.padding * c.dilation)},
                       {"dilations", std::vector<int64_t>{c.dilation, c.dilation}},
                       {"group", c.groups}});
  if (c.batch_normalize) {
    ORKNN_TRY_ASSIGN(y, normalize(l, y, p));
  }
  return activate(l, y, c.activation);
}

Result<Parameters> take_connected(Layer& l, int64_t inputs, int64_t outputs, bool batch_normalize, const std::string& prefix) {
  Parameters p;
  ORKNN_TRY_ASSIGN(p.bias, l.take(prefix + "bias", {outputs}, Filling::Zeros));
  if (l.build().weights.is_transposed()) {
    ORKNN_TRY_ASSIGN(const TensorId stored, l.take(prefix + "weight", {inputs, outputs}, Filling::Random, inputs));
    p.weight = l.transpose(stored, {1, 0});
  } else {
    ORKNN_TRY_ASSIGN(p.weight, l.take(prefix + "weight", {outputs, inputs}, Filling::Random, inputs));
  }
  if (batch_normalize) ORKNN_TRY(take_statistics(l, p, outputs, !l.get_flag("dontloadscales"), prefix));
  return p;
}

Result<TensorId> connect(Layer& l, TensorId rows, const Parameters& p, std::string_view activation) {
  std::vector<TensorId> inputs{rows, p.weight};
  if (!p.scale) inputs.push_back(p.bias);
  TensorId y = l.emit("Gemm", inputs, {{"transB", int64_t{1}}});
  if (p.scale) {
    ORKNN_TRY_ASSIGN(y, normalize(l, y, p));
  }
  return activate(l, y, activation);
}

}  // namespace orknn::importer::darknet
