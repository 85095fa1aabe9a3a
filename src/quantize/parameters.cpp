#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "quantize/layer_formats.h"

namespace orknn::quantize {
using namespace ir;
namespace {

std::string text_of(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}
std::string text_of(const Range& r) { return "[" + text_of(r.low) + ", " + text_of(r.high) + "]"; }

// Values joined with others of more times their range must keep this many bits.
constexpr int kBitsToKeep = 5;
// Below this a score is a mask's: no probability is left of it.
constexpr double kMasked = -1000;

// A range of this many bits less than the tensor's is a small one; ranges this factor apart are different things.
constexpr int kBitsOfSmallChannels = 3;
constexpr double kGap = 8;

// Values stay beside those they stood beside; other layers make new values of all of them.
bool keeps_channels(Form f) { return f == Form::Move || f == Form::Concat || f == Form::Table || f == Form::Binary; }

size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

class Assigner {
 public:
  Assigner(const Graph& graph, const TensorStatistics& statistics, const QuantizeOptions& options)
      : graph_(graph), statistics_(statistics), options_(options) {}

  Assignment run() {
    find_what_leaves();
    find_logarithms();
    mixed_.assign(graph_.tensor_count(), 0);
    result_.tensors.resize(graph_.tensor_count());
    size_t highest = 0;
    for (NodeId id : graph_.order()) highest = std::max(highest, static_cast<size_t>(id.index) + 1);
    result_.forms.resize(highest);
    for (TensorId t : graph_.inputs()) result_.tensors[index_of(t)] = own_parameters(t, {});
    for (NodeId id : graph_.order()) decide(id);
    for (NodeId id : graph_.order())
      if (form(id).form == Form::Concat) share_parameters(id);
    return std::move(result_);
  }

 private:
  LayerForm& form(NodeId id) { return result_.forms[static_cast<size_t>(id.index)]; }

  QuantParams parameters(Range range) const {
    return parameters_of(range, options_.format.activations, options_.format.power_of_two);
  }

  std::optional<QuantParams> own_parameters(TensorId t, std::string_view last_op) const {
    const Tensor& tensor = graph_.tensor(t);
    if (tensor.dtype != DType::Float32) return std::nullopt;
    if (const auto given = options_.ranges.find(tensor.name); given != options_.ranges.end()) return parameters(given->second);
    if (has_unit_range(last_op)) return parameters({0, unit_range(t)});
    if (has_symmetric_range(last_op)) return parameters({-1, 1});
    const auto it = statistics_.find(tensor.name);
    if (it == statistics_.end() || it->second.empty()) return std::nullopt;
    const int bits = format_of(options_, tensor.name).bits();
    if (const auto cut = cut_outliers(it->second, bits); cut && options_.remark)
      options_.remark(kClipOutliers, "the range of '" + tensor.name + "' is " + text_of(cut->range) + " although values reach " +
                                         text_of({it->second.min(), it->second.max()}) + ", predicted noise behind " +
                                         text_of(cut->error) + " of what it was");
    return parameters(choose_range(it->second, reaches_output(t) ? Algorithm::Normal : options_.algorithm, bits));
  }

  // [0, 1] by its function, but scores that stay below on all samples would live in a part of the 255 steps. What leaves the
  // network keeps a tenth above the largest score seen (the values before the function have no more room either); inside, the
  // range is halved at most so far that twice the largest one fits.
  double unit_range(TensorId t) const {
    const auto it = statistics_.find(graph_.tensor(t).name);
    if (it == statistics_.end() || !(it->second.max() > 0)) return 1;
    const double seen = it->second.max();
    if (reaches_output(t)) return std::min(1.0, 1.1 * seen);
    double high = 1;
    while (seen * 4 <= high) high /= 2;
    return high;
  }

  // What leaves the network is not clipped: the rare large value may be the one that counts. So for what only copies, sigmoids
  // and softmaxes lie behind.
  bool reaches_output(TensorId t) const { return leaves_[index_of(t)] != 0; }
  void find_what_leaves() {
    leaves_.assign(graph_.tensor_count(), 0);
    for (TensorId t : graph_.outputs()) leaves_[index_of(t)] = 1;
    carried_out_ = tensors_carried_out(graph_);
    const std::vector<NodeId>& order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      const Form f = layer_form(graph_, n).form;
      if (!n.tail.empty() || !(f == Form::Move || f == Form::Concat || f == Form::Softmax || n.op == "Sigmoid")) continue;
      if (std::any_of(n.outputs.begin(), n.outputs.end(), [&](TensorId y) { return y && leaves_[index_of(y)]; }))
        for (TensorId x : n.inputs)
          if (x) leaves_[index_of(x)] = 1;
    }
  }

