// Quantization to and from integers, fake quantization, and the quantization of exported programs, whose integers are plain
// tensors.
#include "import/pytorch/operators.h"
#include "import/pytorch/quantization.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

Result<DType> quantized_dtype(Call& c) {
  const ScalarType* type = scalar_type(c.integer("dtype"));
  if (!type || !type->is_quantized)
    return invalid_model("a tensor is quantized to a type that is not supported").found(std::to_string(c.integer("dtype")));
  return type->dtype;
}
// One scale and zero point per entry of an axis, from two constants.
Result<Quantization> channel_quantization(Call& c, std::string_view scales, std::string_view zero_points, int64_t axis,
                                          DType dtype) {
  Quantization q;
  q.dtype = dtype;
  ORKNN_TRY_ASSIGN(q.scales, c.need_doubles(c.tensor(scales), "to quantize"));
  ORKNN_TRY_ASSIGN(const auto zeros, c.need_doubles(c.tensor(zero_points), "to quantize"));
  for (double z : zeros) q.zero_points.push_back(Value(z).integer());
  ORKNN_TRY_ASSIGN(q.axis, c.axis_of(axis, c.rank()));
  if (c.rank() == 0 || static_cast<int64_t>(q.scales.size()) != c.dims()[q.axis] || q.zero_points.size() != q.scales.size())
    return invalid_model("the scales do not fit the tensor");
  return q;
}
Result<Value> quantize_per_tensor(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, quantized_dtype(c));
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, dtype));
  ORKNN_TRY_ASSIGN(const Value quantized, made_quantized(c, c.tensor("self"), std::move(q)));
  quantized.tensor().input = c.handle().input;  // what is learned about its shape is learned about the input's
  return quantized;
}
Result<Value> quantize_per_channel(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, quantized_dtype(c));
  ORKNN_TRY_ASSIGN(Quantization q, channel_quantization(c, "scales", "zero_points", c.integer("axis"), dtype));
  return made_quantized(c, c.tensor("self"), std::move(q));
}
TensorId quantize_dynamic(Call& c, TensorId x) {
  return dynamically_quantized(c, c.cast(x, DType::Float32), c.flag("reduce_range") ? 127 : 255);
}

Output dequantize(Call& c) { return c.handle().quantization ? Output(c.tensor("self")) : c.value("self"); }
Result<Value> dequantize_list(Call& c) {
  ORKNN_TRY_ASSIGN(const auto ids, c.tensors("tensors"));
  ORKNN_TRY_ASSIGN(const Value all, c.made(ids));
  return c.list(all.sequence().items);
}
// The integers of the real values.
Result<TensorId> int_repr(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, true));
  return c.emit_kept("QuantizeLinear", {x, c.scalar(q.scales[0], DType::Float32), c.int_scalar(q.zero_points[0], q.dtype)});
}
Result<double> q_scale(Call& c) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, true));
  return q.scales[0];
}
Result<int64_t> q_zero_point(Call& c) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, true));
  return q.zero_points[0];
}
int64_t q_scheme(Call& c) { return c.handle().quantization && c.handle().quantization->axis >= 0 ? 1 : 0; }
Result<TensorId> q_per_channel_scales(Call& c) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, false));
  return c.add_constant("scales", ir::TensorData::from<double>({static_cast<int64_t>(q.scales.size())}, q.scales));
}
Result<TensorId> q_per_channel_zero_points(Call& c) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, false));
  return c.add_ints("zero_points", q.zero_points);
}
Result<int64_t> q_per_channel_axis(Call& c) {
  ORKNN_TRY_ASSIGN(const Quantization q, quantization_of(c, false));
  return std::max<int64_t>(q.axis, 0);
}

