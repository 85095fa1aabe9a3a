#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>

#include "ir/index_of.h"
#include "ops/facts.h"
#include "quantize/layer_formats.h"
#include "quantize/tails.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Values joined with others of more times their range must keep this many bits.
constexpr int kBitsToKeep = 5;
// Below this a score is a mask's: no probability is left of it.
constexpr double kMasked = -1000;

// A range of this many bits less than the tensor's is a small one; ranges this factor apart are different things.
constexpr int kBitsOfSmallChannels = 3;
constexpr double kGap = 8;

// Values stay beside those they stood beside; other layers make new values of all of them.
bool keeps_neighbours(Form f) { return f == Form::Move || f == Form::Concat || f == Form::Table || f == Form::Binary; }

bool any_of(const std::vector<char>& marks, const std::vector<TensorId>& tensors) {
  return std::ranges::any_of(tensors, [&](TensorId t) { return t && marks[index_of(t)]; });
}
void mark(std::vector<char>& marks, const std::vector<TensorId>& tensors) {
  for (TensorId t : tensors)
    if (t) marks[index_of(t)] = 1;
}

double width(const QuantParams& p) { return static_cast<double>(p.max[0]) - p.min[0]; }

// The function that makes the result of a node.
std::string_view last_op(const Node& n) { return n.tail.empty() ? std::string_view(n.op) : std::string_view(n.tail.back().op); }

// The largest of the factors by the smallest; factors of 0 leave nothing to lose.
double spread(const TensorData& factors) {
  double least = INFINITY, most = 0;
  for (double v : to_doubles(factors.view())) {
    if (v == 0) continue;
    least = std::min(least, std::abs(v));
    most = std::max(most, std::abs(v));
  }
  return most / least;
}
}  // namespace

QuantParams ParameterChoice::parameters(Range range) const {
  return parameters_of(range, options_.format.activations, options_.format.power_of_two);
}

const Statistics* ParameterChoice::seen(TensorId t) const {
  const auto it = calibration_.statistics.find(graph_.tensor(t).name);
  return it == calibration_.statistics.end() || it->second.empty() ? nullptr : &it->second;
}

std::optional<QuantParams> ParameterChoice::own_parameters(TensorId t, std::string_view last) const {
  const Tensor& tensor = graph_.tensor(t);
  if (tensor.dtype != DType::Float32) return std::nullopt;
  if (const auto given = options_.ranges.find(tensor.name); given != options_.ranges.end()) return parameters(given->second);
  if (has_unit_range(last)) return parameters({0, unit_range(t)});
  if (has_symmetric_range(last)) return parameters({-1, 1});
  const Statistics* statistics = seen(t);
  if (!statistics) return std::nullopt;
  // What leaves the network is not clipped: the rare large value may be the one that counts.
  const Algorithm algorithm = leaves(t) ? Algorithm::Normal : options_.algorithm;
  const NumberFormat& format = format_of(options_, tensor.name);
  const Range range = calibration_.range(tensor.name, *statistics, algorithm, format.bits());
  return parameters(graph_.is_input(t) ? range : with_room(range, *statistics, format, leaves_[index_of(t)]));
}

// For values that the samples do not show, which cost most where they leave the network. 16 bits have some to spare.
Range ParameterChoice::with_room(Range range, const Statistics& statistics, const NumberFormat& format, Leaves leaves) const {
  if (format.bits() > 8) {
    const double room = format.power_of_two ? 1 : leaves == Leaves::Not ? 2 : 4;
    return {room * range.low, room * range.high};
  }
  if (leaves == Leaves::Copied)
    return {room_of(statistics.stretch_below()) * range.low, room_of(statistics.stretch_above()) * range.high};
  if (leaves == Leaves::ThroughSigmoid && options_.output_room > 1) {
    // As many times the score; what lies below the range has none to speak of.
    constexpr double kSure = 0.98;
    const double score = std::min(kSure, options_.output_room / (1 + std::exp(-range.high)));
    range.high = std::max(range.high, std::log(score / (1 - score)));
  }
  return range;
}

