#include "import/pytorch/call.h"

#include <numeric>

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
  if (type == Type::Tensor && v.is_number()) {
    const DType dtype = v.kind() == Kind::Float ? DType::Float32 : v.kind() == Kind::Int ? DType::Int64 : DType::Bool;
    ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(as(v, dtype)));
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
  for (size_t i = 0; i < arguments_.size(); ++i) ORKNN_TRY(prepare(arguments_[i], schema_.parameters[i].type));
  return {};
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

std::vector<int64_t> Call::ints(std::string_view name) const {
  const Value& v = value(name);
  if (v.is_number()) return {v.integer()};
  std::vector<int64_t> result;
  if (v.is_sequence())
    for (const Value& item : v.sequence().items) result.push_back(item.integer());
  return result;
}

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

Result<size_t> Call::axis_of(int64_t axis, int64_t rank) const {
  ORKNN_TRY_ASSIGN(const int64_t a, normalize_axis(axis, std::max<int64_t>(rank, 1)));
  return static_cast<size_t>(a);
}
Result<size_t> Call::axis(std::string_view name, int64_t rank) const { return axis_of(integer(name), rank); }

Result<std::vector<int64_t>> Call::axes(std::string_view name, int64_t rank) const {
  std::vector<int64_t> result;
  for (int64_t a : ints(name)) {
    ORKNN_TRY_ASSIGN(const size_t normal, axis_of(a, rank));
    if (rank > 0) result.push_back(static_cast<int64_t>(normal));
  }
  if (result.empty()) {
    result.resize(static_cast<size_t>(rank));
    std::iota(result.begin(), result.end(), int64_t{0});
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return invalid_model("an axis is named twice").found(to_string(result));
  return result;
}

Result<DType> Call::dtype_argument(std::string_view name, DType fallback) const {
  if (!has(name)) return fallback;
  const ScalarType* type = scalar_type(integer(name));
  if (!type || type->dtype == DType::Undefined || type->is_quantized)
    return unsupported("tensors of type " + (type ? std::string(type->name) : "number " + std::to_string(integer(name))) +
                       " are not supported");
  return type->dtype;
}

Result<DType> Call::common_type(std::initializer_list<const Value*> operands) const {
  std::vector<Value> values;
  for (const Value* v : operands) values.push_back(*v);
  return common_type(std::span<const Value>(values));
}

Result<DType> Call::common_type(std::span<const Value> operands) const {
  DType with_axes = DType::Undefined, without_axes = DType::Undefined, numbers = DType::Undefined;
  for (const Value& v : operands) {
    if (v.is_tensor()) {
      DType& rank_class = v.tensor().dims.empty() ? without_axes : with_axes;
      rank_class = promote(rank_class, dtype_of(v.tensor().id));
    } else if (v.is_number()) {
      numbers = promote(numbers, v.kind() == Kind::Float ? DType::Float32 : v.kind() == Kind::Int ? DType::Int64 : DType::Bool);
    } else if (!v.is_none()) {
      return unsupported("a " + describe(v) + " is no operand");
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

TensorId Call::as_float(std::string_view name) {
  const TensorId x = tensor(name);
  return is_float(dtype_of(x)) ? x : cast(x, DType::Float32);
}

Result<TensorId> Call::as_index(TensorValue& t) {
  if (is_float(dtype_of(t.id))) {
    if (t.input < 0) return invalid_model("an index must hold integers").found(std::string(dtype_name(dtype_of(t.id))));
    session_.retype = {t.input, DType::Int64};
    return unsupported("the input holds integers");
  }
  return cast(t.id, DType::Int64);
}

Result<TensorId> Call::as_bool(TensorValue& t) {
  if (is_float(dtype_of(t.id)) && t.input >= 0 && !session_.has_input_facts) {
    session_.retype = {t.input, DType::Bool};
    return unsupported("the input holds truth values");
  }
  return cast(t.id, DType::Bool);
}
TensorId Call::as_bool(TensorId x) { return cast(x, DType::Bool); }

Result<Value> Call::made(TensorId id) {
  ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(id));
  return Value(t);
}

Result<Value> Call::made_complex(TensorId id) {
  ORKNN_TRY_ASSIGN(TensorValue* const t, session_.tensor(id));
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

Result<Value> Call::made_list(std::span<const TensorId> ids) {
  std::vector<Value> values;
  for (TensorId id : ids) {
    ORKNN_TRY_ASSIGN(const Value v, made(id));
    values.push_back(v);
  }
  return list(std::move(values));
}

Result<Value> Call::int_list(std::span<const int64_t> values) {
  std::vector<Value> list_items;
  for (int64_t v : values) list_items.push_back(v);
  return list(std::move(list_items));
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

Result<Value> Call::copy_of(TensorValue& t) {
  ORKNN_TRY_ASSIGN(const Value copy, made(t.id));
  copy.tensor().quantization = t.quantization;
  copy.tensor().input = t.input;
  return copy;
}

TensorId Call::slice(TensorId x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return emit("Slice",
              {x, add_ints("start", {start}), add_ints("end", {end}), add_ints("axis", {axis}), add_ints("step", {step})});
}

TensorId Call::expand(TensorId x, std::span<const int64_t> wanted) {
  const auto have = dims_of(x);
  if (have && std::equal(have->begin(), have->end(), wanted.begin(), wanted.end())) return x;
  return emit("Expand", {x, add_ints("shape", wanted)});
}

TensorId Call::reduce(std::string_view op, TensorId x, std::vector<int64_t> axes, bool keep) {
  if (axes.empty()) return x;
  return emit(std::string(op), {x, add_ints("axes", axes)}, {{"keepdims", static_cast<int64_t>(keep)}});
}

TensorId Call::clip(TensorId x, std::optional<double> least, std::optional<double> most) {
  const DType t = dtype_of(x);
  return emit("Clip", {x, least ? scalar(*least, t) : TensorId{}, most ? scalar(*most, t) : TensorId{}});
}

TensorId Call::full(std::span<const int64_t> wanted, double value, DType dtype) {
  const TensorData one = convert(TensorData::scalar<double>(value).view(), dtype).reshaped({1});
  return emit("ConstantOfShape", {add_ints("shape", wanted)}, {{"value", one}});
}

TensorId Call::swap_axes(TensorId x, int64_t a, int64_t b) {
  const auto have = rank_of(x);
  if (!have) return x;
  const int64_t count = *have;
  std::vector<int64_t> permutation(static_cast<size_t>(count));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  const auto at = [&](int64_t i) -> int64_t& { return permutation[static_cast<size_t>(i < 0 ? i + count : i)]; };
  std::swap(at(a), at(b));
  return transpose(x, std::move(permutation));
}

}  // namespace orknn::importer::pytorch
