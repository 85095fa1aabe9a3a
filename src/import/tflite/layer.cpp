#include "import/tflite/layer.h"

#include <algorithm>
#include <cmath>

#include "import/tflite/graph_builder.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
bool is_half(ElementType t) { return t == ElementType::Float16 || t == ElementType::BFloat16; }

// Types that QuantizeLinear makes and DequantizeLinear takes.
bool is_narrow(DType t) { return is_integer(t) && (dtype_bytes(t) <= 2); }
}  // namespace

Layer::Layer(GraphBuilder& builder, Scope& scope, const Operator& op, std::string name)
    : Emitter(builder.network().graph, builder.network().ops, name, {name}), builder_(builder), scope_(scope), op_(op) {}

Value Value::of_stored(TensorId id) {
  Value v;
  v.stored = id;
  return v;
}

bool Layer::is_complex_input(size_t i) const {
  return has_input(i) && (input_info(i).type == ElementType::Complex64 || input_info(i).type == ElementType::Complex128);
}

Result<std::vector<int64_t>> Layer::stated_shape() const {
  if (!has_output(0)) return invalid_model("the operator has no output");
  return output_info(0).shape.to_ints();
}

Result<Value*> Layer::value(size_t i) {
  if (!has_input(i)) return missing_input(i, operand_count());
  return builder_.value(scope_, input_index(i));
}

Result<TensorId> Layer::stored(size_t i) {
  ORKNN_TRY_ASSIGN(const Value* v, value(i));
  if (!v->stored)
    return invalid_model("input " + std::to_string(i) + " ('" + std::string(input_info(i).name) + "') is a handle, not a tensor");
  return v->stored;
}

Result<TensorId> Layer::real(size_t i) {
  ORKNN_TRY(stored(i).status());
  ORKNN_TRY_ASSIGN(Value * v, value(i));
  if (v->real) return v->real;
  const TensorInfo& info = input_info(i);
  if (is_half(info.type)) {
    v->real = graph_.is_constant(v->stored) ? emit_kept("Cast", {v->stored}, {{"to", static_cast<int64_t>(DType::Float32)}})
                                            : cast(v->stored, DType::Float32);
  } else if (info.is_quantized()) {
    ORKNN_TRY_ASSIGN(v->real, dequantize(v->stored, input_index(i), {}, graph_.is_constant(v->stored)));
  } else {
    v->real = v->stored;
  }
  return v->real;
}

Result<TensorId> Layer::weights(size_t i, const std::vector<int64_t>& permutation) {
  ORKNN_TRY_ASSIGN(const TensorId kept, stored(i));
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(kept, "to lay out the weights"));
  if (rank != static_cast<int64_t>(permutation.size()))
    return invalid_model("the weights '" + std::string(input_info(i).name) + "' have the wrong number of dimensions")
        .expected(std::to_string(permutation.size()))
        .found(std::to_string(rank));
  if (!graph_.is_constant(kept)) {
    ORKNN_TRY_ASSIGN(const TensorId x, real(i));
    return transpose(x, permutation);
  }
  const TensorId moved = transpose(kept, permutation);
  if (is_half(input_info(i).type)) return emit_kept("Cast", {moved}, {{"to", static_cast<int64_t>(DType::Float32)}});
  if (input_info(i).is_quantized()) return dequantize(moved, input_index(i), permutation, true);
  return moved;
}

