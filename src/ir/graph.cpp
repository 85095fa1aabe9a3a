#include "ir/graph.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/forks.h"
#include "ir/custom_op.h"

namespace orknn::ir {

size_t Node::own_input_count() const {
  size_t operands = 0;
  for (const TailStep& step : tail) operands += step.operand >= 0;
  return inputs.size() - operands;
}

std::string Node::type_name() const {
  std::string text(custom_type(op));
  for (const TailStep& step : tail) text += step.op;
  return text;
}

std::string Graph::unique_name(std::string name) const {
  if (name.empty()) name = "t";
  if (!by_name_.contains(name)) return name;
  int& suffix = next_suffix_[name];
  std::string candidate;
  do candidate = name + "_" + std::to_string(++suffix);
  while (by_name_.contains(candidate));
  return candidate;
}

TensorId Graph::add_tensor(std::string wanted, DType dtype, std::optional<Shape> shape) {
  const TensorId id{static_cast<int32_t>(tensors_.size())};
  Tensor t;
  t.name = unique_name(std::move(wanted));
  t.dtype = dtype;
  t.shape = std::move(shape);
  by_name_[t.name] = id.index;
  tensors_.push_back(std::move(t));
  producer_.push_back({});
  users_.emplace_back();
  return id;
}

TensorId Graph::add_constant(std::string wanted, TensorData value) {
  const TensorId id = add_tensor(std::move(wanted), value.dtype(), to_shape(value.dims()));
  tensor(id).constant = std::move(value);
  return id;
}

TensorId Graph::find_tensor(std::string_view wanted) const {
  const auto it = by_name_.find(std::string(wanted));
  return it == by_name_.end() ? TensorId{} : TensorId{it->second};
}

void Graph::rename_tensor(TensorId id, std::string wanted) {
  Tensor& t = tensor(id);
  if (t.name == wanted) return;
  by_name_.erase(t.name);
  t.name = unique_name(std::move(wanted));
  by_name_[t.name] = id.index;
}

void Graph::link(NodeId id) {
  const Node& n = nodes_[static_cast<size_t>(id.index)];
  for (TensorId t : n.inputs)
    if (t) users_[check(t)].push_back(id);
  for (TensorId t : n.outputs) {
    if (!t) continue;
    ORKNN_ASSERT(!producer_[check(t)], "a tensor has one producer");
    producer_[check(t)] = id;
  }
  order_valid_ = false;
}

void Graph::unlink(NodeId id) {
  const Node& n = nodes_[static_cast<size_t>(id.index)];
  for (TensorId t : n.inputs) {
    if (!t) continue;
    auto& list = users_[check(t)];
    if (const auto it = std::find(list.begin(), list.end(), id); it != list.end()) list.erase(it);
  }
  for (TensorId t : n.outputs)
    if (t) producer_[check(t)] = {};
  order_valid_ = false;
}

NodeId Graph::add_node(Node node) {
  const NodeId id{static_cast<int32_t>(nodes_.size())};
  nodes_.push_back(std::move(node));
  alive_.push_back(1);
  link(id);
  return id;
}

NodeId Graph::add_node(std::string op, std::string node_name, std::vector<TensorId> inputs, Attributes attributes,
                       size_t outputs) {
  Node n;
  n.op = std::move(op);
  n.name = std::move(node_name);
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) n.outputs.push_back(add_tensor(n.name.empty() ? n.op : n.name));
  return add_node(std::move(n));
}

void Graph::remove_node(NodeId id) {
  ORKNN_ASSERT(is_alive(id), "only a live node can be removed");
  unlink(id);
  alive_[static_cast<size_t>(id.index)] = 0;
}

const Node& Graph::node(NodeId id) const {
  ORKNN_ASSERT(id.index >= 0 && static_cast<size_t>(id.index) < nodes_.size(), "node id belongs to this graph");
  return nodes_[static_cast<size_t>(id.index)];
}

void Graph::replace_node(NodeId id, Node node) {
  ORKNN_ASSERT(is_alive(id), "only a live node can be replaced");
  unlink(id);
  nodes_[static_cast<size_t>(id.index)] = std::move(node);
  link(id);
}

void Graph::set_attribute(NodeId id, std::string name, Attribute value) {
  ORKNN_ASSERT(is_alive(id), "only a live node can be changed");
  nodes_[static_cast<size_t>(id.index)].attributes.set(std::move(name), std::move(value));
}

