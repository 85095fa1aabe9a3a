// Sections that multiply with weights: convolutional, deconvolutional, connected, local, implicit.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
constexpr int64_t kMaxFilters = int64_t{1} << 20;

TensorId is_positive(Layer& l, TensorId x) { return l.with_scalar("Greater", x, 0); }

// Weights become plus or minus the mean of their filter.
TensorId binarized_weights(Layer& l, TensorId weight) {
  const TensorId mean = l.reduce("ReduceMean", l.unary("Abs", weight), {1, 2, 3}, true);
  return l.where(is_positive(l, weight), mean, l.unary("Neg", mean));
}

TensorId binarized_input(Layer& l, TensorId x) {
  return l.where(is_positive(l, x), l.add_scalar("plus", 1), l.add_scalar("minus", -1));
}

Result<Parameters> shared_convolution(Layer& l, const Convolution& c, const Dims& weight_dims) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> references, l.integers("share_index"));
  ORKNN_TRY_ASSIGN(const size_t number, l.layer_number(references[0]));
  const std::optional<Parameters>& known = l.build().convolutions[number];
  if (!known) return invalid_model("share_index names a layer that is not a convolution").found(std::to_string(references[0]));
  if (known->weight_dims != weight_dims || bool(known->scale) != c.batch_normalize)
    return invalid_model("share_index names a convolution of another shape")
        .expected(to_string(weight_dims))
        .found(to_string(known->weight_dims));
  return *known;
}

Result<TensorId> convolutional(Layer& l, TensorId previous) {
  Convolution c = convolution_options(l, 1, "logistic");
  c.filters = l.integer("filters", 1, 1, kMaxFilters);
  for (const char* option : {"sway", "rotate", "stretch", "stretch_sway", "coordconv"})
    if (l.flag(option)) return unsupported("option '" + std::string(option) + "' of convolutions is not supported");
  const int64_t antialiasing = l.integer("antialiasing", 0, 0, 2);
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t stride_x = c.stride_x, stride_y = c.stride_y;
  if (antialiasing) c.stride_x = c.stride_y = 1;

  auto& known = l.build().convolutions;
  known.resize(l.index() + 1);
  ORKNN_TRY_ASSIGN(known.back(), l.has("share_index")
                                     ? shared_convolution(l, c, {c.filters, in.dims[1] / c.groups, c.size, c.size})
                                     : take_convolution(l, c, in.dims[1], ""));
  const TensorId y = convolve(l, in.x, c, *known.back());
  return antialiasing ? blur(l, y, c.filters, antialiasing, stride_x, stride_y) : y;
}

// A fork's spelling of a convolution with one filter per channel.
Result<TensorId> depthwise_convolutional(Layer& l, TensorId previous) {
  Convolution c = convolution_options(l, 1, "logistic");
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  c.filters = c.groups = in.dims[1];
  ORKNN_TRY_ASSIGN(const Parameters p, take_convolution(l, c, in.dims[1], ""));
  return convolve(l, in.x, c, p);
}

Result<TensorId> deconvolutional(Layer& l, TensorId previous) {
  Convolution c = convolution_options(l, 1, "logistic");
  c.filters = l.integer("filters", 1, 1, kMaxFilters);
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  Parameters p;
  ORKNN_TRY_ASSIGN(p.bias, l.take("bias", {c.filters}, Fill::Zeros));
  if (c.batch_normalize) ORKNN_TRY(take_statistics(l, p, c.filters, c.load_scales, ""));
  const int64_t fan_in = in.dims[1] * c.size * c.size / (c.stride_x * c.stride_y) + 1;
  ORKNN_TRY_ASSIGN(p.weight, l.take("weight", {in.dims[1], c.filters, c.size, c.size}, Fill::Random, fan_in));
  std::vector<TensorId> inputs{in.x, p.weight};
  if (!c.batch_normalize) inputs.push_back(p.bias);
  const Window window = square_window(c.size, c.stride_y, c.stride_x, c.padding, c.padding);
  const TensorId y = l.emit("ConvTranspose", inputs, window.attributes());
  return l.activated(c.batch_normalize ? batch_normalized(l, y, p) : y, "logistic");
}