Result<TensorId> Layer::bias(size_t i, size_t data, size_t weights) {
  if (!has_input(i)) return TensorId{};
  const TensorInfo& info = input_info(i);
  ORKNN_TRY_ASSIGN(const TensorId kept, stored(i));
  const TensorData* values = constant_of(kept);
  if (!values || !is_integer(values->dtype()) || (info.is_quantized() && is_narrow(values->dtype()))) return real(i);

  const int64_t count = values->count();
  std::vector<float> scales(static_cast<size_t>(count));
  const auto scale_at = [count](const Quantization& q, int64_t c) -> double {
    return q.scale.size() == 1                             ? q.scale[0]
           : static_cast<int64_t>(q.scale.size()) == count ? q.scale[static_cast<size_t>(c)]
                                                           : std::nan("");
  };
  const bool own = !info.quantization.scale.empty();
  if (!own && (!input_info(data).is_quantized() || !input_info(weights).is_quantized())) return real(i);
  for (int64_t c = 0; c < count; ++c) {
    const double scale = own ? scale_at(info.quantization, c)
                             : scale_at(input_info(data).quantization, 0) * scale_at(input_info(weights).quantization, c);
    if (!std::isfinite(scale) || scale < 0)
      return invalid_model("the bias '" + std::string(info.name) + "' has no valid scale")
          .expected("1 or " + std::to_string(count) + " scales");
    scales[static_cast<size_t>(c)] = static_cast<float>(scale);
  }
  const bool uniform = std::all_of(scales.begin(), scales.end(), [&](float s) { return s == scales[0]; });
  const std::vector<int64_t> numbers = to_ints(values->view());
  if (std::any_of(numbers.begin(), numbers.end(), [](int64_t v) { return v < INT32_MIN || v > INT32_MAX; })) {
    std::vector<float> reals(numbers.size());  // 64-bit sums of 16-bit activations: more than DequantizeLinear takes
    for (size_t c = 0; c < reals.size(); ++c)
      reals[c] = static_cast<float>(static_cast<double>(numbers[c]) * static_cast<double>(scales[c]));
    return add_constant("bias", TensorData::from<float>({count}, reals));
  }
  const TensorId narrow = values->dtype() == DType::Int32 ? kept : add_constant("bias", convert(values->view(), DType::Int32));
  const TensorId scale = add_constant(
      "bias_scale", uniform && count > 0 ? TensorData::scalar<float>(scales[0]) : TensorData::from<float>({count}, scales));
  return emit_kept("DequantizeLinear", {narrow, scale}, {{"axis", int64_t{0}}});
}

Result<std::vector<int64_t>> Layer::ints(size_t i, std::string_view reason) {
  ORKNN_TRY_ASSIGN(const TensorId x, stored(i));
  return need_ints(x, reason);
}

Result<int64_t> Layer::integer(size_t i, std::string_view reason) {
  ORKNN_TRY_ASSIGN(const TensorId x, stored(i));
  return need_integer(x, reason);
}

Result<double> Layer::number(size_t i, std::string_view reason) {
  ORKNN_TRY_ASSIGN(const TensorId x, stored(i));
  return need_number(x, reason);
}

Status Layer::set(size_t i, const Value& value) {
  if (!has_output(i)) return {};
  const auto tensor = static_cast<size_t>(op_.outputs[i]);
  if (!value.stored && !value.real) {
    if (!value.resource.empty()) scope_.values[tensor] = value;
    return {};
  }
  TensorId stored = value.stored;
  const TensorInfo& info = output_info(i);
  if (!stored && info.is_quantized()) {
    ORKNN_TRY_ASSIGN(stored, quantize(cast(value.real, DType::Float32), tensor));
  } else if (!stored) {
    const DType wanted = to_dtype(info.type);
    if (wanted == DType::Undefined)
      return unsupported("output '" + std::string(info.name) + "' has an element type that is not supported")
          .found(element_type_name(info.type));
    stored = cast(value.real, wanted);
  }
  builder_.bind(scope_, tensor, stored, layer());
  return {};
}

Status Layer::set_variable(size_t input, TensorId real) {
  if (!has_input(input) || !input_info(input).is_variable) return {};
  ORKNN_TRY_ASSIGN(const TensorId before, stored(input));
  TensorId next = cast(real, DType::Float32);
  if (input_info(input).is_quantized()) {
    ORKNN_TRY_ASSIGN(next, quantize(next, input_index(input)));
  } else {
    next = cast(next, dtype_of(before));
  }
  builder_.bind(scope_, input_index(input), next, layer());
  return {};
}

bool Layer::moves_stored(size_t input) const {
  if (!has_input(input) || !has_output(0)) return false;
  const TensorInfo& from = input_info(input);
  for (size_t i = 0; i < output_count(); ++i)
    if (has_output(i) && (from.type != output_info(i).type || from.is_quantized() != output_info(i).is_quantized())) return false;
  return from.quantization.scale.size() <= 1 && from.quantization.block_size == 0;
}

namespace {
bool share_parameters(const TensorInfo& a, const TensorInfo& b) {
  const auto zero = [](const Quantization& q) { return q.zero_point.empty() ? int64_t{0} : q.zero_point[0]; };
  const Quantization &p = a.quantization, &q = b.quantization;
  if (!a.is_quantized() || !b.is_quantized()) return true;
  return p.scale.size() == 1 && q.scale.size() == 1 && p.scale[0] == q.scale[0] && zero(p) == zero(q);
}
}  // namespace

