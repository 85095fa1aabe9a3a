// Convolutions as the chip computes them on integers: exact sums (int32, int64 where 16-bit numbers meet), bias, then the stages
// of ops/support/requantize.h, where an operand may be added before the result is rounded to its type. Inputs: data, weights,
// int32 bias, addend, table; the last three are optional.
#include "ops/support/convolution.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr size_t kBias = 2, kAddend = 3, kTable = 4;

std::vector<AttributeDef> attributes(std::vector<AttributeDef> geometry) {
  geometry.insert(geometry.end(), {attr_int("x_zero_point", 0), attr_ints("w_zero_point", {0})});
  return product_stage_attributes(std::move(geometry));
}

Status check_types(const InferContext& c) {
  for (size_t i : {size_t{0}, size_t{1}, kAddend})
    if (c.has_input(i) && !is_npu_integer(c.dtype(i)))
      return invalid_model("input " + std::to_string(i) + " has an unsupported type")
          .expected("int8, uint8 or int16")
          .found(std::string(dtype_name(c.dtype(i))));
  if (c.has_input(kBias) && c.dtype(kBias) != DType::Int32)
    return invalid_model("the bias is not int32").found(std::string(dtype_name(c.dtype(kBias))));
  return {};
}

// Bias, addend and the attributes of the converter fit the result, which is set.
Status check_operands(const InferContext& c) {
  ORKNN_TRY(check_bias(c, kBias));
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  const std::optional<Shape>& y = c.output(0).shape;
  if (!y) return {};
  ORKNN_TRY(check_count(c, kAddend, "the added tensor", *y));
  const Dim& channels = (*y)[1];
  if (!channels.is_known()) return {};
  ORKNN_TRY(read_weight_zero_points(c, channels.value()).status());
  return check_output_stage(c, kTable, product_limits(c.dtype(0), c.dtype(1), channels.value()));
}

Status infer_conv_stage(InferContext& c) {
  ORKNN_TRY(check_types(c));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kTable));
  ORKNN_TRY(infer_conv(c, 0, 1, type));
  return check_operands(c);
}

struct Parameters {
  int64_t x_zero = 0;
  std::vector<int64_t> w_zero;
  OutputStage stage;
};

Result<Parameters> read_parameters(const RunContext& c, const ConvShape& s) {
  Parameters p;
  ORKNN_TRY_ASSIGN(p.x_zero, read_zero_point(c, "x_zero_point"));
  ORKNN_TRY_ASSIGN(p.w_zero, read_weight_zero_points(c, s.output_channels));
  ORKNN_TRY_ASSIGN(p.stage, read_output_stage(c, kTable, product_limits(c.input(0).dtype, c.input(1).dtype, s.output_channels)));
  if (c.has_input(kBias)) ORKNN_TRY(check_bias(c.input(kBias), s.output_channels));
  if (c.has_input(kAddend) && c.input(kAddend).count() != element_count(s.output_dims()))
    return shape_mismatch("the added tensor differs in shape from the result")
        .expected(to_string(s.output_dims()))
        .found(to_string(c.input(kAddend).dims));
  return p;
}

// Turns the sums of one output plane into results.
template <class A>
void store_plane(const RunContext& c, const ConvShape& s, const Parameters& p, const MutableTensorView& y, int64_t image,
                 int64_t channel, std::span<const A> sums) {
  const int64_t at = (image * s.output_channels + channel) * static_cast<int64_t>(sums.size());
  const int32_t bias = c.has_input(kBias) ? c.input(kBias).as<int32_t>()[channel] : 0;
  const auto scaled = [&](size_t i) { return p.stage.scaled(with_bias(sums[i], bias), channel); };
  visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
    Y* to = y.as<Y>() + at;
    if (!c.has_input(kAddend)) {
      for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<Y>(p.stage.finish(scaled(i)));
      return;
    }
    const TensorView addend = c.input(kAddend);
    visit_npu_integer(addend.dtype, [&]<class B>(TypeTag<B>) {
      const B* other = addend.as<B>() + at;
      for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<Y>(p.stage.finish(p.stage.with_operand(scaled(i), other[i])));
    });
  });
}

// Sum is uint32_t or uint64_t: unsigned, so that wrapping is defined.
template <class Sum>
Status run_conv_in(RunContext& c) {
  const TensorView x = c.input(0), w = c.input(1);
  ORKNN_TRY_ASSIGN(const ConvShape s, conv_shape(c, x.dims, w.dims));
  ORKNN_TRY_ASSIGN(const Parameters p, read_parameters(c, s));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, p.stage.dtype, s.output_dims()));
  const auto w_zero = [&](int64_t channel) {
    return static_cast<Sum>(p.w_zero[p.w_zero.size() == 1 ? 0 : static_cast<size_t>(channel)]);
  };
  visit_npu_integer(x.dtype, [&]<class X>(TypeTag<X>) {
    visit_npu_integer(w.dtype, [&]<class W>(TypeTag<W>) {
      convolve<Sum>(
          c.pool, s, x.as<X>(), w.as<W>(), static_cast<Sum>(p.x_zero), w_zero,
          [&](int64_t image, int64_t channel, std::span<const Sum> sums) { store_plane(c, s, p, y, image, channel, sums); });
    });
  });
  return {};
}