// --- fake quantization: rounds to a grid within float tensors
Result<TensorId> fake_quantized(Call& c, const Quantization& q) {
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  ORKNN_TRY(check_quantization(q));
  if (least == dtype_min(q.dtype) && most == static_cast<int64_t>(dtype_max(q.dtype)))
    return quantize_dequantize(c, c.tensor("self"), q);
  // A narrower range than the type has: what is beyond is cut off first, at values that fall exactly on the grid's ends.
  std::vector<float> low, high;
  for (size_t i = 0; i < q.scales.size(); ++i) {
    low.push_back(static_cast<float>(static_cast<double>(least - q.zero_points[i]) * q.scales[i]));
    high.push_back(static_cast<float>(static_cast<double>(most - q.zero_points[i]) * q.scales[i]));
  }
  Dims shape;
  if (q.axis >= 0) {
    shape.assign(static_cast<size_t>(c.rank()), 1);
    shape[q.axis] = static_cast<int64_t>(low.size());
  }
  const TensorId limits[] = {c.add_constant("low", ir::TensorData::from<float>(shape, low)),
                             c.add_constant("high", ir::TensorData::from<float>(shape, high))};
  const TensorId x = c.cast(c.tensor("self"), DType::Float32);
  const TensorId cut =
      shape.empty() ? c.emit("Clip", {x, limits[0], limits[1]}) : c.binary("Min", c.binary("Max", x, limits[0]), limits[1]);
  return quantize_dequantize(c, cut, q);
}
// The integer type that holds the range quant_min to quant_max.
Result<DType> type_of_range(Call& c) {
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  if (least < -32768 || most > 65535 || least >= most || (least < 0 && most > 32767))
    return invalid_model("the range of a fake quantization is impossible")
        .found(std::to_string(least) + " to " + std::to_string(most));
  return least < 0 ? (least < -128 || most > 127 ? DType::Int16 : DType::Int8) : most > 255 ? DType::UInt16 : DType::UInt8;
}
Result<TensorId> fake_quantize(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, type_of_range(c));
  ORKNN_TRY_ASSIGN(const Quantization q, output_quantization(c, dtype));
  return fake_quantized(c, q);
}
Result<TensorId> fake_quantize_channels(Call& c) {
  ORKNN_TRY_ASSIGN(const DType dtype, type_of_range(c));
  ORKNN_TRY_ASSIGN(const Quantization q, channel_quantization(c, "scale", "zero_point", c.integer("axis"), dtype));
  return fake_quantized(c, q);
}
// Observers only matter for training: the stored parameters are used.
Output observed_fake_quantize(Call& c) {
  const auto enabled = c.session().constant_number(c, c.handle("fake_quant_on"));
  const auto observing = c.session().constant_number(c, c.handle("observer_on"));
  if (observing && observing->number() != 0)
    c.session().warnings.push_back(
        "an observer of '" + c.layer() +
        "' is still on: its stored range is used (call model.apply(torch.ao.quantization.disable_observer) before saving)");
  if (enabled && enabled->number() == 0) return c.value("self");
  ORKNN_TRY_ASSIGN(const DType dtype, type_of_range(c));
  const bool per_channel = c.flag("per_row_fake_quant") && ir::element_count(c.dims("scale")) > 1;
  ORKNN_TRY_ASSIGN(const Quantization q, per_channel ? channel_quantization(c, "scale", "zero_point", c.integer("ch_axis"), dtype)
                                                     : output_quantization(c, dtype));
  ORKNN_TRY_ASSIGN(const TensorId y, fake_quantized(c, q));
  return y;
}