Result<Layer::Outputs> Layer::move(size_t from, const Lowering<Layer>& lowering) {
  bool is_stored = from != kAllInputs ? moves_stored(from) : operand_count() > 0;
  for (size_t i = 0; from == kAllInputs && i < operand_count(); ++i)
    is_stored &= moves_stored(i) && share_parameters(input_info(i), output_info(0));
  if (!is_stored) return lowering(*this);
  moved_ = from;
  auto outputs = lowering(*this);
  moved_ = kNoInput;
  if (outputs)
    for (Value& v : *outputs) v = Value::of_stored(v.real);
  return outputs;
}

Result<TensorId> Layer::activate(TensorId x, Activation function) {
  switch (function) {
    case Activation::None: return x;
    case Activation::Relu: return emit("Relu", {x});
    case Activation::ReluN1To1: return clip(x, -1, 1);
    case Activation::Relu6: return clip(x, 0, 6);
    case Activation::Tanh: return emit("Tanh", {x});
    case Activation::SignBit: break;
  }
  return unsupported("the fused activation is not supported")
      .expected("NONE, RELU, RELU_N1_TO_1, RELU6 or TANH")
      .found(std::to_string(static_cast<int>(function)));
}

Result<Window> Layer::window(const WindowFields& fields) const {
  const auto numbers = [&](const std::vector<unsigned>& list, int32_t fallback) {
    std::vector<int64_t> values;
    for (unsigned field : list) values.push_back(options().number<int32_t>(field, fallback));
    return values;
  };
  const auto padding = options().number<int8_t>(0);
  if (padding != 0 && padding != 1)
    return invalid_model("the padding is unknown").expected("SAME or VALID").found(std::to_string(padding));
  Window w{.kernel = numbers(fields.kernel, 0),
           .strides = numbers(fields.strides, 0),
           .dilations = numbers(fields.dilations, 1),
           .padding = padding == 0 ? Window::Padding::Same : Window::Padding::Valid};
  ORKNN_TRY(w.check());
  return w;
}

Result<std::vector<int64_t>> Layer::custom_fields(size_t count) const {
  std::vector<int32_t> fields(count);
  if (op_.custom_options.size() < count * sizeof(int32_t))
    return invalid_model("the options of the custom operator are too short")
        .expected(std::to_string(count * sizeof(int32_t)) + " bytes")
        .found(std::to_string(op_.custom_options.size()));
  std::memcpy(fields.data(), op_.custom_options.data(), count * sizeof(int32_t));
  return std::vector<int64_t>(fields.begin(), fields.end());
}

Result<Layer::Parameters> Layer::parameters(size_t tensor, const std::vector<int64_t>& permutation) {
  const TensorInfo& info = scope_.subgraph.tensors[tensor];
  const Quantization& q = info.quantization;
  const std::string& name = builder_.name_of(scope_, tensor);
  const auto bad = [&](std::string_view what) {
    return invalid_model("tensor '" + std::string(info.name) + "' has " + std::string(what));
  };
  const auto moved_axis = [&](int64_t axis) {
    const auto it = std::find(permutation.begin(), permutation.end(), axis);
    return it == permutation.end() ? axis : it - permutation.begin();
  };
  const auto rank = static_cast<int64_t>(info.shape.size());
  const DType dtype = to_dtype(info.type);
  Parameters p;
  if (q.block_size > 0) {
    const auto part = [&](int32_t index) -> Result<TensorId> {
      if (index < 0 || static_cast<size_t>(index) >= scope_.subgraph.tensors.size()) return bad("blocks without scales");
      ORKNN_TRY_ASSIGN(const Value* v, builder_.value(scope_, static_cast<size_t>(index)));
      if (!graph_.is_constant(v->stored)) return bad("scales that are not constant");
      return permutation.empty() ? v->stored : transpose(v->stored, permutation);
    };
    ORKNN_TRY_ASSIGN(const TensorId scale, part(q.block_scales));
    p.scale = cast(scale, DType::Float32);
    if (q.block_zero_points >= 0) {
      ORKNN_TRY_ASSIGN(const TensorId zero, part(q.block_zero_points));
      p.zero_point = cast(zero, dtype);
    }
    p.attributes = {{"axis", static_cast<int64_t>(moved_axis(rank - 1))}, {"block_size", int64_t{q.block_size}}};
    return p;
  }
  const size_t count = q.scale.size();
  if (q.zero_point.size() > 1 && q.zero_point.size() != count)
    return bad("a different number of scales and zero points")
        .expected(std::to_string(count))
        .found(std::to_string(q.zero_point.size()));
  std::vector<float> scales(count);
  std::vector<int64_t> zeros(count, 0);
  for (size_t i = 0; i < count; ++i) {
    scales[i] = q.scale[i];
    if (!std::isfinite(scales[i]) || scales[i] < 0)
      return bad("an impossible scale").expected("a finite number above 0").found(std::to_string(scales[i]));
    if (!q.zero_point.empty()) zeros[i] = q.zero_point[q.zero_point.size() == 1 ? 0 : i];
    if (zeros[i] < dtype_min(dtype) || zeros[i] > static_cast<int64_t>(std::min<uint64_t>(dtype_max(dtype), INT64_MAX)))
      return bad("a zero point outside of its type").expected(std::string(dtype_name(dtype))).found(std::to_string(zeros[i]));
  }
  Dims dims;
  if (count > 1) {
    if (q.axis < 0 || q.axis >= rank || info.shape[static_cast<size_t>(q.axis)] != static_cast<int64_t>(count))
      return bad("scales that fit none of its axes")
          .expected("as many as axis " + std::to_string(q.axis) + " of " + to_string(info.shape.to_ints()))
          .found(std::to_string(count));
    dims = {static_cast<int64_t>(count)};
    p.attributes.set("axis", static_cast<int64_t>(moved_axis(q.axis)));
  }
  p.scale = graph_.add_constant(name + "/scale", TensorData::from<float>(dims, scales));
  p.zero_point = graph_.add_constant(name + "/zero_point", convert(TensorData::from<int64_t>(dims, zeros).view(), dtype));
  return p;
}

