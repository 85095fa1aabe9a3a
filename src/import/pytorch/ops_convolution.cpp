// Convolutions, and the sliding windows that other layers are made of.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

struct Geometry {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
  std::string auto_pad;  // instead of padding
};

Result<Value> convolve(Call& c, Geometry g) {
  const int64_t weight_rank = c.rank("weight");
  if (weight_rank < 3)
    return invalid_model("a convolution needs weights of three and more axes").found(ir::to_string(c.dims("weight")));
  const size_t spatial = static_cast<size_t>(weight_rank - 2);
  // An image without batch: a batch of one.
  const bool lacks_batch = c.rank("input") == weight_rank - 1;
  TensorId x = c.tensor("input");
  if (lacks_batch && c.handle("input").input >= 0 && !c.session().has_input_facts) {
    // Scripts for the first toolkit give shapes without the batch.
    c.session().retype = {c.handle("input").input, DType::Undefined};
    return invalid_model("the input of a convolution lacks the batch");
  }
  if (lacks_batch) x = c.unsqueeze(x, {0});
  for (auto* list : {&g.stride, &g.padding, &g.dilation, &g.output_padding}) {
    if (list->size() == 1) list->resize(spatial, (*list)[0]);
    if (list->size() != spatial)
      return invalid_model("a convolution's geometry does not fit its weights")
          .expected(std::to_string(spatial) + " entries")
          .found(ir::to_string(*list));
  }
  ir::Attributes attributes{{"strides", g.stride}, {"dilations", g.dilation}, {"group", g.groups}};
  Dims kernel(c.dims("weight").begin() + 2, c.dims("weight").end());
  attributes.set("kernel_shape", kernel);
  if (g.auto_pad.empty()) {
    std::vector<int64_t> pads = g.padding;
    pads.insert(pads.end(), g.padding.begin(), g.padding.end());
    attributes.set("pads", pads);
  } else if (g.auto_pad == "same") {
    // More padding at the end when it is odd.
    std::vector<int64_t> begin, end;
    for (size_t i = 0; i < spatial; ++i) {
      if (kernel[i] < 0 || kernel[i] > (1 << 30) || g.dilation[i] < 0 || g.dilation[i] > (1 << 30))
        return invalid_model("a convolution has an absurd geometry");
      const int64_t total = g.dilation[i] * (kernel[i] - 1);
      begin.push_back(total / 2);
      end.push_back(total - total / 2);
    }
    begin.insert(begin.end(), end.begin(), end.end());
    attributes.set("pads", begin);
  } else if (g.auto_pad != "valid") {
    return c.fail("padding '" + g.auto_pad + "' is not known");
  }
  const DType t = c.dtype_of(x);
  std::vector<TensorId> inputs{x, c.cast(c.tensor("weight"), t)};
  if (c.has("bias")) inputs.push_back(c.cast(c.tensor("bias"), t));
  std::string op = "Conv";
  if (g.transposed) {
    op = "ConvTranspose";
    attributes.set("output_padding", g.output_padding);
  }
  TensorId y = c.emit(op, std::move(inputs), std::move(attributes));
  if (lacks_batch) y = c.squeeze(y, {0});
  return c.made(y);
}

Result<Value> convolution(Call& c) {
  return convolve(c, {c.ints("stride"),
                      c.ints("padding"),
                      c.ints("dilation"),
                      c.ints("output_padding"),
                      c.integer("groups"),
                      c.flag("transposed"),
                      {}});
}
Result<Value> conv(Call& c) {
  return convolve(c, {c.ints("stride"), c.ints("padding"), c.ints("dilation"), {0}, c.integer("groups"), false, {}});
}
Result<Value> conv_padding_mode(Call& c) {
  return convolve(c,
                  {c.ints("stride"), {0}, c.ints("dilation"), {0}, c.integer("groups"), false, std::string(c.text("padding"))});
}
Result<Value> conv_transpose(Call& c) {
  return convolve(
      c, {c.ints("stride"), c.ints("padding"), c.ints("dilation"), c.ints("output_padding"), c.integer("groups"), true, {}});
}
Result<Value> slow_conv(Call& c) { return convolve(c, {c.ints("stride"), c.ints("padding"), {1}, {0}, 1, false, {}}); }

// Time, batch, channels: a convolution along the first axis with weights [kernel, in, out].
Result<Value> conv_tbc(Call& c) {
  const TensorId x = c.transpose(c.tensor("self"), {1, 2, 0}), w = c.transpose(c.tensor("weight"), {2, 1, 0});
  const int64_t pad = c.integer("pad");
  return c.made(c.transpose(c.emit("Conv", {x, w, c.tensor("bias")}, {{"pads", std::vector<int64_t>{pad, pad}}}), {2, 0, 1}));
}

