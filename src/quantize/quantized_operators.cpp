#include "quantize/quantized_operators.h"

#include <algorithm>

#include "ir/infer.h"
#include "ops/facts.h"
#include "ops/support/quantized_form.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// One operator in float, as a patch.
class Expansion {
 public:
  Expansion(const Graph& graph, NodeId id) : graph_(graph), id_(id), n_(graph.node(id)), patch_(graph) {}

  // Nothing where it stays as it is.
  std::optional<Patch> run() {
    bool expanded = false;
    if (!n_.tail.empty()) return std::nullopt;
    if (n_.op == "QLinearConv")
      expanded = expand_conv();
    else if (n_.op == "QLinearMatMul")
      expanded = expand_product();
    else if (const auto form = ops::quantized_form(n_); form && n_.attributes.int_or("channels_last", 0) == 0)
      expanded = expand_function(*form);
    return expanded ? std::optional(std::move(patch_)) : std::nullopt;
  }

 private:
  TensorId add(const std::string& op, std::vector<TensorId> inputs, Attributes attributes = {}) {
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    return patch_.add_node(op, n_.name + "/" + op, std::move(inputs), std::move(attributes), n_.origin);
  }
  void finish(TensorId real, TensorId scale, TensorId zero) {
    Node quantize;
    quantize.op = "QuantizeLinear";
    quantize.name = n_.name + "/QuantizeLinear";
    quantize.origin = n_.origin;
    quantize.inputs = {real, scale};
    if (zero)
      quantize.inputs.push_back(zero);
    else
      quantize.attributes.set("output_dtype", static_cast<int64_t>(graph_.tensor(n_.output()).dtype));
    quantize.outputs = n_.outputs;
    patch_.remove_node(id_);
    patch_.add_node(std::move(quantize));
  }

  bool expand_conv() {
    const TensorData *x_scale = graph_.constant(n_.input(1)), *w_scale = graph_.constant(n_.input(4));
    if (!x_scale || !w_scale || x_scale->count() != 1) return false;
    const TensorId x = add("DequantizeLinear", {n_.input(0), n_.input(1), n_.input(2)});
    const TensorId w = add("DequantizeLinear", {n_.input(3), n_.input(4), n_.input(5)}, {{"axis", int64_t{0}}});
    TensorId bias;
    if (n_.has_input(8)) {
      const float step = static_cast<float>(to_doubles(x_scale->view())[0]);
      TensorData scales = TensorData::allocate(DType::Float32, w_scale->dims());
      auto* to = static_cast<float*>(scales.mutable_data());
      const std::vector<double> steps = to_doubles(w_scale->view());
      for (size_t i = 0; i < steps.size(); ++i) to[i] = step * static_cast<float>(steps[i]);
      bias = add("DequantizeLinear", {n_.input(8), patch_.add_constant(n_.name + "/bias_scale", std::move(scales))},
                 {{"axis", int64_t{0}}});
    }
    finish(add("Conv", {x, w, bias}, n_.attributes), n_.input(6), n_.input(7));
    return true;
  }

  bool expand_product() {
    const auto per_column = [&](TensorId scale) {
      return scale && graph_.tensor(scale).shape && !graph_.tensor(scale).shape->empty();
    };
    const TensorData* a_scale = graph_.constant(n_.input(1));
    if (per_column(n_.input(1)) && (!a_scale || a_scale->count() != 1)) return false;
    if (!graph_.tensor(n_.input(3)).shape) return false;
    const int64_t columns = static_cast<int64_t>(graph_.tensor(n_.input(3)).shape->size()) - 1;
    const TensorId a = add("DequantizeLinear", {n_.input(0), n_.input(1), n_.input(2)});
    const TensorId b = add("DequantizeLinear", {n_.input(3), n_.input(4), n_.input(5)}, {{"axis", columns}});
    finish(add("MatMul", {a, b}), n_.input(6), n_.input(7));
    return true;
  }

  bool expand_function(const ops::QuantizedForm& form) {
    std::vector<TensorId> reals;
    for (size_t i : form.data) reals.push_back(add("DequantizeLinear", {n_.input(i), n_.input(i + 1), n_.input(i + 2)}));
    finish(add(form.op, std::move(reals), form.attributes), n_.input(form.result), n_.input(form.result + 1));
    return true;
  }

  const Graph& graph_;
  const NodeId id_;
  const Node& n_;
  Patch patch_;
};

Status expand(passes::Rewriter& rewriter) {
  for (NodeId id : std::vector<NodeId>(rewriter.graph().order()))
    if (const auto patch = Expansion(rewriter.graph(), id).run()) ORKNN_TRY(rewriter.apply(*patch).status());
  return {};
}
}  // namespace

bool states_quantization(const Graph& graph) {
  const auto integers = [&](TensorId t) { return graph.tensor(t).quant && is_integer(graph.tensor(t).dtype); };
  if (std::any_of(graph.inputs().begin(), graph.inputs().end(), integers)) return true;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    if (n.op == "QLinearConv" || n.op == "QLinearMatMul" || ops::quantized_form(n)) return true;
    if (ops::facts_of(n).conversion == Conversion::ToIntegers && !graph.is_constant(n.input(0))) return true;
  }
  return false;
}

Status expand_quantized_operators(Graph& graph, const OpSet& ops, const passes::Options& options, passes::Trace* trace) {
  ORKNN_TRY(infer_shapes(graph, ops));
  return run_steps(graph, ops, {pass_of(kExpandOperators, expand)}, options, trace);
}

Status require_one_scale_per_tensor(const Graph& graph) {
  Status problems;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const TensorData* scale = ops::facts_of(n).conversion == Conversion::ToReals ? graph.constant(n.input(1)) : nullptr;
    if (!scale || scale->count() <= 1 || !graph.is_constant(n.input(0)) || graph.tensor(n.input(0)).constant.dims().size() < 2)
      continue;
    const auto users = graph.users(n.output());
    const Node& layer = users.empty() ? n : graph.node(users.front());
    problems.also(unsupported("its weights '" + graph.tensor(n.input(0)).name + "' are quantized per channel")
                      .node(layer.name, layer.op)
                      .expected("one scale")
                      .found(std::to_string(scale->count()) + " scales")
                      .hint("quantize the source model per tensor"));
  }
  return problems;
}

}  // namespace orknn::quantize