Result<TensorId> Layer::quantize(TensorId real, size_t tensor) {
  const TensorInfo& info = scope_.subgraph.tensors[tensor];
  const DType dtype = to_dtype(info.type);
  for (size_t i = 0; i < info.quantization.scale.size(); ++i)
    if (!(info.quantization.scale[i] > 0))
      return invalid_model("tensor '" + std::string(info.name) + "' has an impossible scale")
          .expected("above 0")
          .found(std::to_string(info.quantization.scale[i]));
  ORKNN_TRY_ASSIGN(const Parameters p, parameters(tensor, {}));
  if (is_narrow(dtype)) {
    std::vector<TensorId> inputs{real, p.scale};
    if (p.zero_point) inputs.push_back(p.zero_point);
    Attributes attributes = p.attributes;
    if (!p.zero_point) attributes.set("output_dtype", static_cast<int64_t>(dtype));
    return emit("QuantizeLinear", std::move(inputs), std::move(attributes));
  }
  if (info.quantization.scale.size() != 1)
    return unsupported("tensor '" + std::string(info.name) + "' is quantized per channel to " + element_type_name(info.type));
  const TensorId rounded = emit("Round", {emit("Div", {real, p.scale})});
  return cast(emit("Add", {rounded, cast(p.zero_point, DType::Float32)}), dtype);
}

Result<TensorId> Layer::dequantize(TensorId stored, size_t tensor, const std::vector<int64_t>& permutation, bool keep) {
  ORKNN_TRY_ASSIGN(const Parameters p, parameters(tensor, permutation));
  const DType dtype = dtype_of(stored);
  if (is_narrow(dtype) || dtype == DType::Int32) {
    std::vector<TensorId> inputs{stored, p.scale};
    if (p.zero_point) inputs.push_back(p.zero_point);
    return keep ? emit_kept("DequantizeLinear", std::move(inputs), p.attributes)
                : emit("DequantizeLinear", std::move(inputs), p.attributes);
  }
  if (scope_.subgraph.tensors[tensor].quantization.scale.size() != 1)
    return unsupported("tensor '" + std::string(scope_.subgraph.tensors[tensor].name) + "' is quantized per channel to " +
                       std::string(dtype_name(dtype)));
  return emit("Mul", {emit("Sub", {cast(stored, DType::Float32), cast(p.zero_point, DType::Float32)}), p.scale});
}

Result<TensorId> Layer::round_to(TensorId real, size_t tensor) {
  if (!scope_.subgraph.tensors[tensor].is_quantized()) return real;
  ORKNN_TRY_ASSIGN(const TensorId rounded, quantize(real, tensor));
  return dequantize(rounded, tensor, {}, false);
}

}  // namespace orknn::importer::tflite
