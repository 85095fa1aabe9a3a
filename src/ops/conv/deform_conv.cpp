// Deformable 2-D convolution: each tap of each output reads the input at an offset of its own, interpolated bilinearly.
#include <cmath>

#include "ops/support/convolution.h"
#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Offsets (y and x) and masks of every tap at every place of the result.
Status check_offsets(const InferContext& c) {
  const Shape *x = c.shape(0), *w = c.shape(1), *y = c.output(0).shape ? &*c.output(0).shape : nullptr;
  const int64_t groups = c.get_int("offset_group");
  if (!x || !w || !y || w->size() != 4) return {};
  if (groups < 1 || ((*x)[1].is_known() && (*x)[1].value() % groups != 0))
    return invalid_model("offset_group is out of range")
        .expected("a divisor of " + (*x)[1].to_string())
        .found(std::to_string(groups));
  const Dim taps = (*w)[2] * (*w)[3] * Dim(groups);
  ORKNN_TRY(require_shape(c, 2, "offset", {(*x)[0], taps * Dim(2), (*y)[2], (*y)[3]}));
  return require_shape(c, 4, "mask", {(*x)[0], taps, (*y)[2], (*y)[3]});
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  for (size_t i = 1; i < 5; ++i) ORKNN_TRY(require_same_type(c, 0, i));
  ORKNN_TRY(require_rank(c, 0, 4));
  ORKNN_TRY(require_rank(c, 2, 4));
  ORKNN_TRY(infer_conv(c, 0, 1, c.dtype(0)));
  ORKNN_TRY(check_offsets(c));
  return check_bias(c, 3);
}

// Value at (y, x) of a plane; everything outside is zero.
template <class T>
double sample(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
  const double y_floor = std::floor(y), x_floor = std::floor(x);
  const auto y0 = static_cast<int64_t>(y_floor), x0 = static_cast<int64_t>(x_floor);
  const double fy = y - y_floor, fx = x - x_floor;
  const auto at = [&](int64_t row, int64_t column) {
    return row < 0 || column < 0 || row >= height || column >= width ? 0.0 : static_cast<double>(plane[row * width + column]);
  };
  return (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x0 + 1)) + fy * ((1 - fx) * at(y0 + 1, x0) + fx * at(y0 + 1, x0 + 1));
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), w = c.input(1), offset = c.input(2);
  ORKNN_TRY_ASSIGN(const ConvShape s, conv_shape(c, x.dims, w.dims));
  const int64_t offset_groups = c.get_int("offset_group");
  if (offset_groups < 1 || s.input_channels % offset_groups != 0)
    return invalid_model("offset_group is out of range")
        .expected("a divisor of " + std::to_string(s.input_channels))
        .found(std::to_string(offset_groups));
  const int64_t taps = s.window.taps();
  const Dims offset_dims{s.batch, offset_groups * taps * 2, s.output[0], s.output[1]};
  const Dims mask_dims{s.batch, offset_groups * taps, s.output[0], s.output[1]};
  if (!std::equal(offset_dims.begin(), offset_dims.end(), offset.dims.begin(), offset.dims.end()))
    return wrong_shape("offset", to_string(offset_dims), offset.dims);
  if (c.has_input(3)) ORKNN_TRY(check_bias(c.input(3), s.output_channels));
  if (c.has_input(4)) {
    const std::span<const int64_t> found = c.input(4).dims;
    if (!std::equal(mask_dims.begin(), mask_dims.end(), found.begin(), found.end()))
      return wrong_shape("mask", to_string(mask_dims), found);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  const int64_t output_plane = s.output[0] * s.output[1], input_plane = s.input[0] * s.input[1];
  const int64_t channels_per_offset = s.input_channels / offset_groups;
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    const T* bias = c.has_input(3) ? c.input(3).as<T>() : nullptr;
    const T* mask = c.has_input(4) ? c.input(4).as<T>() : nullptr;
    c.pool.parallel_for(s.batch * output_plane, 16, [&](int64_t begin, int64_t end) {
      std::vector<double> patch(static_cast<size_t>(s.input_channels * taps));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / output_plane, position = item % output_plane;
        const int64_t oy = position / s.output[1], ox = position % s.output[1];
        for (int64_t channel = 0; channel < s.input_channels; ++channel) {
          const int64_t group = image * offset_groups + channel / channels_per_offset;
          for (int64_t t = 0; t < taps; ++t) {
            const int64_t ky = t / s.window.kernel[1], kx = t % s.window.kernel[1];
            const T* shift = offset.as<T>() + (group * taps + t) * 2 * output_plane + position;
            const double at_y =
                static_cast<double>(oy * s.window.strides[0] - s.window.pads_begin[0] + ky * s.window.dilations[0]) +
                static_cast<double>(shift[0]);
            const double at_x =
                static_cast<double>(ox * s.window.strides[1] - s.window.pads_begin[1] + kx * s.window.dilations[1]) +
                static_cast<double>(shift[output_plane]);
            const double weight = mask ? static_cast<double>(mask[(group * taps + t) * output_plane + position]) : 1.0;
            patch[static_cast<size_t>(channel * taps + t)] =
                weight *
                sample(x.as<T>() + (image * s.input_channels + channel) * input_plane, s.input[0], s.input[1], at_y, at_x);
          }
        }
        const int64_t depth = s.channels_per_group() * taps;
        for (int64_t m = 0; m < s.output_channels; ++m) {
          const double* values = patch.data() + m / s.outputs_per_group() * depth;
          const T* weights = w.as<T>() + m * depth;
          double sum = bias ? static_cast<double>(bias[m]) : 0.0;
          for (int64_t i = 0; i < depth; ++i) sum += values[i] * static_cast<double>(weights[i]);
          y.as<T>()[(image * s.output_channels + m) * output_plane + position] = static_cast<T>(sum);
        }
      }
    });
    return Status();
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_shape(node, inputs[0], inputs[1]);
  if (!s) return {};
  return {.macs = s->macs(), .element_ops = 8 * s->batch * s->input_channels * element_count(s->output) * s->window.taps()};
}
}  // namespace

std::span<const OpDef> deform_conv() {
  static const OpDef def{.name = "DeformConv",
                         .summary = "2-D convolution with learned sampling offsets",
                         .inputs = {3, 5},
                         .attributes = {attr_ints("dilations"), attr_int("group", 1), attr_ints("kernel_shape"),
                                        attr_int("offset_group", 1), attr_ints("pads"), attr_ints("strides")},
                         .infer = infer,
                         .run = run,
                         .cost = cost};
  return {&def, 1};
}
}  // namespace orknn::ops
