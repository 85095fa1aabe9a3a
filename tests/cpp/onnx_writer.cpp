#include "onnx_writer.h"

#include <bit>
#include <cstring>

namespace orknn::tests {

void Message::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}
Message& Message::number(int field, int64_t value) {
  varint(static_cast<uint64_t>(field) << 3);
  varint(static_cast<uint64_t>(value));
  return *this;
}
Message& Message::real(int field, float value) {
  varint(static_cast<uint64_t>(field) << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
  return *this;
}
Message& Message::text(int field, std::string_view value) {
  varint(static_cast<uint64_t>(field) << 3 | 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}
Message& Message::numbers(int field, std::span<const int64_t> values, bool packed) {
  if (!packed) {
    for (int64_t v : values) number(field, v);
    return *this;
  }
  Message list;
  for (int64_t v : values) list.varint(static_cast<uint64_t>(v));
  return text(field, list.bytes_);
}

Message attribute_int(std::string_view name, int64_t value) { return Message().text(1, name).number(3, value).number(20, 2); }
Message attribute_float(std::string_view name, float value) { return Message().text(1, name).real(2, value).number(20, 1); }
Message attribute_string(std::string_view name, std::string_view value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
Message attribute_ints(std::string_view name, const Ints& values) {
  return Message().text(1, name).numbers(8, values).number(20, 7);
}
Message attribute_floats(std::string_view name, const std::vector<float>& values) {
  Message m;
  m.text(1, name).number(20, 6);
  for (float v : values) m.real(7, v);
  return m;
}
Message attribute_tensor(std::string_view name, const Message& tensor) {
  return Message().text(1, name).message(5, tensor).number(20, 4);
}
Message attribute_graph(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).number(20, 5);
}
Message attribute_reference(std::string_view name, std::string_view function_attribute, int type) {
  return Message().text(1, name).number(20, type).text(21, function_attribute);
}

Message node(std::string_view op, const Names& inputs, const Names& outputs, const std::vector<Message>& attributes,
             std::string_view name, std::string_view domain) {
  Message m;
  for (const std::string& i : inputs) m.text(1, i);
  for (const std::string& o : outputs) m.text(2, o);
  if (!name.empty()) m.text(3, name);
  m.text(4, op);
  for (const Message& a : attributes) m.message(5, a);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

Message value_info(std::string_view name, int data_type, const std::vector<std::string>& dims) {
  Message shape;
  for (const std::string& d : dims) {
    Message dim;
    if (d != "?" && d.find_first_not_of("-0123456789") == std::string::npos)
      dim.number(1, std::stoll(d));
    else if (d != "?")
      dim.text(2, d);
    shape.message(1, dim);
  }
  return Message().text(1, name).message(2, Message().message(1, Message().number(1, data_type).message(2, shape)));
}
Message value_info_without_shape(std::string_view name, int data_type) {
  return Message().text(1, name).message(2, Message().message(1, Message().number(1, data_type)));
}

Message value_info_of_sequence(std::string_view name, int data_type) {
  const Message tensor = Message().message(1, Message().number(1, data_type));
  return Message().text(1, name).message(2, Message().message(4, Message().message(1, tensor)));
}

Message raw_tensor(std::string_view name, int data_type, const Ints& dims, std::string_view bytes) {
  return Message().numbers(1, dims).number(2, data_type).text(8, name).text(9, bytes);
}
Message float_tensor(std::string_view name, const Ints& dims, const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return raw_tensor(name, 1, dims, bytes);
}
Message int64_tensor(std::string_view name, const Ints& dims, const Ints& values) {
  return Message().numbers(1, dims, true).number(2, 7).numbers(7, values, true).text(8, name);
}

Message graph(const GraphParts& parts, std::string_view name) {
  Message m;
  for (const Message& n : parts.nodes) m.message(1, n);
  m.text(2, name);
  for (const Message& t : parts.initializers) m.message(5, t);
  for (const Message& v : parts.inputs) m.message(11, v);
  for (const Message& v : parts.outputs) m.message(12, v);
  for (const Message& v : parts.value_info) m.message(13, v);
  for (const Message& t : parts.sparse_initializers) m.message(15, t);
  return m;
}
Message op_set(std::string_view domain, int64_t version) { return Message().text(1, domain).number(2, version); }
Message model(const Message& graph, int64_t opset, int64_t ir_version, const std::vector<Message>& functions,
              const std::vector<Message>& more_op_sets) {
  Message m;
  m.number(1, ir_version).text(2, "test").message(7, graph);
  if (opset > 0) m.message(8, op_set("", opset));
  for (const Message& o : more_op_sets) m.message(8, o);
  for (const Message& f : functions) m.message(25, f);
  return m;
}

}  // namespace orknn::tests