// For values further out than those of the samples: the more these differ, the more so may others.
double ParameterChoice::room_of(double stretch) const {
  constexpr double kLeast = 1.25;  // samples may be alike by chance
  return std::min(options_.output_room, std::max(kLeast, stretch * stretch));
}

// [0, 1] by its function, but scores that stay below on all samples would live in a part of the 255 steps. What leaves the
// network keeps a tenth above the largest score seen (the values before the function have no more room either), or the room that
// outputs are given; inside, the range is halved at most so far that twice the largest one fits.
double ParameterChoice::unit_range(TensorId t) const {
  const auto it = calibration_.statistics.find(graph_.tensor(t).name);
  if (it == calibration_.statistics.end() || !(it->second.max() > 0)) return 1;
  const double largest = it->second.max();
  if (leaves(t)) return std::min(1.0, std::max(1.1, options_.output_room) * largest);
  double high = 1;
  while (largest * 4 <= high) high /= 2;
  return high;
}

void ParameterChoice::find_what_leaves() {
  leaves_.assign(graph_.tensor_count(), Leaves::Not);
  for (TensorId t : graph_.outputs())
    if (t) leaves_[index_of(t)] = Leaves::Copied;
  carried_out_ = tensors_carried_out(graph_, forms_);
  const std::vector<NodeId>& order = graph_.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph_.node(*it);
    const Form f = forms_[*it].form;
    const bool copied = f == Form::Move || f == Form::Concat;
    if (!n.tail.empty() || !(copied || f == Form::Softmax || ops::facts_of(n).is_score)) continue;
    for (TensorId out : n.outputs) {
      if (!out || !leaves(out)) continue;
      const Leaves how = copied ? leaves_[index_of(out)] : f == Form::Softmax ? Leaves::ThroughSoftmax : Leaves::ThroughSigmoid;
      for (TensorId in : n.inputs)
        if (in) leaves_[index_of(in)] = std::max(leaves_[index_of(in)], how);
    }
  }
}

// The logarithm of a value that was rounded to 1/255 of the largest one means nothing near zero: everything from the layer that
// makes the value on is computed in float.
void ParameterChoice::find_logarithms() {
  logarithm_.assign(graph_.tensor_count(), 0);
  const std::vector<NodeId>& order = graph_.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph_.node(*it);
    if (ops::facts_of(n).needs_small_values || (any_of(logarithm_, n.outputs) && keeps_neighbours(forms_[*it].form)))
      mark(logarithm_, n.inputs);
  }
}

// Data inputs that are computed have parameters; constants are rounded on their own.
bool ParameterChoice::inputs_ready(const Node& n, Form f) const {
  const auto ready = [&](TensorId t) { return !t || graph_.is_constant(t) || has_parameters(t); };
  for (size_t i = 0; i < data_inputs(n, f); ++i)
    if (!ready(n.inputs[i])) return false;
  return std::ranges::all_of(n.tail,
                             [&](const TailStep& s) { return s.operand < 0 || ready(n.inputs[static_cast<size_t>(s.operand)]); });
}

LayerForm ParameterChoice::possible_form(NodeId id) const {
  const Node& n = graph_.node(id);
  const LayerForm& form = forms_[id];
  if (form.form == Form::Float) return form;
  if (tail_steps_taken(graph_, n, form.form) != n.tail.size()) return {Form::Float, "its fused steps have no integer form"};
  if (!inputs_ready(n, form.form)) return {Form::Float, "an input was not seen in calibration"};
  if (options_.keep_float)
    for (TensorId t : n.outputs)
      if (t && options_.keep_float(n, graph_.tensor(t).name)) return {Form::Float, "left in float on request"};
  return form;
}

