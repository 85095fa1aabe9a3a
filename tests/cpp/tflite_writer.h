// Writes TFLite files for tests: tables by field id, as the schema numbers them, and short forms for tensors and operators.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace orknn::tests {

class FlatTable {
 public:
  template <class T>
  FlatTable& number(unsigned id, T value) {
    Field& f = fields_[id];
    f.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <class T>
  FlatTable& numbers(unsigned id, const std::vector<T>& values) {
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return vector(id, std::move(bytes), static_cast<uint32_t>(values.size()));
  }
  FlatTable& text(unsigned id, const std::string& value) { return vector(id, value, static_cast<uint32_t>(value.size())); }
  FlatTable& table(unsigned id, const FlatTable& value);
  FlatTable& tables(unsigned id, const std::vector<FlatTable>& values);
  bool empty() const { return fields_.empty(); }

  // A whole file with this table as root.
  std::string file(const std::string& identifier) const;

 private:
  struct Field {
    std::string bytes;  // of a number; of a vector's elements
    bool is_vector = false;
    uint32_t count = 0;
    std::vector<FlatTable> children;  // a table, or a vector of them
  };
  FlatTable& vector(unsigned id, std::string bytes, uint32_t count);
  uint32_t write(std::string& out) const;  // where the table is

  std::map<unsigned, Field> fields_;
};

namespace tflite {
enum Type : int8_t {
  Float32 = 0,
  Float16 = 1,
  Int32 = 2,
  UInt8 = 3,
  Int64 = 4,
  String = 5,
  Bool = 6,
  Int16 = 7,
  Int8 = 9,
  Resource = 13,
  Int4 = 17
};

struct Tensor {
  std::string name;
  Type type = Float32;
  std::vector<int32_t> shape;
  std::string data;  // of a constant
  std::vector<float> scale = {};
  std::vector<int64_t> zero_point = {};
  int32_t axis = 0;
  bool variable = false;
  FlatTable sparsity = {};
};

struct Operator {
  int32_t code;
  std::vector<int32_t> inputs, outputs;
  FlatTable options = {};
  std::string custom = {};  // name of a custom operator
  std::string custom_options = {};
};

struct Subgraph {
  std::vector<Tensor> tensors;
  std::vector<int32_t> inputs, outputs;
  std::vector<Operator> operators;
};

struct Signature {
  std::string name;
  uint32_t tensor;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}
inline Tensor floats(std::string name, std::vector<int32_t> shape, const std::vector<float>& values) {
  return {std::move(name), Float32, std::move(shape), bytes_of(values)};
}
inline Tensor ints(std::string name, std::vector<int32_t> shape, const std::vector<int32_t>& values) {
  return {std::move(name), Int32, std::move(shape), bytes_of(values)};
}

std::string model(const std::vector<Subgraph>& subgraphs, const std::vector<Signature>& outputs = {}, uint32_t version = 3);
}  // namespace tflite

}  // namespace orknn::tests
