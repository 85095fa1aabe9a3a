// The values TorchScript code works with while we execute it: numbers and containers as in Python, tensors as values of our
// graph. Containers and tensors are references, as in Python; the Heap owns them all until the import ends, so that neither
// cycles nor deep nesting in a hostile file can do harm.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/lower/emitter.h"
#include "ir/graph.h"

namespace orknn::importer::pytorch {

struct TensorValue;
struct ListValue;
struct DictValue;
struct ObjectValue;

enum class Kind : uint8_t { None, Bool, Int, Float, String, Device, Tensor, List, Tuple, Dict, Object, Function, Uninitialized };
std::string_view kind_name(Kind kind);

class Value {
 public:
  Value() : integer_(0) {}
  template <class T>
  requires std::same_as<T, bool>  // pointers must not become truth values
  Value(T b) : kind_(Kind::Bool), integer_(b) {}
  Value(int64_t i) : kind_(Kind::Int), integer_(i) {}
  Value(double d) : kind_(Kind::Float), number_(d) {}
  Value(TensorValue* t) : kind_(Kind::Tensor), pointer_(t) {}
  Value(DictValue* d) : kind_(Kind::Dict), pointer_(d) {}
  Value(ObjectValue* o) : kind_(Kind::Object), pointer_(o) {}
  static Value list(ListValue* l) { return {Kind::List, l}; }
  static Value tuple(ListValue* l) { return {Kind::Tuple, l}; }
  static Value text(Kind kind, const std::string* s) { return {kind, const_cast<std::string*>(s)}; }  // String, Device, Function
  static Value uninitialized() { return {Kind::Uninitialized, nullptr}; }

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  bool is_number() const { return kind_ == Kind::Bool || kind_ == Kind::Int || kind_ == Kind::Float; }
  bool is_sequence() const { return kind_ == Kind::List || kind_ == Kind::Tuple; }

  // Only for the matching kind; numbers convert into each other.
  bool boolean() const { return kind_ == Kind::Float ? number_ != 0 : integer_ != 0; }
  int64_t integer() const;
  double number() const { return kind_ == Kind::Float ? number_ : static_cast<double>(integer_); }
  const std::string& text() const { return *static_cast<const std::string*>(pointer_); }
  TensorValue& tensor() const { return *static_cast<TensorValue*>(pointer_); }
  ListValue& sequence() const { return *static_cast<ListValue*>(pointer_); }
  DictValue& dict() const { return *static_cast<DictValue*>(pointer_); }
  ObjectValue& object() const { return *static_cast<ObjectValue*>(pointer_); }
  const void* identity() const { return kind_ >= Kind::String ? pointer_ : nullptr; }

 private:
  Value(Kind kind, void* pointer) : kind_(kind), pointer_(pointer) {}
  Kind kind_ = Kind::None;
  union {
    int64_t integer_;
    double number_;
    void* pointer_;
  };
};

// Lists and tuples. Tuples of a NamedTuple class know their fields.
struct ListValue {
  std::vector<Value> items;
  std::vector<std::string> fields;
};

// In the order of insertion. Keys are numbers or strings.
struct DictValue {
  struct Key {
    int64_t integer = 0;
    double number = 0;
    std::string text;
    auto operator<=>(const Key&) const = default;
  };
  static std::optional<Key> key_of(const Value& value);
  std::vector<std::pair<Value, Value>> items;
  std::map<Key, size_t> index;

  const Value* find(const Value& key) const;
  bool set(const Value& key, const Value& value);  // false when the key cannot be one
  bool erase(const Value& key);
};

// An instance of a class of the archive, or of one of PyTorch's own classes (packed parameters), which keep their pickled state.
struct ObjectValue {
  std::string class_name;  // "__torch__.torch.nn.modules.conv.Conv2d"
  std::string path;        // "layer1.0.conv1" when it is part of the model; empty for the model itself
  bool is_part_of_model = false;
  std::map<std::string, Value, std::less<>> attributes;
  std::optional<Value> state;  // as pickled, until it is known whether the class has a __setstate__ that wants it
};

// Affine parameters of a quantized tensor. In the graph such a tensor is its real value: the output of a DequantizeLinear.
struct Quantization {
  DType dtype = DType::UInt8;
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  int64_t axis = -1;  // -1 = per tensor
};

// Bytes in the archive.
struct Storage {
  std::string name;
  DType dtype = DType::Undefined;  // Undefined: a type we cannot compute with, named by type_name
  std::string type_name;
  bool is_quantized = false;
  int64_t count = 0;
  std::span<const std::byte> bytes;  // as many as `count` needs
  std::shared_ptr<const void> keeper;
};

// A tensor: a value of the graph, or one in the archive that has not been used yet, or a view of another tensor. A view is
// recomputed when its parent was written; writing a view writes its parent.
struct TensorValue {
  ir::TensorId id;
  ir::Dims dims;
  ir::Dims strides;  // in elements; what is contiguous, and so when a reshape is a copy, follows from them
  std::optional<Quantization> quantization;

  const Storage* storage = nullptr;  // id is none until the tensor is used
  int64_t storage_offset = 0;
  std::string name;  // "layer1.0.weight" when it is part of the model

  uint64_t version = 0;  // counts writes
  using Apply = std::function<ir::TensorId(Emitter&, ir::TensorId parent)>;
  using Write = std::function<ir::TensorId(Emitter&, ir::TensorId parent, ir::TensorId value)>;
  TensorValue* parent = nullptr;
  uint64_t parent_version = 0;
  Apply apply;
  Write write;  // empty: a view that cannot be written

  int input = -1;           // number of the graph input this is, or a view of
  bool is_complex = false;  // the value in the graph has one axis more, at the end: real and imaginary part
};

class Heap {
 public:
  // Values made while executing are counted against a limit that no real model comes near.
  static constexpr uint64_t kMaxUnits = uint64_t{1} << 24;
  bool is_exhausted() const { return units_ > kMaxUnits; }

  Value string(std::string text);
  Value text(Kind kind, std::string text);
  ListValue* list(std::vector<Value> items = {});
  DictValue* dict();
  ObjectValue* object(std::string class_name);
  TensorValue* tensor();
  Storage* storage();
  std::deque<TensorValue>& tensors() { return tensors_; }
  void charge(uint64_t units) { units_ += units; }

 private:
  uint64_t units_ = 0;
  std::deque<std::string> strings_;
  std::deque<ListValue> lists_;
  std::deque<DictValue> dicts_;
  std::deque<ObjectValue> objects_;
  std::deque<TensorValue> tensors_;
  std::deque<Storage> storages_;
};

// Element types as PyTorch numbers them.
struct ScalarType {
  int64_t code;
  std::string_view name;     // "float32"
  std::string_view storage;  // "FloatStorage"
  DType dtype;               // Undefined: not one of ours
  bool is_quantized;
  size_t bytes;
};
const ScalarType* scalar_type(int64_t code);
const ScalarType* scalar_type_of_storage(std::string_view storage);
const ScalarType* scalar_type_of_name(std::string_view name);
int64_t code_of(DType dtype);

// "Tensor", "int", "List[Tensor]": what a message says about a value.
std::string describe(const Value& value);
// As Python's str() prints it, cut when very long.
std::string to_text(const Value& value);

// The integers of a list, or a single one.
std::vector<int64_t> ints_of(const Value& value);
// The element type a number has as a tensor.
DType type_of_number(const Value& value);

bool is_contiguous(const ir::Dims& dims, const ir::Dims& strides);

}  // namespace orknn::importer::pytorch
