#include "import/keras/graph_writer.h"

#include <bit>

namespace orknn::importer::keras {
namespace {

using wire::Writer;

// Field numbers of graph.proto, node_def.proto, attr_value.proto, tensor.proto and tensor_shape.proto.
enum GraphField : uint32_t { kNode = 1 };
enum NodeField : uint32_t { kName = 1, kOp = 2, kInput = 3, kAttr = 5 };
enum EntryField : uint32_t { kKey = 1, kValue = 2 };
enum ValueField : uint32_t { kList = 1, kText = 2, kInt = 3, kReal = 4, kFlag = 5, kType = 6, kShape = 7, kTensor = 8 };
enum TensorField : uint32_t { kTensorType = 1, kTensorShape = 2, kTensorContent = 4 };

Writer shape_message(const ir::Dims& dims) {
  enum ShapeField : uint32_t { kDim = 2, kSize = 1 };
  Writer shape;
  for (int64_t d : dims) shape.message(kDim, Writer().number(kSize, static_cast<uint64_t>(d)));
  return shape;
}
}  // namespace

Attributes& Attributes::add(std::string_view name, const Writer& value) {
  entries_.push_back(Writer().text(kKey, name).message(kValue, value));
  return *this;
}
Attributes& Attributes::type(std::string_view name, int64_t type) {
  return add(name, Writer().number(kType, static_cast<uint64_t>(type)));
}
Attributes& Attributes::ints(std::string_view name, const std::vector<int64_t>& values) {
  Writer list;
  for (int64_t v : values) list.number(kInt, static_cast<uint64_t>(v));
  return add(name, Writer().message(kList, list));
}
Attributes& Attributes::integer(std::string_view name, int64_t value) {
  return add(name, Writer().number(kInt, static_cast<uint64_t>(value)));
}
Attributes& Attributes::real(std::string_view name, float value) {
  return add(name, Writer().field({.number = kReal, .type = wire::WireType::Fixed32, .scalar = std::bit_cast<uint32_t>(value)}));
}
Attributes& Attributes::flag(std::string_view name, bool value) { return add(name, Writer().number(kFlag, value ? 1 : 0)); }
Attributes& Attributes::text(std::string_view name, std::string_view value) { return add(name, Writer().text(kText, value)); }
Attributes& Attributes::shape(std::string_view name, const ir::Dims& dims) {
  return add(name, Writer().message(kShape, shape_message(dims)));
}
Attributes& Attributes::tensor(std::string_view name, int64_t type, const ir::Dims& dims, std::span<const std::byte> content) {
  Writer tensor;
  tensor.number(kTensorType, static_cast<uint64_t>(type)).message(kTensorShape, shape_message(dims));
  tensor.text(kTensorContent, {reinterpret_cast<const char*>(content.data()), content.size()});
  return add(name, Writer().message(kTensor, tensor));
}

std::string GraphWriter::fresh(std::string_view op) {
  const std::string wanted = layer_.empty() ? std::string(op) : layer_ + "/" + std::string(op);
  std::string name = wanted;
  for (size_t i = 1; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

Tensor GraphWriter::placeholder(const std::string& name, int64_t type, const ir::Dims& dims) {
  names_.insert(name);
  Writer node;
  node.text(kName, name).text(kOp, "Placeholder");
  Attributes attributes;
  attributes.type("dtype", type).shape("shape", dims);
  for (const Writer& entry : attributes.entries_) node.message(kAttr, entry);
  graph_.message(kNode, node);
  return {name, static_cast<int64_t>(dims.size())};
}

Tensor GraphWriter::constant(int64_t type, const ir::Dims& dims, std::span<const std::byte> content) {
  Attributes attributes;
  attributes.type("dtype", type).tensor("value", type, dims, content);
  return node("Const", {}, static_cast<int64_t>(dims.size()), attributes);
}

Tensor GraphWriter::floats(const ir::Dims& dims, const std::vector<float>& values) {
  return constant(kTfFloat, dims, std::as_bytes(std::span(values)));
}
Tensor GraphWriter::floats(const Weight& weight) { return floats(weight.dims, weight.values); }
Tensor GraphWriter::ints(const std::vector<int64_t>& values) {
  return constant(kTfInt64, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values)));
}
Tensor GraphWriter::integer(int64_t value) { return constant(kTfInt64, {}, std::as_bytes(std::span(&value, 1))); }

Tensor GraphWriter::node(std::string_view op, const std::vector<Tensor>& inputs, int64_t rank, const Attributes& attributes) {
  const std::string name = fresh(op);
  Writer node;
  node.text(kName, name).text(kOp, op);
  for (const Tensor& input : inputs) node.text(kInput, input.name);
  for (const Writer& entry : attributes.entries_) node.message(kAttr, entry);
  graph_.message(kNode, node);
  return {name, rank};
}

Result<std::vector<std::byte>> GraphWriter::finish() const { return graph_.to_bytes(); }

}  // namespace orknn::importer::keras
