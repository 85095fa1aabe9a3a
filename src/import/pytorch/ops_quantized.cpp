// Quantized layers as float layers between QuantizeLinear and DequantizeLinear, with the parameters the model states. A quantized
// tensor is its real value in the graph; that it is quantized, and how, stays with the tensor value.
#include <cmath>

#include "import/pytorch/ops.h"
#include "import/pytorch/quantize.h"

namespace orknn::importer::pytorch {
using ir::Dims;
using ir::TensorId;

TensorId quantize_dequantize(Call& c, TensorId x, const Quantization& q) {
  std::vector<float> scales(q.scales.begin(), q.scales.end());
  const Dims dims = q.axis < 0 ? Dims{} : Dims{static_cast<int64_t>(scales.size())};
  const TensorId scale = c.add_constant("scale", ir::TensorData::from<float>(dims, scales));
  const TensorId zero = c.add_constant("zero_point", ir::convert(ir::TensorData::from<int64_t>(dims, q.zero_points).view(), q.dtype));
  ir::Attributes attributes;
  if (q.axis >= 0) attributes.set("axis", q.axis);
  const TensorId quantized = c.emit_kept("QuantizeLinear", {c.cast(x, DType::Float32), scale, zero}, attributes);
  return c.emit_kept("DequantizeLinear", {quantized, scale, zero}, attributes);
}

Status check_quantization(const Quantization& q) {
  for (double s : q.scales)
    if (!(s > 0) || !std::isfinite(s)) return invalid_model("a quantization scale is not positive").found(std::to_string(s));
  for (int64_t z : q.zero_points)
    if (z < dtype_min(q.dtype) || (z > 0 && static_cast<uint64_t>(z) > dtype_max(q.dtype))) return invalid_model("a zero point is outside of its type").found(std::to_string(z));
  return {};
}

Result<Value> made_quantized(Call& c, TensorId x, Quantization q) {
  ORKNN_TRY(check_quantization(q));
  if (q.dtype == DType::Int32) {  // finer than float32 resolves: the value itself
    ORKNN_TRY_ASSIGN(const Value v, c.made(x));
    v.tensor().quantization = std::move(q);
    return v;
  }
  ORKNN_TRY_ASSIGN(const Value v, c.made(quantize_dequantize(c, x, q)));
  v.tensor().quantization = std::move(q);
  return v;
}

Result<Value> quantized_like_input(Call& c, const Value& result) {
  if (!result.is_tensor() || result.tensor().quantization || !result.tensor().id || !is_float(c.dtype_of(result.tensor().id))) return result;
  const Value first = c.first_tensor();
  if (!first.is_tensor() || !first.tensor().quantization || first.tensor().quantization->axis >= 0) return result;
  const std::string_view op = c.op();
  if (op.find("::") != std::string_view::npos || op.starts_with("dequantize") || op.starts_with("q_") || op.starts_with("fake_quantize") || op.find("like") != std::string_view::npos ||
      op.starts_with("new_") || op.starts_with("fused_"))
    return result;
  Quantization q = *first.tensor().quantization;
  if (op == "sigmoid" || op == "hardsigmoid") {  // their range is known
    q.scales = {1.0 / 256};
    q.zero_points = {dtype_min(q.dtype)};
  } else if (op == "tanh") {
    q.scales = {2.0 / 256};
    q.zero_points = {q.dtype == DType::UInt8 ? 128 : 0};
  }
  return made_quantized(c, result.tensor().id, std::move(q));
}

namespace {
// A number or a constant of one element.
Result<double> number_argument(Call& c, std::string_view name) {
  const Value& v = c.value(name);
  if (v.is_number()) return v.number();
  if (v.is_tensor())
    if (const auto known = c.session().constant_number(c, v.tensor())) return known->number();
  return c.fail("'" + std::string(name) + "' must be a constant");
}
Result<Quantization> output_quantization(Call& c, DType dtype) {
  Quantization q;
  q.dtype = dtype;
  ORKNN_TRY_ASSIGN(const double scale, number_argument(c, "scale"));
  ORKNN_TRY_ASSIGN(const double zero, number_argument(c, "zero_point"));
  q.scales = {scale};
  q.zero_points = {Value(zero).integer()};
  return q;
}
DType quantized_type(Call& c, std::string_view name) {
  const TensorValue& t = c.handle(name);
  return t.quantization ? t.quantization->dtype : DType::UInt8;
}
Result<Value> finish(Call& c, TensorId y, std::string_view like) {
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, quantized_type(c, like)));
  return made_quantized(c, y, std::move(q));
}

