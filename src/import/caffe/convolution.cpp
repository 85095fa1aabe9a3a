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

int64_t output_count(const Parameters& p) { return p.integer("num_output", 0, 1, kMaxOutputs); }

// None where the layer says so.
Result<TensorId> bias_of(Layer& l, const Parameters& p, int64_t count) {
  if (!p.flag("bias_term", true)) return TensorId{};
  return l.blob(1, {"bias", {count}, Fill::Zeros, 1, p.filler("bias_filler")});
}

// Every bottom is convolved with the same weights.
Result<std::vector<TensorId>> convolve(Layer& l, Operands bottoms, bool is_depthwise, bool is_transposed) {
  const Parameters p = l.parameters("convolution_param");
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(bottoms[0], p, "axis", 1));
  if (axis != 1) return unsupported("channels must be the second axis").expected("axis 1").found("axis " + std::to_string(axis));
  ORKNN_TRY_ASSIGN(const Window window, window_of(l, bottoms[0], p));
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(bottoms[0], 1, "to read the weights"));
  const int64_t outputs = output_count(p), groups = is_depthwise ? channels : p.integer("group", 1);
  if (groups < 1 || channels % groups != 0 || outputs % groups != 0)
    return invalid_model("the channels cannot be divided into groups")
        .expected("multiples of " + std::to_string(groups))
        .found(std::to_string(channels) + " to " + std::to_string(outputs) + " channels");
  int64_t fan_in = fan_in_of(channels / groups, window.kernel);
  if (is_transposed) fan_in = std::max<int64_t>(fan_in / fan_in_of(1, window.strides), 1);
  const Dims dims = joined(is_transposed ? Dims{channels, outputs / groups} : Dims{outputs, channels / groups}, window.kernel);
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {"weight", dims, Fill::Random, fan_in, p.filler("weight_filler")}));
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, outputs));
  const Filter filter{weight, bias, window, groups};
  std::vector<TensorId> results;
  for (TensorId x : bottoms)
    results.push_back(l.emit(is_transposed ? "ConvTranspose" : "Conv", filter.inputs(x), filter.attributes()));
  return results;
}
Result<std::vector<TensorId>> convolution(Layer& l, Operands bottoms) { return convolve(l, bottoms, false, false); }
Result<std::vector<TensorId>> depthwise_convolution(Layer& l, Operands bottoms) { return convolve(l, bottoms, true, false); }
Result<std::vector<TensorId>> deconvolution(Layer& l, Operands bottoms) { return convolve(l, bottoms, false, true); }
Result<std::vector<TensorId>> depthwise_deconvolution(Layer& l, Operands bottoms) { return convolve(l, bottoms, true, true); }

// All axes from `axis` on become one row that meets the weights.
Result<TensorId> inner_product(Layer& l, TensorId x) {
  const Parameters p = l.parameters("inner_product_param");
  const int64_t outputs = output_count(p);
  const bool transpose = p.flag("transpose", false);
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, p, "axis", 1));
  const int64_t rank = *l.rank_of(x);
  ORKNN_TRY_ASSIGN(const Dims row, l.extents(x, axis, rank, "to read the weights"));
  ORKNN_TRY_ASSIGN(const int64_t inputs, checked_element_count(row));
  const Dims dims = transpose ? Dims{inputs, outputs} : Dims{outputs, inputs};
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {"weight", dims, Fill::Random, inputs, p.filler("weight_filler")}));
  const TensorId rows = rank == 2 && axis == 1 ? x : l.emit("Flatten", {x}, {{"axis", axis}});
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, outputs));
  const TensorId y = l.emit("Gemm", Filter{weight, bias}.inputs(rows), {{"transB", int64_t{transpose ? 0 : 1}}});
  if (axis == 1) return y;
  ORKNN_TRY_ASSIGN(const Dims before, l.extents(x, 0, axis, "to shape the result"));
  return l.reshape(y, joined(before, {outputs}));
}

Result<TensorId> embed(Layer& l, TensorId x) {
  const Parameters p = l.parameters("embed_param");
  const int64_t outputs = output_count(p), inputs = p.integer("input_dim", 0, 1, kMaxOutputs);
  ORKNN_TRY_ASSIGN(const TensorId weight, l.blob(0, {"weight", {inputs, outputs}, Fill::Random, 2, p.filler("weight_filler")}));
  const TensorId y = l.gather(weight, l.cast(x, DType::Int64), 0);
  ORKNN_TRY_ASSIGN(const TensorId bias, bias_of(l, p, outputs));
  return bias ? l.add(y, bias) : y;
}

Result<TensorId> im2col(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Window w, window_of(l, x, l.parameters("convolution_param")));
  ORKNN_TRY_ASSIGN(const int64_t channels, l.extent(x, 1, "to cut it into windows"));
  return window_elements(l, x, channels, w);
}

// A learned blob that comes from nowhere.
Result<TensorId> parameter(Layer& l) {
  const Dims dims = l.parameters("parameter_param").message("shape").integers("dim");
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a negative extent").found(to_string(dims));
  return l.blob(0, {"value", dims, Fill::Random, 2});
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"Convolution", convolution, kAtLeastOne},
      {"ConvolutionDepthwise|DepthwiseConvolution|ConvolutionDepthWise", depthwise_convolution, kAtLeastOne},
      {"Deconvolution", deconvolution, kAtLeastOne},
      {"DeconvolutionDepthwise|DepthwiseDeconvolution", depthwise_deconvolution, kAtLeastOne},
      {"InnerProduct", inner_product, kOne},
      {"Embed", embed, kOne},
      {"Im2col", im2col, kOne},
      {"Parameter", parameter, {.inputs = {0, 0}}},
  };
  return rows;
}

}  // namespace orknn::importer::caffe
