// Computes equal things once: nodes with the same op, inputs, attributes and tail, and small equal constants.
//
// Before: %a = Sigmoid(%x) ; %b = Sigmoid(%x)     After: readers of %b read %a
// Legal: deterministic ops without a body. Two graph outputs stay two tensors.
#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr size_t kMaxConstantBytes = 4096;

void append(std::string& key, int64_t value) {
  char buffer[24];
  key.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  key += ' ';
}

void append_bytes(std::string& key, const void* data, size_t bytes) {
  append(key, static_cast<int64_t>(bytes));
  key.append(static_cast<const char*>(data), bytes);
}

std::string constant_key(const TensorData& t) {
  std::string key = "constant ";
  append(key, static_cast<int64_t>(t.dtype()));
  for (int64_t d : t.dims()) append(key, d);
  key += ':';
  append_bytes(key, t.data(), t.bytes());
  return key;
}

// False for attributes that are not compared.
bool append_attributes(std::string& key, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    key += name;
    append(key, static_cast<int64_t>(value.index()));
    switch (kind_of(value)) {
      case AttributeKind::Int: append(key, std::get<int64_t>(value)); break;
      case AttributeKind::Float: append_bytes(key, &std::get<double>(value), sizeof(double)); break;
      case AttributeKind::String:
        append_bytes(key, std::get<std::string>(value).data(), std::get<std::string>(value).size());
        break;
      case AttributeKind::Ints:
        for (int64_t v : std::get<std::vector<int64_t>>(value)) append(key, v);
        break;
      case AttributeKind::Floats:
        append_bytes(key, std::get<std::vector<double>>(value).data(),
                     std::get<std::vector<double>>(value).size() * sizeof(double));
        break;
      case AttributeKind::Strings:
        for (const std::string& s : std::get<std::vector<std::string>>(value)) append_bytes(key, s.data(), s.size());
        break;
      case AttributeKind::Tensor:
      case AttributeKind::Graph: return false;
    }
    key += ';';
  }
  key += '}';
  return true;
}

// Empty for a node that is not compared.
std::string node_key(const Node& n) {
  std::string key = n.op + "(";
  for (TensorId t : n.inputs) append(key, t.index);
  key += ')';
  append(key, static_cast<int64_t>(n.outputs.size()));
  for (TensorId t : n.outputs) key += t ? '+' : '-';
  if (!append_attributes(key, n.attributes)) return "";
  for (const TailStep& s : n.tail) {
    key += s.op;
    append(key, s.operand);
    append(key, s.operand_first);
    if (!append_attributes(key, s.attributes)) return "";
  }
  return key;
}

Status merge_constants(Rewriter& r) {
  const Graph& g = r.graph();
  std::unordered_map<std::string, TensorId> first;
  for (size_t i = 0; i < g.tensor_count() && r.may_rewrite(); ++i) {
    const TensorId id{static_cast<int32_t>(i)};
    const TensorData* value = g.constant(id);
    if (!value || value->bytes() > kMaxConstantBytes || g.reader_count(id) == 0 || g.is_output(id)) continue;
    const auto [it, is_new] = first.try_emplace(constant_key(*value), id);
    if (is_new) continue;
    Patch patch(g);
    patch.replace_tensor(id, it->second);
    ORKNN_TRY(r.apply(patch).status());
  }
  return {};
}

Status eliminate_common_subexpressions_pass(Rewriter& r) {
  ORKNN_TRY(merge_constants(r));
  const Graph& g = r.graph();
  std::unordered_map<std::string, NodeId> first;
  const std::vector<NodeId> order = g.order();
  for (NodeId id : order) {
    if (!r.may_rewrite()) return {};
    if (!g.is_alive(id)) continue;
    const Node& n = g.node(id);
    const OpDef* def = r.ops().find(n.op);
    const std::string key = def && def->deterministic ? node_key(n) : "";
    if (key.empty()) continue;
    const auto [it, is_new] = first.try_emplace(key, id);
    if (is_new) continue;
    const Node& same = g.node(it->second);
    bool possible = true;
    for (size_t i = 0; i < n.outputs.size(); ++i) possible &= !n.outputs[i] || can_replace(g, n.outputs[i], same.outputs[i]);
    if (!possible) continue;
    Patch patch(g);
    patch.remove_node(id);
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) patch.replace_tensor(n.outputs[i], same.outputs[i]);
    ORKNN_TRY(r.apply(patch).status());
  }
  return {};
}
}  // namespace

Pass eliminate_common_subexpressions() {
  return {.name = "eliminate_common_subexpressions",
          .summary = "equal nodes and small equal constants once",
          .min_level = 1,
          .graph_pass = eliminate_common_subexpressions_pass};
}
}  // namespace orknn::optimize
