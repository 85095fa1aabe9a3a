// The messages of a TensorFlow graph as plain structs. Names and payloads are views into the file's bytes (or into the bytes a
// text file was turned into), which must outlive them. Attribute values are decoded when somebody asks for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "import/wire/reader.h"
#include "ir/shape.h"

namespace orknn::importer::tensorflow {

using wire::Bytes;

struct AttributeValue {
  enum class Kind { None, List, String, Int, Float, Bool, Type, Shape, Tensor, Placeholder, Function } kind = Kind::None;
  std::string_view text;  // String; the name that a Placeholder stands for; the function's name
  int64_t number = 0;     // Int, Bool and Type
  float real = 0;
  Bytes message;  // List, Shape, Tensor and Function: the message itself
};

struct AttributeDef {
  std::string_view name;
  Bytes value;
};

struct NodeDef {
  std::string_view name, op;
  std::vector<std::string_view> inputs;
  std::vector<AttributeDef> attributes;
};

struct ArgumentDef {
  std::string_view name;
  int64_t type = 0;
  bool is_list = false;  // stands for several tensors
};

struct FunctionDef {
  std::string_view name;
  std::vector<ArgumentDef> inputs, outputs;
  std::vector<NodeDef> nodes;
  std::vector<std::pair<std::string_view, std::string_view>> results;  // output argument and the tensor it takes
};

struct GraphDef {
  std::vector<NodeDef> nodes;
  std::vector<FunctionDef> functions;
  int64_t producer = 0;  // version of the graph format
};

// Accepts a graph by itself and inside of a saved model.
Result<GraphDef> parse_graph(Bytes file);
// Text becomes the bytes parse_graph reads.
Result<std::vector<std::byte>> encode_graph_text(std::string_view text);
// Whether bytes or text look like a graph; reads no more than the first node or so.
bool looks_like_graph(Bytes file);
bool looks_like_graph_text(std::string_view text);

Result<AttributeValue> parse_attribute(Bytes value);
Result<AttributeValue> attribute_of(const NodeDef& node, std::string_view name);
// The node whose result an input is, "conv" of "conv:0", "conv:output:0" and "^conv".
std::string_view node_of(std::string_view input);
// The function that a node calls with its inputs; none for other nodes.
Result<std::string_view> called_function(const NodeDef& node);
Result<std::vector<int64_t>> parse_int_list(const AttributeValue& list);
Result<std::vector<float>> parse_float_list(const AttributeValue& list);
Result<std::vector<std::string_view>> parse_string_list(const AttributeValue& list);
Result<std::vector<int64_t>> parse_type_list(const AttributeValue& list);
Result<std::vector<Bytes>> parse_shape_list(const AttributeValue& list);
Result<std::vector<std::string_view>> parse_function_list(const AttributeValue& list);
// Nothing = unknown rank.
Result<std::optional<ir::Shape>> parse_shape(Bytes message);

// Undefined for types without a counterpart of ours (strings, resources, complex numbers).
DType to_dtype(int64_t type);
std::string_view type_name(int64_t type);

}  // namespace orknn::importer::tensorflow