// --- to and from quantized tensors
Result<Value> quantize_per_tensor(Call& c) {
  const ScalarType* type = scalar_type(c.integer("dtype"));
  if (!type || !type->is_quantized) return invalid_model("a tensor is quantized to a strange type").found(std::to_string(c.integer("dtype")));
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, type->dtype));
  return made_quantized(c, c.tensor("self"), std::move(q));
}
Result<Value> quantize_per_channel(Call& c) {
  const ScalarType* type = scalar_type(c.integer("dtype"));
  if (!type || !type->is_quantized) return invalid_model("a tensor is quantized to a strange type").found(std::to_string(c.integer("dtype")));
  Quantization q;
  q.dtype = type->dtype;
  ORKNN_TRY_ASSIGN(q.scales, c.need_doubles(c.tensor("scales"), "to quantize"));
  ORKNN_TRY_ASSIGN(const auto zeros, c.need_doubles(c.tensor("zero_points"), "to quantize"));
  for (double z : zeros) q.zero_points.push_back(Value(z).integer());
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("axis", c.rank("self")));
  q.axis = static_cast<int64_t>(axis);
  if (c.rank("self") == 0 || static_cast<int64_t>(q.scales.size()) != c.dims("self")[axis] || q.zero_points.size() != q.scales.size()) return invalid_model("the scales do not fit the tensor");
  return made_quantized(c, c.tensor("self"), std::move(q));
}
// The range of the data decides, when the network runs.
TensorId dynamically_quantized(Call& c, TensorId x, double levels) {
  const DType t = DType::Float32;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank_of(x).value_or(0); ++i) axes.push_back(i);
  const TensorId zero = c.scalar(0, t);
  const TensorId least = c.emit("Min", {c.reduce("ReduceMin", x, axes, false), zero}), most = c.emit("Max", {c.reduce("ReduceMax", x, axes, false), zero});
  const TensorId range = c.div(c.sub(most, least), c.scalar(levels, t));
  const TensorId scale = c.where(c.emit("Equal", {range, zero}), c.scalar(0.1, t), range);
  const TensorId zero_point = c.clip(c.emit("Round", {c.emit("Neg", {c.div(least, scale)})}), 0, levels);
  const TensorId q = c.clip(c.add(c.emit("Round", {c.div(x, scale)}), zero_point), 0, levels);
  return c.mul(c.sub(q, zero_point), scale);
}
Result<Value> quantize_dynamic(Call& c) { return c.made(dynamically_quantized(c, c.cast(c.tensor("self"), DType::Float32), c.flag("reduce_range") ? 127 : 255)); }

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
  if (least == dtype_min(q.dtype) && most == static_cast<int64_t>(dtype_max(q.dtype))) return quantize_dequantize(c, c.tensor("self"), q);
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
  const TensorId limits[] = {c.add_constant("low", ir::TensorData::from<float>(shape, low)), c.add_constant("high", ir::TensorData::from<float>(shape, high))};
  const TensorId x = c.cast(c.tensor("self"), DType::Float32);
  const TensorId cut = shape.empty() ? c.emit("Clip", {x, limits[0], limits[1]}) : c.emit("Min", {c.emit("Max", {x, limits[0]}), limits[1]});
  return quantize_dequantize(c, cut, q);
}
DType type_of_range(int64_t least, int64_t most) { return least < 0 ? (least < -128 || most > 127 ? DType::Int16 : DType::Int8) : most > 255 ? DType::UInt16 : DType::UInt8; }
Status check_range(int64_t least, int64_t most) {
  return least < -32768 || most > 65535 || least >= most || (least < 0 && most > 32767) ? invalid_model("fake quantization has a strange range").found(std::to_string(least) + " to " + std::to_string(most)) : Status();
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
  if (c.rank("self") == 0 || static_cast<int64_t>(q.scales.size()) != c.dims("self")[a] || q.scales.size() != q.zero_points.size()) return invalid_model("the scales do not fit the tensor");
  return q;
}
Result<Value> fake_quantize_channels(Call& c) {
  ORKNN_TRY(check_range(c.integer("quant_min"), c.integer("quant_max")));
  ORKNN_TRY_ASSIGN(Quantization q, channel_quantization(c, c.integer("axis"), type_of_range(c.integer("quant_min"), c.integer("quant_max"))));
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
  if (observing && observing->number() != 0) c.session().warnings.push_back("an observer of '" + c.layer() + "' is still on: its stored range is used (call model.apply(torch.ao.quantization.disable_observer) before saving)");
  if (enabled && enabled->number() == 0) return c.value("self");
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  ORKNN_TRY(check_range(least, most));
  const bool per_channel = c.flag("per_row_fake_quant") && ir::element_count(c.dims("scale")) > 1;
  ORKNN_TRY_ASSIGN(Quantization q, per_channel ? channel_quantization(c, c.integer("ch_axis"), type_of_range(least, most)) : output_quantization(c, type_of_range(least, most)));
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
  ORKNN_TRY_ASSIGN(p.zero_point, channel_operand(c, c.value(per_channel ? "zero_points" : "zero_point"), p.axis, channels, p.dtype));
  return p;
}
ir::Attributes axis_attribute(const Parameters& p) { return p.axis < 0 ? ir::Attributes() : ir::Attributes{{"axis", p.axis}}; }
Result<Value> decomposed_quantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  const TensorId q = c.emit_kept("QuantizeLinear", {c.cast(c.tensor("input"), DType::Float32), p.scale, p.zero_point}, axis_attribute(p));
  const int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  if (least <= dtype_min(p.dtype) && most >= static_cast<int64_t>(dtype_max(p.dtype))) return c.made(q);
  return c.made(c.clip(q, static_cast<double>(least), static_cast<double>(most)));
}
Result<Value> decomposed_dequantize(Call& c) {
  ORKNN_TRY_ASSIGN(const Parameters p, decomposed_parameters(c));
  ORKNN_TRY_ASSIGN(const DType out, c.dtype_argument("out_dtype", DType::Float32));
  return c.made(c.cast(c.emit_kept("DequantizeLinear", {c.cast(c.tensor("input"), p.dtype), p.scale, p.zero_point}, axis_attribute(p)), out));
}
// Scale and zero point from the data, when the network runs.
Result<Value> choose_parameters(Call& c) {
  const TensorId x = c.cast(c.tensor("input"), DType::Float32), zero = c.scalar(0, DType::Float32);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("input"); ++i) axes.push_back(i);
  const double least = c.number("quant_min"), most = c.number("quant_max");
  const TensorId low = c.emit("Min", {c.reduce("ReduceMin", x, axes, false), zero}), high = c.emit("Max", {c.reduce("ReduceMax", x, axes, false), zero});
  const TensorId scale = c.emit("Max", {c.div(c.sub(high, low), c.scalar(most - least, DType::Float32)), c.scalar(c.number("eps"), DType::Float32)});
  const TensorId zero_point = c.clip(c.sub(c.scalar(least, DType::Float32), c.emit("Round", {c.div(low, scale)})), least, most);
  ORKNN_TRY_ASSIGN(const Value s, c.made(c.reshape(scale, {1})));
  ORKNN_TRY_ASSIGN(const Value z, c.made(c.cast(c.reshape(zero_point, {1}), DType::Int64)));
  return c.tuple({s, z});
}

