// One node of an ONNX model as its row sees it. Our operators are the newest standard ones, so most rows edit the node where an
// older opset said something else; a row that returns tensors replaces the node by what it has built.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/lower/row.h"

namespace orknn::importer::onnx {

// New tensors and nodes are called after the node, nodes are put in front of it.
class Layer : public Emitter {
 public:
  Layer(ir::Graph& graph, const ir::OpSet& ops, ir::Node source, int64_t version)
      : Emitter(graph, ops, source.name, source.origin),
        node(std::move(source)),
        opset(version),
        first_new_tensor_(static_cast<int32_t>(graph.tensor_count())) {}

  ir::Node node;        // edited in place
  const int64_t opset;  // version of the op set of the node's domain

  // --- inputs
  using Outputs = std::vector<ir::TensorId>;  // empty: the node stays, as the row left it
  size_t operand_count() const { return node.inputs.size(); }
  Result<ir::TensorId> operand(size_t i) const;
  Status need_inputs(std::initializer_list<size_t> slots) const;
  bool has_input(size_t i) const { return !node.input(i).is_none(); }
  ir::TensorId input(size_t i) const { return node.input(i); }
  bool is_typed(size_t i) const { return has_input(i) && graph_.tensor(input(i)).dtype != DType::Undefined; }
  DType dtype(size_t i) const { return dtype_of(input(i)); }             // float32 when not known
  const ir::Shape* shape(size_t i) const { return shape_of(input(i)); }  // nullptr when the rank is not known
  const ir::TensorData* constant(size_t i) const { return constant_of(input(i)); }

  // --- attributes: taken away from the node. One of another kind stays, so that verification names it.
  std::optional<int64_t> take_int(const std::string& name);
  std::optional<double> take_float(const std::string& name);
  std::optional<std::string> take_string(const std::string& name);
  std::optional<std::vector<int64_t>> take_ints(const std::string& name);  // a single number is a list of one
  std::optional<std::vector<double>> take_floats(const std::string& name);
  bool take_flag(const std::string& name, bool fallback = false) { return take_int(name).value_or(fallback) != 0; }
  void rename(const std::string& from, const std::string& to);
  void set_default(const std::string& name, ir::Attribute value);

  // --- editing
  void set_input(size_t i, ir::TensorId tensor);  // absent inputs fill the gap
  // Only the first output may be read: the others go, or an error says which one is in use.
  Status only_first_output();
  // Another node that writes tensors which exist already.
  void add_node(std::string op, std::string name, std::vector<ir::TensorId> inputs, std::vector<ir::TensorId> outputs,
                ir::Attributes attributes = {});
  // Makes tensors the outputs of the node. What a row has built last gets the node's name and writes its output.
  void replace_by(const Outputs& results);

 private:
  int32_t first_new_tensor_;
};

using Row = OperatorRow<Layer>;

// Our operator under another name, as in other frameworks' tables; here the node stays, with its attributes.
template <OpName Op>
void same(Layer& layer) {
  layer.node.op = Op.string();
}

std::span<const Row> version_rows();
std::span<const Row> microsoft_rows();
std::span<const Row> microsoft_attention_rows();
std::span<const Row> microsoft_few_bits_rows();
std::span<const Row> linear_attention_rows();

// Applies the row for the node, if there is one, and adds the node to the graph unless the row has replaced it.
Status add(Layer& layer);

}  // namespace orknn::importer::onnx
