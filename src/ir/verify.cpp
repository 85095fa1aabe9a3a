#include "ir/verify.h"

#include <algorithm>

#include "ir/custom_op.h"

namespace orknn::ir {
namespace {
std::string arity_text(Arity a) {
  if (a.min == a.max) return std::to_string(a.min);
  if (a.max == Arity::kMany) return "at least " + std::to_string(a.min);
  return std::to_string(a.min) + " to " + std::to_string(a.max);
}

bool exists(const Graph& graph, TensorId t) { return t && static_cast<size_t>(t.index) < graph.tensor_count(); }

Status verify_tensor(const Tensor& t) {
  const auto wrong = [&](const std::string& what) { return invalid_model("tensor '" + t.name + "' " + what); };
  if (t.name.empty()) return invalid_model("a tensor has no name");
  if (t.dtype != DType::Undefined && dtype_bytes(t.dtype) == 0) return wrong("has an unknown element type");
  if (t.layout > Layout::NCHW) return wrong("has an unknown layout");
  if (t.shape) {
    if (t.shape->size() > kMostAxes)
      return wrong("has too many axes").expected("at most " + std::to_string(kMostAxes)).found(std::to_string(t.shape->size()));
    for (const Dim& d : *t.shape)
      if (d.is_known() && d.value() < 0) return wrong("has a negative extent");
  }
  if (!t.is_constant()) return {};
  if (t.constant.dtype() != t.dtype || !t.shape || to_dims(*t.shape) != t.constant.dims())
    return wrong("has another type or shape than its value");
  return {};
}

Status verify_structure(const Graph& graph, int depth);

Status verify_bodies(const Attributes& attributes, int depth) {
  for (const auto& [name, value] : attributes) {
    if (kind_of(value) != AttributeKind::Graph) continue;
    const auto& body = std::get<std::shared_ptr<const Graph>>(value);
    if (!body) return invalid_model("attribute '" + name + "' holds no graph");
    if (depth >= kMostNestedGraphs)
      return invalid_model("graphs are nested too deeply").expected("at most " + std::to_string(kMostNestedGraphs) + " levels");
    ORKNN_TRY(verify_structure(*body, depth + 1));
  }
  return {};
}

// Every value that is read is a constant, a graph input or computed, and no more than one of them.
Status verify_sources(const Graph& graph) {
  std::vector<char> sources(graph.tensor_count(), 0);
  for (size_t i = 0; i < sources.size(); ++i) {
    const TensorId t{static_cast<int32_t>(i)};
    sources[i] = static_cast<char>(graph.is_constant(t) + (graph.producer(t) ? 1 : 0));
    if (sources[i] > 1) return invalid_model("tensor '" + graph.tensor(t).name + "' is computed but also a constant");
  }
  for (TensorId t : graph.inputs()) {
    if (!exists(graph, t)) return invalid_model("a graph input is not a tensor");
    if (sources[static_cast<size_t>(t.index)]++)
      return invalid_model("graph input '" + graph.tensor(t).name + "' is listed twice or has a second source");
  }
  for (TensorId t : graph.outputs()) {
    if (!exists(graph, t)) return invalid_model("a graph output is not a tensor");
    if (!sources[static_cast<size_t>(t.index)]) return invalid_model("graph output '" + graph.tensor(t).name + "' has no source");
  }
  for (NodeId id : graph.order())
    for (TensorId t : graph.node(id).inputs)
      if (t && !sources[static_cast<size_t>(t.index)])
        return invalid_model("input '" + graph.tensor(t).name + "' has no source").node(graph.node(id).name, graph.node(id).op);
  return {};
}

Status verify_structure(const Graph& graph, int depth) {
  for (size_t i = 0; i < graph.tensor_count(); ++i) ORKNN_TRY(verify_tensor(graph.tensor(TensorId{static_cast<int32_t>(i)})));
  if (graph.has_cycle()) return invalid_model("the graph has a cycle");
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    ORKNN_TRY(verify_form(graph, n));
    ORKNN_TRY(verify_bodies(n.attributes, depth));
    for (const TailStep& step : n.tail) ORKNN_TRY(verify_bodies(step.attributes, depth));
  }
  return verify_sources(graph);
}
}  // namespace

Status verify_form(const Graph& graph, const Node& node) {
  const auto wrong = [&](std::string what) { return invalid_model(std::move(what)).node(node.name, node.op); };
  if (node.outputs.empty()) return wrong("the node has no output");
  for (const std::vector<TensorId>* ids : {&node.inputs, &node.outputs})
    for (TensorId t : *ids)
      if (t && !exists(graph, t)) return wrong("a tensor number is out of range");
  std::vector<TensorId> outputs = node.outputs;
  std::sort(outputs.begin(), outputs.end());
  for (size_t i = 1; i < outputs.size(); ++i)
    if (outputs[i] && outputs[i] == outputs[i - 1])
      return wrong("tensor '" + graph.tensor(outputs[i]).name + "' is computed twice");
  const auto operands =
      static_cast<size_t>(std::count_if(node.tail.begin(), node.tail.end(), [](const TailStep& s) { return s.operand >= 0; }));
  if (operands > node.inputs.size()) return wrong("the node has fewer inputs than its fused steps need");
  for (const TailStep& step : node.tail) {
    if (step.operand < 0) continue;
    const auto i = static_cast<size_t>(step.operand);
    if (i < node.inputs.size() - operands || i >= node.inputs.size() || !node.inputs[i])
      return wrong("a fused step names no operand");
  }
  return {};
}

Status verify_structure(const Graph& graph) { return verify_structure(graph, 0); }

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
  if (is_custom(node.op) && def.attributes.empty()) return {};  // they are the user's
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
  ORKNN_TRY(verify_structure(graph));
  Status problems;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const OpDef* def = ops.find(n.op);
    if (!def) {
      problems.also(unsupported("operator is not known").node(n.name, n.op));
      continue;
    }
    problems.also(verify_node(n, *def));
    if (stage == Stage::Imported) continue;
    for (TensorId t : n.outputs)
      if (t && graph.tensor(t).dtype == DType::Undefined)
        problems.also(invalid_model("output '" + graph.tensor(t).name + "' has no type").node(n.name, n.op));
    if (stage == Stage::Optimized &&
        std::all_of(n.outputs.begin(), n.outputs.end(), [&](TensorId t) { return !t || graph.reader_count(t) == 0; }))
      problems.also(internal_error("this node's results have no readers").node(n.name, n.op));
  }
  return problems;
}

}  // namespace orknn::ir
