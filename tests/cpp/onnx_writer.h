// Writes small ONNX models in memory, for tests that need a file nobody exports (or no honest writer would).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orknn::tests {

// A protobuf message under construction.
class Message {
 public:
  Message& number(int field, int64_t value);
  Message& real(int field, float value);
  Message& text(int field, std::string_view value);
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& numbers(int field, std::span<const int64_t> values, bool packed = false);
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

// Attributes of a node.
Message attribute_int(std::string_view name, int64_t value);
Message attribute_float(std::string_view name, float value);
Message attribute_string(std::string_view name, std::string_view value);
Message attribute_ints(std::string_view name, const Ints& values);
Message attribute_floats(std::string_view name, const std::vector<float>& values);
Message attribute_tensor(std::string_view name, const Message& tensor);
Message attribute_graph(std::string_view name, const Message& graph);
Message attribute_reference(std::string_view name, std::string_view function_attribute, int type);

Message node(std::string_view op, const Names& inputs, const Names& outputs, const std::vector<Message>& attributes = {},
             std::string_view name = "", std::string_view domain = "");
// A dimension is a number, or a name when it is no number; "?" leaves it open.
Message value_info(std::string_view name, int data_type, const std::vector<std::string>& dims);
Message value_info_without_shape(std::string_view name, int data_type);
Message value_info_of_sequence(std::string_view name, int data_type);
Message raw_tensor(std::string_view name, int data_type, const Ints& dims, std::string_view bytes);
Message float_tensor(std::string_view name, const Ints& dims, const std::vector<float>& values);  // raw
Message int64_tensor(std::string_view name, const Ints& dims, const Ints& values);                // int64_data

struct GraphParts {
  std::vector<Message> nodes, initializers, inputs, outputs, value_info = {}, sparse_initializers = {};
};
Message graph(const GraphParts& parts, std::string_view name = "g");
Message op_set(std::string_view domain, int64_t version);
Message model(const Message& graph, int64_t opset, int64_t ir_version = 8, const std::vector<Message>& functions = {},
              const std::vector<Message>& more_op_sets = {});

}  // namespace orknn::tests
