#include "import/pytorch/convolution.h"

#include "import/lower/window.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
using ir::Dims;
using ir::TensorId;

Result<TensorId> convolved(Call& c, TensorId x, TensorId weight, TensorId bias, ConvolutionGeometry g) {
  ORKNN_TRY_ASSIGN(const Dims dims, c.need_dims(weight, "to convolve"));
  if (dims.size() < 3) return invalid_model("a convolution needs weights of three and more axes").found(ir::to_string(dims));
  const size_t spatial = dims.size() - 2;
  for (auto* list : {&g.stride, &g.padding, &g.dilation, &g.output_padding}) {
    if (list->size() == 1) list->resize(spatial, (*list)[0]);
    if (list->size() != spatial)
      return invalid_model("a convolution's geometry does not fit its weights")
          .expected(std::to_string(spatial) + " entries")
          .found(ir::to_string(*list));
  }
  Window window{.kernel = Dims(dims.begin() + 2, dims.end()), .strides = g.stride, .dilations = g.dilation};
  window.pads_begin = window.pads_end = g.padding;
  for (size_t i = 0; i < spatial && g.is_same; ++i) {
    if (window.kernel[i] < 0 || window.kernel[i] > (1 << 30) || g.dilation[i] < 0 || g.dilation[i] > (1 << 30))
      return invalid_model("the kernel or the dilation of a convolution is out of range");
    const int64_t total = window.reach(i) - 1;
    window.pads_begin[i] = total / 2;
    window.pads_end[i] = total - total / 2;
  }
  const DType t = c.dtype_of(x);
  const Filter filter{c.cast(weight, t), bias ? c.cast(bias, t) : bias, std::move(window), g.groups};
  ir::Attributes attributes = filter.attributes();
  if (g.transposed) attributes.set("output_padding", g.output_padding);
  return c.emit(g.transposed ? "ConvTranspose" : "Conv", filter.inputs(x), std::move(attributes));
}

Status ask_for_batch(Call& c, const TensorValue& t) {
  if (t.input < 0 || c.session().has_input_facts) return {};
  c.session().retype = {t.input, DType::Undefined};
  return invalid_model("the input of a convolution has no batch axis");
}

