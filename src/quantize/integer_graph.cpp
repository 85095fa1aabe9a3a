#include "quantize/integer_graph.h"

#include "quantize/forms/lowering.h"

namespace orknn::quantize {
using namespace ir;
namespace {

Result<Outcome> lower(Lowering& l, NodeId id, Form form) {
  const Node& n = l.graph().node(id);
  switch (form) {
    case Form::Conv: return lower_conv(l, id);
    case Form::MatMul: return lower_matmul(l, id);
    case Form::Binary: return lower_binary(l, n);
    case Form::Table: return lower_table(l, n);
    case Form::PRelu: return lower_prelu(l, n);
    case Form::Move: return lower_move(l, n);
    case Form::Concat: return lower_concat(l, n);
    case Form::Average: return lower_average(l, n);
    case Form::Mean: return lower_mean(l, n);
    case Form::Softmax: return lower_softmax(l, n);
    case Form::Resize: return lower_resize(l, n);
    case Form::Float: break;
  }
  return Outcome::stays_float("there is no integer form");
}

LayerDecision decision_of(const Graph& graph, const Node& n, const LayerForm& form) {
  return {n.name,      n.type_name(), n.output() ? graph.tensor(n.output()).name : "", form.form != Form::Float,
          form.reason, form.notable};
}

std::string line_of(const LayerDecision& d) {
  return "'" + d.output + "' (" + d.op + ")" + (d.integer ? " becomes an integer layer" : " stays in float: " + d.reason);
}
}  // namespace

Status lower_to_integers(passes::Rewriter& rewriter, Plan& plan, std::vector<LayerDecision>& decisions) {
  const Graph& graph = rewriter.graph();
  Lowering l(graph, rewriter.ops(), plan);
  for (TensorId t : graph.inputs()) l.add_input(t);
  for (NodeId id : graph.order()) {
    LayerForm& form = plan.form(id);
    std::string loss;
    if (form.form != Form::Float) {
      auto outcome = lower(l, id, form.form);
      if (!outcome) return outcome.status();
      if (!outcome->is_lowered())
        form = {Form::Float, outcome->reason()};
      else
        loss = outcome->loss();
    }
    if (form.form == Form::Float) l.copy_node(graph.node(id));
    decisions.push_back(decision_of(graph, graph.node(id), form));
    decisions.back().loss = std::move(loss);
    rewriter.remark(line_of(decisions.back()));
  }
  for (TensorId t : graph.outputs()) l.out().outputs().push_back(l.primary(t));
  l.out().compact();
  return rewriter.replace_graph(std::move(l.out()));
}

}  // namespace orknn::quantize