void ParameterChoice::settle(const Node& n, LayerForm& form) {
  const auto own = [&](TensorId t) { return own_parameters(t, last_op(n)); };
  for (TensorId t : n.outputs) {
    if (!t) continue;
    auto& parameters = plan_.tensors[index_of(t)];
    parameters = form.form == Form::Move ? plan_.parameters(n.input(0)) : own(t);
    if (form.form != Form::Float && !parameters) form = {Form::Float, "its result was not seen in calibration"};
  }
  if (form.form != Form::Float) return;
  for (TensorId t : n.outputs)
    if (t) plan_.tensors[index_of(t)] = own(t);
}

Status ParameterChoice::choose() {
  find_what_leaves();
  plan_.tensors.assign(graph_.tensor_count(), std::nullopt);
  plan_.types.assign(graph_.tensor_count(), options_.format.activations);
  plan_.forms = forms_;
  for (TensorId t : graph_.inputs()) plan_.tensors[index_of(t)] = own_parameters(t, {});
  for (NodeId id : graph_.order()) {
    plan_.form(id) = possible_form(id);
    settle(graph_.node(id), plan_.form(id));
  }
  return {};
}

// In execution order: what a layer reads has its final parameters, what it makes does not count yet.
Status ParameterChoice::keep_small_values(passes::Rewriter& rewriter) {
  find_logarithms();
  mixed_.assign(graph_.tensor_count(), 0);
  for (NodeId id : graph_.order()) {
    const Node& n = graph_.node(id);
    LayerForm& form = plan_.form(id);
    for (TensorId t : n.outputs)
      if (t) plan_.tensors[index_of(t)].reset();
    if (form.form != Form::Float && !inputs_ready(n, form.form)) form = {Form::Float, "an input was not seen in calibration"};
    if (form.form != Form::Float)
      if (auto float_form = kept_in_float(n, form.form)) {
        form = std::move(*float_form);
        rewriter.remark("'" + graph_.tensor(n.output()).name + "' stays in float: " + form.reason);
      }
    if (any_of(mixed_, n.inputs) && (form.form == Form::Float || keeps_neighbours(form.form))) mark(mixed_, n.outputs);
    settle(n, form);
  }
  return {};
}

// For layers whose integer form would cost accuracy, the reason. What mixes large and small values on the way to an output
// leaves tensors after it that no single scale can hold.
std::optional<LayerForm> ParameterChoice::kept_in_float(const Node& n, Form f) {
  const auto because = [](std::string reason) { return LayerForm{Form::Float, std::move(reason), true}; };
  const auto named = [&](TensorId t) { return "'" + graph_.tensor(t).name + "'"; };
  if (ops::facts_of(n).needs_small_values || logarithm_[index_of(n.output())])
    return because("a logarithm needs small values to be exact");
  if (f == Form::Softmax && is_masked(n.input(0))) return because(named(n.input(0)) + " holds masked values");
  if (f == Form::Binary && is_masked(n.output()) && only_softmax_reads(n.output())) return because("it masks values");
  if (!carried_out_[index_of(n.output())]) return std::nullopt;
  if (keeps_neighbours(f))
    for (TensorId x : n.inputs)
      if (x && mixed_[index_of(x)]) return because(named(x) + " holds small values beside larger ones");
  std::string reason = what_mixes(n, f);
  if (reason.empty()) return std::nullopt;
  mixed_[index_of(n.output())] = 1;
  return because(std::move(reason));
}

// How a layer puts small values beside large ones; empty when it does not.
std::string ParameterChoice::what_mixes(const Node& n, Form f) const {
  std::string mixes;
  const double most = largest_ratio();
  // Probabilities have one unit: a class that never occurred loses nothing.
  if (f != Form::Move && f != Form::Softmax && !has_unit_range(last_op(n)) && has_channels_apart(n.output()))
    mixes = "some of its channels would lose their values next to larger ones";
  if (f == Form::Concat) {
    const auto joined = own_parameters(n.output(), {});
    for (TensorId t : n.inputs)
      if (joined && has_parameters(t) && width(*plan_.parameters(t)) > 0 && width(*joined) > width(*plan_.parameters(t)) * most)
        mixes = "'" + graph_.tensor(t).name + "' would lose its values next to larger ones";
  } else if (f == Form::Binary && multiplies_or_divides(n)) {
    for (TensorId t : n.inputs)
      if (const TensorData* factors = t ? graph_.constant(t) : nullptr; factors && spread(*factors) > most)
        mixes = "its factors would put small values beside larger ones";
  }
  return mixes;
}