namespace {
// A convolution of argument `input`, which may lack the batch.
Result<TensorId> convolve(Call& c, ConvolutionGeometry g) {
  const bool lacks_batch = c.rank("input") == c.rank("weight") - 1;
  TensorId x = c.tensor("input");
  if (lacks_batch) ORKNN_TRY(ask_for_batch(c, c.handle("input")));
  if (lacks_batch) x = c.unsqueeze(x, {0});
  ORKNN_TRY_ASSIGN(const TensorId y, convolved(c, x, c.tensor("weight"), c.optional_tensor("bias"), std::move(g)));
  return lacks_batch ? c.squeeze(y, {0}) : y;
}

Result<TensorId> any_convolution(Call& c) {
  return convolve(c, {.stride = c.ints("stride"),
                      .padding = c.ints("padding"),
                      .dilation = c.ints("dilation"),
                      .output_padding = c.ints("output_padding"),
                      .groups = c.integer("groups"),
                      .transposed = c.op().starts_with("conv_transpose") || c.flag("transposed")});
}
Result<TensorId> convolution(Call& c) {
  return convolve(
      c,
      {.stride = c.ints("stride"), .padding = c.ints("padding"), .dilation = c.ints("dilation"), .groups = c.integer("groups")});
}
Result<TensorId> convolution_by_mode(Call& c) {
  const std::string_view mode = c.text("padding");
  if (mode != "same" && mode != "valid") return unsupported("padding '" + std::string(mode) + "' is not known");
  return convolve(
      c, {.stride = c.ints("stride"), .dilation = c.ints("dilation"), .groups = c.integer("groups"), .is_same = mode == "same"});
}
Result<TensorId> depthwise_convolution(Call& c) {
  return convolve(c, {.stride = c.ints("stride"),
                      .padding = c.ints("padding"),
                      .dilation = c.ints("dilation"),
                      .groups = c.rank("input") > 1 ? c.dims("input")[1] : 1});
}
Result<TensorId> undilated_convolution(Call& c) {
  return convolve(c, {.stride = c.ints("stride"), .padding = c.ints("padding")});
}
// Time, batch, channels: a convolution along the first axis with weights [kernel, in, out].
TensorId conv_tbc(Call& c, TensorId x, TensorId weight, TensorId bias) {
  const std::vector<int64_t> pads(2, c.integer("pad"));
  return c.transpose(c.emit("Conv", {c.transpose(x, {1, 2, 0}), c.transpose(weight, {2, 1, 0}), bias}, {{"pads", pads}}),
                     {2, 0, 1});
}

// --- sliding blocks
Result<Window> block_window(Call& c) {
  Window w;
  ORKNN_TRY_ASSIGN(w.kernel, c.ints("kernel_size", 2));
  ORKNN_TRY_ASSIGN(w.dilations, c.ints("dilation", 2));
  ORKNN_TRY_ASSIGN(w.pads_begin, c.ints("padding", 2));
  ORKNN_TRY_ASSIGN(w.strides, c.ints("stride", 2));
  w.pads_end = w.pads_begin;
  ORKNN_TRY(w.check());
  return w;
}
// Columns of blocks: rows and columns are picked by index, then brought into PyTorch's order (channel, kernel position).
Result<TensorId> im2col(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Window w, block_window(c));
  Dims dims = c.dims();
  const bool lacks_batch = dims.size() == 3;
  if (dims.size() != 4 && !lacks_batch) return invalid_model("im2col needs images").found(ir::to_string(dims));
  if (lacks_batch) {
    x = c.unsqueeze(x, {0});
    dims.insert(dims.begin(), 1);
  }
  const int64_t top = w.pads_begin[0], left = w.pads_begin[1];
  if (top != 0 || left != 0) x = c.emit("Pad", {x, c.add_ints("pads", {0, 0, top, left, 0, 0, top, left})});
  int64_t count[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = dims[2 + i] + 2 * w.pads_begin[i];
    if (extent < w.reach(i)) return invalid_model("sliding blocks are larger than the image");
    count[i] = (extent - w.reach(i)) / w.strides[i] + 1;
    if (count[i] * w.kernel[i] > (1 << 26)) return unsupported("there are too many sliding blocks");
    std::vector<int64_t> positions;
    for (int64_t k = 0; k < w.kernel[i]; ++k)
      for (int64_t n = 0; n < count[i]; ++n) positions.push_back(k * w.dilations[i] + n * w.strides[i]);
    x = c.gather(x, c.add_ints("positions", positions), static_cast<int64_t>(2 + i));
  }
  x = c.reshape(x, {dims[0], dims[1], w.kernel[0], count[0], w.kernel[1], count[1]});
  x = c.transpose(x, {0, 1, 2, 4, 3, 5});
  x = c.reshape(x, {dims[0], dims[1] * w.kernel[0] * w.kernel[1], count[0] * count[1]});
  return lacks_batch ? c.squeeze(x, {0}) : x;
}
Result<TensorId> col2im(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Window w, block_window(c));
  ORKNN_TRY_ASSIGN(const auto size, c.ints("output_size", 2));
  const bool lacks_batch = c.rank() == 2;
  if (lacks_batch) x = c.unsqueeze(x, {0});
  const TensorId y = c.emit("Col2Im", {x, c.add_ints("image", size), c.add_ints("block", w.kernel)},
                            {{"dilations", w.dilations}, {"pads", joined(w.pads_begin, w.pads_end)}, {"strides", w.strides}});
  return lacks_batch ? c.squeeze(y, {0}) : y;
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
       "int[] output_padding, int groups, any benchmark=None, any deterministic=None, any cudnn=None, any tf32=None)",
       any_convolution},
      {"convolution|convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
       "dilation, bool transposed, int[] output_padding, int groups)",
       any_convolution},
      {"conv1d|conv2d|conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, "
       "int groups=1)",
       convolution},
      {"conv1d|conv2d|conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, str padding=\"valid\", int[] "
       "dilation=1, int groups=1)",
       convolution_by_mode},
      {"_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, int groups)",
       convolution_by_mode},
      {"conv_transpose1d|conv_transpose2d|conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] "
       "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1)",
       any_convolution},
      {"mkldnn_convolution(Tensor input, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation, int groups)",
       convolution},
      {"_conv_depthwise2d(Tensor input, Tensor weight, any kernel_size, Tensor? bias, int[] stride, int[] padding, int[] "
       "dilation)",
       depthwise_convolution},
      {"thnn_conv2d|slow_conv3d(Tensor input, Tensor weight, any kernel_size, Tensor? bias=None, int[] stride=1, int[] "
       "padding=0)",
       undilated_convolution},
      {"conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0)", conv_tbc},
      {"im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride)", im2col},
      {"col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride)", col2im},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