// --- packed weights
struct Packed {
  TensorValue* weight = nullptr;
  Value bias;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
};
Value list_of(Call& c, const std::vector<int64_t>& values) {
  std::vector<Value> items;
  for (int64_t v : values) items.push_back(v);
  return Value::list(c.heap().list(std::move(items)));
}
Result<Value> pack(Call& c, const char* class_name, const Packed& p) {
  ObjectValue* object = c.heap().object(class_name);
  object->attributes["weight"] = Value(p.weight);
  object->attributes["bias"] = p.bias;
  object->attributes["stride"] = list_of(c, p.stride);
  object->attributes["padding"] = list_of(c, p.padding);
  object->attributes["dilation"] = list_of(c, p.dilation);
  object->attributes["output_padding"] = list_of(c, p.output_padding);
  object->attributes["groups"] = p.groups;
  object->attributes["transposed"] = p.transposed;
  return Value(object);
}
Result<Value> conv_prepack(Call& c) {
  return pack(c, "__torch__.torch.classes.quantized.ConvPackedParamsBase",
              {&c.handle("weight"), c.value("bias"), c.ints("stride"), c.ints("padding"), c.ints("dilation"), {0}, c.integer("groups"), false});
}
Result<Value> conv_transpose_prepack(Call& c) {
  return pack(c, "__torch__.torch.classes.quantized.ConvPackedParamsBase",
              {&c.handle("weight"), c.value("bias"), c.ints("stride"), c.ints("padding"), c.ints("dilation"), c.ints("output_padding"), c.integer("groups"), true});
}
Result<Value> linear_prepack(Call& c) { return pack(c, "__torch__.torch.classes.quantized.LinearPackedParamsBase", {&c.handle("weight"), c.value("bias"), {}, {}, {}, {}, 1, false}); }

std::vector<int64_t> ints_of(const Value& v) {
  std::vector<int64_t> list;
  if (v.is_sequence())
    for (const Value& item : v.sequence().items) list.push_back(item.integer());
  return list;
}
Status bad_state(const ObjectValue& object) { return invalid_model("the stored state of " + object.class_name + " is not understood"); }

