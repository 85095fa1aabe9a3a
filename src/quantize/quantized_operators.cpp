#include "quantize/quantized_operators.h"

#include <algorithm>

#include "ir/infer.h"
#include "ops/support/quantized_form.h"

namespace orknn::quantize {
using namespace ir;
namespace {

class Expander {
 public:
  Expander(Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops) {}

  Status run() {
    ORKNN_TRY(infer_shapes(graph_, ops_));
    for (NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node n = graph_.node(id);
      if (!n.tail.empty()) continue;
      if (n.op == "QLinearConv")
        expand_conv(id, n);
      else if (n.op == "QLinearMatMul")
        expand_product(id, n);
      else if (const auto form = ops::quantized_form(n); form && n.attributes.int_or("channels_last", 0) == 0)
        expand_function(id, n, *form);
    }
    return infer_shapes(graph_, ops_);
  }

 private:
  TensorId add(const Node& n, const std::string& op, std::vector<TensorId> inputs, Attributes attributes = {}) {
    Node made;
    made.op = op;
    made.name = n.name + "/" + op;
    made.origin = n.origin;
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    made.outputs = {graph_.add_tensor(made.name)};
    const TensorId result = made.outputs[0];
    graph_.add_node(std::move(made));
    return result;
  }
  void finish(NodeId id, const Node& n, TensorId real, TensorId scale, TensorId zero) {
    graph_.remove_node(id);
    Node quantize;
    quantize.op = "QuantizeLinear";
    quantize.name = n.name + "/QuantizeLinear";
    quantize.origin = n.origin;
    quantize.inputs = {real, scale};
    if (zero)
      quantize.inputs.push_back(zero);
    else
      quantize.attributes.set("output_dtype", static_cast<int64_t>(graph_.tensor(n.output()).dtype));
    quantize.outputs = n.outputs;
    graph_.add_node(std::move(quantize));
  }

  void expand_conv(NodeId id, const Node& n) {
    if (!graph_.is_constant(n.input(1)) || !graph_.is_constant(n.input(4))) return;
    // Copies: tensors move when more are added.
    const TensorData x_scale = *graph_.constant(n.input(1)), w_scale = *graph_.constant(n.input(4));
    if (x_scale.count() != 1) return;
    const TensorId x = add(n, "DequantizeLinear", {n.input(0), n.input(1), n.input(2)});
    const TensorId w = add(n, "DequantizeLinear", {n.input(3), n.input(4), n.input(5)}, {{"axis", int64_t{0}}});
    TensorId bias;
    if (n.has_input(8)) {
      const float step = static_cast<float>(to_doubles(x_scale.view())[0]);
      TensorData scales = TensorData::allocate(DType::Float32, w_scale.dims());
      auto* to = static_cast<float*>(scales.mutable_data());
      const std::vector<double> steps = to_doubles(w_scale.view());
      for (size_t i = 0; i < steps.size(); ++i) to[i] = step * static_cast<float>(steps[i]);
      bias = add(n, "DequantizeLinear", {n.input(8), graph_.add_constant(n.name + "/bias_scale", std::move(scales))},
                 {{"axis", int64_t{0}}});
    }
    finish(id, n, add(n, "Conv", {x, w, bias}, n.attributes), n.input(6), n.input(7));
  }

  void expand_product(NodeId id, const Node& n) {
    const auto per_column = [&](TensorId scale) {
      return scale && graph_.tensor(scale).shape && !graph_.tensor(scale).shape->empty();
    };
    if (per_column(n.input(1)) && (!graph_.constant(n.input(1)) || graph_.constant(n.input(1))->count() != 1)) return;
    if (!graph_.tensor(n.input(3)).shape) return;
    const int64_t columns = static_cast<int64_t>(graph_.tensor(n.input(3)).shape->size()) - 1;
    const TensorId a = add(n, "DequantizeLinear", {n.input(0), n.input(1), n.input(2)});
    const TensorId b = add(n, "DequantizeLinear", {n.input(3), n.input(4), n.input(5)}, {{"axis", columns}});
    finish(id, n, add(n, "MatMul", {a, b}), n.input(6), n.input(7));
  }

  void expand_function(NodeId id, const Node& n, const ops::QuantizedForm& form) {
    std::vector<TensorId> reals;
    for (size_t i : form.data) reals.push_back(add(n, "DequantizeLinear", {n.input(i), n.input(i + 1), n.input(i + 2)}));
    finish(id, n, add(n, form.op, std::move(reals), form.attributes), n.input(form.result), n.input(form.result + 1));
  }

  Graph& graph_;
  const OpSet& ops_;
};
}  // namespace

bool states_quantization(const Graph& graph) {
  const auto integers = [&](TensorId t) { return graph.tensor(t).quant && is_integer(graph.tensor(t).dtype); };
  if (std::any_of(graph.inputs().begin(), graph.inputs().end(), integers)) return true;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    if (n.op == "QLinearConv" || n.op == "QLinearMatMul" || ops::quantized_form(n)) return true;
    if (n.op == "QuantizeLinear" && !graph.is_constant(n.input(0))) return true;
  }
  return false;
}

Status expand_quantized_operators(Graph& graph, const OpSet& ops) { return Expander(graph, ops).run(); }

Status require_one_scale_per_tensor(const Graph& graph) {
  Status problems;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const TensorData* scale = n.op == "DequantizeLinear" ? graph.constant(n.input(1)) : nullptr;
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
