#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>

namespace orknn::quantize {
using namespace ir;
namespace {

// A tensor joined with others of this many times its range would keep fewer than three of its eight bits.
constexpr double kMaxRangeRatio = 32;

size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

class Assigner {
 public:
  Assigner(const Graph& graph, const TensorStatistics& statistics, const QuantizeOptions& options) : graph_(graph), statistics_(statistics), options_(options) {}

  Assignment run() {
    find_what_leaves();
    result_.tensors.resize(graph_.tensor_count());
    size_t highest = 0;
    for (NodeId id : graph_.order()) highest = std::max(highest, static_cast<size_t>(id.index) + 1);
    result_.forms.resize(highest);
    for (TensorId t : graph_.inputs()) result_.tensors[index_of(t)] = own_parameters(t, {});
    for (NodeId id : graph_.order()) decide(id);
    for (NodeId id : graph_.order())
      if (form(id).form == Form::Concat) settle_concat(id);
    return std::move(result_);
  }

 private:
  LayerForm& form(NodeId id) { return result_.forms[static_cast<size_t>(id.index)]; }

  QuantParams parameters(Range range) const { return parameters_of(range, options_.format.activations, options_.format.power_of_two); }

  std::optional<QuantParams> own_parameters(TensorId t, std::string_view last_op) const {
    const Tensor& tensor = graph_.tensor(t);
    if (tensor.dtype != DType::Float32) return std::nullopt;
    if (const auto given = options_.ranges.find(tensor.name); given != options_.ranges.end()) return parameters(given->second);
    if (has_unit_range(last_op)) return parameters({0, 1});
    if (has_symmetric_range(last_op)) return parameters({-1, 1});
    const auto it = statistics_.find(tensor.name);
    if (it == statistics_.end() || it->second.empty()) return std::nullopt;
    return parameters(choose_range(it->second, reaches_output(t) ? Algorithm::Normal : options_.algorithm, options_.format.bits()));
  }

  // What leaves the network is not clipped: the rare large value may be the one that counts. So for what only copies, sigmoids and softmaxes lie behind.
  bool reaches_output(TensorId t) const { return leaves_[index_of(t)] != 0; }
  void find_what_leaves() {
    leaves_.assign(graph_.tensor_count(), 0);
    for (TensorId t : graph_.outputs()) leaves_[index_of(t)] = 1;
    const std::vector<NodeId>& order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      const Form f = layer_form(graph_, n).form;
      if (!n.tail.empty() || (f != Form::Move && f != Form::Concat && f != Form::Softmax && n.op != "Sigmoid")) continue;
      if (std::none_of(n.outputs.begin(), n.outputs.end(), [&](TensorId y) { return y && reaches_output(y); })) continue;
      for (TensorId x : n.inputs)
        if (x) leaves_[index_of(x)] = 1;
    }
  }

  bool has_parameters(TensorId t) const { return result_.tensors[index_of(t)].has_value(); }
  // Data inputs that are computed; constants are rounded on their own.
  bool inputs_ready(const Node& n, Form f) const {
    const size_t data_inputs = f == Form::Concat ? n.own_input_count() : f == Form::Binary || f == Form::MatMul ? 2 : 1;
    for (size_t i = 0; i < std::min(data_inputs, n.own_input_count()); ++i)
      if (n.inputs[i] && !graph_.is_constant(n.inputs[i]) && !has_parameters(n.inputs[i])) return false;
    for (const TailStep& step : n.tail)
      if (step.operand >= 0 && !graph_.is_constant(n.inputs[static_cast<size_t>(step.operand)]) && !has_parameters(n.inputs[static_cast<size_t>(step.operand)])) return false;
    return true;
  }

  void decide(NodeId id) {
    const Node& n = graph_.node(id);
    LayerForm& f = form(id);
    f = layer_form(graph_, n);
    if (f.form != Form::Float && tail_steps_taken(graph_, n, f.form) != n.tail.size()) f = {Form::Float, "its fused steps have no integer form"};
    if (f.form != Form::Float && !inputs_ready(n, f.form)) f = {Form::Float, "an input was not seen in calibration"};
    if (f.form != Form::Float && options_.keep_float)
      for (TensorId t : n.outputs)
        if (t && options_.keep_float(n, graph_.tensor(t).name)) f = {Form::Float, "left in float on request"};
    const std::string_view last = n.tail.empty() ? std::string_view(n.op) : std::string_view(n.tail.back().op);
    for (TensorId t : n.outputs) {
      if (!t) continue;
      auto& parameters = result_.tensors[index_of(t)];
      parameters = f.form == Form::Move ? result_.tensors[index_of(n.input(0))] : own_parameters(t, last);
      if (f.form != Form::Float && !parameters) f = {Form::Float, "its result was not seen in calibration"};
    }
    if (f.form == Form::Float)
      for (TensorId t : n.outputs)
        if (t) result_.tensors[index_of(t)] = own_parameters(t, last);
  }

  static double width(const QuantParams& p) { return static_cast<double>(p.max[0]) - p.min[0]; }

  // The inputs of a Concat that only it reads are computed in the result's parameters at once.
  void settle_concat(NodeId id) {
    const Node& n = graph_.node(id);
    const QuantParams& joined = *result_.tensors[index_of(n.output())];
    for (TensorId t : n.inputs) {
      if (!has_parameters(t)) continue;
      const double own = width(*result_.tensors[index_of(t)]);
      if (own > 0 && width(joined) > own * kMaxRangeRatio) {
        form(id) = {Form::Float, "'" + graph_.tensor(t).name + "' would lose its values next to larger ones"};
        return;
      }
    }
    for (TensorId t : n.inputs) take_over(t, joined);
  }

  // Follows copies back to where the values are computed.
  void take_over(TensorId t, const QuantParams& parameters) {
    std::vector<TensorId> chain;
    while (true) {
      const NodeId producer = graph_.producer(t);
      if (!producer || graph_.reader_count(t) != 1) return;
      const Form f = form(producer).form;
      if (f == Form::Float || f == Form::Concat || f == Form::Softmax) return;
      chain.push_back(t);
      if (f != Form::Move) break;
      if (graph_.node(producer).outputs.size() != 1) return;
      t = graph_.node(producer).input(0);
    }
    for (TensorId c : chain) result_.tensors[index_of(c)] = parameters;
  }

  const Graph& graph_;
  const TensorStatistics& statistics_;
  const QuantizeOptions& options_;
  std::vector<char> leaves_;  // by tensor
  Assignment result_;
};
}  // namespace

Assignment assign_parameters(const Graph& graph, const TensorStatistics& statistics, const QuantizeOptions& options) {
  return Assigner(graph, statistics, options).run();
}

}  // namespace orknn::quantize
