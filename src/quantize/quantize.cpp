#include "quantize/quantize.h"

#include "quantize/integer_graph.h"
#include "quantize/layer_formats.h"

namespace orknn::quantize {
using namespace ir;

namespace {
// Arithmetic with one constant behind a layer that ends in a function joins it: one table does both, and there is one rounding
// less.
void absorb_scalars(Graph& graph) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node n = graph.node(id);
    if (n.own_input_count() != 2 || (n.op != "Add" && n.op != "Sub" && n.op != "Mul" && n.op != "Div")) continue;
    const bool first = graph.is_constant(n.input(0));
    const TensorId constant = n.input(first ? 0 : 1), value = n.input(first ? 1 : 0);
    const NodeId before = graph.producer(value);
    if (!before || !graph.is_constant(constant) || graph.reader_count(value) != 1) continue;
    Node whole = graph.node(before);
    const Form form = layer_form(graph, whole).form;
    if (whole.outputs.size() != 1 ||
        (form != Form::Binary && (whole.tail.empty() || (form != Form::Conv && form != Form::MatMul))))
      continue;
    if (tail_steps_taken(graph, whole, form) != whole.tail.size() || graph.tensor(value).shape != graph.tensor(n.output()).shape)
      continue;
    whole.inputs.push_back(constant);
    whole.tail.push_back({n.op, {}, static_cast<int32_t>(whole.inputs.size()) - 1, first});
    if (!is_function(graph, whole, whole.tail.back())) continue;
    for (TailStep s : n.tail) {
      if (s.operand >= 0) {
        whole.inputs.push_back(n.inputs[static_cast<size_t>(s.operand)]);
        s.operand = static_cast<int32_t>(whole.inputs.size()) - 1;
      }
      whole.tail.push_back(std::move(s));
    }
    whole.outputs = n.outputs;
    whole.origin.insert(whole.origin.end(), n.origin.begin(), n.origin.end());
    graph.remove_node(id);
    graph.replace_node(before, std::move(whole));
  }
}
}  // namespace

Status split_tails(Graph& graph, const OpSet&) {
  absorb_scalars(graph);
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node whole = graph.node(id);
    const LayerForm form = layer_form(graph, whole);
    const size_t taken = tail_steps_taken(graph, whole, form.form);
    if (taken == whole.tail.size()) continue;
    const size_t own = whole.own_input_count();
    Node head = whole;
    head.tail.resize(taken);
    head.inputs.resize(own);
    for (TailStep& s : head.tail)
      if (s.operand >= 0) {
        head.inputs.push_back(whole.inputs[static_cast<size_t>(s.operand)]);
        s.operand = static_cast<int32_t>(head.inputs.size()) - 1;
      }
    const TensorId result = whole.output();
    const Tensor described = graph.tensor(result);
    const auto made = [&] {
      const TensorId t = graph.add_tensor(described.name + "/before", described.dtype, described.shape);
      graph.tensor(t).layout = described.layout;
      return t;
    };
    TensorId value = made();
    head.outputs[0] = value;
    graph.replace_node(id, std::move(head));
    for (size_t i = taken; i < whole.tail.size(); ++i) {
      const TailStep& s = whole.tail[i];
      Node step;
      step.op = s.op;
      step.name = whole.name + "/" + s.op;
      step.origin = whole.origin;
      step.attributes = s.attributes;
      step.inputs = {value};
      if (s.operand >= 0)
        step.inputs.insert(s.operand_first ? step.inputs.begin() : step.inputs.end(),
                           whole.inputs[static_cast<size_t>(s.operand)]);
      if (s.op == "Clip")  // a step states its bounds as attributes, a node as inputs
        for (const char* name : {"min", "max"}) {
          step.inputs.push_back(s.attributes.has(name)
                                    ? graph.add_constant(step.name + "/" + name, TensorData::scalar<float>(static_cast<float>(
                                                                                     s.attributes.float_or(name, 0))))
                                    : TensorId{});
          step.attributes.erase(name);
        }
      value = i + 1 == whole.tail.size() ? result : made();
      step.outputs = {value};
      graph.add_node(std::move(step));
    }
  }
  return {};
}

Result<std::vector<LayerDecision>> quantize(Graph& graph, const OpSet& ops, const TensorStatistics& statistics,
                                            const QuantizeOptions& options) {
  Assignment assignment = assign_parameters(graph, statistics, options);
  if (!options.formats.empty()) use_layer_formats(graph, assignment, options);
  ORKNN_TRY_ASSIGN(Graph integers, make_integer_graph(graph, ops, assignment, options, statistics));
  std::vector<LayerDecision> decisions = describe(graph, assignment);
  graph = std::move(integers);
  return decisions;
}

}  // namespace orknn::quantize
