#include "import/pytorch/value.h"

#include <array>
#include <charconv>
#include <cmath>

namespace orknn::importer::pytorch {
namespace {
constexpr std::array kScalarTypes{
    ScalarType{0, "uint8", "ByteStorage", DType::UInt8, false, 1},
    ScalarType{1, "int8", "CharStorage", DType::Int8, false, 1},
    ScalarType{2, "int16", "ShortStorage", DType::Int16, false, 2},
    ScalarType{3, "int32", "IntStorage", DType::Int32, false, 4},
    ScalarType{4, "int64", "LongStorage", DType::Int64, false, 8},
    ScalarType{5, "float16", "HalfStorage", DType::Float16, false, 2},
    ScalarType{6, "float32", "FloatStorage", DType::Float32, false, 4},
    ScalarType{7, "float64", "DoubleStorage", DType::Float64, false, 8},
    ScalarType{8, "complex32", "ComplexHalfStorage", DType::Undefined, false, 4},
    ScalarType{9, "complex64", "ComplexFloatStorage", DType::Undefined, false, 8},
    ScalarType{10, "complex128", "ComplexDoubleStorage", DType::Undefined, false, 16},
    ScalarType{11, "bool", "BoolStorage", DType::Bool, false, 1},
    ScalarType{12, "qint8", "QInt8Storage", DType::Int8, true, 1},
    ScalarType{13, "quint8", "QUInt8Storage", DType::UInt8, true, 1},
    ScalarType{14, "qint32", "QInt32Storage", DType::Int32, true, 4},
    ScalarType{15, "bfloat16", "BFloat16Storage", DType::BFloat16, false, 2},
    ScalarType{27, "uint16", "UInt16Storage", DType::UInt16, false, 2},
    ScalarType{28, "uint32", "UInt32Storage", DType::UInt32, false, 4},
    ScalarType{29, "uint64", "UInt64Storage", DType::UInt64, false, 8},
};
// Text is only for messages and file names: longer ones are cut.
constexpr int kMaxTextDepth = 8;
constexpr size_t kMaxText = 4096;

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void append_text(const Value& value, int depth, std::string& out) {
  if (out.size() > kMaxText) return;
  switch (value.kind()) {
    case Kind::Bool: out += value.boolean() ? "True" : "False"; return;
    case Kind::Int: out += std::to_string(value.integer()); return;
    case Kind::Float: out += float_text(value.number()); return;
    case Kind::String: out += depth == 0 ? value.text() : "'" + value.text() + "'"; return;
    case Kind::Device: out += value.text(); return;
    case Kind::Tensor: out += "Tensor" + ir::to_string(value.tensor().dims); return;
    case Kind::List:
    case Kind::Tuple: {
      const bool is_list = value.kind() == Kind::List;
      out += is_list ? '[' : '(';
      const auto& items = value.sequence().items;
      for (size_t i = 0; i < items.size() && depth < kMaxTextDepth && out.size() < kMaxText; ++i) {
        if (i > 0) out += ", ";
        append_text(items[i], depth + 1, out);
      }
      out += is_list ? ']' : ')';
      return;
    }
    default: out += kind_name(value.kind());
  }
}
}  // namespace

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::None: return "None";
    case Kind::Bool: return "bool";
    case Kind::Int: return "int";
    case Kind::Float: return "float";
    case Kind::String: return "str";
    case Kind::Device: return "Device";
    case Kind::Tensor: return "Tensor";
    case Kind::List: return "List";
    case Kind::Tuple: return "Tuple";
    case Kind::Dict: return "Dict";
    case Kind::Object: return "object";
    case Kind::Function: return "function";
    case Kind::Uninitialized: return "uninitialized value";
  }
  return "?";
}

int64_t Value::integer() const {
  if (kind_ != Kind::Float) return integer_;
  if (!(number_ >= -9.2e18 && number_ <= 9.2e18)) return 0;
  return static_cast<int64_t>(number_);
}

