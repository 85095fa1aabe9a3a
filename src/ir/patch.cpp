#include "ir/patch.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace orknn::ir {

TensorId Patch::add_tensor(std::string name, DType dtype, std::optional<Shape> shape, Layout layout) {
  tensors_.push_back({std::move(name), dtype, std::move(shape), layout, {}, {}});
  return {base_ + static_cast<int32_t>(tensors_.size()) - 1};
}

TensorId Patch::add_constant(std::string name, TensorData value, std::optional<QuantParams> quant) {
  const TensorId id = add_tensor(std::move(name));
  tensors_.back().constant = std::move(value);
  tensors_.back().quant = std::move(quant);
  return id;
}

const TensorData* Patch::constant(TensorId id) const {
  if (!is_new(id)) return nullptr;
  const TensorData& value = tensors_[static_cast<size_t>(id.index - base_)].constant;
  return value.has_value() ? &value : nullptr;
}

TensorId Patch::add_node(std::string op, std::string name, std::vector<TensorId> inputs, Attributes attributes,
                         std::vector<std::string> origin) {
  Node n;
  const TensorId out = add_tensor(name.empty() ? op : name);
  n.op = std::move(op);
  n.name = std::move(name);
  n.inputs = std::move(inputs);
  n.outputs = {out};
  n.attributes = std::move(attributes);
  n.origin = std::move(origin);
  nodes_.push_back(std::move(n));
  return out;
}

void Patch::add_node(Node node) { nodes_.push_back(std::move(node)); }

Patch::Applied Patch::apply(Graph& graph) const {
  ORKNN_ASSERT(base_ == static_cast<int32_t>(graph.tensor_count()), "a patch is applied to the graph it was made for");
  Applied done;
  std::vector<NodeId> suspects;  // nodes that may have lost their last reader
  const auto suspect_producers = [&](NodeId id) {
    for (TensorId t : graph.node(id).inputs)
      if (const NodeId p = graph.producer(t)) suspects.push_back(p);
  };
  const auto remove = [&](NodeId id) {
    suspect_producers(id);
    graph.remove_node(id);
    done.removed.push_back(id);
  };
  for (const NewTensor& t : tensors_) {
    if (t.constant.has_value())
      graph.tensor(graph.add_constant(t.name, t.constant)).quant = t.quant;
    else
      graph.tensor(graph.add_tensor(t.name, t.dtype, t.shape)).layout = t.layout;
  }
  for (NodeId id : removed_)
    if (graph.is_alive(id)) remove(id);
  for (const auto& [id, n] : replaced_nodes_) {
    suspect_producers(id);
    graph.replace_node(id, n);
    done.added.push_back(id);
  }
  for (const Node& n : nodes_) done.added.push_back(graph.add_node(n));
  for (const auto& [from, to] : replaced_) {
    const bool was_output = graph.is_output(from);
    graph.replace_uses(from, to);
    if (const NodeId p = graph.producer(from)) suspects.push_back(p);
    if (was_output && !graph.is_input(to)) {  // what the numbers of an output mean stays
      const Tensor& before = graph.tensor(from);
      Tensor& after = graph.tensor(to);
      if (after.layout == Layout::Undefined) after.layout = before.layout;
      if (!after.quant && (after.dtype == before.dtype || after.dtype == DType::Undefined)) after.quant = before.quant;
    }
    // The user knows outputs by name: the new source takes the old name over, unless it is an input, an older constant or
    // an output under its own name.
    const bool may_rename = graph.producer(to) || (graph.is_constant(to) && to.index >= base_);
    if (was_output && may_rename && std::count(graph.outputs().begin(), graph.outputs().end(), to) == 1) {
      const std::string name = graph.tensor(from).name;
      graph.rename_tensor(from, name + "_before");
      graph.rename_tensor(to, name);
    }
  }
  suspects.insert(suspects.end(), done.added.begin(), done.added.end());
  while (!suspects.empty()) {
    const NodeId id = suspects.back();
    suspects.pop_back();
    if (!graph.is_alive(id)) continue;
    const std::vector<TensorId>& outputs = graph.node(id).outputs;
    if (std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) { return t && graph.reader_count(t) > 0; })) continue;
    remove(id);
  }
  // What a new tensor replaces often has the name it would like: a rescaled weight keeps being called as in the model.
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorId id{base_ + static_cast<int32_t>(i)}, holder = graph.find_tensor(tensors_[i].name);
    if (!holder || holder.index >= base_ || graph.reader_count(holder) > 0 || graph.producer(holder) || graph.is_input(holder))
      continue;
    if (graph.is_output(id)) continue;
    graph.rename_tensor(holder, tensors_[i].name + "_before");
    graph.rename_tensor(id, tensors_[i].name);
  }
  return done;
}

size_t remove_dead_nodes(Graph& graph) {
  size_t removed = 0;
  const std::vector<NodeId> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph.node(*it);
    if (std::any_of(n.outputs.begin(), n.outputs.end(), [&](TensorId t) { return t && graph.reader_count(t) > 0; })) continue;
    graph.remove_node(*it);
    ++removed;
  }
  return removed;
}

std::vector<std::string> join_origins(std::span<const Node* const> nodes) {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> known;
  for (const Node* n : nodes)
    for (const std::string& name : n->origin)
      if (known.insert(name).second) out.push_back(name);
  return out;
}

}  // namespace orknn::ir