// What a pickled object says: linear (weight, bias); convolutions (version, [config, weight], [bias]).
Status unpickle(Call& c, ObjectValue& object, Packed& p) {
  const Value& state = *object.state;
  if (!state.is_sequence()) return bad_state(object);
  const auto& parts = state.sequence().items;
  if (parts.size() == 2 && parts[0].is_tensor()) {
    p.weight = &parts[0].tensor();
    p.bias = parts[1];
    return {};
  }
  if (parts.size() != 3 || !parts[1].is_sequence() || !parts[2].is_sequence() || parts[1].sequence().items.size() < 2 || parts[2].sequence().items.empty()) return bad_state(object);
  const auto& tensors = parts[1].sequence().items;
  if (!tensors[0].is_tensor() || !tensors[1].is_tensor()) return bad_state(object);
  p.weight = &tensors[1].tensor();
  p.bias = parts[2].sequence().items[0];
  ORKNN_TRY(c.session().refresh(c, tensors[0].tensor()));
  ORKNN_TRY_ASSIGN(const auto config, c.need_ints(tensors[0].tensor().id, "to read packed weights"));
  // [version or dims, stride..., padding..., dilation..., output_padding..., groups, flags]
  if (config.empty() || config[0] < 1 || config[0] > 3) return bad_state(object);
  const size_t n = static_cast<size_t>(config[0]);
  if (config.size() != 4 * n + 3) return bad_state(object);
  const auto part = [&](size_t i) { return std::vector<int64_t>(config.begin() + static_cast<ptrdiff_t>(1 + i * n), config.begin() + static_cast<ptrdiff_t>(1 + (i + 1) * n)); };
  p.stride = part(0);
  p.padding = part(1);
  p.dilation = part(2);
  p.output_padding = part(3);
  p.groups = config[4 * n + 1];
  p.transposed = (config[4 * n + 2] & 1) != 0;
  return {};
}
Result<Packed> unpacked(Call& c, ObjectValue& object) {
  Packed p;
  if (object.state) {
    ORKNN_TRY(unpickle(c, object, p));
  } else {
    const auto at = [&](const char* attribute) {
      const auto it = object.attributes.find(attribute);
      return it == object.attributes.end() ? Value() : it->second;
    };
    if (!at("weight").is_tensor()) return bad_state(object);
    p.weight = &at("weight").tensor();
    p.bias = at("bias");
    p.stride = ints_of(at("stride"));
    p.padding = ints_of(at("padding"));
    p.dilation = ints_of(at("dilation"));
    p.output_padding = ints_of(at("output_padding"));
    p.groups = at("groups").is_number() ? at("groups").integer() : 1;
    p.transposed = at("transposed").is_number() && at("transposed").boolean();
  }
  ORKNN_TRY(c.session().refresh(c, *p.weight));
  if (p.bias.is_tensor()) ORKNN_TRY(c.session().refresh(c, p.bias.tensor()));
  return p;
}
Result<Packed> unpacked(Call& c, std::string_view name) { return unpacked(c, c.value(name).object()); }
Result<Value> unpack(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "self"));
  return c.tuple({Value(p.weight), p.bias});
}

Result<TensorId> convolved(Call& c, TensorId x, const Packed& p) {
  const Dims& w = p.weight->dims;
  if (w.size() < 3) return invalid_model("a convolution needs weights of three and more axes").found(ir::to_string(w));
  const size_t spatial = w.size() - 2;
  std::vector<int64_t> lists[] = {p.stride, p.padding, p.dilation, p.output_padding};
  for (auto& list : lists) {
    if (list.size() == 1) list.resize(spatial, list[0]);
    if (list.size() > spatial) list.erase(list.begin(), list.end() - static_cast<ptrdiff_t>(spatial));  // one-dimensional ones are kept as two-dimensional
    if (list.size() != spatial) return invalid_model("a convolution's geometry does not fit its weights");
  }
  std::vector<int64_t> pads = lists[1];
  pads.insert(pads.end(), lists[1].begin(), lists[1].end());
  ir::Attributes attributes{{"strides", lists[0]}, {"pads", pads}, {"dilations", lists[2]}, {"group", p.groups}};
  std::vector<TensorId> inputs{x, p.weight->id};
  if (p.bias.is_tensor()) inputs.push_back(p.bias.tensor().id);
  if (!p.transposed) return c.emit("Conv", std::move(inputs), std::move(attributes));
  attributes.set("output_padding", lists[3]);
  return c.emit("ConvTranspose", std::move(inputs), std::move(attributes));
}
TensorId multiplied(Call& c, TensorId x, const Packed& p) {
  const TensorId y = c.matmul(x, c.transpose(p.weight->id, {1, 0}));
  return p.bias.is_tensor() ? c.add(y, p.bias.tensor().id) : y;
}

