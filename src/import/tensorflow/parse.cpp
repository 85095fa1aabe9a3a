#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {
namespace {
using wire::Field;
using wire::read_fields;
using wire::Reader;
using wire::Slot;
using wire::WireType;

Status parse_node(Bytes message, NodeDef& node) {
  return read_fields(message, Slot{1, node.name}, Slot{2, node.op}, Slot{3, node.inputs},
                     Slot{5, [&](Bytes entry) -> Status {
                            ORKNN_TRY_ASSIGN(const wire::MapEntry attribute, wire::map_entry(entry));
                            node.attributes.push_back({attribute.key, attribute.value});
                            return {};
                          }});
}

Status parse_argument(Bytes message, ArgumentDef& argument) {
  constexpr uint32_t kNumberAttribute = 5, kTypesAttribute = 6;
  Bytes number, types;
  ORKNN_TRY(read_fields(message, Slot{1, argument.name}, Slot{3, argument.type}, Slot{kNumberAttribute, number},
                        Slot{kTypesAttribute, types}));
  argument.is_list = !number.empty() || !types.empty();
  return {};
}

Status parse_signature(Bytes message, FunctionDef& function) {
  return read_fields(message, Slot{1, function.name},
                     Slot{2, [&](Bytes m) { return parse_argument(m, function.inputs.emplace_back()); }},
                     Slot{3, [&](Bytes m) { return parse_argument(m, function.outputs.emplace_back()); }});
}

Status parse_function(Bytes message, FunctionDef& function) {
  const auto add_result = [&](Bytes entry) {
    auto& [argument, tensor] = function.results.emplace_back();
    return read_fields(entry, Slot{1, argument}, Slot{2, tensor});
  };
  return read_fields(message, Slot{1, [&](Bytes m) { return parse_signature(m, function); }},
                     Slot{3, [&](Bytes m) { return parse_node(m, function.nodes.emplace_back()); }}, Slot{4, add_result});
}

Status parse_graph_def(Bytes message, GraphDef& graph) {
  const auto add_function = [&](Bytes m) { return parse_function(m, graph.functions.emplace_back()); };
  return read_fields(message, Slot{1, [&](Bytes m) { return parse_node(m, graph.nodes.emplace_back()); }},
                     Slot{2,
                          [&](Bytes library) {
                            return read_fields(library, Slot{1, add_function});
                          }},
                     Slot{3, graph.producer}, Slot{4, [&](Bytes versions) {
                                                     return read_fields(versions, Slot{1, graph.producer});
                                                   }});
}

// The first field `number` that holds bytes.
Bytes find_message(Bytes message, uint32_t number) {
  Reader reader(message);
  for (Field field; reader.next(field);)
    if (field.number == number && field.type == WireType::Bytes) return field.bytes;
  return {};
}

// A node has a name and an operator of printable characters.
bool is_node(Bytes message) {
  NodeDef node;
  if (!parse_node(message, node) || node.name.empty() || node.op.empty()) return false;
  for (std::string_view text : {node.name, node.op})
    for (char c : text)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) return false;
  return true;
}

bool is_graph(Bytes message) {
  const Bytes node = find_message(message, 1);
  return !node.empty() && is_node(node);
}

// The graph in a saved model: 1 version of the schema, 2 meta graphs, each with 2 graph.
Bytes unwrap(Bytes file) {
  Field first;
  if (!Reader(file).next(first) || first.number != 1 || first.type != WireType::Varint) return file;
  const Bytes graph = find_message(find_message(file, 2), 2);
  return is_graph(graph) ? graph : file;
}
}  // namespace

Result<GraphDef> parse_graph(Bytes file) {
  GraphDef graph;
  ORKNN_TRY(parse_graph_def(unwrap(file), graph));
  return graph;
}

bool looks_like_graph(Bytes file) { return is_graph(unwrap(file)); }

// --- attributes

Result<AttributeValue> parse_attribute(Bytes value) {
  AttributeValue a;
  using Kind = AttributeValue::Kind;
  ORKNN_TRY(wire::for_each_field(value, [&](const Field& f) -> Status {
    const auto take = [&](auto& into, Kind kind) {
      if (f.get(into)) a.kind = kind;
    };
    bool flag = false;
    switch (f.number) {
      case 1: take(a.message, Kind::List); break;
      case 2: take(a.text, Kind::String); break;
      case 3: take(a.number, Kind::Int); break;
      case 4: take(a.real, Kind::Float); break;
      case 5:
        take(flag, Kind::Bool);
        if (a.kind == Kind::Bool) a.number = flag;
        break;
      case 6: take(a.number, Kind::Type); break;
      case 7: take(a.message, Kind::Shape); break;
      case 8: take(a.message, Kind::Tensor); break;
      case 9: take(a.text, Kind::Placeholder); break;
      case 10:
        if (!f.get(a.message)) break;
        a.kind = Kind::Function;
        return read_fields(a.message, Slot{1, a.text});
      default: break;
    }
    return {};
  }));
  return a;
}