Result<TensorId> connected(Layer& l, TensorId previous) {
  const int64_t outputs = l.integer("output", 1, 1, int64_t{1} << 26);
  ORKNN_TRY_ASSIGN(const Pictures in, l.rows(previous));
  ORKNN_TRY_ASSIGN(const Parameters p, take_connected(l, in.dims[1], outputs, l.flag("batch_normalize"), ""));
  return connect(l, in.x, p, l.text("activation", "logistic"));
}

// A convolution whose weights differ from pixel to pixel: the windows of each pixel times the pixel's own matrix.
Result<TensorId> local(Layer& l, TensorId previous) {
  const int64_t filters = l.integer("filters", 1, 1, kMaxFilters),
                size = l.integer("size", 1, 1, 64),  // each pixel of the window is a node below
      stride = l.integer("stride", 1, 1, kMaxSize), pad = l.flag("pad") ? size / 2 : 0;
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const Dims& dims = in.dims;
  if (dims[2] + 2 * pad < size || dims[3] + 2 * pad < size)
    return invalid_model("the window is larger than the picture")
        .expected("at most " + to_string(dims))
        .found(std::to_string(size));
  const int64_t channels = dims[1], out_height = (dims[2] + 2 * pad - size) / stride + 1,
                out_width = (dims[3] + 2 * pad - size) / stride + 1;
  const int64_t places = out_height * out_width, depth = channels * size * size;
  ORKNN_TRY_ASSIGN(const TensorId bias, l.take("bias", {1, filters, out_height, out_width}, Fill::Zeros));
  ORKNN_TRY_ASSIGN(const TensorId weight, l.take("weight", {places, filters, depth}, Fill::Random, depth));
  const TensorId x = pad ? l.emit("Pad", {in.x, l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad})}) : in.x;
  std::vector<TensorId> windows;
  for (int64_t row = 0; row < size; ++row)
    for (int64_t column = 0; column < size; ++column) {
      const int64_t last_row = row + (out_height - 1) * stride, last_column = column + (out_width - 1) * stride;
      const TensorId part = l.slice(x, {row, column}, {last_row + 1, last_column + 1}, {2, 3}, {stride, stride});
      windows.push_back(l.reshape(part, {dims[0], channels, 1, places}));
    }
  const TensorId stacked = l.concat(std::move(windows), 2);
  const TensorId per_place = l.reshape(l.transpose(stacked, {3, 0, 1, 2}), {places, dims[0], depth});
  const TensorId products = l.matmul(per_place, l.transpose(weight, {0, 2, 1}));
  const TensorId y = l.reshape(l.transpose(products, {1, 2, 0}), {dims[0], filters, out_height, out_width});
  return l.activated(l.add(y, bias), "logistic");
}

// Learned numbers that come from nowhere.
Result<TensorId> implicit(Layer& l) {
  const int64_t filters = l.integer("filters", 128, 1, kMaxFilters), atoms = l.integer("atoms", 1, 1, kMaxFilters);
  return l.take("value", {1, filters, atoms, 1}, Fill::Random);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"convolutional|conv", convolutional},
      {"depthwise_convolutional|depthwise", depthwise_convolutional},
      {"deconvolutional|deconv", deconvolutional},
      {"connected|conn", connected},
      {"local", local},
      {"implicit", implicit},
  };
  return rows;
}