template <bool Relu>
Result<Value> conv(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  // One-dimensional weights may be stored with an axis of height one.
  TensorId x = c.tensor("self");
  const bool lacks_height = c.rank("self") + 1 == static_cast<int64_t>(p.weight->dims.size());
  if (lacks_height) x = c.unsqueeze(x, {2});
  ORKNN_TRY_ASSIGN(TensorId y, convolved(c, x, p));
  if (lacks_height) y = c.squeeze(y, {2});
  return finish(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
Result<Value> conv_dynamic(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  ORKNN_TRY_ASSIGN(const TensorId y, convolved(c, dynamically_quantized(c, c.tensor("self"), c.flag("reduce_range") ? 127 : 255), p));
  return c.made(y);
}
template <bool Relu>
Result<Value> linear(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  if (p.weight->dims.size() != 2) return invalid_model("a linear layer needs a matrix");
  const TensorId y = multiplied(c, c.tensor("self"), p);
  return finish(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
template <bool Relu>
Result<Value> linear_dynamic(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  if (p.weight->dims.size() != 2) return invalid_model("a linear layer needs a matrix");
  const bool is_half = !p.weight->quantization;
  const TensorId x = is_half ? c.tensor("self") : dynamically_quantized(c, c.tensor("self"), c.flag("reduce_range") ? 127 : 255);
  const TensorId y = multiplied(c, x, p);
  return c.made(Relu ? c.emit("Relu", {y}) : y);
}
Result<Value> linear_half(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  return c.made(multiplied(c, c.tensor("self"), p));
}
Result<Value> half_prepack(Call& c) {
  ORKNN_TRY_ASSIGN(const Value rounded, c.made(c.cast(c.cast(c.tensor("weight"), DType::Float16), DType::Float32)));
  return pack(c, "__torch__.torch.classes.quantized.LinearPackedParamsBase", {&rounded.tensor(), c.value("bias"), {}, {}, {}, {}, 1, false});
}

// --- recurrent layers: input and state are quantized by their own range before each product, so the steps are spelled out
constexpr int64_t kMaxSteps = 4096;

struct RecurrentCell {
  Packed input, state;
  double levels = 255;

  static TensorId product(Call& c, TensorId x, const Packed& p, double levels) { return multiplied(c, p.weight->quantization ? dynamically_quantized(c, x, levels) : x, p); }
};
// ("quantized_dynamic" or "quantized_fp16", tensors, numbers, [whether ranges are reduced], [packed input weights, packed state weights])
Result<RecurrentCell> recurrent_cell(Call& c, const Value& v, int64_t gates) {
  if (v.kind() != Kind::Object || !v.object().state || !v.object().state->is_sequence()) return invalid_model("a recurrent layer has no packed weights").found(describe(v));
  const auto& parts = v.object().state->sequence().items;
  const auto is_pair = [](const Value& list) { return list.is_sequence() && list.sequence().items.size() == 2 && list.sequence().items[0].kind() == Kind::Object && list.sequence().items[1].kind() == Kind::Object; };
  if (parts.size() < 5 || !is_pair(parts[4])) return bad_state(v.object());
  RecurrentCell cell;
  ORKNN_TRY_ASSIGN(cell.input, unpacked(c, parts[4].sequence().items[0].object()));
  ORKNN_TRY_ASSIGN(cell.state, unpacked(c, parts[4].sequence().items[1].object()));
  if (const auto reduced = ints_of(parts[3]); !reduced.empty() && reduced[0] != 0) cell.levels = 127;
  const Dims &w = cell.input.weight->dims, &r = cell.state.weight->dims;
  if (w.size() != 2 || r.size() != 2 || w[0] != r[0] || r[1] < 1 || r[0] != gates * r[1]) return invalid_model("the weights of a recurrent layer do not fit each other").found(ir::to_string(w) + " and " + ir::to_string(r));
  return cell;
}
// One direction of one layer over [time, batch, features]; the steps' results, and the last states in `states`.
Result<TensorId> run_steps(Call& c, const RecurrentCell& cell, TensorId x, bool is_reversed, std::vector<TensorId>& states) {
  ORKNN_TRY_ASSIGN(const Dims dims, c.need_dims(x, "to write out the steps"));
  const int64_t hidden = cell.state.weight->dims[1], steps = dims[0];
  if (steps > kMaxSteps) return c.fail("the sequence is too long for a recurrent layer that quantizes as it runs").expected("at most " + std::to_string(kMaxSteps) + " steps");
  const TensorId from_input = RecurrentCell::product(c, x, cell.input, cell.levels);
  std::vector<TensorId> results(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = is_reversed ? steps - 1 - k : k;
    const TensorId given = c.squeeze(c.slice(from_input, 0, t, t + 1), {0}), h = states[0];
    const TensorId from_state = RecurrentCell::product(c, h, cell.state, cell.levels);
    const auto part = [&](TensorId all, int64_t gate) { return c.slice(all, -1, gate * hidden, (gate + 1) * hidden); };
    if (states.size() == 2) {
      const TensorId all = c.add(given, from_state);
      const auto gate = [&](const char* op, int64_t number) { return c.emit(op, {part(all, number)}); };
      states[1] = c.add(c.mul(gate("Sigmoid", 1), states[1]), c.mul(gate("Sigmoid", 0), gate("Tanh", 2)));
      states[0] = c.mul(gate("Sigmoid", 3), c.emit("Tanh", {states[1]}));
    } else {
      const auto both = [&](int64_t number) { return c.emit("Sigmoid", {c.add(part(given, number), part(from_state, number))}); };
      const TensorId reset = both(0), update = both(1), fresh = c.emit("Tanh", {c.add(part(given, 2), c.mul(reset, part(from_state, 2)))});
      states[0] = c.add(fresh, c.mul(update, c.sub(h, fresh)));
    }
    results[static_cast<size_t>(t)] = c.unsqueeze(states[0], {0});
  }
  return c.concat(std::move(results), 0);
}
template <int64_t Gates>
Result<Value> recurrent_dynamic(Call& c) {
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  const auto& params = c.items("params");
  const std::vector<Value> given = Gates == 4 ? c.items("hx") : std::vector<Value>{c.value("hx")};
  if (given.size() != (Gates == 4 ? 2u : 1u) || layers < 1 || layers > 1000 || params.size() != static_cast<size_t>(layers * directions)) return invalid_model("a recurrent layer has an unexpected number of weights or states");
  for (const Value& s : given)
    if (!s.is_tensor() || s.tensor().dims.size() != 3 || s.tensor().dims[0] != layers * directions) return invalid_model("a state of a recurrent layer has the wrong shape").found(describe(s));
  if (c.rank("input") != 3) return invalid_model("a recurrent layer needs [time, batch, features]").found(ir::to_string(c.dims("input")));
  TensorId x = c.tensor("input");
  if (c.flag("batch_first")) x = c.transpose(x, {1, 0, 2});
  std::vector<TensorId> last[2];
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<TensorId> sides;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = l * directions + d;
      ORKNN_TRY_ASSIGN(const RecurrentCell cell, recurrent_cell(c, params[static_cast<size_t>(at)], Gates));
      std::vector<TensorId> states;
      for (const Value& s : given) states.push_back(c.squeeze(c.slice(s.tensor().id, 0, at, at + 1), {0}));
      ORKNN_TRY_ASSIGN(const TensorId y, run_steps(c, cell, x, d == 1, states));
      sides.push_back(y);
      for (size_t i = 0; i < states.size(); ++i) last[i].push_back(c.unsqueeze(states[i], {0}));
    }
    x = c.concat(std::move(sides), 2);
  }
  if (c.flag("batch_first")) x = c.transpose(x, {1, 0, 2});
  ORKNN_TRY_ASSIGN(const Value sequence, c.made(x));
  std::vector<Value> results{sequence};
  for (size_t i = 0; i < given.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Value state, c.made(c.concat(std::move(last[i]), 0)));
    results.push_back(state);
  }
  return c.tuple(std::move(results));
}

// --- layers of their own
template <OpName Op, bool Relu>
Result<Value> combine(Call& c) {
  const TensorId y = c.emit(Op.string(), {c.tensor("self"), c.tensor("other")});
  return finish(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
// A number on a quantized tensor moves its zero point or its scale instead of its integers.
template <bool Relu>
Result<Value> add_scalar(Call& c) {
  const auto& own = c.handle("self").quantization;
  if (!own || own->axis >= 0) return invalid_model("the tensor is not quantized as a whole");
  const double s = own->scales[0], least = static_cast<double>(dtype_min(own->dtype)), most = static_cast<double>(dtype_max(own->dtype));
  const double steps = std::nearbyint(c.number("other") / s), moved = static_cast<double>(own->zero_points[0]) - steps;
  Quantization q = *own;
  if (moved < least) {
    q.scales = {(most - moved) / (most - least) * s};
    q.zero_points = {static_cast<int64_t>(least)};
  } else if (moved > most) {
    q.scales = {(moved - least) / (most - least) * s};
    q.zero_points = {static_cast<int64_t>(most)};
  } else {
    q.zero_points = {static_cast<int64_t>(moved)};
  }
  const TensorId y = c.add(c.tensor("self"), c.scalar(steps * s, DType::Float32));
  return made_quantized(c, Relu ? c.emit("Relu", {y}) : y, std::move(q));
}
template <bool Relu>
Result<Value> mul_scalar(Call& c) {
  const auto& own = c.handle("self").quantization;
  if (!own || own->axis >= 0) return invalid_model("the tensor is not quantized as a whole");
  const double factor = c.number("other");
  Quantization q = *own;
  if (factor == 0) {
    q.scales = {1};
    q.zero_points = {0};
  } else {
    q.scales = {std::fabs(factor) * own->scales[0]};
    if (factor < 0) q.zero_points = {static_cast<int64_t>(dtype_max(own->dtype)) + dtype_min(own->dtype) - own->zero_points[0]};
  }
  const TensorId y = c.mul(c.tensor("self"), c.scalar(factor, DType::Float32));
  return made_quantized(c, Relu ? c.emit("Relu", {y}) : y, std::move(q));
}
template <bool Relu>
Result<Value> cat(Call& c) {
  std::vector<TensorId> parts;
  const auto& items = c.items("tensors");
  if (items.empty() || !items[0].is_tensor()) return invalid_model("a list of tensors is empty");
  for (const Value& v : items) {
    if (!v.is_tensor()) return invalid_model("a list of tensors holds None");
    parts.push_back(v.tensor().id);
  }
  Quantization q = items[0].tensor().quantization.value_or(Quantization{});
  if (c.has("scale")) q.scales = {c.number("scale")};
  if (c.has("zero_point")) q.zero_points = {c.integer("zero_point")};
  if (q.scales.size() != 1 || q.zero_points.size() != 1) return invalid_model("a concatenation has no scale");
  q.axis = -1;
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", static_cast<int64_t>(items[0].tensor().dims.size())));
  // Each part is brought to the scale of the result before they are joined.
  ORKNN_TRY(check_quantization(q));
  for (TensorId& part : parts) part = quantize_dequantize(c, Relu ? c.emit("Relu", {part}) : part, q);
  ORKNN_TRY_ASSIGN(const Value v, c.made(c.concat(std::move(parts), static_cast<int64_t>(axis))));
  v.tensor().quantization = std::move(q);
  return v;
}
template <OpName Op>
Result<Value> activation(Call& c) { return finish(c, c.emit(Op.string(), {c.tensor("self")}), "self"); }
Result<Value> leaky_relu(Call& c) { return finish(c, c.emit("LeakyRelu", {c.tensor("self")}, {{"alpha", c.number("negative_slope")}}), "self"); }
Result<Value> elu(Call& c) { return finish(c, c.emit("Elu", {c.tensor("self")}, {{"alpha", c.number("alpha")}}), "self"); }
Result<Value> celu(Call& c) { return finish(c, c.emit("Celu", {c.tensor("self")}, {{"alpha", c.number("alpha")}}), "self"); }
Result<Value> prelu(Call& c) {
  TensorId slope = c.tensor("weight");
  const int64_t count = ir::element_count(c.dims("weight")), rank = c.rank("self");
  if (count > 1 && rank >= 2) {
    std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
    shape[0] = count;
    slope = c.reshape(slope, shape);
  } else {
    slope = c.reshape(slope, {});
  }
  return finish(c, c.emit("PRelu", {c.tensor("self"), slope}), "self");
}
Result<Value> softmax(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return finish(c, c.softmax(c.tensor("self"), static_cast<int64_t>(axis)), "self");
}
Result<Value> relu6(Call& c) {
  const auto q = c.handle("self").quantization;
  if (!q) return invalid_model("the tensor is not quantized");
  return made_quantized(c, c.clip(c.tensor("self"), 0, 6), *q);
}
template <bool Relu>
Result<Value> batch_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) { return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32); };
  const TensorId y = c.emit("BatchNormalization", {c.tensor("self"), parameter("weight", 1), parameter("bias", 0), c.tensor("mean"), c.tensor("var")}, {{"epsilon", c.number("eps")}});
  return finish(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
Result<Value> layer_norm(Call& c) {
  const Dims shape = c.ints("normalized_shape");
  std::vector<TensorId> inputs{c.tensor("self"), c.has("weight") ? c.tensor("weight") : c.full(shape, 1, DType::Float32)};
  if (c.has("bias")) inputs.push_back(c.tensor("bias"));
  return finish(c, c.emit("LayerNormalization", std::move(inputs), {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", c.number("eps")}}), "self");
}
Result<Value> group_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) { return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32); };
  return finish(c, c.emit("GroupNormalization", {c.tensor("self"), parameter("weight", 1), parameter("bias", 0)}, {{"epsilon", c.number("eps")}, {"num_groups", c.integer("num_groups")}}), "self");
}
Result<Value> instance_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) { return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32); };
  return finish(c, c.emit("InstanceNormalization", {c.tensor("self"), parameter("weight", 1), parameter("bias", 0)}, {{"epsilon", c.number("eps")}}), "self");
}
Result<Value> embedding_bytes(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("indices")));
  ObjectValue& object = c.value("weight").object();
  const Value state = object.state.value_or(Value());
  // (version, [weight], doubles, longs)
  if (!state.is_sequence() || state.sequence().items.size() < 2 || !state.sequence().items[1].is_sequence() || state.sequence().items[1].sequence().items.empty() || !state.sequence().items[1].sequence().items[0].is_tensor())
    return bad_state(object);
  TensorValue& weight = state.sequence().items[1].sequence().items[0].tensor();
  ORKNN_TRY(c.session().refresh(c, weight));
  return c.made(c.gather(weight.id, index, 0));
}

