// Convolution over any number of spatial axes, with groups, dilations and any padding.
#include "ops/support/convolution.h"
#include "ops/support/floating.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_same_type(c, 0, 2));
  ORKNN_TRY(infer_conv(c, 0, 1, c.dtype(0)));
  return check_bias(c, 2);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), w = c.input(1);
  ORKNN_TRY_ASSIGN(const ConvShape s, conv_shape(c, x.dims, w.dims));
  if (c.has_input(2)) ORKNN_TRY(check_bias(c.input(2), s.output_channels));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    const T* bias = c.has_input(2) ? c.input(2).as<T>() : nullptr;
    convolve<double>(
        c.pool, s, x.as<T>(), w.as<T>(), 0.0, [](int64_t) { return 0.0; },
        [&](int64_t image, int64_t channel, std::span<const double> sums) {
          T* to = y.as<T>() + (image * s.output_channels + channel) * static_cast<int64_t>(sums.size());
          const double offset = bias ? static_cast<double>(bias[channel]) : 0.0;
          for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i] + offset);
        });
    return Status();
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_shape(node, inputs[0], inputs[1]);
  return s ? OpCost{.macs = s->macs()} : OpCost{};
}
}  // namespace

std::span<const OpDef> conv() {
  static const OpDef def{.name = "Conv",
                         .summary = "convolution with optional bias",
                         .inputs = {2, 3},
                         .attributes = conv_attributes(),
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Compute,
                         .cost = cost,
                         .engine = Engine::Conv,
                         .pattern = Pattern::Window,
                         .weights = Weights::OutIn,
                         .samples_apart = true,
                         .npu = {.form = NpuForm::Convolution, .takes_tail = true},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
