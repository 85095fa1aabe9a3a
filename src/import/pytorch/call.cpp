#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {
using namespace ir;

namespace {
int kind_of_type(DType t) { return t == DType::Bool ? 0 : is_float(t) ? 2 : 1; }

// PyTorch's promotion between two element types.
DType promote(DType a, DType b) {
  if (a == b || b == DType::Undefined) return a;
  if (a == DType::Undefined) return b;
  const int ka = kind_of_type(a), kb = kind_of_type(b);
  if (ka != kb) return ka > kb ? a : b;
  if (ka == 2) {
    if (a == DType::Float64 || b == DType::Float64) return DType::Float64;
    return DType::Float32;  // also for float16 with bfloat16
  }
  if (is_signed_int(a) == is_signed_int(b)) return dtype_bytes(a) > dtype_bytes(b) ? a : b;
  const DType with_sign = is_signed_int(a) ? a : b, without = is_signed_int(a) ? b : a;
  if (dtype_bytes(with_sign) > dtype_bytes(without)) return with_sign;
  switch (dtype_bytes(without)) {
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    default: return DType::Int64;
  }
}
}  // namespace

Status Call::prepare(Value& v, Type type) {
  if (v.is_tensor()) return session_.refresh(*this, v.tensor());
  if ((type == Type::Tensor || type == Type::Either) && v.is_number()) {
    ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(as(v, type_of_number(v))));
    v = t;
    return {};
  }
  // Operators on containers never look into the tensors they hold.
  if (v.is_sequence() && type != Type::List)
    for (Value& item : v.sequence().items)
      if (item.is_tensor()) ORKNN_TRY(session_.refresh(*this, item.tensor()));
  return {};
}

Status Call::prepare() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Type type = schema_.parameters[i].type;
    ORKNN_TRY(prepare(arguments_[i], type));
    if (type == Type::Tensor || type == Type::Complex || type == Type::Either || type == Type::Operand) operands_.push_back(i);
  }
  return {};
}

Result<TensorId> Call::operand(size_t i) {
  ORKNN_ASSERT(i < operands_.size(), "a lowering takes the tensors of its signature");
  const Value& v = arguments_[operands_[i]];
  return v.is_none() ? TensorId{} : v.is_tensor() ? v.tensor().id : as(v, type_of_number(v));
}

Result<std::vector<TensorId>> Call::promoted(bool to_float) {
  std::vector<Value> values;
  for (size_t i : operands_)
    if (!arguments_[i].is_none()) values.push_back(arguments_[i]);
  ORKNN_TRY_ASSIGN(DType t, common_type(values));
  if (to_float && !is_float(t)) t = DType::Float32;
  std::vector<TensorId> ids;
  for (const Value& v : values) ids.push_back(as(v, t));
  return ids;
}

const Value& Call::value(std::string_view name) const {
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (schema_.parameters[i].name == name) return arguments_[i];
  ORKNN_ASSERT(false, "a lowering asks for parameters of its signature");
  return arguments_[0];
}

Value Call::first_tensor() const {
  for (const Value& v : arguments_) {
    if (v.is_tensor()) return v;
    if (v.is_sequence() && !v.sequence().items.empty() && v.sequence().items[0].is_tensor()) return v.sequence().items[0];
  }
  return {};
}

Result<std::vector<TensorId>> Call::tensors(std::string_view name) const {
  std::vector<TensorId> ids;
  for (const Value& v : items(name)) {
    if (!v.is_tensor()) return invalid_model("a list of tensors holds a " + describe(v));
    ids.push_back(v.tensor().id);
  }
  return ids;
}

std::vector<int64_t> Call::ints(std::string_view name) const { return ints_of(value(name)); }

std::vector<double> Call::numbers(std::string_view name) const {
  const Value& v = value(name);
  if (v.is_number()) return {v.number()};
  std::vector<double> result;
  if (v.is_sequence())
    for (const Value& item : v.sequence().items) result.push_back(item.number());
  return result;
}

Result<std::vector<int64_t>> Call::ints(std::string_view name, size_t count) const {
  std::vector<int64_t> list = ints(name);
  if (list.size() == 1) list.resize(count, list[0]);
  if (list.size() != count)
    return invalid_model("argument '" + std::string(name) + "' has the wrong length")
        .expected(std::to_string(count) + " entries")
        .found(std::to_string(list.size()));
  return list;
}

Result<int64_t> Call::real_axis(std::string_view problem, std::string_view name) const {
  ORKNN_TRY_ASSIGN(const int64_t found, axis(name));
  if (rank() == 0) return invalid_model("a tensor without axes " + std::string(problem));
  return found;
}

Result<std::vector<int64_t>> Call::ordered_axes(std::string_view name, std::string_view of) const {
  std::vector<int64_t> result;
  for (int64_t a : ints(name)) {
    ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(a, rank(of)));
    if (std::find(result.begin(), result.end(), axis) != result.end())
      return invalid_model("an axis is named twice").found(to_string(ints(name)));
    result.push_back(axis);
  }
  if (rank(of) == 0) result.clear();
  return result;
}

Result<std::vector<int64_t>> Call::axes(std::string_view name, std::string_view of) const {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> given, ordered_axes(name, of));
  return axes_of(given, rank(of));
}