#define ORKNN_OUT "Scalar scale, int zero_point)"
constexpr Row kRows[] = {
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
    {"quantized_decomposed::quantize_per_tensor(Tensor input, operand scale, operand zero_point, Scalar quant_min, Scalar quant_max, int dtype)", decomposed_quantize},
    {"quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, int dtype)", decomposed_quantize},
    {"quantized_decomposed::dequantize_per_tensor(Tensor input, operand scale, operand zero_point, Scalar quant_min, Scalar quant_max, int dtype, *, int? out_dtype=None)", decomposed_dequantize},
    {"quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, int dtype, *, int? out_dtype=None)", decomposed_dequantize},
    {"quantized_decomposed::choose_qparams(Tensor input, int quant_min, int quant_max, float eps, int dtype)", choose_parameters},
    {"fake_quantize_per_tensor_affine(Tensor self, operand scale, operand zero_point, int quant_min, int quant_max)", fake_quantize},
    {"fake_quantize_per_tensor_affine_cachemask(Tensor self, operand scale, operand zero_point, int quant_min, int quant_max)", [](Call& c) { return with_mask(c, fake_quantize); }},
    {"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)", fake_quantize_channels},
    {"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)", [](Call& c) { return with_mask(c, fake_quantize_channels); }},
    {"fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False)", observed_fake_quantize},
    {"quantized::conv1d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)", conv_prepack},
    {"quantized::conv2d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)", conv_prepack},
    {"quantized::conv3d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)", conv_prepack},
    {"quantized::conv_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)", conv_prepack},
    {"quantized::conv_transpose1d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, int groups)", conv_transpose_prepack},
    {"quantized::conv_transpose2d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, int groups)", conv_transpose_prepack},
    {"quantized::conv_transpose3d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, int groups)", conv_transpose_prepack},
    {"quantized::linear_prepack(Tensor weight, Tensor? bias=None)", linear_prepack},
    {"quantized::linear_prepack_fp16(Tensor weight, Tensor? bias=None)", half_prepack},
    {"quantized::linear_unpack(object self)", unpack},
    {"quantized::linear_unpack_fp16(object self)", unpack},
    {"quantized::conv1d_unpack(object self)", unpack},
    {"quantized::conv2d_unpack(object self)", unpack},
    {"quantized::conv3d_unpack(object self)", unpack},
    {"quantized::conv_unpack(object self)", unpack},
    {"ConvPackedParamsBase.unpack(object self)", unpack},
    {"Conv2dPackedParamsBase.unpack(object self)", unpack},
    {"Conv3dPackedParamsBase.unpack(object self)", unpack},
    {"LinearPackedParamsBase.unpack(object self)", unpack},
    {"quantized::conv1d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv2d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv3d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv1d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
    {"quantized::conv2d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
    {"quantized::conv3d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
    // The oldest form repeats the geometry; the packed one counts.
    {"quantized::conv2d(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT, conv<false>},
    {"quantized::conv2d_relu(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT, conv<true>},
    {"quantized::conv_transpose1d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv_transpose2d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv_transpose3d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
    {"quantized::conv1d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
    {"quantized::conv2d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
    {"quantized::conv3d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
    {"quantized::linear(Tensor self, object packed, " ORKNN_OUT, linear<false>},
    {"quantized::linear_relu(Tensor self, object packed, " ORKNN_OUT, linear<true>},
    {"quantized::linear_dynamic(Tensor self, object packed, bool reduce_range=False)", linear_dynamic<false>},
    {"quantized::linear_relu_dynamic(Tensor self, object packed, bool reduce_range=False)", linear_dynamic<true>},
    {"quantized::linear_dynamic_fp16(Tensor self, object packed)", linear_half},
    {"quantized_lstm(Tensor input, Tensor[] hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first, *, int? dtype=None, bool use_dynamic=False)", recurrent_dynamic<4>},
    {"quantized_gru(Tensor input, Tensor hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)", recurrent_dynamic<3>},
    {"quantized::add(Tensor self, Tensor other, " ORKNN_OUT, combine<"Add", false>},
    {"quantized::add_relu(Tensor self, Tensor other, " ORKNN_OUT, combine<"Add", true>},
    {"quantized::mul(Tensor self, Tensor other, " ORKNN_OUT, combine<"Mul", false>},
    {"quantized::mul_relu(Tensor self, Tensor other, " ORKNN_OUT, combine<"Mul", true>},
    {"quantized::matmul(Tensor self, Tensor other, " ORKNN_OUT, combine<"MatMul", false>},
    {"quantized::add_scalar(Tensor self, Scalar other)", add_scalar<false>},
    {"quantized::add_scalar_relu(Tensor self, Scalar other)", add_scalar<true>},
    {"quantized::add(Tensor self, Scalar other)", add_scalar<false>},
    {"quantized::mul_scalar(Tensor self, Scalar other)", mul_scalar<false>},
    {"quantized::mul_scalar_relu(Tensor self, Scalar other)", mul_scalar<true>},
    {"quantized::mul(Tensor self, Scalar other)", mul_scalar<false>},
    {"quantized::cat(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", cat<false>},
    {"quantized::cat_relu(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", cat<true>},
    {"quantized::hardswish(Tensor self, " ORKNN_OUT, activation<"HardSwish">},
    {"quantized::sigmoid(Tensor self, " ORKNN_OUT, activation<"Sigmoid">},
    {"quantized::leaky_relu(Tensor self, Scalar negative_slope, any inplace, " ORKNN_OUT, leaky_relu},
    {"quantized::elu(Tensor self, " "Scalar scale, int zero_point, Scalar alpha=1, Scalar a=1, Scalar b=1)", elu},
    {"quantized::celu(Tensor self, " "Scalar scale, int zero_point, Scalar alpha=1)", celu},
    {"quantized::prelu(Tensor self, Tensor weight, " ORKNN_OUT, prelu},
    {"quantized::softmax(Tensor self, int dim, " ORKNN_OUT, softmax},
    {"quantized::relu6(Tensor self, bool inplace=False)", relu6},
    {"quantized::batch_norm(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<false>},
    {"quantized::batch_norm1d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<false>},
    {"quantized::batch_norm2d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<false>},
    {"quantized::batch_norm3d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<false>},
    {"quantized::batch_norm2d_relu(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<true>},
    {"quantized::batch_norm3d_relu(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT, batch_norm<true>},
    {"quantized::layer_norm(Tensor self, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT, layer_norm},
    {"quantized::group_norm(Tensor self, int num_groups, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT, group_norm},
    {"quantized::instance_norm(Tensor self, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT, instance_norm},
    {"quantized::embedding_byte(object weight, Tensor indices, bool pruned_weights=False)", embedding_bytes},
    {"quantized::embedding_4bit(object weight, Tensor indices, bool pruned_weights=False)", embedding_bytes},
};
#undef ORKNN_OUT
}  // namespace

std::span<const Row> quantized_rows() { return kRows; }

}  // namespace orknn::importer::pytorch