Status run_conv(RunContext& c) {
  return has_wide_sums(c.input(0).dtype, c.input(1).dtype) ? run_conv_in<uint64_t>(c) : run_conv_in<uint32_t>(c);
}

Status infer_transposed(InferContext& c) {
  ORKNN_TRY(check_types(c));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kTable));
  ORKNN_TRY(infer_conv_transpose(c));
  c.set_output(0, type, c.output(0).shape);
  return check_operands(c);
}

// Every input element adds a scaled kernel to the output.
template <class Sum, class X, class W>
void scatter_plane(const ConvShape& s, const Parameters& p, const X* x, const W* w, int64_t image, int64_t channel,
                   std::vector<Sum>& sums) {
  const int64_t per_group = s.outputs_per_group(), taps = s.window.taps(), input_plane = element_count(s.input);
  const int64_t first = channel / per_group * s.channels_per_group();
  const auto w_zero = static_cast<Sum>(p.w_zero[p.w_zero.size() == 1 ? 0 : static_cast<size_t>(channel)]);
  const Dims strides = strides_of(s.output);
  std::fill(sums.begin(), sums.end(), Sum{});
  for (int64_t i = first; i < first + s.channels_per_group(); ++i) {
    const X* plane = x + (image * s.input_channels + i) * input_plane;
    const W* kernel = w + (i * per_group + channel % per_group) * taps;
    Dims at(s.input.size(), 0);
    for (int64_t e = 0; e < input_plane; ++e, next_index(at, s.input)) {
      const Sum value = static_cast<Sum>(plane[e]) - static_cast<Sum>(p.x_zero);
      Dims tap(s.window.rank(), 0);
      for (int64_t t = 0; t < taps; ++t, next_index(tap, s.window.kernel)) {
        int64_t position = 0;
        bool inside = true;
        for (size_t a = 0; a < tap.size() && inside; ++a) {
          const int64_t o = at[a] * s.window.strides[a] + tap[a] * s.window.dilations[a] - s.window.pads_begin[a];
          inside = o >= 0 && o < s.output[a];
          position += o * strides[a];
        }
        if (inside) sums[static_cast<size_t>(position)] += value * (static_cast<Sum>(kernel[t]) - w_zero);
      }
    }
  }
}

template <class Sum>
Status run_transposed_in(RunContext& c) {
  const TensorView x = c.input(0), w = c.input(1);
  ORKNN_TRY_ASSIGN(const ConvShape s, conv_transpose_shape(c, x.dims, w.dims));
  ORKNN_TRY_ASSIGN(const Parameters p, read_parameters(c, s));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, p.stage.dtype, s.output_dims()));
  visit_npu_integer(x.dtype, [&]<class X>(TypeTag<X>) {
    visit_npu_integer(w.dtype, [&]<class W>(TypeTag<W>) {
      c.pool.parallel_for(s.batch * s.output_channels, 1, [&](int64_t begin, int64_t end) {
        std::vector<Sum> sums(static_cast<size_t>(element_count(s.output)));
        for (int64_t item = begin; item < end; ++item) {
          const int64_t image = item / s.output_channels, channel = item % s.output_channels;
          scatter_plane(s, p, x.as<X>(), w.as<W>(), image, channel, sums);
          store_plane(c, s, p, y, image, channel, std::span<const Sum>(sums));
        }
      });
    });
  });
  return {};
}

Status run_transposed(RunContext& c) {
  return has_wide_sums(c.input(0).dtype, c.input(1).dtype) ? run_transposed_in<uint64_t>(c) : run_transposed_in<uint32_t>(c);
}

OpCost cost_conv(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_shape(node, inputs[0], inputs[1]);
  return s ? OpCost{.macs = s->macs()} : OpCost{};
}
OpCost cost_transposed(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  const auto s = conv_transpose_shape(node, inputs[0], inputs[1]);
  if (!s) return {};
  return {.macs = s->batch * s->input_channels * element_count(s->input) * s->outputs_per_group() * s->window.taps()};
}

std::vector<AttributeDef> transposed_geometry() {
  std::vector<AttributeDef> list = conv_attributes();
  list.push_back(attr_ints("output_padding"));
  list.push_back(attr_ints("output_shape"));
  return list;
}
}  // namespace

std::span<const OpDef> int_conv() {
  static const OpDef defs[] = {
      {.name = "int:Conv",
       .summary = "convolution of integers with the chip's output converter",
       .inputs = {2, 5},
       .attributes = attributes(conv_attributes()),
       .infer = infer_conv_stage,
       .run = run_conv,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .cost = cost_conv,
       .engine = Engine::Conv,
       .pattern = Pattern::Window,
       .samples_apart = true,
       .addend_input = 3,
       .integer_form_of = "Conv",
       .table_input = 4},
      {.name = "int:ConvTranspose",
       .summary = "transposed convolution of integers with the chip's output converter",
       .inputs = {2, 5},
       .attributes = attributes(transposed_geometry()),
       .infer = infer_transposed,
       .run = run_transposed,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .cost = cost_transposed,
       .engine = Engine::Conv,
       .pattern = Pattern::Window,
       .samples_apart = true,
       .addend_input = 3,
       .integer_form_of = "ConvTranspose",
       .table_input = 4},
  };
  return defs;
}
}  // namespace orknn::ops