  // The logarithm of a value that was rounded to 1/255 of the largest one means nothing near zero: everything from the layer that
  // makes the value on is computed in float.
  void find_logarithms() {
    logarithm_.assign(graph_.tensor_count(), 0);
    const std::vector<NodeId>& order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      const bool behind =
          std::any_of(n.outputs.begin(), n.outputs.end(), [&](TensorId y) { return y && logarithm_[index_of(y)]; });
      if (n.op != "Log" && !(behind && (keeps_channels(layer_form(graph_, n).form)))) continue;
      for (TensorId x : n.inputs)
        if (x) logarithm_[index_of(x)] = 1;
    }
  }

  bool has_parameters(TensorId t) const { return result_.tensors[index_of(t)].has_value(); }
  // Data inputs that are computed; constants are rounded on their own.
  bool inputs_ready(const Node& n, Form f) const {
    const size_t data_inputs = f == Form::Concat ? n.own_input_count() : f == Form::Binary || f == Form::MatMul ? 2 : 1;
    for (size_t i = 0; i < std::min(data_inputs, n.own_input_count()); ++i)
      if (n.inputs[i] && !graph_.is_constant(n.inputs[i]) && !has_parameters(n.inputs[i])) return false;
    for (const TailStep& step : n.tail)
      if (step.operand >= 0 && !graph_.is_constant(n.inputs[static_cast<size_t>(step.operand)]) &&
          !has_parameters(n.inputs[static_cast<size_t>(step.operand)]))
        return false;
    return true;
  }

  void decide(NodeId id) {
    const Node& n = graph_.node(id);
    LayerForm& f = form(id);
    f = layer_form(graph_, n);
    if (f.form != Form::Float && tail_steps_taken(graph_, n, f.form) != n.tail.size())
      f = {Form::Float, "its fused steps have no integer form"};
    if (f.form != Form::Float && !inputs_ready(n, f.form)) f = {Form::Float, "an input was not seen in calibration"};
    if (f.form != Form::Float && options_.keep_float)
      for (TensorId t : n.outputs)
        if (t && options_.keep_float(n, graph_.tensor(t).name)) f = {Form::Float, "left in float on request"};
    if (f.form != Form::Float && options_.keep_small_values)
      if (auto float_form = kept_in_float(n, f.form)) {
        f = *float_form;
        if (options_.remark)
          options_.remark(kKeepSmallValues, "'" + graph_.tensor(n.output()).name + "' stays in float: " + f.reason);
      }
    if (std::any_of(n.inputs.begin(), n.inputs.end(), [&](TensorId x) { return x && mixed_[index_of(x)]; }) &&
        (f.form == Form::Float || keeps_channels(f.form)))
      for (TensorId y : n.outputs)
        if (y) mixed_[index_of(y)] = 1;
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

  // For layers whose integer form would cost accuracy, the reason. What mixes large and small values on the way to an output
  // leaves tensors behind it that no single scale can hold.
  std::optional<LayerForm> kept_in_float(const Node& n, Form f) {
    const auto because = [](std::string reason) { return LayerForm{Form::Float, std::move(reason)}; };
    const auto named = [&](TensorId t) { return "'" + graph_.tensor(t).name + "'"; };
    if (n.op == "Log" || logarithm_[index_of(n.output())]) return because("a logarithm needs small values exact");
    if (f == Form::Softmax && is_masked(n.input(0))) return because(named(n.input(0)) + " holds masked values");
    if (f == Form::Binary && is_masked(n.output()) && only_softmax_reads(n.output())) return because("it masks values");
    if (!carried_out_[index_of(n.output())]) return std::nullopt;
    if (keeps_channels(f))
      for (TensorId x : n.inputs)
        if (x && mixed_[index_of(x)]) return because(named(x) + " holds small values beside larger ones");
    std::string mixes;
    const double most = largest_ratio();
    const std::string_view last = n.tail.empty() ? std::string_view(n.op) : std::string_view(n.tail.back().op);
    // Probabilities have one unit: a class that never occurred loses nothing.
    if (f != Form::Move && f != Form::Softmax && !has_unit_range(last) && has_channels_apart(n.output()))
      mixes = "some of its channels would lose their values next to larger ones";
    if (f == Form::Concat) {
      const auto joined = own_parameters(n.output(), {});
      for (TensorId t : n.inputs)
        if (joined && has_parameters(t) && width(*result_.tensors[index_of(t)]) > 0 &&
            width(*joined) > width(*result_.tensors[index_of(t)]) * most)
          mixes = named(t) + " would lose its values next to larger ones";
    } else if (f == Form::Binary && (n.op == "Mul" || n.op == "Div")) {
      for (TensorId t : n.inputs)
        if (const TensorData* factors = t ? graph_.constant(t) : nullptr; factors && spread(*factors) > most)
          mixes = "its factors would put small values beside larger ones";
    }
    if (mixes.empty()) return std::nullopt;
    mixed_[index_of(n.output())] = 1;
    return LayerForm{Form::Float, std::move(mixes), true};
  }

  bool has_channels_apart(TensorId t) const {
    const std::string& name = graph_.tensor(t).name;
    if (options_.uneven_tensors.contains(name)) return true;
    const auto it = statistics_.find(name);
    return it != statistics_.end() && channels_lie_apart(it->second, options_.format.bits());
  }

  // The largest of the factors by the smallest; factors of 0 leave nothing to lose.
  static double spread(const TensorData& factors) {
    double least = INFINITY, most = 0;
    for (double v : to_doubles(factors.view())) {
      if (v == 0) continue;
      least = std::min(least, std::abs(v));
      most = std::max(most, std::abs(v));
    }
    return most / least;
  }

  bool is_masked(TensorId t) const {
    if (has_parameters(t) && result_.tensors[index_of(t)]->min[0] <= kMasked) return true;
    if (const auto it = statistics_.find(graph_.tensor(t).name);
        it != statistics_.end() && !it->second.empty() && it->second.min() <= kMasked)
      return true;
    const Node* maker = graph_.producer_node(t);
    while (maker && copies_values(graph_, *maker)) maker = graph_.producer_node(maker->input(0));
    if (!maker || maker->op != "Where") return false;
    return std::any_of(maker->inputs.begin() + 1, maker->inputs.end(), [&](TensorId x) {
      const TensorData* value = graph_.constant(x);
      return value && value->count() == 1 && to_doubles(value->view())[0] <= kMasked;
    });
  }

  bool only_softmax_reads(TensorId t) const {
    if (graph_.is_output(t)) return false;
    const auto users = graph_.users(t);
    return std::all_of(users.begin(), users.end(), [&](NodeId u) {
      const Node& n = graph_.node(u);
      return n.op == "Softmax" || (copies_values(graph_, n) && n.outputs.size() == 1 && only_softmax_reads(n.output()));
    });
  }

  // The inputs of a Concat that only it reads are computed in the result's parameters at once, unless these are far too coarse
  // for them: such an input is computed in its own and then rounded once more.
  void share_parameters(NodeId id) {
    const Node& n = graph_.node(id);
    const QuantParams joined = *result_.tensors[index_of(n.output())];
    for (TensorId t : n.inputs)
      if (has_parameters(t) && width(joined) <= width(*result_.tensors[index_of(t)]) * largest_ratio()) take_over(t, joined);
  }

  // Of the range of joined values to that of one part, at which the part keeps kBitsToKeep bits.
  double largest_ratio() const { return std::exp2(options_.format.bits() - kBitsToKeep); }

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
  // By tensor:
  std::vector<char> leaves_;       // nothing but copies, sigmoids and softmaxes up to an output
  std::vector<char> carried_out_;  // its values stay beside those they stand beside up to an output
  std::vector<char> logarithm_;    // its values end in a logarithm
  std::vector<char> mixed_;        // holds small values beside much larger ones
  Assignment result_;
};
}  // namespace

