// To and from quantized tensors, fake quantization, and the quantization of exported programs, whose integers are plain tensors.
#include "import/pytorch/ops.h"
#include "import/pytorch/quantize.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

Result<Value> quantize_per_tensor(Call& c) {
  const ScalarType* type = scalar_type(c.integer("dtype"));
  if (!type || !type->is_quantized)
    return invalid_model("a tensor is quantized to a strange type").found(std::to_string(c.integer("dtype")));
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, type->dtype));
  return made_quantized(c, c.tensor("self"), std::move(q));
}
Result<Value> quantize_per_channel(Call& c) {
  const ScalarType* type = scalar_type(c.integer("dtype"));
  if (!type || !type->is_quantized)
    return invalid_model("a tensor is quantized to a strange type").found(std::to_string(c.integer("dtype")));
  Quantization q;
  q.dtype = type->dtype;
  ORKNN_TRY_ASSIGN(q.scales, c.need_doubles(c.tensor("scales"), "to quantize"));
  ORKNN_TRY_ASSIGN(const auto zeros, c.need_doubles(c.tensor("zero_points"), "to quantize"));
  for (double z : zeros) q.zero_points.push_back(Value(z).integer());
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("axis", c.rank("self")));
  q.axis = static_cast<int64_t>(axis);
  if (c.rank("self") == 0 || static_cast<int64_t>(q.scales.size()) != c.dims("self")[axis] ||
      q.zero_points.size() != q.scales.size())
    return invalid_model("the scales do not fit the tensor");
  return made_quantized(c, c.tensor("self"), std::move(q));
}
Result<Value> quantize_dynamic(Call& c) {
  return c.made(dynamically_quantized(c, c.cast(c.tensor("self"), DType::Float32), c.flag("reduce_range") ? 127 : 255));
}

Result<Value> dequantize(Call& c) {
  if (!c.handle("self").quantization) return c.value("self");
  return c.made(c.tensor("self"));
}
Result<Value> dequantize_list(Call& c) {
  std::vector<Value> results;
  for (const Value& v : c.items("tensors")) {
    if (!v.is_tensor()) return invalid_model("a list of tensors holds None");
    ORKNN_TRY_ASSIGN(const Value one, c.made(v.tensor().id));
    results.push_back(one);
  }
  return c.list(std::move(results));
}
// The integers behind the real values.
Result<Value> int_repr(Call& c) {
  const auto& q = c.handle("self").quantization;
  if (!q || q->axis >= 0) return c.fail("only tensors that are quantized as a whole show their integers");
  const TensorId scale = c.scalar(q->scales[0], DType::Float32), zero = c.int_scalar(q->zero_points[0], q->dtype);
  return c.made(c.emit_kept("QuantizeLinear", {c.tensor("self"), scale, zero}));
}
Result<Value> q_scale(Call& c) {
  const auto& q = c.handle("self").quantization;
  if (!q || q->axis >= 0) return invalid_model("the tensor has no single scale");
  return Value(q->scales[0]);
}
Result<Value> q_zero_point(Call& c) {
  const auto& q = c.handle("self").quantization;
  if (!q || q->axis >= 0) return invalid_model("the tensor has no single zero point");
  return Value(q->zero_points[0]);
}
Result<Value> q_scheme(Call& c) {
  const auto& q = c.handle("self").quantization;
  return Value(q && q->axis >= 0 ? int64_t{1} : int64_t{0});
}
Result<Value> q_per_channel_scales(Call& c) {
  const auto& q = c.handle("self").quantization;
  if (!q) return invalid_model("the tensor is not quantized");
  return c.made(c.add_constant("scales", ir::TensorData::from<double>({static_cast<int64_t>(q->scales.size())}, q->scales)));
}
Result<Value> q_per_channel_zero_points(Call& c) {
  const auto& q = c.handle("self").quantization;
  if (!q) return invalid_model("the tensor is not quantized");
  return c.made(c.add_ints("zero_points", q->zero_points));
}
Result<Value> q_per_channel_axis(Call& c) {
  const auto& q = c.handle("self").quantization;
  return q ? Result<Value>(Value(std::max<int64_t>(q->axis, 0))) : Result<Value>(invalid_model("the tensor is not quantized"));
}

