// Field numbers are those of the public onnx.proto schema. A singular message that occurs twice is merged, the last scalar wins,
// fields of an unexpected wire type are ignored: all as protobuf does.
#include "import/onnx/parse.h"

namespace orknn::importer::onnx {
namespace {
using wire::Field;
using wire::Slot;

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
  return wire::for_each_field(message, f);
}

// As wire::read_field; a message is merged with what was there.
template <class T>
Status read(const Field& field, T& target, int depth) {
  if constexpr (requires { parse(target, field.bytes, depth); }) {
    return field.type == wire::WireType::Bytes ? parse(target, field.bytes, depth + 1) : Status();
  } else if constexpr (requires { parse(target[0], field.bytes, depth); }) {
    return field.type == wire::WireType::Bytes ? parse(target.emplace_back(), field.bytes, depth + 1) : Status();
  } else {
    return wire::read_field(field, target);
  }
}

template <class... T>
Status read_slots(const Field& field, int depth, const Slot<T>&... slots) {
  Status status;
  static_cast<void>(((field.number == slots.number && (status = read(field, slots.target, depth), true)) || ...));
  return status;
}
template <class... T>
Status parse_slots(Bytes bytes, int depth, const Slot<T>&... slots) {
  return for_each_field(bytes, depth, [&](const Field& f) { return read_slots(f, depth, slots...); });
}

Status parse(StringEntry& e, Bytes bytes, int depth) { return parse_slots(bytes, depth, Slot{1, e.key}, Slot{2, e.value}); }
Status parse(OperatorSetProto& o, Bytes bytes, int depth) {
  return parse_slots(bytes, depth, Slot{1, o.domain}, Slot{2, o.version});
}

Status parse(TensorProto& t, Bytes bytes, int depth) {
  t.message = bytes;
  int64_t location = t.is_external ? 1 : 0;
  ORKNN_TRY(for_each_field(bytes, depth, [&](const Field& f) {
    t.has_segment |= f.number == 3;
    t.has_raw_data |= f.number == 9 && f.type == wire::WireType::Bytes;
    return read_slots(f, depth, Slot{1, t.dims}, Slot{2, t.data_type}, Slot{8, t.name}, Slot{9, t.raw_data},
                      Slot{13, t.external_data}, Slot{14, location});
  }));
  t.is_external = location == 1;
  return {};
}

Status parse(SparseTensorProto& t, Bytes bytes, int depth) {
  return parse_slots(bytes, depth, Slot{1, t.values}, Slot{2, t.indices}, Slot{3, t.dims});
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
                              [&](const Field& g) { return g.number == 1 ? read(g, t, depth + 1) : Status{}; });
      default: return {};
    }
    t.kind = Kind::Tensor;
    return for_each_field(f.bytes, depth + 1, [&](const Field& g) -> Status {
      if (g.number == 1) g.get(t.element_type);
      if (g.number != 2 || g.type != wire::WireType::Bytes) return {};
      t.has_shape = true;
      return for_each_field(g.bytes, depth + 2,
                            [&](const Field& h) { return h.number == 1 ? read(h, t.shape, depth + 2) : Status{}; });
    });
  });
}

Status parse(ValueInfoProto& v, Bytes bytes, int depth) { return parse_slots(bytes, depth, Slot{1, v.name}, Slot{2, v.type}); }

// The last one wins instead of being merged: no writer splits an attribute, and merging copies what came before.
template <class T>
Status parse_shared(const Field& field, std::shared_ptr<const T>& target, int depth) {
  if (field.type != wire::WireType::Bytes) return {};
  auto value = std::make_shared<T>();
  ORKNN_TRY(read(field, *value, depth));
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
      case 9: seen = AttributeType::Strings; return read(f, a.strings, depth);
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
  return parse_slots(bytes, depth, Slot{1, n.inputs}, Slot{2, n.outputs}, Slot{3, n.name}, Slot{4, n.op_type},
                     Slot{5, n.attributes}, Slot{7, n.domain}, Slot{8, n.overload});
}

Status parse(GraphProto& g, Bytes bytes, int depth) {
  return parse_slots(bytes, depth, Slot{1, g.nodes}, Slot{2, g.name}, Slot{5, g.initializers}, Slot{11, g.inputs},
                     Slot{12, g.outputs}, Slot{13, g.value_info}, Slot{15, g.sparse_initializers});
}

Status parse(FunctionProto& p, Bytes bytes, int depth) {
  return parse_slots(bytes, depth, Slot{1, p.name}, Slot{4, p.inputs}, Slot{5, p.outputs}, Slot{7, p.nodes}, Slot{9, p.op_sets},
                     Slot{10, p.domain}, Slot{11, p.defaults}, Slot{13, p.overload});
}

Status parse(ModelProto& m, Bytes bytes, int depth) {
  return for_each_field(bytes, depth, [&](const Field& f) {
    m.has_graph |= f.number == 7;
    return read_slots(f, depth, Slot{1, m.ir_version}, Slot{2, m.producer_name}, Slot{3, m.producer_version}, Slot{7, m.graph},
                      Slot{8, m.op_sets}, Slot{25, m.functions});
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
