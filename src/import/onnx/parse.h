// The messages of an ONNX file as plain structs. Names and payloads are views into the file's bytes, which must outlive them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/wire/reader.h"

namespace orknn::importer::onnx {

using wire::Bytes;

struct StringEntry {
  std::string_view key, value;
};

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  bool has_segment = false;
  bool has_raw_data = false;
  bool is_external = false;
  Bytes raw_data;
  std::vector<StringEntry> external_data;
  Bytes message;  // the whole message: the typed data fields are decoded from it when the values are wanted
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct DimProto {
  enum class Kind { Unknown, Value, Parameter } kind = Kind::Unknown;
  int64_t value = 0;
  std::string_view parameter;
};

struct TypeProto {
  enum class Kind { None, Tensor, Sequence, Map, Opaque, SparseTensor, Optional } kind = Kind::None;
  int64_t element_type = 0;
  bool has_shape = false;
  std::vector<DimProto> shape;
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct GraphProto;

enum class AttributeType {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  Type = 13,
  Types = 14,
};

struct AttributeProto {
  std::string_view name;
  std::string_view reference;                     // name of the function attribute whose value this one takes
  AttributeType type = AttributeType::Undefined;  // old files do not state it: then it follows from the field that is set
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::shared_ptr<const TensorProto> tensor;
  std::shared_ptr<const SparseTensorProto> sparse_tensor;
  std::shared_ptr<const GraphProto> graph;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeProto {
  std::vector<std::string_view> inputs, outputs;  // an empty name = absent
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;  // named by their values
  std::vector<ValueInfoProto> inputs, outputs, value_info;
};

struct OperatorSetProto {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> defaults;  // attributes with a default value; the others need no declaration
  std::vector<NodeProto> nodes;
  std::vector<OperatorSetProto> op_sets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  bool has_graph = false;
  GraphProto graph;
  std::vector<OperatorSetProto> op_sets;
  std::vector<FunctionProto> functions;
};

Result<ModelProto> parse_model(Bytes file);
Result<TensorProto> parse_tensor(Bytes message);

// Field numbers of the typed data of TensorProto, for decoding `message`.
enum TensorField : uint32_t {
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kDoubleData = 10,
  kUInt64Data = 11
};

}  // namespace orknn::importer::onnx
