// Turns a node of any opset into the newest form, the only one our ops know. A row of a table says for which op and up to which
// version a function applies; the function edits the node and may put others in front of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer::onnx {

// New tensors and nodes are called after the node, nodes are put in front of it.
class Upgrade : public Emitter {
 public:
  Upgrade(ir::Graph& graph, const ir::OpSet& ops, ir::Node source, int64_t version)
      : Emitter(graph, ops, source.name, source.origin), node(std::move(source)), opset(version) {}

  ir::Node node;        // edited in place, added to the graph by the caller
  const int64_t opset;  // version of the op set of the node's domain

  // --- what is known about the inputs
  bool has_input(size_t i) const { return !node.input(i).is_none(); }
  ir::TensorId input(size_t i) const { return node.input(i); }
  bool is_typed(size_t i) const { return has_input(i) && graph_.tensor(input(i)).dtype != DType::Undefined; }
  DType dtype(size_t i) const { return dtype_of(input(i)); }             // float32 when not known
  const ir::Shape* shape(size_t i) const { return shape_of(input(i)); }  // nullptr when the rank is not known
  std::optional<int64_t> rank(size_t i) const { return rank_of(input(i)); }
  const ir::TensorData* constant(size_t i) const { return constant_of(input(i)); }

  // --- attributes: taken away from the node. One of another kind stays, so that verification names it.
  std::optional<int64_t> take_int(const std::string& name);
  std::optional<double> take_float(const std::string& name);
  std::optional<std::string> take_string(const std::string& name);
  std::optional<std::vector<int64_t>> take_ints(const std::string& name);  // a single number is a list of one
  std::optional<std::vector<double>> take_floats(const std::string& name);
  void drop(const std::string& name) { node.attributes.erase(name); }
  void rename(const std::string& from, const std::string& to);

  // --- editing
  void set_input(size_t i, ir::TensorId tensor);  // absent inputs fill the gap
  // Makes this node another op with other inputs; outputs stay.
  void become(std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes = {});
  // Only the first output may be read: the others go, or an error says which one is in use.
  Status only_first_output();
};

struct UpgradeRow {
  std::string_view op;  // with domain, as in Node::op
  int64_t below;        // applies to opsets before this one
  Status (*apply)(Upgrade&);
};
inline constexpr int64_t kAnyVersion = INT64_MAX;

// Rows of one domain; those of one op are applied in their order.
std::span<const UpgradeRow> standard_rows();
std::span<const UpgradeRow> microsoft_rows();

// Applies all rows for the node, oldest first.
Status upgrade(Upgrade& node);

}  // namespace orknn::importer::onnx