// --- sliding blocks
struct Blocks {
  std::vector<int64_t> kernel, dilation, padding, stride;
};
Result<Blocks> blocks(Call& c) {
  Blocks b;
  ORKNN_TRY_ASSIGN(b.kernel, c.ints("kernel_size", 2));
  ORKNN_TRY_ASSIGN(b.dilation, c.ints("dilation", 2));
  ORKNN_TRY_ASSIGN(b.padding, c.ints("padding", 2));
  ORKNN_TRY_ASSIGN(b.stride, c.ints("stride", 2));
  for (const auto& list : {b.kernel, b.dilation, b.stride})
    for (int64_t v : list)
      if (v < 1 || v > (1 << 20)) return invalid_model("sliding blocks have an absurd geometry");
  for (int64_t v : b.padding)
    if (v < 0 || v > (1 << 20)) return invalid_model("sliding blocks have an absurd geometry");
  return b;
}
// Columns of blocks: rows and columns are picked by index, then brought into PyTorch's order (channel, kernel position).
Result<Value> im2col(Call& c) {
  ORKNN_TRY_ASSIGN(const Blocks b, blocks(c));
  const bool lacks_batch = c.rank("self") == 3;
  if (c.rank("self") != 4 && !lacks_batch) return invalid_model("im2col needs images").found(ir::to_string(c.dims("self")));
  TensorId x = lacks_batch ? c.unsqueeze(c.tensor("self"), {0}) : c.tensor("self");
  Dims dims = c.dims("self");
  if (lacks_batch) dims.insert(dims.begin(), 1);
  if (b.padding[0] != 0 || b.padding[1] != 0)
    x = c.emit("Pad", {x, c.add_ints("pads", {0, 0, b.padding[0], b.padding[1], 0, 0, b.padding[0], b.padding[1]})});
  int64_t count[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = dims[2 + i] + 2 * b.padding[i], reach = b.dilation[i] * (b.kernel[i] - 1) + 1;
    if (extent < reach) return invalid_model("sliding blocks are larger than the image");
    count[i] = (extent - reach) / b.stride[i] + 1;
    if (count[i] * b.kernel[i] > (1 << 26)) return c.fail("there are too many sliding blocks");
    std::vector<int64_t> positions;
    for (int64_t k = 0; k < b.kernel[i]; ++k)
      for (int64_t n = 0; n < count[i]; ++n) positions.push_back(k * b.dilation[i] + n * b.stride[i]);
    x = c.gather(x, c.add_ints("positions", positions), static_cast<int64_t>(2 + i));
  }
  x = c.reshape(x, {dims[0], dims[1], b.kernel[0], count[0], b.kernel[1], count[1]});
  x = c.transpose(x, {0, 1, 2, 4, 3, 5});
  x = c.reshape(x, {dims[0], dims[1] * b.kernel[0] * b.kernel[1], count[0] * count[1]});
  return c.made(lacks_batch ? c.squeeze(x, {0}) : x);
}
Result<Value> col2im(Call& c) {
  ORKNN_TRY_ASSIGN(const Blocks b, blocks(c));
  ORKNN_TRY_ASSIGN(const auto size, c.ints("output_size", 2));
  const bool lacks_batch = c.rank("self") == 2;
  const TensorId x = lacks_batch ? c.unsqueeze(c.tensor("self"), {0}) : c.tensor("self");
  const TensorId y = c.emit("Col2Im", {x, c.add_ints("image", size), c.add_ints("block", b.kernel)},
                            {{"dilations", b.dilation},
                             {"pads", std::vector<int64_t>{b.padding[0], b.padding[1], b.padding[0], b.padding[1]}},
                             {"strides", b.stride}});
  return c.made(lacks_batch ? c.squeeze(y, {0}) : y);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static constexpr Row kRows[] = {
      {"_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
       "int[] output_padding, int groups, any benchmark=None, any deterministic=None, any cudnn=None, any tf32=None)",
       convolution},
      {"convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
       "int[] output_padding, int groups)",
       convolution},
      {"convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
       "transposed, int[] output_padding, int groups)",
       convolution},
      {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1)",
       conv},
      {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1)",
       conv},
      {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1)",
       conv},
      {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, str padding=\"valid\", int[] dilation=1, int "
       "groups=1)",
       conv_padding_mode},
      {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, str padding=\"valid\", int[] dilation=1, int "
       "groups=1)",
       conv_padding_mode},
      {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, str padding=\"valid\", int[] dilation=1, int "
       "groups=1)",
       conv_padding_mode},
      {"_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, int groups)",
       conv_padding_mode},
      {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] "
       "output_padding=0, int groups=1, int[] dilation=1)",
       conv_transpose},
      {"conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] "
       "output_padding=0, int groups=1, int[] dilation=1)",
       conv_transpose},
      {"conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] "
       "output_padding=0, int groups=1, int[] dilation=1)",
       conv_transpose},
      {"mkldnn_convolution(Tensor input, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation, int groups)",
       conv},
      {"_conv_depthwise2d(Tensor input, Tensor weight, any kernel_size, Tensor? bias, int[] stride, int[] padding, int[] "
       "dilation)",
       [](Call& c) {
         return convolve(c, {c.ints("stride"),
                             c.ints("padding"),
                             c.ints("dilation"),
                             {0},
                             c.dims("input").size() > 1 ? c.dims("input")[1] : 1,
                             false,
                             {}});
       }},
      {"thnn_conv2d(Tensor input, Tensor weight, any kernel_size, Tensor? bias=None, int[] stride=1, int[] padding=0)",
       slow_conv},
      {"slow_conv3d(Tensor input, Tensor weight, any kernel_size, Tensor? bias=None, int[] stride=1, int[] padding=0)",
       slow_conv},
      {"conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0)", conv_tbc},
      {"im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride)", im2col},
      {"col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride)", col2im},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