bool channels_lie_apart(const Statistics& statistics, int bits) {
  constexpr int64_t kEnoughToJudge = 8;  // values of a channel: with fewer, it may be small by chance
  const auto width = [](double low, double high) { return std::max(high, 0.0) - std::min(low, 0.0); };
  const double small = width(statistics.min(), statistics.max()) / std::exp2(bits - kBitsOfSmallChannels);
  const auto apart = [&](std::vector<double> widths) {
    std::erase_if(widths, [](double w) { return !(w > 0); });  // without values there is nothing to lose
    std::sort(widths.begin(), widths.end());
    for (size_t i = (widths.size() + 15) / 16; i < widths.size() && widths[i - 1] < small; ++i)
      if (widths[i] >= kGap * widths[i - 1]) return true;
    return false;
  };
  std::vector<double> widths;
  for (const ChannelStatistics& c : statistics.channels())
    if (c.count >= kEnoughToJudge) widths.push_back(width(c.min, c.max));
  if (apart(std::move(widths))) return true;
  return std::ranges::any_of(statistics.features(), [&](const Statistics::Features& f) {
    widths.clear();
    if (statistics.count() < kEnoughToJudge * static_cast<int64_t>(f.low.size())) return false;
    for (size_t i = 0; i < f.low.size(); ++i) widths.push_back(width(f.low[i], f.high[i]));
    return apart(std::move(widths));
  });
}

std::vector<char> tensors_carried_out(const Graph& graph) {
  std::vector<char> carried(graph.tensor_count(), 0);
  for (TensorId t : graph.outputs()) carried[index_of(t)] = 1;
  const std::vector<NodeId>& order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph.node(*it);
    const Form f = layer_form(graph, n).form;
    if (f != Form::Float && !keeps_channels(f)) continue;
    if (std::any_of(n.outputs.begin(), n.outputs.end(), [&](TensorId y) { return y && carried[index_of(y)]; }))
      for (TensorId x : n.inputs)
        if (x) carried[index_of(x)] = 1;
  }
  return carried;
}

Assignment assign_parameters(const Graph& graph, const TensorStatistics& statistics, const QuantizeOptions& options) {
  return Assigner(graph, statistics, options).run();
}

}  // namespace orknn::quantize
