// What training with quantization leaves in a program. Paddle's scales are the largest magnitudes: the integers are
// round(x / scale * 127) for 8 bits.
#include <algorithm>
#include <cmath>

#include "import/lower/fake_quant.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Result<int64_t> bits_of(const Layer& l) {
  const int64_t bits = l.integer("bit_length", l.integer("quant_bits", 8));
  if (bits >= 2 && bits <= 16) return bits;
  return unsupported("quantization to this number of bits is not supported").expected("2 to 16").found(std::to_string(bits));
}
double largest_integer(int64_t bits) { return static_cast<double>((int64_t{1} << (bits - 1)) - 1); }

Result<std::vector<double>> magnitudes(Layer& l, TensorId scale) {
  if (!scale) return invalid_model("the scale is missing");
  ORKNN_TRY_ASSIGN(std::vector<double> values, l.need_doubles(scale, "to quantize by it"));
  for (double& v : values) {
    if (!std::isfinite(v)) return invalid_model("a scale is not a finite number").found(std::to_string(v));
    v = std::max(std::fabs(v), 1e-8);
  }
  return values;
}
// Largest magnitudes of a constant: of all of it, or per element of an axis.
Result<std::vector<double>> own_magnitudes(Layer& l, TensorId x, std::optional<int64_t> axis) {
  ORKNN_TRY_ASSIGN(const std::vector<double> values, l.need_doubles(x, "to find its range"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to find its range"));
  const int64_t count = axis ? dims[static_cast<size_t>(*axis)] : 1;
  const int64_t inner = axis ? strides_of(dims)[static_cast<size_t>(*axis)] : element_count(dims);
  std::vector<double> found(static_cast<size_t>(count), 1e-8);
  for (size_t i = 0; i < values.size(); ++i) {
    double& most = found[static_cast<size_t>(axis ? static_cast<int64_t>(i) / std::max<int64_t>(inner, 1) % count : 0)];
    most = std::max(most, std::fabs(values[i]));
  }
  return found;
}
std::vector<IntegerGrid> grids_of(const std::vector<double>& magnitudes, int64_t bits) {
  const int64_t zero = bits <= 8 ? 128 : 32768, most = (int64_t{1} << (bits - 1)) - 1;
  std::vector<IntegerGrid> grids;
  for (double m : magnitudes)
    grids.push_back({.scale = m / largest_integer(bits), .zero_point = zero, .low = zero - most, .high = zero + most});
  return grids;
}
Result<std::optional<int64_t>> channel_axis(const Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("quant_axis", 0), x));
  return std::optional(axis);
}

// --- rounded and back
Result<TensorId> quantized_by(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const int64_t bits, bits_of(l));
  ORKNN_TRY_ASSIGN(const std::vector<double> m, magnitudes(l, scale));
  if (m.size() != 1) return invalid_model("there must be one scale").found(std::to_string(m.size()));
  return fake_quant(l, x, grids_of(m, bits), std::nullopt, bits);
}
template <bool PerChannel>
Result<TensorId> quantized_by_itself(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t bits, bits_of(l));
  std::optional<int64_t> axis;
  if (PerChannel) {
    ORKNN_TRY_ASSIGN(axis, channel_axis(l, x));
  }
  ORKNN_TRY_ASSIGN(const std::vector<double> m, own_magnitudes(l, x, axis));
  return fake_quant(l, x, grids_of(m, bits), axis, bits);
}

// --- integers, which Paddle keeps as floats
TensorId integers_of(Layer& l, TensorId x, TensorId unit, double most) {
  const TensorId cut = l.clip(l.unary("Round", l.div(x, unit)), -most, most);
  return cut;
}
Result<std::vector<TensorId>> to_integers(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const int64_t bits, bits_of(l));
  const double most = largest_integer(bits);
  const TensorId size = l.reshape(scale, {1});
  return std::vector<TensorId>{integers_of(l, x, l.div(size, most), most), size};
}
Result<std::vector<TensorId>> to_integers_by_itself(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<double> m, own_magnitudes(l, x, std::nullopt));
  const std::vector<float> values(m.begin(), m.end());
  return to_integers(l, x, l.add_constant("scale", TensorData::from<float>({1}, values)));
}
Result<TensorId> from_integers(Layer& l, TensorId x, TensorId scale) {
  return l.mul(l.cast(x, DType::Float32), l.div(l.reshape(scale, {1}), l.number("max_range", 127)));
}
// One factor per element of an axis, for tensors of this rank.
Result<TensorId> along_quant_axis(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(scale, "to scale by it"));
  if (element_count(dims) == 1) return l.reshape(scale, {1});
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to scale it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("quant_axis", 0), x));
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = -1;
  return l.reshape(scale, shape);
}
// Weights have a scale per channel; a second one, of the activations, is left to programs of integers.
Result<TensorId> channels_from_integers(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> scales, l.list(1));
  std::vector<int64_t> bits = l.integers("quant_bits");
  if (bits.empty()) bits = {8};
  if (scales.size() != 1)
    return unsupported("weights with several scales are not supported").expected("1").found(std::to_string(scales.size()));
  if (bits[0] < 2 || bits[0] > 16)
    return unsupported("quantization to this number of bits is not supported").found(std::to_string(bits[0]));
  ORKNN_TRY_ASSIGN(const TensorId scale, along_quant_axis(l, x, scales[0]));
  return l.mul(l.cast(x, DType::Float32), l.div(scale, largest_integer(bits[0])));
}

// --- the newer pair. Between the two stands an int8 tensor of ours.
struct QuantizedForm {
  TensorId unit, zero;
  Attributes attributes;
};
Result<QuantizedForm> form_of(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const int64_t bits, bits_of(l));
  ORKNN_TRY_ASSIGN(const std::vector<double> m, magnitudes(l, scale));
  const DType dtype = bits <= 8 ? DType::Int8 : DType::Int16;
  const Dims dims = m.size() == 1 ? Dims{} : Dims{std::ssize(m)};
  std::vector<float> units;
  for (double v : m) units.push_back(static_cast<float>(v / largest_integer(bits)));
  QuantizedForm form;
  form.unit = l.add_constant("scale", TensorData::from<float>(dims, units));
  form.zero = l.cast(l.full(dims, 0, DType::Int32), dtype);
  if (m.size() > 1) {
    ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("quant_axis", 0), x));
    form.attributes.set("axis", axis);
  }
  return form;
}
Result<TensorId> quantize_linear(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const QuantizedForm form, form_of(l, x, scale));
  return l.emit_kept("QuantizeLinear", {x, form.unit, form.zero}, form.attributes);
}
Result<TensorId> dequantize_linear(Layer& l, TensorId x, TensorId scale) {
  ORKNN_TRY_ASSIGN(const QuantizedForm form, form_of(l, x, scale));
  return l.emit_kept("DequantizeLinear", {l.cast(x, l.dtype_of(form.zero)), form.unit, form.zero}, form.attributes);
}
}  // namespace

std::span<const Row> quantized_rows() {
  static const Row rows[] = {
      {"fake_quantize_dequantize_moving_average_abs_max", quantized_by},
      {"fake_quantize_dequantize_abs_max", quantized_by_itself<false>},
      {"fake_channel_wise_quantize_dequantize_abs_max", quantized_by_itself<true>},
      {"fake_quantize_moving_average_abs_max", to_integers},
      {"fake_quantize_abs_max", to_integers_by_itself},
      {"fake_dequantize_max_abs", from_integers},
      {"fake_channel_wise_dequantize_max_abs", channels_from_integers},
      {"quantize_linear", quantize_linear},
      {"dequantize_linear", dequantize_linear},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
