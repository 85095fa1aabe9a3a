// Transposed convolution: every input element adds a scaled kernel to the output.
#include "ops/support/convolution.h"
#include "ops/support/floating.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_same_type(c, 0, 2));
  ORKNN_TRY(infer_conv_transpose(c));
  return check_bias(c, 2);
}

// Adds plane * weight to the sums at the positions that tap `tap` reaches.
template <class T>
void scatter(const ConvShape& s, std::span<const int64_t> tap, const T* plane, double weight,
             std::span<const int64_t> output_strides, double* sums) {
  const size_t inner = s.window.rank() - 1;
  const int64_t stride = s.window.strides[inner];
  const int64_t offset = tap[inner] * s.window.dilations[inner] - s.window.pads_begin[inner];
  // Seen from the input, the output is the array that is stepped through.
  const OutputRange range = outputs_inside(offset, stride, s.output[inner], s.input[inner]);
  const Dims rows(s.input.begin(), s.input.end() - 1);
  Dims row(inner, 0);
  do {
    int64_t start = 0;
    bool inside = true;
    for (size_t i = 0; i < inner && inside; ++i) {
      const int64_t at = row[i] * s.window.strides[i] + tap[i] * s.window.dilations[i] - s.window.pads_begin[i];
      inside = at >= 0 && at < s.output[i];
      start += at * output_strides[i];
    }
    if (inside) {
      double* to = sums + start;
      for (int64_t i = range.begin; i < range.end; ++i) to[i * stride + offset] += static_cast<double>(plane[i]) * weight;
    }
    plane += s.input[inner];
  } while (next_index(row, rows));
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), w = c.input(1);
  ORKNN_TRY_ASSIGN(const ConvShape s, conv_transpose_shape(c, x.dims, w.dims));
  if (c.has_input(2)) ORKNN_TRY(check_bias(c.input(2), s.output_channels));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  const int64_t input_plane = element_count(s.input), output_plane = element_count(s.output), taps = s.window.taps();
  const int64_t per_group = s.outputs_per_group();
  const Dims output_strides = strides_of(s.output);
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    const T* bias = c.has_input(2) ? c.input(2).as<T>() : nullptr;
    c.pool.parallel_for(s.batch * s.output_channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> sums(static_cast<size_t>(output_plane));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t image = item / s.output_channels, channel = item % s.output_channels;
        std::fill(sums.begin(), sums.end(), bias ? static_cast<double>(bias[channel]) : 0.0);
        const int64_t first = channel / per_group * s.channels_per_group();
        for (int64_t i = first; i < first + s.channels_per_group(); ++i) {
          const T* plane = x.as<T>() + (image * s.input_channels + i) * input_plane;
          const T* kernel = w.as<T>() + (i * per_group + channel % per_group) * taps;
          Dims tap(s.window.rank(), 0);
          for (int64_t t = 0; t < taps; ++t, next_index(tap, s.window.kernel))
            scatter(s, tap, plane, static_cast<double>(kernel[t]), output_strides, sums.data());
        }
        T* to = y.as<T>() + item * output_plane;
        for (int64_t i = 0; i < output_plane; ++i) to[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    });
    return Status();
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_transpose_shape(node, inputs[0], inputs[1]);
  if (!s) return {};
  return {.macs = s->batch * s->input_channels * element_count(s->input) * s->outputs_per_group() * s->window.taps()};
}

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> list = conv_attributes();
  list.push_back(attr_ints("output_padding"));
  list.push_back(attr_ints("output_shape"));
  return list;
}
}  // namespace

std::span<const OpDef> conv_transpose() {
  static const OpDef def{.name = "ConvTranspose",
                         .summary = "transposed convolution with optional bias",
                         .inputs = {2, 3},
                         .attributes = attributes(),
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Compute,
                         .cost = cost,
                         .engine = Engine::Conv,
                         .pattern = Pattern::Window,
                         .weights = Weights::InOut,
                         .samples_apart = true,
                         .npu = {.form = NpuForm::Convolution, .takes_tail = true},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
