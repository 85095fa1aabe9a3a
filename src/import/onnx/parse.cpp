// Field numbers are those of the public onnx.proto schema. A singular message that occurs twice is merged, the last scalar wins,
// fields of an unexpected wire type are ignored: all as protobuf does.
#include "import/onnx/parse.h"

namespace orknn::importer::onnx {
namespace {
using wire::Field;
using wire::Reader;

Status parse(StringEntry& e, Bytes bytes, int depth);
Status parse(OperatorSetProto& o, Bytes bytes, int depth);
Status parse(TensorProto& t, Bytes bytes, int depth);
Status parse(SparseTensorProto& t, Bytes bytes, int depth);
Status parse(DimProto& d, Bytes bytes, int depth);
Status parse(TypeProto& t, Bytes bytes, int depth);
Status parse(ValueInfoProto& v, Bytes bytes, int depth);
Status parse(AttributeProto& a, Bytes bytes, int depth);
Status parse(NodeProto& n, Bytes bytes, int depth);
Status parse(GraphProto& g, Bytes bytes, int depth);
Status parse(FunctionProto& p, Bytes bytes, int depth);

// Calls f(field) for each field; f returns a Status.
template <class F>
Status for_each_field(Bytes message, int depth, F&& f) {
  if (depth > wire::kMaxDepth)
    return invalid_model("messages are nested too deeply").expected("at most " + std::to_string(wire::kMaxDepth) + " levels");
  Reader reader(message);
  for (Field field; reader.next(field);) ORKNN_TRY(f(field));
  return reader.status();
}

// Parses a length-delimited field as a message; others are ignored.
template <class T>
Status parse_field(const Field& field, T& message, int depth) {
  Bytes bytes;
  return field.get(bytes) ? parse(message, bytes, depth + 1) : Status{};
}
template <class T>
Status append_message(const Field& field, std::vector<T>& list, int depth) {
  return field.type == wire::WireType::Bytes ? parse_field(field, list.emplace_back(), depth) : Status{};
}
void append_string(const Field& field, std::vector<std::string_view>& list) {
  if (std::string_view text; field.get(text)) list.push_back(text);
}

Status parse(StringEntry& e, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(e.key);
    if (f.number == 2) f.get(e.value);
    return {};
  });
}

Status parse(OperatorSetProto& o, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(o.domain);
    if (f.number == 2) f.get(o.version);
    return {};
  });
}

Status parse(TensorProto& t, Bytes bytes, int depth) {
  t.message = bytes;
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: return append(f, t.dims);
      case 2: f.get(t.data_type); break;
      case 3: t.has_segment = true; break;
      case 8: f.get(t.name); break;
      case 9: t.has_raw_data |= f.get(t.raw_data); break;
      case 13: return append_message(f, t.external_data, depth);
      case 14: {
        int64_t location = 0;
        f.get(location);
        t.is_external = location == 1;
        break;
      }
      default: break;
    }
    return {};
  });
}

Status parse(SparseTensorProto& t, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    if (f.number == 1) return parse_field(f, t.values, depth);
    if (f.number == 2) return parse_field(f, t.indices, depth);
    if (f.number == 3) return append(f, t.dims);
    return {};
  });
}

Status parse(DimProto& d, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    if (f.number == 1 && f.get(d.value)) d.kind = DimProto::Kind::Value;
    if (f.number == 2 && f.get(d.parameter)) d.kind = DimProto::Kind::Parameter;
    return {};
  });
}

Status parse(TypeProto& t, Bytes bytes, int depth) {
  using Kind = TypeProto::Kind;
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: break;
      case 4: t.kind = Kind::Sequence; return {};
      case 5: t.kind = Kind::Map; return {};
      case 7: t.kind = Kind::Opaque; return {};
      case 8: t.kind = Kind::SparseTensor; return {};
      case 9:  // an optional tensor is read as one that is there
        t.kind = Kind::Optional;
        return for_each_field(f.bytes, depth + 1,
                              [&](const Field& g) { return g.number == 1 ? parse_field(g, t, depth + 1) : Status{}; });
      default: return {};
    }
    t.kind = Kind::Tensor;
    return for_each_field(f.bytes, depth + 1, [&](const Field& g) -> Status {
      if (g.number == 1) g.get(t.element_type);
      if (g.number != 2 || g.type != wire::WireType::Bytes) return {};
      t.has_shape = true;
      return for_each_field(g.bytes, depth + 2,
                            [&](const Field& h) { return h.number == 1 ? append_message(h, t.shape, depth + 2) : Status{}; });
    });
  });
}

