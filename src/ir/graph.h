// The one graph IR from importer to compiler: tensors (SSA values) and nodes in topological order.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/attribute.h"
#include "ir/tensor_data.h"

namespace orknn::ir {

// Index of a tensor or node in its graph. Ids stay valid until compact().
struct TensorId {
  int32_t index = -1;  // -1 = no tensor (an absent optional input)
  bool is_none() const { return index < 0; }
  explicit operator bool() const { return index >= 0; }
  auto operator<=>(const TensorId&) const = default;
};
struct NodeId {
  int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  auto operator<=>(const NodeId&) const = default;
};

// How the bytes of a 4-D tensor are meant. Kernels see row-major data of the stated shape; this only labels the axes.
enum class Layout : uint8_t { Undefined = 0, NHWC = 1, NCHW = 2 };

// Affine quantization: real = (q - zero_point) * scale, per tensor (one entry) or per channel of `axis`.
struct QuantParams {
  std::vector<float> scale;
  std::vector<int32_t> zero_point;
  int32_t axis = -1;            // -1 = per tensor
  std::vector<float> min, max;  // calibrated range, if known
  bool fixed_point = false;     // dynamic fixed point: the scale is a power of two, the zero point 0
  bool operator==(const QuantParams&) const = default;
};

struct Tensor {
  std::string name;  // unique in its graph, never empty
  DType dtype = DType::Undefined;
  std::optional<Shape> shape;  // nothing = rank unknown
  Layout layout = Layout::Undefined;
  std::optional<QuantParams> quant;
  TensorData constant;  // has_value() for constants

  bool is_constant() const { return constant.has_value(); }
};

// An element-wise step computed on a node's result before it is stored: op (a one- or two-operand element-wise op of
// the op set), its attributes, and for two operands which of the node's inputs is the other one. A tail never changes the
// shape of the result. A Clip step states its bounds as float attributes `min` and `max` (absent = unbounded).
struct TailStep {
  std::string op;
  Attributes attributes;
  int32_t operand = -1;        // index into Node::inputs, -1 for one-operand ops
  bool operand_first = false;  // the other operand is the left one (Sub, Div)
};

struct Node {
  std::string op;                 // name in the op set; the domain of custom ops is part of the name ("com.acme:Foo")
  std::string name;               // the user's name for it; may repeat, may be empty
  std::vector<TensorId> inputs;   // own inputs, then the operands of tail steps
  std::vector<TensorId> outputs;  // none for an unused optional output
  Attributes attributes;
  std::vector<TailStep> tail;       // applied in order to output 0
  std::vector<std::string> origin;  // source framework names of the layers this node came from

  // Number of inputs that belong to the op itself.
  size_t own_input_count() const;
  bool has_input(size_t i) const { return i < own_input_count() && !inputs[i].is_none(); }
  TensorId input(size_t i) const { return i < inputs.size() ? inputs[i] : TensorId{}; }
  TensorId output(size_t i = 0) const { return i < outputs.size() ? outputs[i] : TensorId{}; }
  // "ConvAddRelu" for a Conv with tail Add, Relu.
  std::string type_name() const;
};

class Graph {
 public:
  std::string name;

  // --- tensors
  // A new tensor; the name is made unique if it is taken ("x", "x_1", ...).
  TensorId add_tensor(std::string name, DType dtype = DType::Undefined, std::optional<Shape> shape = {});
  TensorId add_constant(std::string name, TensorData value);
  const Tensor& tensor(TensorId id) const { return tensors_[check(id)]; }
  Tensor& tensor(TensorId id) { return tensors_[check(id)]; }
  TensorId find_tensor(std::string_view name) const;  // none when there is no such tensor
  void rename_tensor(TensorId id, std::string name);  // made unique like add_tensor
  size_t tensor_count() const { return tensors_.size(); }
  bool is_constant(TensorId id) const { return id && tensor(id).is_constant(); }
  // The value of a constant tensor, nullptr for anything else.
  const TensorData* constant(TensorId id) const { return is_constant(id) ? &tensor(id).constant : nullptr; }

  // --- nodes, in topological order after every public operation that says so
  // Appends a node; producers and users are updated. Outputs must not have a producer yet.
  NodeId add_node(Node node);
  // Appends a node with `outputs` new tensors named after the node.
  NodeId add_node(std::string op, std::string name, std::vector<TensorId> inputs, Attributes attributes = {}, size_t outputs = 1);
  void remove_node(NodeId id);
  bool is_alive(NodeId id) const {
    return id && static_cast<size_t>(id.index) < nodes_.size() && alive_[static_cast<size_t>(id.index)];
  }
  const Node& node(NodeId id) const;
  // Changes a node in place; producers and users follow.
  void replace_node(NodeId id, Node node);
  // Changes one attribute of a node; wiring and order stay.
  void set_attribute(NodeId id, std::string name, Attribute value);
  // All live nodes in execution order (computed on demand, cached). Ties keep the order of insertion.
  const std::vector<NodeId>& order() const;
  size_t node_count() const;  // live nodes
  bool has_cycle() const;

  // --- wiring
  NodeId producer(TensorId id) const;            // none for inputs and constants
  const Node* producer_node(TensorId id) const;  // nullptr for none
  // The producer of `id` if it is of type `op`, has no tail, and `id` has exactly one reader and is no graph output.
  const Node* sole_producer(TensorId id, std::string_view op) const;
  std::span<const NodeId> users(TensorId id) const;  // one entry per reading input slot
  bool is_output(TensorId id) const;
  bool is_input(TensorId id) const;
  // Readers counting graph outputs.
  size_t reader_count(TensorId id) const;
  // Every reader of `from`, graph outputs included, reads `to` instead.
  void replace_uses(TensorId from, TensorId to);
  // Only node inputs, graph outputs keep `from`.
  void replace_node_uses(TensorId from, TensorId to);

  // --- ports
  std::vector<TensorId>& inputs() { return inputs_; }
  std::vector<TensorId>& outputs() { return outputs_; }
  const std::vector<TensorId>& inputs() const { return inputs_; }
  const std::vector<TensorId>& outputs() const { return outputs_; }

  // Drops dead nodes and unused tensors and renumbers everything in execution order. All ids become invalid.
  void compact();

 private:
  size_t check(TensorId id) const {
    ORKNN_ASSERT(id.index >= 0 && static_cast<size_t>(id.index) < tensors_.size(), "tensor id belongs to this graph");
    return static_cast<size_t>(id.index);
  }
  void link(NodeId id);
  void unlink(NodeId id);
  std::string unique_name(std::string name) const;

  std::vector<Tensor> tensors_;
  std::vector<NodeId> producer_;            // per tensor
  std::vector<std::vector<NodeId>> users_;  // per tensor
  std::unordered_map<std::string, int32_t> by_name_;
  std::vector<Node> nodes_;
  std::vector<char> alive_;
  std::vector<TensorId> inputs_, outputs_;
  mutable std::vector<NodeId> order_;
  mutable bool order_valid_ = false;
  mutable std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace orknn::ir
