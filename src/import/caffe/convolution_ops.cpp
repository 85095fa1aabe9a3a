// Layers that multiply with weights: Convolution, Deconvolution, InnerProduct, Embed, and the windows of Im2col.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMaxOutputs = int64_t{1} << 26;

// Inputs per output of a window; only the size of random weights depends on it, so it may saturate.
int64_t fan_in_of(int64_t channels, std::span<const int64_t> kernel) {
  auto count = static_cast<double>(channels);
  for (int64_t k : kernel) count *= static_cast<double>(k);
  return static_cast<int64_t>(std::min(count, 1e12));
}

Result<int64_t> output_count(const Message& p) {
  ORKNN_TRY_ASSIGN(const int64_t count, p.get_int("num_output", 0));
  if (count < 1 || count > kMaxOutputs)
    return invalid_model("'num_output' is out of range")
        .expected("1 to " + std::to_string(kMaxOutputs))
        .found(std::to_string(count));
  return count;
}

struct Convolution {
  Window window;
  int64_t outputs = 1, groups = 1, channels = 1;
  bool has_bias = true;
  Attributes attributes() const {
    return {{"kernel_shape", window.kernel},
            {"strides", window.stride},
            {"pads", window.pads()},
            {"dilations", window.dilation},
            {"group", groups}};
  }
};

Result<Convolution> convolution_of(Layer& l, const Message& p, bool is_depthwise) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to read the weights"));
  if (rank < 3) return unsupported("a convolution needs spatial axes").expected("at least 3 axes").found(std::to_string(rank));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 1, rank));
  if (axis != 1) return unsupported("channels must be the second axis").expected("axis 1").found("axis " + std::to_string(axis));
  Convolution c;
  ORKNN_TRY_ASSIGN(c.window, window_of(p, static_cast<size_t>(rank - 2)));
  ORKNN_TRY_ASSIGN(c.outputs, output_count(p));
  ORKNN_TRY_ASSIGN(c.groups, p.get_int("group", 1));
  ORKNN_TRY_ASSIGN(c.has_bias, p.get_bool("bias_term", true));
  ORKNN_TRY_ASSIGN(c.channels, l.extent(l.bottom(), 1, "to read the weights"));
  if (is_depthwise) c.groups = c.channels;
  if (c.groups < 1 || c.channels % c.groups != 0 || c.outputs % c.groups != 0)
    return invalid_model("the channels cannot be divided into groups")
        .expected("multiples of " + std::to_string(c.groups))
        .found(std::to_string(c.channels) + " to " + std::to_string(c.outputs) + " channels");
  return c;
}

// Every bottom is convolved with the same weights.
Status convolve(Layer& l, const char* op, const Convolution& c, TensorId weight, TensorId bias) {
  if (l.bottom_count() > l.top_count())
    return invalid_model("the layer has too few tops")
        .expected(std::to_string(l.bottom_count()))
        .found(std::to_string(l.top_count()));
  for (size_t i = 0; i < l.bottom_count(); ++i) {
    std::vector<TensorId> inputs{l.bottom(i), weight};
    if (bias) inputs.push_back(bias);
    ORKNN_TRY(l.set_top(l.emit(op, std::move(inputs), c.attributes()), i));
  }
  return {};
}

Result<TensorId> bias_of(Layer& l, const Message& p, bool has_bias, int64_t count) {
  if (!has_bias) return TensorId{};
  return l.blob(1,
                {.role = "bias", .dims = {count}, .filling = Filling::Zeros, .fan_in = 1, .filler = &p.message("bias_filler")});
}

Status convolution(Layer& l, bool is_depthwise) {
  ORKNN_TRY(l.need_bottoms(1, 1000));
  const Message& p = l.parameters("convolution_param");
  ORKNN_TRY_ASSIGN(const Convolution c, convolution_of(l, p, is_depthwise));
  Dims dims{c.outputs, c.channels / c.groups};
  dims.insert(dims.end(), c.window.kernel.begin(), c.window.kernel.end());
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {.role = "weight",
                                                     .dims = dims,
                                                     .filling = Filling::Random,
                                                     .fan_in = fan_in_of(dims[1], c.window.kernel),
                                                     .filler = &p.message("weight_filler")}));
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, c.has_bias, c.outputs));
  return convolve(l, "Conv", c, weight, bias);
}
Status plain_convolution(Layer& l) { return convolution(l, false); }
Status depthwise_convolution(Layer& l) { return convolution(l, true); }

Status deconvolution(Layer& l, bool is_depthwise) {
  ORKNN_TRY(l.need_bottoms(1, 1000));
  const Message& p = l.parameters("convolution_param");
  ORKNN_TRY_ASSIGN(const Convolution c, convolution_of(l, p, is_depthwise));
  Dims dims{c.channels, c.outputs / c.groups};
  dims.insert(dims.end(), c.window.kernel.begin(), c.window.kernel.end());
  const int64_t overlap = std::max<int64_t>(fan_in_of(c.channels / c.groups, c.window.kernel) / fan_in_of(1, c.window.stride), 1);
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {.role = "weight",
                                                     .dims = dims,
                                                     .filling = Filling::Random,
                                                     .fan_in = overlap,
                                                     .filler = &p.message("weight_filler")}));
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, c.has_bias, c.outputs));
  return convolve(l, "ConvTranspose", c, weight, bias);
}
Status plain_deconvolution(Layer& l) { return deconvolution(l, false); }
Status depthwise_deconvolution(Layer& l) { return deconvolution(l, true); }