size_t Graph::node_count() const { return static_cast<size_t>(std::count(alive_.begin(), alive_.end(), 1)); }

namespace {
// Readers of a finished graph may come from several threads; the first one computes.
BriefMutex& order_mutex() {
  static BriefMutex& mutex = *new BriefMutex;
  return mutex;
}
ORKNN_MAKE_AT_LOAD(order_mutex);
}  // namespace

const std::vector<NodeId>& Graph::order() const {
  const std::atomic_ref<bool> valid(order_valid_);
  if (valid.load(std::memory_order_acquire)) return order_;
  const std::lock_guard lock(order_mutex());
  if (valid.load(std::memory_order_relaxed)) return order_;
  // Kahn's algorithm with a heap on the insertion index: deterministic and close to the source order.
  std::vector<int32_t> waiting(nodes_.size(), 0), ready;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!alive_[i]) continue;
    for (TensorId t : nodes_[i].inputs)
      if (t && producer_[check(t)]) ++waiting[i];
    if (waiting[i] == 0) ready.push_back(static_cast<int32_t>(i));
  }
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  order_.clear();
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const NodeId id{ready.back()};
    ready.pop_back();
    order_.push_back(id);
    for (TensorId t : nodes_[static_cast<size_t>(id.index)].outputs) {
      if (!t) continue;
      for (NodeId user : users_[check(t)])
        if (--waiting[static_cast<size_t>(user.index)] == 0) {
          ready.push_back(user.index);
          std::push_heap(ready.begin(), ready.end(), std::greater<>());
        }
    }
  }
  valid.store(true, std::memory_order_release);
  return order_;
}

bool Graph::has_cycle() const { return order().size() != node_count(); }

NodeId Graph::producer(TensorId id) const { return id ? producer_[check(id)] : NodeId{}; }
const Node* Graph::producer_node(TensorId id) const {
  const NodeId p = producer(id);
  return p ? &nodes_[static_cast<size_t>(p.index)] : nullptr;
}

const Node* Graph::sole_producer(TensorId id, std::string_view op) const {
  const Node* p = producer_node(id);
  return p && p->op == op && p->tail.empty() && reader_count(id) == 1 && !is_output(id) ? p : nullptr;
}

std::span<const NodeId> Graph::users(TensorId id) const { return users_[check(id)]; }
bool Graph::is_output(TensorId id) const { return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end(); }
bool Graph::is_input(TensorId id) const { return std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end(); }
size_t Graph::reader_count(TensorId id) const {
  return users(id).size() + static_cast<size_t>(std::count(outputs_.begin(), outputs_.end(), id));
}

void Graph::replace_node_uses(TensorId from, TensorId to) {
  if (from == to) return;
  for (NodeId user : users_[check(from)]) {
    for (TensorId& t : nodes_[static_cast<size_t>(user.index)].inputs)
      if (t == from) t = to;
    users_[check(to)].push_back(user);
  }
  users_[check(from)].clear();
  order_valid_ = false;
}

void Graph::replace_uses(TensorId from, TensorId to) {
  replace_node_uses(from, to);
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::compact() {
  Graph fresh;
  fresh.name = name;
  std::vector<TensorId> moved(tensors_.size());
  const auto move_tensor = [&](TensorId id) -> TensorId {
    if (!id) return {};
    TensorId& target = moved[check(id)];
    if (!target) {
      target = {static_cast<int32_t>(fresh.tensors_.size())};
      fresh.by_name_[tensor(id).name] = target.index;
      fresh.tensors_.push_back(std::move(tensor(id)));
      fresh.producer_.push_back({});
      fresh.users_.emplace_back();
    }
    return target;
  };
  for (TensorId id : inputs_) fresh.inputs_.push_back(move_tensor(id));
  for (NodeId id : order()) {
    Node n = std::move(nodes_[static_cast<size_t>(id.index)]);
    for (TensorId& t : n.inputs) t = move_tensor(t);
    for (TensorId& t : n.outputs) t = move_tensor(t);
    fresh.add_node(std::move(n));
  }
  for (TensorId id : outputs_) fresh.outputs_.push_back(move_tensor(id));
  *this = std::move(fresh);
}

}  // namespace orknn::ir