Result<AttributeValue> attribute_of(const NodeDef& node, std::string_view name) {
  for (const AttributeDef& a : node.attributes)
    if (a.name == name) return parse_attribute(a.value);
  return AttributeValue{};
}

std::string_view node_of(std::string_view input) {
  if (input.starts_with("^")) input.remove_prefix(1);
  return input.substr(0, input.find(':'));
}

Result<std::string_view> called_function(const NodeDef& node) {
  if (node.op != "StatefulPartitionedCall" && node.op != "PartitionedCall") return std::string_view();
  ORKNN_TRY_ASSIGN(const AttributeValue function, attribute_of(node, "f"));
  return function.text;
}

namespace {
// Elements of a list, which are the fields with this number.
template <class T>
Result<std::vector<T>> elements_of(const AttributeValue& list, std::string_view what, uint32_t number) {
  if (list.kind != AttributeValue::Kind::List)
    return invalid_model("an attribute has the wrong type").expected("a list of " + std::string(what));
  std::vector<T> values;
  ORKNN_TRY(read_fields(list.message, Slot{number, values}));
  return values;
}
}  // namespace

Result<std::vector<int64_t>> parse_int_list(const AttributeValue& list) { return elements_of<int64_t>(list, "integers", 3); }
Result<std::vector<float>> parse_float_list(const AttributeValue& list) { return elements_of<float>(list, "numbers", 4); }
Result<std::vector<std::string_view>> parse_string_list(const AttributeValue& list) {
  return elements_of<std::string_view>(list, "strings", 2);
}
Result<std::vector<int64_t>> parse_type_list(const AttributeValue& list) { return elements_of<int64_t>(list, "types", 6); }
Result<std::vector<Bytes>> parse_shape_list(const AttributeValue& list) { return elements_of<Bytes>(list, "shapes", 7); }
Result<std::vector<std::string_view>> parse_function_list(const AttributeValue& list) {
  ORKNN_TRY_ASSIGN(const auto functions, elements_of<Bytes>(list, "functions", 9));
  std::vector<std::string_view> names;
  for (Bytes function : functions) ORKNN_TRY(read_fields(function, Slot{1, names.emplace_back()}));
  return names;
}

Result<std::optional<ir::Shape>> parse_shape(Bytes message) {
  ir::Dims sizes;
  bool unknown_rank = false;
  ORKNN_TRY(read_fields(message,
                        Slot{2,
                             [&](Bytes extent) {
                               return read_fields(extent, Slot{1, sizes.emplace_back(0)});
                             }},
                        Slot{3, unknown_rank}));
  if (unknown_rank) return std::optional<ir::Shape>();
  ir::Shape shape;
  for (int64_t size : sizes) {
    if (size < -1)
      return invalid_model("an extent of the shape is below -1")
          .expected("-1 for one that is not known")
          .found(ir::to_string(sizes));
    shape.push_back(size < 0 ? ir::Dim() : ir::Dim(size));
  }
  return std::optional(std::move(shape));
}

// --- types

namespace {
constexpr int64_t kReference = 100;  // added to the type of a reference

struct TypeRow {
  int64_t number;
  std::string_view name;
  DType dtype;
};
constexpr TypeRow kTypes[] = {
    {1, "DT_FLOAT", DType::Float32},    {2, "DT_DOUBLE", DType::Float64},      {3, "DT_INT32", DType::Int32},
    {4, "DT_UINT8", DType::UInt8},      {5, "DT_INT16", DType::Int16},         {6, "DT_INT8", DType::Int8},
    {7, "DT_STRING", DType::Undefined}, {8, "DT_COMPLEX64", DType::Undefined}, {9, "DT_INT64", DType::Int64},
    {10, "DT_BOOL", DType::Bool},       {11, "DT_QINT8", DType::Int8},         {12, "DT_QUINT8", DType::UInt8},
    {13, "DT_QINT32", DType::Int32},    {14, "DT_BFLOAT16", DType::BFloat16},  {15, "DT_QINT16", DType::Int16},
    {16, "DT_QUINT16", DType::UInt16},  {17, "DT_UINT16", DType::UInt16},      {18, "DT_COMPLEX128", DType::Undefined},
    {19, "DT_HALF", DType::Float16},    {20, "DT_RESOURCE", DType::Undefined}, {21, "DT_VARIANT", DType::Undefined},
    {22, "DT_UINT32", DType::UInt32},   {23, "DT_UINT64", DType::UInt64},
};
}  // namespace

DType to_dtype(int64_t type) {
  for (const TypeRow& row : kTypes)
    if (row.number == type || row.number + kReference == type) return row.dtype;
  return DType::Undefined;
}

std::string_view type_name(int64_t type) {
  for (const TypeRow& row : kTypes)
    if (row.number == type || row.number + kReference == type) return row.name;
  return "an unknown type";
}

}  // namespace orknn::importer::tensorflow