// All axes from `axis` on become one row that meets the weights.
Status inner_product(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("inner_product_param");
  ORKNN_TRY_ASSIGN(const int64_t outputs, output_count(p));
  ORKNN_TRY_ASSIGN(const bool has_bias, p.get_bool("bias_term", true));
  ORKNN_TRY_ASSIGN(const bool transpose, p.get_bool("transpose", false));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to read the weights"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 1, rank));
  Dims row;
  for (int64_t i = axis; i < rank; ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, l.extent(l.bottom(), i, "to read the weights"));
    row.push_back(extent);
  }
  ORKNN_TRY_ASSIGN(const int64_t inputs, checked_element_count(row));
  const Dims dims = transpose ? Dims{inputs, outputs} : Dims{outputs, inputs};
  ORKNN_TRY_ASSIGN(
      const TensorId weight,
      l.blob(
          0,
          {.role = "weight", .dims = dims, .filling = Filling::Random, .fan_in = inputs, .filler = &p.message("weight_filler")}));
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, has_bias, outputs));
  const TensorId rows = rank == 2 && axis == 1 ? l.bottom() : l.emit("Flatten", {l.bottom()}, {{"axis", axis}});
  std::vector<TensorId> operands{rows, weight};
  if (bias) operands.push_back(bias);
  TensorId y = l.emit("Gemm", std::move(operands), {{"transB", int64_t{transpose ? 0 : 1}}});
  if (axis != 1) {
    Dims shape;
    for (int64_t i = 0; i < axis; ++i) {
      ORKNN_TRY_ASSIGN(const int64_t extent, l.extent(l.bottom(), i, "to shape the result"));
      shape.push_back(extent);
    }
    shape.push_back(outputs);
    y = l.reshape(y, std::move(shape));
  }
  return l.set_top(y);
}

Status embed(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("embed_param");
  ORKNN_TRY_ASSIGN(const int64_t outputs, output_count(p));
  ORKNN_TRY_ASSIGN(const int64_t inputs, p.get_int("input_dim", 0));
  ORKNN_TRY_ASSIGN(const bool has_bias, p.get_bool("bias_term", true));
  if (inputs < 1 || inputs > kMaxOutputs) return invalid_model("'input_dim' is out of range").found(std::to_string(inputs));
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {.role = "weight",
                                                     .dims = {inputs, outputs},
                                                     .filling = Filling::Random,
                                                     .fan_in = 2,
                                                     .filler = &p.message("weight_filler")}));
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, has_bias, outputs));
  TensorId y = l.emit("Gather", {weight, l.cast(l.bottom(), DType::Int64)}, {{"axis", int64_t{0}}});
  if (bias) y = l.emit("Add", {y, bias});
  return l.set_top(y);
}

// Each value of each window becomes a channel: a depthwise convolution with one 1 per filter.
Status im2col(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to cut it into windows"));
  if (rank < 3) return unsupported("windows need spatial axes").found(std::to_string(rank) + " axes");
  ORKNN_TRY_ASSIGN(const Window w, window_of(l.parameters("convolution_param"), static_cast<size_t>(rank - 2)));
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(l.bottom(), 1, "to cut it into windows"));
  Dims dims{channels};
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  ORKNN_TRY(checked_element_count(dims, int64_t{1} << 26).status());  // of the picks below
  const int64_t size = element_count(w.kernel);
  dims = {channels * size, 1};
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  TensorData picks = TensorData::zeros(DType::Float32, dims);
  float* values = static_cast<float*>(picks.mutable_data());
  for (int64_t i = 0; i < channels * size; ++i) values[i * size + i % size] = 1;
  return l.set_top(l.emit(
      "Conv", {l.bottom(), l.add_constant("picks", std::move(picks))},
      {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", w.pads()}, {"dilations", w.dilation}, {"group", channels}}));
}

// A learned blob that comes from nowhere.
Status parameter(Layer& l) {
  ORKNN_TRY(l.need_bottoms(0, 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.parameters("parameter_param").message("shape").get_ints("dim"));
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a negative extent").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const TensorId y, l.blob(0, {.role = "value", .dims = dims, .filling = Filling::Random, .fan_in = 2}));
  return l.set_top(y);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static constexpr Row kRows[] = {
      {"Convolution", plain_convolution},
      {"ConvolutionDepthwise", depthwise_convolution},
      {"DepthwiseConvolution", depthwise_convolution},
      {"ConvolutionDepthWise", depthwise_convolution},
      {"Deconvolution", plain_deconvolution},
      {"DeconvolutionDepthwise", depthwise_deconvolution},
      {"DepthwiseDeconvolution", depthwise_deconvolution},
      {"InnerProduct", inner_product},
      {"Embed", embed},
      {"Im2col", im2col},
      {"Parameter", parameter},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
