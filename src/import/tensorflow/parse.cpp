#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {
namespace {
using wire::Field;
using wire::Reader;
using wire::WireType;

// Calls f(field) for each field of a message.
template <class F>
Status for_each_field(Bytes message, F&& f) {
  Reader reader(message);
  for (Field field; reader.next(field);) ORKNN_TRY(f(field));
  return reader.status();
}

// A map entry: key 1, value 2.
Status parse_entry(Bytes message, std::string_view& key, Bytes& value) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(key);
    if (f.number == 2) f.get(value);
    return {};
  });
}

Status parse_node(Bytes message, NodeDef& node) {
  return for_each_field(message, [&](const Field& f) -> Status {
    std::string_view text;
    if (f.number == 1) f.get(node.name);
    if (f.number == 2) f.get(node.op);
    if (f.number == 3 && f.get(text)) node.inputs.push_back(text);
    if (f.number == 5 && f.type == WireType::Bytes) {
      AttributeDef& a = node.attributes.emplace_back();
      ORKNN_TRY(parse_entry(f.bytes, a.name, a.value));
    }
    return {};
  });
}

Status parse_argument(Bytes message, ArgumentDef& argument) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(argument.name);
    if (f.number == 3) f.get(argument.type);
    if ((f.number == 5 || f.number == 6) && !f.bytes.empty()) argument.is_list = true;
    return {};
  });
}

Status parse_signature(Bytes message, FunctionDef& function) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(function.name);
    if (f.number == 2 && f.type == WireType::Bytes) ORKNN_TRY(parse_argument(f.bytes, function.inputs.emplace_back()));
    if (f.number == 3 && f.type == WireType::Bytes) ORKNN_TRY(parse_argument(f.bytes, function.outputs.emplace_back()));
    return {};
  });
}

Status parse_function(Bytes message, FunctionDef& function) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.type != WireType::Bytes) return {};
    if (f.number == 1) return parse_signature(f.bytes, function);
    if (f.number == 3) return parse_node(f.bytes, function.nodes.emplace_back());
    if (f.number == 4) {
      std::string_view key;
      Bytes value;
      ORKNN_TRY(parse_entry(f.bytes, key, value));
      function.results.emplace_back(key, std::string_view(reinterpret_cast<const char*>(value.data()), value.size()));
    }
    return {};
  });
}

Status parse_library(Bytes message, GraphDef& graph) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1 && f.type == WireType::Bytes) return parse_function(f.bytes, graph.functions.emplace_back());
    return {};
  });
}

Status parse_graph_def(Bytes message, GraphDef& graph) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 3) f.get(graph.producer);
    if (f.type != WireType::Bytes) return {};
    if (f.number == 1) return parse_node(f.bytes, graph.nodes.emplace_back());
    if (f.number == 2) return parse_library(f.bytes, graph);
    if (f.number == 4)
      return for_each_field(f.bytes, [&](const Field& version) -> Status {
        if (version.number == 1) version.get(graph.producer);
        return {};
      });
    return {};
  });
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
  ORKNN_TRY(for_each_field(value, [&](const Field& f) -> Status {
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
        ORKNN_TRY(for_each_field(a.message, [&](const Field& g) -> Status {
          if (g.number == 1) g.get(a.text);
          return {};
        }));
        break;
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
// Elements of a list: `add` appends those of each field with this number.
template <class T, class Add>
Result<std::vector<T>> elements_of(const AttributeValue& list, std::string_view what, uint32_t number, Add add) {
  if (list.kind != AttributeValue::Kind::List)
    return invalid_model("an attribute has the wrong type").expected("a list of " + std::string(what));
  std::vector<T> values;
  ORKNN_TRY(
      for_each_field(list.message, [&](const Field& f) -> Status { return f.number == number ? add(f, values) : Status(); }));
  return values;
}
constexpr auto append = [](const Field& f, auto& values) { return wire::append(f, values); };
constexpr auto append_one = [](const Field& f, auto& values) -> Status {
  if (typename std::remove_reference_t<decltype(values)>::value_type value; f.get(value)) values.push_back(value);
  return {};
};
}  // namespace

Result<std::vector<int64_t>> parse_int_list(const AttributeValue& list) {
  return elements_of<int64_t>(list, "integers", 3, append);
}
Result<std::vector<float>> parse_float_list(const AttributeValue& list) { return elements_of<float>(list, "numbers", 4, append); }
Result<std::vector<std::string_view>> parse_string_list(const AttributeValue& list) {
  return elements_of<std::string_view>(list, "strings", 2, append_one);
}
Result<std::vector<int64_t>> parse_type_list(const AttributeValue& list) {
  return elements_of<int64_t>(list, "types", 6, append);
}
Result<std::vector<Bytes>> parse_shape_list(const AttributeValue& list) {
  return elements_of<Bytes>(list, "shapes", 7, append_one);
}
Result<std::vector<std::string_view>> parse_function_list(const AttributeValue& list) {
  ORKNN_TRY_ASSIGN(const auto functions, elements_of<Bytes>(list, "functions", 9, append_one));
  std::vector<std::string_view> names;
  for (Bytes function : functions) {
    ORKNN_TRY(for_each_field(function, [&name = names.emplace_back()](const Field& f) -> Status {
      if (f.number == 1) f.get(name);
      return {};
    }));
  }
  return names;
}

Result<std::optional<ir::Shape>> parse_shape(Bytes message) {
  ir::Dims sizes;
  bool unknown_rank = false;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 3) f.get(unknown_rank);
    if (f.number != 2 || f.type != WireType::Bytes) return {};
    int64_t size = 0;
    ORKNN_TRY(for_each_field(f.bytes, [&](const Field& d) -> Status {
      if (d.number == 1) d.get(size);
      return {};
    }));
    sizes.push_back(size);
    return {};
  }));
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
