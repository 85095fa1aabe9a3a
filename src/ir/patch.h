// A change to a graph as a value. Rules read a graph and return a patch; only the driver applies it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace orknn::ir {

class Patch {
 public:
  // `graph` is the graph the patch will be applied to; new tensors get ids after its last one.
  explicit Patch(const Graph& graph) : base_(static_cast<int32_t>(graph.tensor_count())) {}

  // `quant`: the grid that the values of a float constant lie on.
  TensorId add_constant(std::string name, TensorData value, std::optional<QuantParams> quant = {});
  TensorId add_tensor(std::string name, DType dtype = DType::Undefined, std::optional<Shape> shape = {},
                      Layout layout = Layout::Undefined);
  // A node with one new output; returns that output. `origin` is usually joined from the nodes it replaces.
  TensorId add_node(std::string op, std::string name, std::vector<TensorId> inputs, Attributes attributes,
                    std::vector<std::string> origin);
  void add_node(Node node);  // with outputs made by add_tensor, or taken over from removed nodes
  void remove_node(NodeId id) { removed_.push_back(id); }
  // `node` takes the place of `id` in the order of execution too; a node that is added comes as late as its readers allow.
  void replace_node(NodeId id, Node node) { replaced_nodes_.emplace_back(id, std::move(node)); }
  // All readers of `from`, graph outputs included, read `to`. If `from` is a graph output its name moves to `to`.
  void replace_tensor(TensorId from, TensorId to) { replaced_.push_back({from, to}); }

  // What the patch holds, for whoever checks it before it is applied.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::pair<NodeId, Node>> replaced_nodes() const { return replaced_nodes_; }
  std::span<const std::pair<TensorId, TensorId>> replacements() const { return replaced_; }
  bool is_new(TensorId id) const { return id.index >= base_; }
  const TensorData* constant(TensorId id) const;  // of a constant this patch adds, else nullptr

  bool empty() const { return nodes_.empty() && removed_.empty() && replaced_nodes_.empty() && replaced_.empty(); }
  // What apply() did: nodes it added or replaced, and nodes it removed, those that became useless included.
  struct Applied {
    std::vector<NodeId> added, removed;
  };
  // Applies the patch: removes, adds, rewires; then removes the nodes whose results have no readers any more because of it.
  Applied apply(Graph& graph) const;

 private:
  struct NewTensor {
    std::string name;
    DType dtype;
    std::optional<Shape> shape;
    Layout layout;
    TensorData constant;
    std::optional<QuantParams> quant;
  };
  int32_t base_;
  std::vector<NewTensor> tensors_;
  std::vector<Node> nodes_;
  std::vector<NodeId> removed_;
  std::vector<std::pair<NodeId, Node>> replaced_nodes_;
  std::vector<std::pair<TensorId, TensorId>> replaced_;
};

// What a rule says about a node: no match, a patch, or an error.
using Rewrite = Result<std::optional<Patch>>;
inline Rewrite no_match() { return std::optional<Patch>{}; }

// Removes nodes none of whose outputs are read, repeatedly. Returns how many.
size_t remove_dead_nodes(Graph& graph);

// Joined origins of several nodes, each name once.
std::vector<std::string> join_origins(std::span<const Node* const> nodes);
inline std::vector<std::string> join_origins(std::initializer_list<const Node*> nodes) {
  return join_origins(std::span<const Node* const>(nodes.begin(), nodes.size()));
}

}  // namespace orknn::ir