std::optional<DictValue::Key> DictValue::key_of(const Value& value) {
  switch (value.kind()) {
    case Kind::Bool:
    case Kind::Int: return Key{.integer = value.integer()};
    case Kind::Float: return std::isnan(value.number()) ? std::nullopt : std::optional(Key{.number = value.number()});
    case Kind::String: return Key{.integer = -1, .number = -1, .text = value.text()};
    default: return std::nullopt;
  }
}

const Value* DictValue::find(const Value& key) const {
  const auto k = key_of(key);
  const auto it = k ? index.find(*k) : index.end();
  return it == index.end() ? nullptr : &items[it->second].second;
}

bool DictValue::set(const Value& key, const Value& value) {
  auto k = key_of(key);
  if (!k) return false;
  const auto [it, is_new] = index.emplace(*std::move(k), items.size());
  if (is_new)
    items.emplace_back(key, value);
  else
    items[it->second].second = value;
  return true;
}

bool DictValue::erase(const Value& key) {
  const auto k = key_of(key);
  const auto it = k ? index.find(*k) : index.end();
  if (it == index.end()) return false;
  const size_t at = it->second;
  index.erase(it);
  items.erase(items.begin() + static_cast<ptrdiff_t>(at));
  for (auto& entry : index) entry.second -= entry.second > at;
  return true;
}

Value Heap::text(Kind kind, std::string text) {
  units_ += 1 + text.size() / 64;
  return Value::text(kind, &strings_.emplace_back(std::move(text)));
}
Value Heap::string(std::string text) { return Heap::text(Kind::String, std::move(text)); }
ListValue* Heap::list(std::vector<Value> items) {
  units_ += 1 + items.size();
  ListValue& l = lists_.emplace_back();
  l.items = std::move(items);
  return &l;
}
DictValue* Heap::dict() {
  ++units_;
  return &dicts_.emplace_back();
}
ObjectValue* Heap::object(std::string class_name) {
  ++units_;
  ObjectValue& o = objects_.emplace_back();
  o.class_name = std::move(class_name);
  return &o;
}
TensorValue* Heap::tensor() {
  ++units_;
  return &tensors_.emplace_back();
}
Storage* Heap::storage() {
  ++units_;
  return &storages_.emplace_back();
}

const ScalarType* scalar_type(int64_t code) {
  for (const ScalarType& t : kScalarTypes)
    if (t.code == code) return &t;
  return nullptr;
}
const ScalarType* scalar_type_of_storage(std::string_view storage) {
  for (const ScalarType& t : kScalarTypes)
    if (t.storage == storage) return &t;
  return nullptr;
}
const ScalarType* scalar_type_of_name(std::string_view name) {
  for (const ScalarType& t : kScalarTypes)
    if (t.name == name) return &t;
  return nullptr;
}
int64_t code_of(DType dtype) {
  for (const ScalarType& t : kScalarTypes)
    if (t.dtype == dtype && !t.is_quantized) return t.code;
  return 6;
}

std::string describe(const Value& value) {
  if (value.is_sequence()) {
    const auto& items = value.sequence().items;
    return std::string(kind_name(value.kind())) + "[" + (items.empty() ? "" : std::string(kind_name(items[0].kind()))) + "]";
  }
  if (value.kind() == Kind::Object) return value.object().class_name;
  if (value.is_tensor() && value.tensor().is_complex) return "complex Tensor";
  return std::string(kind_name(value.kind()));
}

std::string to_text(const Value& value) {
  std::string text;
  append_text(value, 0, text);
  return text;
}

std::vector<int64_t> ints_of(const Value& value) {
  if (value.is_number()) return {value.integer()};
  std::vector<int64_t> list;
  if (value.is_sequence())
    for (const Value& item : value.sequence().items) list.push_back(item.integer());
  return list;
}

DType type_of_number(const Value& value) {
  return value.kind() == Kind::Float ? DType::Float32 : value.kind() == Kind::Int ? DType::Int64 : DType::Bool;
}

bool is_contiguous(const ir::Dims& dims, const ir::Dims& strides) {
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

}  // namespace orknn::importer::pytorch
