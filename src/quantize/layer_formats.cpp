#include "quantize/layer_formats.h"

#include <algorithm>

namespace orknn::quantize {
using namespace ir;
namespace {

size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

class Formatter {
 public:
  Formatter(Graph& graph, Assignment& assignment, const QuantizeOptions& options)
      : graph_(graph), assignment_(assignment), options_(options) {}

  void run() {
    assignment_.types.assign(graph_.tensor_count(), options_.format.activations);
    for (NodeId id : std::vector<NodeId>(graph_.order())) {
      if (form(id).form == Form::Softmax && format(id).activations == DType::Int16)
        form(id) = {Form::Float, "there is no 16-bit form of Softmax"};
      switch (form(id).form) {
        case Form::Float: leave_float(id); break;
        case Form::Move: follow(id); break;
        default: settle(id);
      }
    }
  }

 private:
  LayerForm& form(NodeId id) { return assignment_.forms[static_cast<size_t>(id.index)]; }
  const NumberFormat& format(NodeId id) const {
    const Node& n = graph_.node(id);
    return format_of(options_, n.output() ? std::string_view(graph_.tensor(n.output()).name) : std::string_view());
  }
  const std::optional<QuantParams>& parameters(TensorId t) const { return assignment_.tensors[index_of(t)]; }
  DType type(TensorId t) const { return assignment_.types[index_of(t)]; }
  bool has_format(TensorId t, const NumberFormat& f) const {
    return type(t) == f.activations && parameters(t)->fixed_point == f.power_of_two;
  }

  QuantParams in_format(TensorId t, const NumberFormat& f) const {
    return parameters_of({parameters(t)->min[0], parameters(t)->max[0]}, f.activations, f.power_of_two);
  }
  void set_format(TensorId t, const NumberFormat& f) {
    if (!t || !parameters(t) || has_format(t, f)) return;
    assignment_.tensors[index_of(t)] = in_format(t, f);
    assignment_.types[index_of(t)] = f.activations;
  }

  // What a float layer makes is quantized as its readers want it, the finest first.
  void leave_float(NodeId id) {
    for (TensorId t : graph_.node(id).outputs) {
      if (!t || !parameters(t)) continue;
      for (NodeId reader : graph_.users(t))
        if (form(reader).form != Form::Float && form(reader).form != Form::Move && format(reader).bits() > options_.format.bits())
          set_format(t, format(reader));
    }
  }

  void follow(NodeId id) {
    const Node& n = graph_.node(id);
    for (TensorId t : n.outputs) {
      if (!t) continue;
      assignment_.tensors[index_of(t)] = parameters(n.input(0));
      assignment_.types[index_of(t)] = type(n.input(0));
    }
  }

  void settle(NodeId id) {
    const NumberFormat wanted = format(id);
    Node n = graph_.node(id);
    for (TensorId t : n.outputs) set_format(t, wanted);
    if (form(id).form == Form::Concat) return;
    bool changed = false;
    for (TensorId& t : n.inputs) {
      if (!t || graph_.is_constant(t) || !parameters(t) || has_format(t, wanted)) continue;
      t = converted(t, wanted);
      changed = true;
    }
    if (changed) graph_.replace_node(id, std::move(n));
  }

  TensorId converted(TensorId t, const NumberFormat& wanted) {
    const auto known =
        std::find_if(made_.begin(), made_.end(), [&](const Made& m) { return m.from == t && has_format(m.to, wanted); });
    if (known != made_.end()) return known->to;
    const Tensor source = graph_.tensor(t);
    Node n;
    n.op = "Identity";
    n.name = source.name + "_" + std::string(dtype_name(wanted.activations));
    n.inputs = {t};
    n.outputs = {graph_.add_tensor(n.name, source.dtype, source.shape)};
    n.origin = {source.name};
    const TensorId to = n.outputs[0];
    graph_.tensor(to).layout = source.layout;
    assignment_.tensors.push_back(in_format(t, wanted));
    assignment_.types.push_back(wanted.activations);
    const NodeId id = graph_.add_node(std::move(n));
    assignment_.forms.resize(std::max(assignment_.forms.size(), static_cast<size_t>(id.index) + 1));
    form(id) = {Form::Table, ""};
    made_.push_back({t, to});
    return to;
  }

  struct Made {
    TensorId from, to;
  };
  Graph& graph_;
  Assignment& assignment_;
  const QuantizeOptions& options_;
  std::vector<Made> made_;
};
}  // namespace

const NumberFormat& format_of(const QuantizeOptions& options, std::string_view result) {
  const auto it = options.formats.find(result);
  return it == options.formats.end() ? options.format : it->second;
}

void use_layer_formats(Graph& graph, Assignment& assignment, const QuantizeOptions& options) {
  Formatter(graph, assignment, options).run();
}

}  // namespace orknn::quantize
