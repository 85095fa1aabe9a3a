#include "optimize/match.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orknn::optimize {
using namespace ir;

int64_t rank_of(const Graph& g, TensorId id) {
  return id && g.tensor(id).shape ? static_cast<int64_t>(g.tensor(id).shape->size()) : -1;
}

DType dtype_of(const Graph& g, TensorId id) { return id ? g.tensor(id).dtype : DType::Undefined; }
bool is_float_tensor(const Graph& g, TensorId id) { return is_float(dtype_of(g, id)); }

bool same_shape(const Graph& g, TensorId a, TensorId b) {
  if (!a || !b || !g.tensor(a).shape || !g.tensor(b).shape) return false;
  return a == b || *g.tensor(a).shape == *g.tensor(b).shape;
}

std::optional<std::vector<int64_t>> constant_ints(const Graph& g, TensorId id) {
  const TensorData* c = g.constant(id);
  if (!c || !is_integer(c->dtype())) return std::nullopt;
  return to_ints(c->view());
}

std::optional<double> constant_scalar(const Graph& g, TensorId id) {
  const TensorData* c = g.constant(id);
  if (!c || c->count() != 1) return std::nullopt;
  return to_doubles(c->view())[0];
}

std::optional<double> constant_splat(const Graph& g, TensorId id) {
  const TensorData* c = g.constant(id);
  if (!c || c->count() < 1) return std::nullopt;
  const std::vector<double> values = to_doubles(c->view());
  if (!std::ranges::all_of(values, [&](double v) { return v == values[0]; })) return std::nullopt;
  return values[0];
}

bool nearly(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::abs(b); }

bool is_scalar(const Graph& g, TensorId id, double value, double tolerance) {
  const std::optional<double> v = constant_scalar(g, id);
  return v && (*v == value || nearly(*v, value, tolerance));
}

TensorData constant_from(const std::vector<double>& values, Dims dims, DType dtype) {
  return convert(TensorData::from<double>(std::move(dims), values).view(), dtype);
}

NodeId id_of(const Graph& g, const Node& node) {
  for (TensorId t : node.outputs)
    if (t) return g.producer(t);
  return {};
}

const Node* producer(const Graph& g, TensorId id, std::string_view op) {
  const Node* p = g.producer_node(id);
  return p && p->op == op && p->tail.empty() ? p : nullptr;
}

bool read_once(const Graph& g, TensorId id) { return id && g.reader_count(id) == 1 && !g.is_output(id); }

const Node* only_reader(const Graph& g, TensorId id) {
  if (!read_once(g, id)) return nullptr;
  return &g.node(g.users(id).front());
}

bool is_closed(const Graph& g, const std::vector<const Node*>& nodes, const Node& root) {
  for (const Node* n : nodes) {
    if (n == &root) continue;
    for (TensorId t : n->outputs) {
      if (!t) continue;
      if (g.is_output(t)) return false;
      for (NodeId user : g.users(t)) {
        const Node* reader = &g.node(user);
        if (reader != &root && std::ranges::find(nodes, reader) == nodes.end()) return false;
      }
    }
  }
  return true;
}

bool only_first_output(const Graph& g, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] && g.reader_count(node.outputs[i]) > 0) return false;
  return true;
}

bool can_replace(const Graph& g, TensorId from, TensorId to) {
  return !g.is_output(from) || (g.producer(to) && !g.is_output(to));
}

std::optional<std::vector<int64_t>> reduce_axes(const Graph& g, const Node& node) {
  const int64_t rank = rank_of(g, node.input(0));
  if (rank < 0) return std::nullopt;
  std::vector<int64_t> axes;
  if (node.has_input(1)) {
    const auto given = constant_ints(g, node.input(1));
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (axes.empty() && node.attributes.int_or("noop_with_empty_axes", 0)) return axes;
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& a : axes) {
    if (a < -rank || a >= rank) return std::nullopt;
    if (a < 0) a += rank;
  }
  std::ranges::sort(axes);
  return axes;
}

std::optional<std::vector<int64_t>> transpose_perm(const Graph& g, const Node& node) {
  const int64_t rank = rank_of(g, node.input(0));
  if (rank < 0) return std::nullopt;
  std::vector<int64_t> reversed(static_cast<size_t>(rank));
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = rank - 1 - static_cast<int64_t>(i);
  std::vector<int64_t> perm = node.attributes.ints_or("perm", reversed);
  return static_cast<int64_t>(perm.size()) == rank ? std::optional(perm) : std::nullopt;
}

std::vector<int64_t> inverse_perm(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

Node successor(const Node& old, std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  Node n;
  n.op = std::move(op);
  n.name = old.name;
  n.inputs = std::move(inputs);
  n.outputs = {old.output(0)};
  n.attributes = std::move(attributes);
  n.origin = old.origin;
  return n;
}

void replace_node(const Graph& g, Patch& patch, const Node& old, Node fresh, std::vector<const Node*> merged) {
  merged.push_back(&old);
  fresh.origin = join_origins(merged);
  patch.remove_node(id_of(g, old));
  patch.add_node(std::move(fresh));
}

Rewrite replace_node(const Graph& g, const Node& old, Node fresh, std::vector<const Node*> merged) {
  Patch patch(g);
  replace_node(g, patch, old, std::move(fresh), std::move(merged));
  return rewrite(std::move(patch));
}

void append_tail(Node& to, const Node& from) {
  for (TailStep step : from.tail) {
    if (step.operand >= 0) {
      to.inputs.push_back(from.inputs[static_cast<size_t>(step.operand)]);
      step.operand = static_cast<int32_t>(to.inputs.size()) - 1;
    }
    to.tail.push_back(std::move(step));
  }
}

Rewrite bypass(const Graph& g, TensorId from, TensorId to) {
  Patch patch(g);
  patch.replace_tensor(from, to);
  return rewrite(std::move(patch));
}

}  // namespace orknn::optimize