Convolution convolution_options(Layer& l, int64_t default_size, std::string_view default_activation) {
  Convolution c;
  c.size = l.integer("size", default_size, 1, kMaxSize);
  const int64_t stride = l.integer("stride", 1, 1, kMaxSize);
  c.stride_x = l.integer("stride_x", stride, 1, kMaxSize);
  c.stride_y = l.integer("stride_y", stride, 1, kMaxSize);
  c.dilation = l.integer("dilation", 1, 1, kMaxSize);
  if (c.size == 1) c.dilation = 1;
  c.padding = l.integer("padding", 0, 0, kMaxSize);
  if (l.flag("pad")) {
    if (l.has("padding") && c.padding != c.size / 2)
      l.warn("option 'padding' (" + std::to_string(c.padding) + ") has no effect beside 'pad': the border is size / 2 (" +
             std::to_string(c.size / 2) + "), as in Darknet");
    c.padding = c.size / 2;
  }
  c.groups = l.integer("groups", 1, 1, kMaxFilters);
  c.batch_normalize = l.flag("batch_normalize") || l.flag("cbn");
  c.load_scales = !l.flag("dontloadscales");
  c.flipped = l.flag("flipped");
  c.binary_input = l.flag("xnor");
  c.binary_weights = c.binary_input || l.flag("binary");
  c.activation = l.text("activation", default_activation);
  return c;
}

Result<Parameters> take_convolution(Layer& l, const Convolution& c, int64_t channels, const std::string& prefix) {
  if (channels % c.groups != 0 || c.filters % c.groups != 0)
    return invalid_model("the channels cannot be divided into groups")
        .expected("multiples of " + std::to_string(c.groups))
        .found(std::to_string(channels) + " to " + std::to_string(c.filters) + " channels");
  Parameters p{.weight_dims = {c.filters, channels / c.groups, c.size, c.size}};
  const int64_t fan_in = channels / c.groups * c.size * c.size;
  ORKNN_TRY_ASSIGN(p.bias, l.take(prefix + "bias", {c.filters}, Fill::Zeros));
  if (c.batch_normalize) ORKNN_TRY(take_statistics(l, p, c.filters, c.load_scales, prefix));
  const Dims stored = c.flipped ? Dims{fan_in, c.filters} : p.weight_dims;
  ORKNN_TRY_ASSIGN(p.weight, l.take(prefix + "weight", stored, Fill::Random, fan_in));
  if (c.flipped) p.weight = l.reshape(l.transpose(p.weight, {1, 0}), p.weight_dims);
  return p;
}

TensorId convolve(Layer& l, TensorId x, const Convolution& c, const Parameters& p) {
  if (c.binary_input) x = binarized_input(l, x);
  Filter filter{.weights = c.binary_weights ? binarized_weights(l, p.weight) : p.weight, .groups = c.groups};
  if (!c.batch_normalize) filter.bias = p.bias;
  const int64_t padding = c.padding * c.dilation;
  filter.window = square_window(c.size, c.stride_y, c.stride_x, padding, padding);
  filter.window.dilations = {c.dilation, c.dilation};
  const TensorId y = l.emit("Conv", filter.inputs(x), filter.attributes());
  return activate(l, c.batch_normalize ? batch_normalized(l, y, p) : y, c.activation);
}

Result<Parameters> take_connected(Layer& l, int64_t inputs, int64_t outputs, bool batch_normalize, const std::string& prefix) {
  Parameters p;
  const bool is_transposed = l.build().weights.is_transposed();
  ORKNN_TRY_ASSIGN(p.bias, l.take(prefix + "bias", {outputs}, Fill::Zeros));
  ORKNN_TRY_ASSIGN(
      p.weight, l.take(prefix + "weight", is_transposed ? Dims{inputs, outputs} : Dims{outputs, inputs}, Fill::Random, inputs));
  if (is_transposed) p.weight = l.transpose(p.weight, {1, 0});
  if (batch_normalize) ORKNN_TRY(take_statistics(l, p, outputs, !l.flag("dontloadscales"), prefix));
  return p;
}

TensorId connect(Layer& l, TensorId rows, const Parameters& p, std::string_view activation) {
  const TensorId y = l.linear(rows, p.weight, p.scale ? TensorId{} : p.bias);
  return activate(l, p.scale ? batch_normalized(l, y, p) : y, activation);
}

}  // namespace orknn::importer::darknet