// --- quantization of exported programs: the integers are plain tensors
struct Parameters {
  TensorId scale, zero_point;
  DType dtype = DType::Int8;
  ir::Attributes attributes;  // the axis, when there is one
};
// An operand, or zero, as one number or one per channel.
Result<TensorId> channel_operand(Call& c, const Value& v, std::optional<int64_t> channels, DType dtype) {
  if (v.is_none()) return c.int_scalar(0, dtype);
  const TensorId x = c.as(v, dtype);
  const auto dims = c.dims_of(x);
  const int64_t count = dims ? ir::element_count(*dims) : -1;
  if (!channels && count == 1) return c.reshape(x, {});
  if (channels && count == *channels) return c.reshape(x, {*channels});
  return invalid_model("the scales do not fit the tensor").found(dims ? ir::to_string(*dims) : "an unknown shape");
}
Result<Parameters> decomposed_parameters(Call& c) {
  Parameters p;
  ORKNN_TRY_ASSIGN(p.dtype, c.dtype_argument(DType::Int8));
  const bool per_channel = c.op().ends_with("channel");
  std::optional<int64_t> channels;
  if (per_channel) {
    ORKNN_TRY_ASSIGN(const int64_t axis, c.axis("axis", "input"));
    p.attributes.set("axis", axis);
    channels = c.rank("input") > 0 ? c.dims("input")[axis] : 1;
  }
  ORKNN_TRY_ASSIGN(p.scale, channel_operand(c, c.value(per_channel ? "scales" : "scale"), channels, DType::Float32));
  ORKNN_TRY_ASSIGN(p.zero_point, channel_operand(c, c.value(per_channel ? "zero_points" : "zero_point"), channels, p.dtype));
  return p;
}
Result<TensorId> decomposed_quantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  const TensorId x = c.as("input", DType::Float32);
  const TensorId q = c.emit_kept("QuantizeLinear", {x, p.scale, p.zero_point}, p.attributes);
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  if (least <= dtype_min(p.dtype) && most >= static_cast<int64_t>(dtype_max(p.dtype))) return q;
  return c.clip(q, static_cast<double>(least), static_cast<double>(most));
}
Result<TensorId> decomposed_dequantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  ORKNN_TRY_ASSIGN(const DType out, c.dtype_argument(DType::Float32, "out_dtype"));
  return c.cast(c.emit_kept("DequantizeLinear", {c.as("input", p.dtype), p.scale, p.zero_point}, p.attributes), out);
}
// Scale and zero point from the data, when the network runs.
std::vector<TensorId> choose_parameters(Call& c, TensorId x) {
  x = c.cast(x, DType::Float32);
  const auto axes = *Emitter::axes_of({}, c.rank("input"));
  const double least = c.number("quant_min"), most = c.number("quant_max");
  const TensorId low = c.with_scalar("Min", c.reduce("ReduceMin", x, axes, false), 0),
                 high = c.with_scalar("Max", c.reduce("ReduceMax", x, axes, false), 0);
  const TensorId scale = c.with_scalar("Max", c.div(c.sub(high, low), most - least), c.number("eps"));
  const TensorId zero_point = c.clip(c.sub(c.scalar_like(low, least), c.unary("Round", c.div(low, scale))), least, most);
  return {c.reshape(scale, {1}), c.cast(c.reshape(zero_point, {1}), DType::Int64)};
}
}  // namespace

std::span<const Row> quantize_rows() {
  static const Row rows[] = {
      {"quantize_per_tensor(Tensor self, operand scale, operand zero_point, int dtype)", quantize_per_tensor},
      {"quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, int dtype)", quantize_per_channel},
      {"quantize_per_tensor_dynamic(Tensor self, int dtype, bool reduce_range)", quantize_dynamic},
      {"dequantize(Tensor self)", dequantize},
      {"dequantize(Tensor[] tensors)", dequantize_list},
      {"int_repr(Tensor self)", int_repr},
      {"q_scale(Tensor self)", q_scale},
      {"q_zero_point(Tensor self)", q_zero_point},
      {"qscheme(Tensor self)", q_scheme},
      {"q_per_channel_scales(Tensor self)", q_per_channel_scales},
      {"q_per_channel_zero_points(Tensor self)", q_per_channel_zero_points},
      {"q_per_channel_axis(Tensor self)", q_per_channel_axis},
      {"quantized_decomposed::quantize_per_tensor(Tensor input, operand scale, operand zero_point, Scalar quant_min, Scalar "
       "quant_max, int dtype)",
       decomposed_quantize},
      {"quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, "
       "int quant_max, int dtype)",
       decomposed_quantize},
      {"quantized_decomposed::dequantize_per_tensor(Tensor input, operand scale, operand zero_point, Scalar quant_min, Scalar "
       "quant_max, int dtype, *, int? out_dtype=None)",
       decomposed_dequantize},
      {"quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, "
       "int quant_max, int dtype, *, int? out_dtype=None)",
       decomposed_dequantize},
      {"quantized_decomposed::choose_qparams(Tensor input, int quant_min, int quant_max, float eps, int dtype)",
       choose_parameters},
      {"fake_quantize_per_tensor_affine(Tensor self, operand scale, operand zero_point, int quant_min, int quant_max)",
       fake_quantize},
      {"fake_quantize_per_tensor_affine_cachemask(Tensor self, operand scale, operand zero_point, int quant_min, int quant_max)",
       with_unused<fake_quantize, 1>},
      {"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)",
       fake_quantize_channels},
      {"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
       "quant_max)",
       with_unused<fake_quantize_channels, 1>},
      {"fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, Tensor "
       "running_max, Tensor scale, Tensor zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool "
       "per_row_fake_quant=False, bool symmetric_quant=False)",
       observed_fake_quantize},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
