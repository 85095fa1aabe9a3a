#include "quantize/layer_formats.h"

#include <algorithm>

#include "ir/index_of.h"

namespace orknn::quantize {
using namespace ir;
namespace {

class Formatter {
 public:
  Formatter(const Graph& graph, Plan& plan, const QuantizeOptions& options)
      : graph_(graph), plan_(plan), options_(options), patch_(graph) {}

  const Patch& run() {
    for (NodeId id : graph_.order()) {
      if (form(id).form == Form::Softmax && format(id).activations == DType::Int16)
        form(id) = {Form::Float, "there is no 16-bit form of Softmax"};
      switch (form(id).form) {
        case Form::Float: leave_float(id); break;
        case Form::Move: follow(id); break;
        default: settle(id);
      }
    }
    return patch_;
  }
  // Once the patch is applied: the conversions are layers too.
  void plan_conversions() {
    for (const Made& m : made_) {
      const NodeId id = graph_.producer(m.to);
      plan_.forms.add(graph_, id);
      form(id) = {Form::Table, ""};
    }
  }

 private:
  LayerForm& form(NodeId id) { return plan_.form(id); }
  const NumberFormat& format(NodeId id) const {
    const Node& n = graph_.node(id);
    return format_of(options_, n.output() ? std::string_view(graph_.tensor(n.output()).name) : std::string_view());
  }
  const std::optional<QuantParams>& parameters(TensorId t) const { return plan_.parameters(t); }
  DType type(TensorId t) const { return plan_.type(t); }
  bool has_format(TensorId t, const NumberFormat& f) const {
    return type(t) == f.activations && parameters(t)->fixed_point == f.power_of_two;
  }

  QuantParams in_format(TensorId t, const NumberFormat& f) const {
    return parameters_of({parameters(t)->min[0], parameters(t)->max[0]}, f.activations, f.power_of_two);
  }
  void set_format(TensorId t, const NumberFormat& f) {
    if (!t || !parameters(t) || has_format(t, f)) return;
    plan_.tensors[index_of(t)] = in_format(t, f);
    plan_.types[index_of(t)] = f.activations;
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
      plan_.tensors[index_of(t)] = parameters(n.input(0));
      plan_.types[index_of(t)] = type(n.input(0));
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
    if (changed) patch_.replace_node(id, std::move(n));
  }

  TensorId converted(TensorId t, const NumberFormat& wanted) {
    const auto known =
        std::find_if(made_.begin(), made_.end(), [&](const Made& m) { return m.from == t && has_format(m.to, wanted); });
    if (known != made_.end()) return known->to;
    const Tensor& source = graph_.tensor(t);
    Node n;
    n.op = "Identity";
    n.name = source.name + "_" + std::string(dtype_name(wanted.activations));
    n.inputs = {t};
    const TensorId to = patch_.add_tensor(n.name, source.dtype, source.shape, source.layout);
    n.outputs = {to};
    n.origin = {source.name};
    plan_.tensors.push_back(in_format(t, wanted));
    plan_.types.push_back(wanted.activations);
    patch_.add_node(std::move(n));
    made_.push_back({t, to});
    return to;
  }

  struct Made {
    TensorId from, to;
  };
  const Graph& graph_;
  Plan& plan_;
  const QuantizeOptions& options_;
  Patch patch_;
  std::vector<Made> made_;
};
}  // namespace

const NumberFormat& format_of(const QuantizeOptions& options, std::string_view result) {
  const auto it = options.formats.find(result);
  return it == options.formats.end() ? options.format : it->second;
}

Status convert_formats(passes::Rewriter& rewriter, Plan& plan, const QuantizeOptions& options) {
  Formatter formatter(rewriter.graph(), plan, options);
  const Patch& patch = formatter.run();
  if (patch.empty()) return {};
  ORKNN_TRY_ASSIGN(const bool applied, rewriter.apply(patch));
  if (!applied) return internal_error("conversions between number formats change a type");
  formatter.plan_conversions();
  return {};
}

}  // namespace orknn::quantize
