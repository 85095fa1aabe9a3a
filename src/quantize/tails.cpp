#include "quantize/tails.h"

#include "ir/known_dims.h"
#include "ops/facts.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Appends steps of `from` to the tail of `to`, with their operands.
void append_steps(Node& to, const Node& from, std::span<const TailStep> steps) {
  for (TailStep s : steps) {
    if (s.operand >= 0) {
      to.inputs.push_back(from.inputs[static_cast<size_t>(s.operand)]);
      s.operand = static_cast<int32_t>(to.inputs.size()) - 1;
    }
    to.tail.push_back(std::move(s));
  }
}

// Arithmetic with one constant after a layer that ends in a function joins it: one table does both, and there is one rounding
// less. `n` becomes part of the layer before it.
std::optional<Patch> join_constant(const Graph& g, NodeId id, const LayerForms& forms) {
  const Node& n = g.node(id);
  if (n.own_input_count() != 2 || !ops::is_basic_arithmetic(n.op)) return std::nullopt;
  const bool first = g.is_constant(n.input(0));
  const TensorId constant = n.input(first ? 0 : 1), value = n.input(first ? 1 : 0);
  const NodeId before = g.producer(value);
  if (!before || !g.is_constant(constant) || g.reader_count(value) != 1) return std::nullopt;
  Node whole = g.node(before);
  const Form form = forms[before].form;
  if (whole.outputs.size() != 1 || (form != Form::Binary && (whole.tail.empty() || (form != Form::Conv && form != Form::MatMul))))
    return std::nullopt;
  if (tail_steps_taken(g, whole, form) != whole.tail.size() || g.tensor(value).shape != g.tensor(n.output()).shape)
    return std::nullopt;
  whole.inputs.push_back(constant);
  whole.tail.push_back({n.op, {}, static_cast<int32_t>(whole.inputs.size()) - 1, first});
  if (!is_function(g, whole, whole.tail.back())) return std::nullopt;
  append_steps(whole, n, n.tail);
  whole.outputs = n.outputs;
  whole.origin.insert(whole.origin.end(), n.origin.begin(), n.origin.end());
  Patch patch(g);
  patch.remove_node(id);
  patch.replace_node(before, std::move(whole));
  return patch;
}

// A tail's step as a node that makes `result` of `value`.
Node node_of(Patch& patch, const Node& layer, const TailStep& s, TensorId value, TensorId result) {
  Node step;
  step.op = s.op;
  step.name = layer.name + "/" + s.op;
  step.origin = layer.origin;
  step.attributes = s.attributes;
  step.inputs = {value};
  if (s.operand >= 0)
    step.inputs.insert(s.operand_first ? step.inputs.begin() : step.inputs.end(), layer.inputs[static_cast<size_t>(s.operand)]);
  if (ops::facts_of(s.op).bounds == Bounds::Given)  // a step states its bounds as attributes, a node as inputs
    for (const char* name : {"min", "max"}) {
      step.inputs.push_back(s.attributes.has(name)
                                ? patch.add_constant(step.name + "/" + name, TensorData::scalar<float>(static_cast<float>(
                                                                                 s.attributes.float_or(name, 0))))
                                : TensorId{});
      step.attributes.erase(name);
    }
  step.outputs = {result};
  return step;
}

// The steps that the integer form does not take become nodes.
std::optional<Patch> split_rest(const Graph& g, NodeId id, const LayerForms& forms) {
  const Node& whole = g.node(id);
  const size_t taken = tail_steps_taken(g, whole, forms[id].form);
  if (taken == whole.tail.size()) return std::nullopt;
  Node head = whole;
  head.tail.clear();
  head.inputs.resize(whole.own_input_count());
  append_steps(head, whole, std::span(whole.tail).first(taken));
  const Tensor& result = g.tensor(whole.output());
  Patch patch(g);
  const auto made = [&] { return patch.add_tensor(result.name + "/before", result.dtype, result.shape, result.layout); };
  TensorId value = made();
  head.outputs[0] = value;
  patch.replace_node(id, std::move(head));
  for (size_t i = taken; i < whole.tail.size(); ++i) {
    const TensorId next = i + 1 == whole.tail.size() ? whole.output() : made();
    patch.add_node(node_of(patch, whole, whole.tail[i], value, next));
    value = next;
  }
  return patch;
}

// A layer has the same form whatever its tail holds, so that only layers that come new need one.
Status fit(passes::Rewriter& rewriter, LayerForms& forms) {
  const Graph& graph = rewriter.graph();
  forms = LayerForms(graph);
  for (const auto& change : {join_constant, split_rest})
    for (NodeId id : std::vector<NodeId>(graph.order())) {
      if (!graph.is_alive(id)) continue;
      const auto patch = change(graph, id, forms);
      if (!patch) continue;
      ORKNN_TRY_ASSIGN(const bool applied, rewriter.apply(*patch));
      for (const Node& added : patch->nodes())
        if (applied) forms.add(graph, graph.producer(added.output()));
    }
  return {};
}
}  // namespace

TailParts tail_parts(const Graph& g, const Node& n, Form form) {
  TailParts parts;
  if (form != Form::Conv && form != Form::MatMul && form != Form::Binary) return parts;
  size_t at = 0;
  const auto added = [&]() {
    return at < n.tail.size() && ops::facts_of(n.tail[at].op).arithmetic == Arithmetic::Add && n.tail[at].operand >= 0
               ? n.inputs[static_cast<size_t>(n.tail[at].operand)]
               : TensorId{};
  };
  const auto result = dims_of(g, n.output());
  if (form == Form::MatMul && !n.has_input(2) && g.is_constant(n.input(1)) && result && !result->empty()) {
    const TensorData* bias = g.constant(added());
    if (bias && bias->dtype() == DType::Float32 && !bias->dims().empty() && bias->count() == result->back() &&
        bias->dims().back() == result->back()) {
      parts.bias = bias;
      ++at;
    }
  }
  if (const TensorId other = added(); form != Form::Binary && other && !g.is_constant(other) &&
                                      g.tensor(other).dtype == DType::Float32 && result && dims_of(g, other) == result) {
    parts.addend = other;
    ++at;
  }
  if (form == Form::Conv && !parts.addend && at < n.tail.size()) {
    const TailStep& step = n.tail[at];
    if (step.op == "LeakyRelu") parts.slopes = {step.attributes.float_or("alpha", 0.01)};
    if (ops::facts_of(step.op).quant == QuantRule::Slopes && step.operand >= 0 && !step.operand_first)
      if (const auto s = slopes_of(g, n.output(), n.inputs[static_cast<size_t>(step.operand)]);
          s && (s->values.size() == 1 || s->axis == 1))
        parts.slopes = s->values;
    at += parts.slopes.empty() ? 0 : 1;
  }
  parts.functions = at;
  while (at < n.tail.size() && is_function(g, n, n.tail[at])) ++at;
  parts.end = at;
  return parts;
}

size_t tail_steps_taken(const Graph& g, const Node& n, Form form) {
  return form == Form::Float ? n.tail.size() : tail_parts(g, n, form).end;
}

bool computes_tail(const Graph& g, const Node& n) { return tail_steps_taken(g, n, form_of(g, n).form) == n.tail.size(); }

Result<LayerForms> fit_tails(Graph& graph, const OpSet& ops, const passes::Options& options, passes::Trace* trace) {
  LayerForms forms;
  ORKNN_TRY(run_steps(graph, ops, {pass_of(kFitTails, [&](passes::Rewriter& rewriter) { return fit(rewriter, forms); })}, options,
                      trace));
  return forms;
}

}  // namespace orknn::quantize
