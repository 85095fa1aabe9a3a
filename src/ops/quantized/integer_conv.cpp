// Convolutions of 8-bit integers: ConvInteger (int32 result), QLinearConv (quantized result). Padding is the zero point.
#include "ops/support/convolution.h"
#include "ops/support/operands.h"
#include "ops/support/quantization.h"

namespace orknn::ops {
namespace {
using namespace ir;

bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }

Status not_per_channel(std::string_view what, size_t found, int64_t channels) {
  return shape_mismatch(std::string(what) + " belong to the whole tensor or to each output channel")
      .expected("1 or " + std::to_string(channels))
      .found(std::to_string(found));
}

struct Operands {
  ConvShape shape;
  uint32_t x_zero = 0;
  std::vector<int32_t> w_zero;
};

Result<Operands> read_operands(RunContext& c, size_t x, size_t w, size_t x_zero, size_t w_zero) {
  Operands o;
  ORKNN_TRY_ASSIGN(o.shape, conv_shape(c, c.input(x).dims, c.input(w).dims));
  const std::vector<int32_t> zero = read_zero_points(c, x_zero);
  if (zero.size() != 1) return shape_mismatch("the data has one zero point").found(std::to_string(zero.size()));
  o.x_zero = static_cast<uint32_t>(zero[0]);
  o.w_zero = read_zero_points(c, w_zero);
  if (o.w_zero.size() != 1 && static_cast<int64_t>(o.w_zero.size()) != o.shape.output_channels)
    return not_per_channel("zero points of weights", o.w_zero.size(), o.shape.output_channels);
  return o;
}

// Sums are formed modulo 2^32, which is what int32 accumulators do.
template <class Store>
void run_sums(RunContext& c, const Operands& o, const TensorView& x, const TensorView& w, Store&& store) {
  const auto zero = [&](int64_t channel) {
    return static_cast<uint32_t>(o.w_zero[o.w_zero.size() == 1 ? 0 : static_cast<size_t>(channel)]);
  };
  const auto run = [&]<class X, class W>(const X* px, const W* pw) {
    convolve<uint32_t>(c.pool, o.shape, px, pw, o.x_zero, zero, store);
  };
  const bool signed_w = w.dtype == DType::Int8;
  if (x.dtype == DType::Int8)
    signed_w ? run(x.as<int8_t>(), w.as<int8_t>()) : run(x.as<int8_t>(), w.as<uint8_t>());
  else
    signed_w ? run(x.as<uint8_t>(), w.as<int8_t>()) : run(x.as<uint8_t>(), w.as<uint8_t>());
}

Dim output_channels(const InferContext& c, size_t weights) {
  const Shape* w = c.shape(weights);
  return w && !w->empty() ? w->front() : Dim();
}

Status infer_integer(InferContext& c) {
  for (size_t i = 0; i < 2; ++i) {
    ORKNN_TRY(check_type(c, i, is_byte, "int8 or uint8"));
    if (c.has_input(i + 2) && c.dtype(i + 2) != c.dtype(i)) return invalid_model("a zero point has the type of its tensor");
  }
  ORKNN_TRY(require_one_value(c, 2, "the zero point of the data"));
  ORKNN_TRY(require_one_or_each(c, 3, "the zero point of the weights", output_channels(c, 1)));
  return infer_conv(c, 0, 1, DType::Int32);
}

Status run_integer(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Operands o, read_operands(c, 0, 1, 2, 3));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int32, o.shape.output_dims()));
  run_sums(c, o, c.input(0), c.input(1), [&](int64_t image, int64_t channel, std::span<const uint32_t> sums) {
    int32_t* to = y.as<int32_t>() + (image * o.shape.output_channels + channel) * static_cast<int64_t>(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<int32_t>(sums[i]);
  });
  return {};
}

Status infer_quantized(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_type(c, 3, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_type(c, 7, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_scale(c, 1, c.dtype(0)));
  ORKNN_TRY(check_scale(c, 4, c.dtype(3)));
  ORKNN_TRY(check_scale(c, 6, c.dtype(7)));
  if (c.has_input(8))
    ORKNN_TRY(check_type(
        c, 8, [](DType t) { return t == DType::Int32; }, "an int32 bias"));
  for (const size_t i : {size_t{1}, size_t{6}}) {
    ORKNN_TRY(require_one_value(c, i, "the scale of the data"));
    ORKNN_TRY(require_one_value(c, i + 1, "the zero point of the data"));
  }
  ORKNN_TRY(require_one_or_each(c, 4, "the scale of the weights", output_channels(c, 3)));
  ORKNN_TRY(require_one_or_each(c, 5, "the zero point of the weights", output_channels(c, 3)));
  ORKNN_TRY(infer_conv(c, 0, 3, c.dtype(7)));
  return check_bias(c, 8);
}

Status run_quantized(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Operands o, read_operands(c, 0, 3, 2, 5));
  const int64_t channels = o.shape.output_channels;
  if (c.has_input(8)) ORKNN_TRY(check_bias(c.input(8), channels));
  const int32_t* bias = c.has_input(8) ? c.input(8).as<int32_t>() : nullptr;
  ORKNN_TRY_ASSIGN(const TensorScale result, read_tensor_scale(c, 6, 7));
  const std::vector<float> x_scale = read_scales(c, 1), w_scale = read_scales(c, 4);
  if (x_scale.size() != 1) return shape_mismatch("the data has one scale").found(std::to_string(x_scale.size()));
  if (w_scale.size() != 1 && static_cast<int64_t>(w_scale.size()) != channels)
    return not_per_channel("scales of weights", w_scale.size(), channels);
  const DType type = c.input(7).dtype;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, o.shape.output_dims()));
  const auto low = static_cast<int32_t>(dtype_min(type)), high = static_cast<int32_t>(dtype_max(type));
  visit_integer(type, [&]<class T>(TypeTag<T>) {
    run_sums(c, o, c.input(0), c.input(3), [&](int64_t image, int64_t channel, std::span<const uint32_t> sums) {
      T* to = y.as<T>() + (image * channels + channel) * static_cast<int64_t>(sums.size());
      const float factor = x_scale[0] * w_scale[w_scale.size() == 1 ? 0 : static_cast<size_t>(channel)] / result.scale;
      const uint32_t offset = bias ? static_cast<uint32_t>(bias[channel]) : 0;
      for (size_t i = 0; i < sums.size(); ++i) {
        const float value = static_cast<float>(static_cast<int32_t>(sums[i] + offset)) * factor;
        to[i] = static_cast<T>(saturate(static_cast<double>(value), result.zero_point, low, high));
      }
    });
  });
  return {};
}

template <size_t w>
OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_shape(node, inputs[0], inputs[w]);
  return s ? OpCost{.macs = s->macs()} : OpCost{};
}
}  // namespace

std::span<const OpDef> integer_conv() {
  static const OpDef defs[] = {
      {.name = "ConvInteger",
       .summary = "convolution of 8-bit data in int32",
       .inputs = {2, 4},
       .attributes = conv_attributes(),
       .infer = infer_integer,
       .run = run_integer,
       .cost = cost<1>,
       .engine = Engine::Conv,
       .pattern = Pattern::Window},
      {.name = "QLinearConv",
       .summary = "convolution of quantized data, quantized again",
       .inputs = {8, 9},
       .attributes = conv_attributes(),
       .infer = infer_quantized,
       .run = run_quantized,
       .cost = cost<3>,
       .engine = Engine::Conv,
       .pattern = Pattern::Window,
       .exact_inputs = input_slots({1, 4, 6})},
  };
  return defs;
}
}  // namespace orknn::ops
