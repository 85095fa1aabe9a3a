// A TensorFlow graph under construction: what Keras layers are made of is written as the nodes that TensorFlow has for it, and
// read by its importer.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "import/keras/weights.h"
#include "import/wire/writer.h"

namespace orknn::importer::keras {

// A tensor of the graph. Ranks are known everywhere, extents are not needed.
struct Tensor {
  std::string name;
  int64_t rank = 0;
};

// Attributes of a node.
class Attributes {
 public:
  Attributes& type(std::string_view name, int64_t type);
  Attributes& ints(std::string_view name, const std::vector<int64_t>& values);
  Attributes& integer(std::string_view name, int64_t value);
  Attributes& real(std::string_view name, float value);
  Attributes& flag(std::string_view name, bool value);
  Attributes& text(std::string_view name, std::string_view value);
  Attributes& shape(std::string_view name, const ir::Dims& dims);
  Attributes& tensor(std::string_view name, int64_t type, const ir::Dims& dims, std::span<const std::byte> content);

 private:
  friend class GraphWriter;
  Attributes& add(std::string_view name, const wire::Writer& value);
  std::vector<wire::Writer> entries_;
};

// Numbers of TensorFlow's DataType.
enum TfType : int64_t { kTfFloat = 1, kTfInt32 = 3, kTfInt64 = 9, kTfBool = 10 };

class GraphWriter {
 public:
  // Names of nodes begin with the path of the layer that is being written.
  void begin_layer(std::string path) { layer_ = std::move(path); }

  Tensor placeholder(const std::string& name, int64_t type, const ir::Dims& dims);
  Tensor floats(const Weight& weight);
  Tensor floats(const ir::Dims& dims, const std::vector<float>& values);
  Tensor scalar(float value) { return floats({}, {value}); }
  Tensor ints(const std::vector<int64_t>& values);
  Tensor integer(int64_t value);
  // `rank`: of the result.
  Tensor node(std::string_view op, const std::vector<Tensor>& inputs, int64_t rank, const Attributes& attributes = {});
  // The same with the rank of its first input.
  Tensor like(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
    return node(op, inputs, inputs.front().rank, attributes);
  }

  Result<std::vector<std::byte>> finish() const;

 private:
  Tensor constant(int64_t type, const ir::Dims& dims, std::span<const std::byte> content);
  std::string fresh(std::string_view op);

  std::string layer_;
  std::set<std::string> names_;
  wire::Writer graph_;
};

}  // namespace orknn::importer::keras