// --- fake quantization: rounds to a grid within float tensors
Result<TensorId> fake_quantized(Call& c, Quantization q, int64_t least, int64_t most) {
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
    shape.assign(static_cast<size_t>(c.rank("self")), 1);
    shape[static_cast<size_t>(q.axis)] = static_cast<int64_t>(low.size());
  }
  const TensorId limits[] = {c.add_constant("low", ir::TensorData::from<float>(shape, low)),
                             c.add_constant("high", ir::TensorData::from<float>(shape, high))};
  const TensorId x = c.cast(c.tensor("self"), DType::Float32);
  const TensorId cut =
      shape.empty() ? c.emit("Clip", {x, limits[0], limits[1]}) : c.emit("Min", {c.emit("Max", {x, limits[0]}), limits[1]});
  return quantize_dequantize(c, cut, q);
}
DType type_of_range(int64_t least, int64_t most) {
  return least < 0 ? (least < -128 || most > 127 ? DType::Int16 : DType::Int8) : most > 255 ? DType::UInt16 : DType::UInt8;
}
Status check_range(int64_t least, int64_t most) {
  return least < -32768 || most > 65535 || least >= most || (least < 0 && most > 32767)
             ? invalid_model("fake quantization has a strange range").found(std::to_string(least) + " to " + std::to_string(most))
             : Status();
}
Result<Value> fake_quantize(Call& c) {
  ORKNN_TRY(check_range(c.integer("quant_min"), c.integer("quant_max")));
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, type_of_range(c.integer("quant_min"), c.integer("quant_max"))));
  ORKNN_TRY_ASSIGN(const TensorId y, fake_quantized(c, std::move(q), c.integer("quant_min"), c.integer("quant_max")));
  return c.made(y);
}
Result<Quantization> channel_quantization(Call& c, int64_t axis, DType dtype) {
  Quantization q;
  q.dtype = dtype;
  ORKNN_TRY_ASSIGN(q.scales, c.need_doubles(c.tensor("scale"), "to quantize"));
  ORKNN_TRY_ASSIGN(const auto zeros, c.need_doubles(c.tensor("zero_point"), "to quantize"));
  for (double z : zeros) q.zero_points.push_back(Value(z).integer());
  ORKNN_TRY_ASSIGN(const size_t a, c.axis_of(axis, c.rank("self")));
  q.axis = static_cast<int64_t>(a);
  if (c.rank("self") == 0 || static_cast<int64_t>(q.scales.size()) != c.dims("self")[a] ||
      q.scales.size() != q.zero_points.size())
    return invalid_model("the scales do not fit the tensor");
  return q;
}
Result<Value> fake_quantize_channels(Call& c) {
  ORKNN_TRY(check_range(c.integer("quant_min"), c.integer("quant_max")));
  ORKNN_TRY_ASSIGN(Quantization q,
                   channel_quantization(c, c.integer("axis"), type_of_range(c.integer("quant_min"), c.integer("quant_max"))));
  ORKNN_TRY_ASSIGN(const TensorId y, fake_quantized(c, std::move(q), c.integer("quant_min"), c.integer("quant_max")));
  return c.made(y);
}
Result<Value> with_mask(Call& c, Result<Value> (*f)(Call&)) {
  ORKNN_TRY_ASSIGN(const Value y, f(c));
  return c.tuple({y, Value()});
}
// Observers only matter for training: the stored parameters are used.
Result<Value> observed_fake_quantize(Call& c) {
  const auto enabled = c.session().constant_number(c, c.handle("fake_quant_on"));
  const auto observing = c.session().constant_number(c, c.handle("observer_on"));
  if (observing && observing->number() != 0)
    c.session().warnings.push_back(
        "an observer of '" + c.layer() +
        "' is still on: its stored range is used (call model.apply(torch.ao.quantization.disable_observer) before saving)");
  if (enabled && enabled->number() == 0) return c.value("self");
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  ORKNN_TRY(check_range(least, most));
  const bool per_channel = c.flag("per_row_fake_quant") && ir::element_count(c.dims("scale")) > 1;
  ORKNN_TRY_ASSIGN(Quantization q, per_channel ? channel_quantization(c, c.integer("ch_axis"), type_of_range(least, most))
                                               : output_quantization(c, type_of_range(least, most)));
  ORKNN_TRY_ASSIGN(const TensorId y, fake_quantized(c, std::move(q), least, most));
  return c.made(y);
}