bool ParameterChoice::has_channels_apart(TensorId t) const {
  const std::string& name = graph_.tensor(t).name;
  if (options_.uneven_tensors.contains(name)) return true;
  const auto it = calibration_.statistics.find(name);
  return it != calibration_.statistics.end() && channels_lie_apart(it->second, options_.format.bits());
}

bool ParameterChoice::is_masked(TensorId t) const {
  if (has_parameters(t) && plan_.parameters(t)->min[0] <= kMasked) return true;
  if (const Statistics* statistics = seen(t); statistics && statistics->min() <= kMasked) return true;
  const Node* maker = graph_.producer_node(t);
  while (maker && copies_values(graph_, *maker)) maker = graph_.producer_node(maker->input(0));
  if (!maker || !ops::facts_of(*maker).selects) return false;
  return std::any_of(maker->inputs.begin() + 1, maker->inputs.end(), [&](TensorId x) {
    const TensorData* value = graph_.constant(x);
    return value && value->count() == 1 && to_doubles(value->view())[0] <= kMasked;
  });
}

bool ParameterChoice::only_softmax_reads(TensorId t) const {
  if (graph_.is_output(t)) return false;
  return std::ranges::all_of(graph_.users(t), [&](NodeId u) {
    const Node& n = graph_.node(u);
    return ops::facts_of(n).quant == QuantRule::Softmax ||
           (copies_values(graph_, n) && n.outputs.size() == 1 && only_softmax_reads(n.output()));
  });
}

// Of the range of joined values to that of one part, at which the part keeps kBitsToKeep bits.
double ParameterChoice::largest_ratio() const { return std::exp2(options_.format.bits() - kBitsToKeep); }

// An operand whose own parameters are far finer than the result's is computed in them and then rounded once more.
Status ParameterChoice::share() {
  for (NodeId id : graph_.order()) {
    if (plan_.form(id).form != Form::Concat) continue;
    const Node& n = graph_.node(id);
    const QuantParams joined = *plan_.parameters(n.output());
    for (TensorId t : n.inputs)
      if (has_parameters(t) && width(joined) <= width(*plan_.parameters(t)) * largest_ratio()) take_over(t, joined);
  }
  return {};
}

// Follows copies back to where the values are computed.
void ParameterChoice::take_over(TensorId t, const QuantParams& parameters) {
  std::vector<TensorId> chain;
  while (true) {
    const NodeId producer = graph_.producer(t);
    if (!producer || graph_.reader_count(t) != 1) return;
    const Form f = plan_.form(producer).form;
    if (f == Form::Float || f == Form::Concat || f == Form::Softmax) return;
    chain.push_back(t);
    if (f != Form::Move) break;
    if (graph_.node(producer).outputs.size() != 1) return;
    t = graph_.node(producer).input(0);
  }
  for (TensorId c : chain) plan_.tensors[index_of(c)] = parameters;
}

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

std::vector<char> tensors_carried_out(const Graph& graph, const LayerForms& forms) {
  std::vector<char> carried(graph.tensor_count(), 0);
  mark(carried, graph.outputs());
  const std::vector<NodeId>& order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph.node(*it);
    const Form f = forms[*it].form;
    if (f != Form::Float && !keeps_neighbours(f)) continue;
    if (any_of(carried, n.outputs)) mark(carried, n.inputs);
  }
  return carried;
}

}  // namespace orknn::quantize
