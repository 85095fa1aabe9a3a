#include "ir/verify.h"

#include <algorithm>

namespace orknn::ir {
namespace {
std::string arity_text(Arity a) {
  if (a.min == a.max) return std::to_string(a.min);
  if (a.max == Arity::kMany) return "at least " + std::to_string(a.min);
  return std::to_string(a.min) + " to " + std::to_string(a.max);
}
}  // namespace

Status verify_node(const Node& node, const OpDef& def) {
  const auto own = static_cast<int>(node.own_input_count());
  if (own < def.inputs.min || own > def.inputs.max)
    return invalid_model("wrong number of inputs")
        .expected(arity_text(def.inputs))
        .found(std::to_string(own))
        .node(node.name, node.op);
  for (int i = 0; i < def.inputs.min; ++i)
    if (node.inputs[static_cast<size_t>(i)].is_none())
      return invalid_model("input " + std::to_string(i) + " is required but absent").node(node.name, node.op);
  const auto outputs = static_cast<int>(node.outputs.size());
  if (outputs < def.outputs.min || outputs > def.outputs.max)
    return invalid_model("wrong number of outputs")
        .expected(arity_text(def.outputs))
        .found(std::to_string(outputs))
        .node(node.name, node.op);
  for (const AttributeDef& d : def.attributes)
    if (d.required && !node.attributes.has(d.name))
      return invalid_model("attribute '" + std::string(d.name) + "' is missing").node(node.name, node.op);
  for (const auto& [name, value] : node.attributes) {
    const auto d = std::find_if(def.attributes.begin(), def.attributes.end(),
                                [&wanted = name](const AttributeDef& x) { return x.name == wanted; });
    if (d == def.attributes.end()) return invalid_model("unknown attribute '" + name + "'").node(node.name, node.op);
    const AttributeKind kind = kind_of(value);
    if (kind != d->kind && !(d->kind == AttributeKind::Float && kind == AttributeKind::Int))
      return invalid_model("attribute '" + name + "' has the wrong type")
          .expected(std::string(kind_name(d->kind)))
          .found(std::string(kind_name(kind)))
          .node(node.name, node.op);
  }
  return {};
}

Status verify(const Graph& graph, const OpSet& ops, Stage stage) {
  Status problems;
  if (graph.has_cycle()) return invalid_model("the graph has a cycle");
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const OpDef* def = ops.find(n.op);
    if (!def) {
      problems.also(unsupported("operator is not known").node(n.name, n.op));
      continue;
    }
    problems.also(verify_node(n, *def));
    for (TensorId t : n.inputs)
      if (t && !graph.producer(t) && !graph.is_constant(t) && !graph.is_input(t))
        problems.also(invalid_model("input '" + graph.tensor(t).name + "' has no source").node(n.name, n.op));
    if (stage == Stage::Imported) continue;
    for (TensorId t : n.outputs)
      if (t && graph.tensor(t).dtype == DType::Undefined)
        problems.also(invalid_model("output '" + graph.tensor(t).name + "' has no type").node(n.name, n.op));
    if (stage == Stage::Optimized &&
        std::all_of(n.outputs.begin(), n.outputs.end(), [&](TensorId t) { return !t || graph.reader_count(t) == 0; }))
      problems.also(internal_error("this node's results have no readers").node(n.name, n.op));
  }
  for (TensorId t : graph.outputs())
    if (!graph.producer(t) && !graph.is_constant(t) && !graph.is_input(t))
      problems.also(invalid_model("graph output '" + graph.tensor(t).name + "' has no source"));
  return problems;
}

}  // namespace orknn::ir