// --- quantization of exported programs: the integers are plain tensors
struct Parameters {
  TensorId scale, zero_point;
  int64_t axis = -1;  // -1 = per tensor
  DType dtype = DType::Int8;
};
// An operand, or zero, as one number or one per channel.
Result<TensorId> channel_operand(Call& c, const Value& v, int64_t axis, int64_t channels, DType dtype) {
  if (v.is_none()) return c.int_scalar(0, dtype);
  const TensorId x = c.as(v, dtype);
  const auto dims = c.dims_of(x);
  const int64_t count = dims ? ir::element_count(*dims) : -1;
  if (axis < 0 && count == 1) return c.reshape(x, {});
  if (axis >= 0 && count == channels) return c.reshape(x, {channels});
  return invalid_model("the scales do not fit the tensor").found(dims ? ir::to_string(*dims) : "an unknown shape");
}
Result<Parameters> decomposed_parameters(Call& c) {
  Parameters p;
  ORKNN_TRY_ASSIGN(p.dtype, c.dtype_argument("dtype", DType::Int8));
  const bool per_channel = c.op().ends_with("channel");
  int64_t channels = 1;
  if (per_channel) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis("axis", c.rank("input")));
    p.axis = static_cast<int64_t>(axis);
    if (c.rank("input") > 0) channels = c.dims("input")[axis];
  }
  ORKNN_TRY_ASSIGN(p.scale, channel_operand(c, c.value(per_channel ? "scales" : "scale"), p.axis, channels, DType::Float32));
  ORKNN_TRY_ASSIGN(p.zero_point,
                   channel_operand(c, c.value(per_channel ? "zero_points" : "zero_point"), p.axis, channels, p.dtype));
  return p;
}
ir::Attributes axis_attribute(const Parameters& p) { return p.axis < 0 ? ir::Attributes() : ir::Attributes{{"axis", p.axis}}; }
Result<Value> decomposed_quantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  const TensorId q =
      c.emit_kept("QuantizeLinear", {c.cast(c.tensor("input"), DType::Float32), p.scale, p.zero_point}, axis_attribute(p));
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  if (least <= dtype_min(p.dtype) && most >= static_cast<int64_t>(dtype_max(p.dtype))) return c.made(q);
  return c.made(c.clip(q, static_cast<double>(least), static_cast<double>(most)));
}
Result<Value> decomposed_dequantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  ORKNN_TRY_ASSIGN(const DType out, c.dtype_argument("out_dtype", DType::Float32));
  return c.made(c.cast(
      c.emit_kept("DequantizeLinear", {c.cast(c.tensor("input"), p.dtype), p.scale, p.zero_point}, axis_attribute(p)), out));
}
// Scale and zero point from the data, when the network runs.
Result<Value> choose_parameters(Call& c) {
  const TensorId x = c.cast(c.tensor("input"), DType::Float32), zero = c.scalar(0, DType::Float32);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("input"); ++i) axes.push_back(i);
  const double least = c.number("quant_min"), most = c.number("quant_max");
  const TensorId low = c.emit("Min", {c.reduce("ReduceMin", x, axes, false), zero}),
                 high = c.emit("Max", {c.reduce("ReduceMax", x, axes, false), zero});
  const TensorId scale =
      c.emit("Max", {c.div(c.sub(high, low), c.scalar(most - least, DType::Float32)), c.scalar(c.number("eps"), DType::Float32)});
  const TensorId zero_point = c.clip(c.sub(c.scalar(least, DType::Float32), c.emit("Round", {c.div(low, scale)})), least, most);
  ORKNN_TRY_ASSIGN(const Value s, c.made(c.reshape(scale, {1})));
  ORKNN_TRY_ASSIGN(const Value z, c.made(c.cast(c.reshape(zero_point, {1}), DType::Int64)));
  return c.tuple({s, z});
}
}  // namespace

std::span<const Row> quantize_rows() {
  static constexpr Row kRows[] = {
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
       [](Call& c) { return with_mask(c, fake_quantize); }},
      {"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)",
       fake_quantize_channels},
      {"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
       "quant_max)",
       [](Call& c) { return with_mask(c, fake_quantize_channels); }},
      {"fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, Tensor "
       "running_max, Tensor scale, Tensor zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool "
       "per_row_fake_quant=False, bool symmetric_quant=False)",
       observed_fake_quantize},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