Status parse(ValueInfoProto& v, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(v.name);
    if (f.number == 2) return parse_field(f, v.type, depth);
    return {};
  });
}

// The last one wins instead of being merged: no writer splits an attribute, and merging copies what came before.
template <class T>
Status parse_shared(const Field& field, std::shared_ptr<const T>& target, int depth) {
  if (field.type != wire::WireType::Bytes) return {};
  auto value = std::make_shared<T>();
  ORKNN_TRY(parse_field(field, *value, depth));
  target = std::move(value);
  return {};
}

Status parse(AttributeProto& a, Bytes bytes, int depth) {
  AttributeType seen = AttributeType::Undefined;
  int64_t stated = 0;
  ORKNN_TRY(for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: f.get(a.name); break;
      case 2:
        if (f.get(a.f)) seen = AttributeType::Float;
        break;
      case 3:
        if (f.get(a.i)) seen = AttributeType::Int;
        break;
      case 4:
        if (f.get(a.s)) seen = AttributeType::String;
        break;
      case 5: seen = AttributeType::Tensor; return parse_shared(f, a.tensor, depth);
      case 6: seen = AttributeType::Graph; return parse_shared(f, a.graph, depth);
      case 7: seen = AttributeType::Floats; return append(f, a.floats);
      case 8: seen = AttributeType::Ints; return append(f, a.ints);
      case 9:
        seen = AttributeType::Strings;
        append_string(f, a.strings);
        break;
      case 10: seen = AttributeType::Tensors; break;
      case 11: seen = AttributeType::Graphs; break;
      case 14: seen = AttributeType::Type; break;
      case 15: seen = AttributeType::Types; break;
      case 20: f.get(stated); break;
      case 21: f.get(a.reference); break;
      case 22: seen = AttributeType::SparseTensor; return parse_shared(f, a.sparse_tensor, depth);
      case 23: seen = AttributeType::SparseTensors; break;
      default: break;
    }
    return {};
  }));
  a.type = stated >= 1 && stated <= 14 ? static_cast<AttributeType>(stated) : seen;
  return {};
}

Status parse(NodeProto& n, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: append_string(f, n.inputs); break;
      case 2: append_string(f, n.outputs); break;
      case 3: f.get(n.name); break;
      case 4: f.get(n.op_type); break;
      case 5: return append_message(f, n.attributes, depth);
      case 7: f.get(n.domain); break;
      case 8: f.get(n.overload); break;
      default: break;
    }
    return {};
  });
}

Status parse(GraphProto& g, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: return append_message(f, g.nodes, depth);
      case 2: f.get(g.name); break;
      case 5: return append_message(f, g.initializers, depth);
      case 11: return append_message(f, g.inputs, depth);
      case 12: return append_message(f, g.outputs, depth);
      case 13: return append_message(f, g.value_info, depth);
      case 15: return append_message(f, g.sparse_initializers, depth);
      default: break;
    }
    return {};
  });
}

Status parse(FunctionProto& p, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: f.get(p.name); break;
      case 4: append_string(f, p.inputs); break;
      case 5: append_string(f, p.outputs); break;
      case 7: return append_message(f, p.nodes, depth);
      case 9: return append_message(f, p.op_sets, depth);
      case 10: f.get(p.domain); break;
      case 11: return append_message(f, p.defaults, depth);
      case 13: f.get(p.overload); break;
      default: break;
    }
    return {};
  });
}

Status parse(ModelProto& m, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) -> Status {
    switch (f.number) {
      case 1: f.get(m.ir_version); break;
      case 2: f.get(m.producer_name); break;
      case 3: f.get(m.producer_version); break;
      case 7: m.has_graph = true; return parse_field(f, m.graph, depth);
      case 8: return append_message(f, m.op_sets, depth);
      case 25: return append_message(f, m.functions, depth);
      default: break;
    }
    return {};
  });
}
}  // namespace

Result<ModelProto> parse_model(Bytes file) {
  ModelProto model;
  ORKNN_TRY(parse(model, file, 0));
  return model;
}

Result<TensorProto> parse_tensor(Bytes message) {
  TensorProto tensor;
  ORKNN_TRY(parse(tensor, message, 0));
  return tensor;
}

}  // namespace orknn::importer::onnx