Result<DType> Call::dtype_argument(DType fallback, std::string_view name) const {
  if (!has(name)) return fallback;
  const ScalarType* type = scalar_type(integer(name));
  if (!type || type->dtype == DType::Undefined || type->is_quantized)
    return unsupported("tensors of type " + (type ? std::string(type->name) : "number " + std::to_string(integer(name))) +
                       " are not supported");
  return type->dtype;
}

Result<DType> Call::common_type(std::initializer_list<std::string_view> names) const {
  std::vector<Value> values;
  for (std::string_view name : names) values.push_back(value(name));
  return common_type(values);
}

Result<DType> Call::common_type(std::span<const Value> operands) const {
  DType with_axes = DType::Undefined, without_axes = DType::Undefined, numbers = DType::Undefined;
  for (const Value& v : operands) {
    if (v.is_tensor()) {
      DType& rank_class = v.tensor().dims.empty() ? without_axes : with_axes;
      rank_class = promote(rank_class, dtype_of(v.tensor().id));
    } else if (v.is_number()) {
      numbers = promote(numbers, type_of_number(v));
    } else if (!v.is_none()) {
      return unsupported("a " + describe(v) + " is not an operand");
    }
  }
  DType result = with_axes;
  for (const DType lesser : {without_axes, numbers})
    if (result == DType::Undefined || (lesser != DType::Undefined && kind_of_type(lesser) > kind_of_type(result)))
      result = promote(result, lesser);
  return result == DType::Undefined ? DType::Float32 : result;
}

TensorId Call::int_scalar(int64_t value, DType dtype) {
  return add_constant("scalar", convert(TensorData::scalar<int64_t>(value).view(), dtype));
}

TensorId Call::as(const Value& v, DType dtype) {
  if (v.is_tensor()) return cast(v.tensor().id, dtype);
  return v.kind() == Kind::Float ? scalar(v.number(), dtype) : int_scalar(v.integer(), dtype);
}

Result<TensorId> Call::as_index(TensorValue& t) {
  if (is_float(dtype_of(t.id))) {
    if (t.input < 0) return invalid_model("an index must hold integers").found(std::string(dtype_name(dtype_of(t.id))));
    session_.retype = {t.input, DType::Int64};
    return unsupported("the input holds integers");
  }
  return cast(t.id, DType::Int64);
}

Result<TensorId> Call::as_bool(std::string_view name) {
  const TensorValue& t = handle(name);
  if (is_float(dtype_of(t.id)) && t.input >= 0 && !session_.has_input_facts) {
    session_.retype = {t.input, DType::Bool};
    return unsupported("the input holds truth values");
  }
  return cast(t.id, DType::Bool);
}

Result<Value> Call::made(const Output& output) {
  if (!output.content_) return output.content_.status();
  if (const Value* value = std::get_if<Value>(&*output.content_)) return *value;
  return std::visit([&](const auto& content) { return made(content); }, *output.content_);
}

Result<Value> Call::made(TensorId id) {
  ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(id));
  return Value(t);
}

Result<Value> Call::made(const std::vector<TensorId>& ids) {
  std::vector<Value> values;
  for (TensorId id : ids) {
    values.emplace_back();
    if (!id) continue;
    ORKNN_TRY_ASSIGN(values.back(), made(id));
  }
  return made(std::move(values));
}

Result<Value> Call::made(const Dims& numbers) { return list({numbers.begin(), numbers.end()}); }

Result<Value> Call::made(ComplexId x) {
  ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(x.id));
  if (t->dims.empty() || t->dims.back() != 2) return invalid_model("complex numbers have two parts").found(to_string(t->dims));
  t->is_complex = true;
  t->dims.pop_back();
  t->strides = strides_of(t->dims);
  return Value(t);
}

void Call::warn_of_training(std::string_view what) {
  session_.warn("module '" + layer() + "': " + std::string(what) +
                " is in training mode; it is computed as in inference (call model.eval() before tracing or scripting)");
}

Result<Value> Call::view(TensorValue& parent, Dims strides, TensorValue::Apply apply, TensorValue::Write write) {
  ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(apply(*this, parent.id)));
  ORKNN_ASSERT(strides.size() == t->dims.size(), "a view has one stride per axis");
  t->strides = std::move(strides);
  t->parent = &parent;
  t->parent_version = parent.version;
  t->apply = std::move(apply);
  t->write = std::move(write);
  t->input = parent.input;
  if (parent.quantization && parent.quantization->axis < 0) t->quantization = parent.quantization;
  return Value(t);
}

Status Call::write(TensorValue& t, TensorId value) {
  ORKNN_TRY(session_.refresh(*this, t));
  value = cast(value, dtype_of(t.id));
  const auto value_dims = dims_of(value);
  if (!value_dims) return unsupported("the shape of a written value is not known");
  if (*value_dims != t.dims) {
    const auto wide = broadcast(*value_dims, t.dims);
    if (!wide || *wide != t.dims)
      return shape_mismatch("the value does not fit the tensor it is written to")
          .expected(to_string(t.dims))
          .found(to_string(*value_dims));
    value = expand(value, t.dims);
  }
  return session_.assign(*this, t, value);
}

Result<Value> Call::copy_of(std::string_view name) {
  const TensorValue& t = handle(name);
  ORKNN_TRY_ASSIGN(const Value copy, made(t.id));
  copy.tensor().quantization = t.quantization;
  copy.tensor().input = t.input;
  return copy;
}

}  // namespace orknn::importer::pytorch
