// Takes channels out of the network that no result depends on.
//
// Before: %a = Conv(%x, %w1[4,...]) ; %b = Relu(%a) ; %y = Conv(%b, %w2[2,4,...])
// After:  %a = Conv(%x, %w1[3,...]) ; %b = Relu(%a) ; %y = Conv(%b, %w2[2,3,...])
// Legal: every convolution that reads the channel multiplies it by zeros, or the channel always holds one value: 0, or any other
// where the reader has no border of zeros, whose share then goes into the bias. Between convolutions the channel passes operators
// that keep channels apart; whatever else reads or makes it keeps it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "ops/eval.h"
#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr size_t kChannelAxis = 1;

// A convolution as far as its channels go.
struct Convolution {
  const TensorData* weights = nullptr;
  int64_t inputs = 0, outputs = 0, taps = 0;
  bool transposed = false, depthwise = false, bordered = false;

  int64_t at(int64_t output, int64_t input) const {  // of the first tap
    return (transposed ? input * outputs + output : depthwise ? output : output * inputs + input) * taps;
  }
};

bool is_zero(const std::vector<double>& values, int64_t first, int64_t count) {
  return std::all_of(values.begin() + first, values.begin() + first + count, [](double v) { return v == 0; });
}

double sum(const std::vector<double>& values, int64_t first, int64_t count) {
  return std::accumulate(values.begin() + first, values.begin() + first + count, 0.0);
}

// The parts of `value` at the positions `kept` of an axis.
TensorData slice(const TensorData& value, size_t axis, const std::vector<int64_t>& kept) {
  Dims dims = value.dims();
  const int64_t extent = dims[axis];
  size_t outer = 1, inner = dtype_bytes(value.dtype());
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(dims[i]);
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  dims[axis] = static_cast<int64_t>(kept.size());
  TensorData result = TensorData::allocate(value.dtype(), dims);
  auto* to = static_cast<std::byte*>(result.mutable_data());
  const auto* from = static_cast<const std::byte*>(value.data());
  for (size_t o = 0; o < outer; ++o)
    for (int64_t k : kept) {
      std::memcpy(to, from + (o * static_cast<size_t>(extent) + static_cast<size_t>(k)) * inner, inner);
      to += inner;
    }
  return result;
}

// Which tensors have the same channels, what reads and makes them, and which single values channels always hold.
class Channels {
 public:
  Channels(const Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops), group_(graph.tensor_count()) {
    std::iota(group_.begin(), group_.end(), 0);
    for (TensorId t : graph.inputs()) pin(t);
    for (TensorId t : graph.outputs()) pin(t);
    for (NodeId id : graph.order()) look_at(id);
    for (size_t i = 0; i < group_.size(); ++i)
      if (pinned_tensors_.contains(static_cast<int32_t>(i))) pinned_.insert(find(static_cast<int32_t>(i)));
  }

  // The channels to keep, by group of tensors; only of groups that lose some.
  std::map<int32_t, std::vector<int64_t>> kept() const {
    std::map<int32_t, std::vector<bool>> needed;
    for (NodeId id : graph_.order()) {
      const auto made = convolutions_.find(id);
      if (made == convolutions_.end() || made->second.depthwise) continue;
      const TensorId input = graph_.node(id).input(0);
      if (is_pinned(input)) continue;
      std::vector<bool>& flags = needed[find(input.index)];
      flags.resize(static_cast<size_t>(made->second.inputs), false);
      for (int64_t c = 0; c < made->second.inputs; ++c)
        if (needs(id, made->second, c)) flags[static_cast<size_t>(c)] = true;
    }
    std::map<int32_t, std::vector<int64_t>> result;
    for (const auto& [group, flags] : needed) {
      std::vector<int64_t> list;
      for (size_t c = 0; c < flags.size(); ++c)
        if (flags[c]) list.push_back(static_cast<int64_t>(c));
      if (list.empty()) list.push_back(0);  // a tensor has at least one channel
      if (list.size() < flags.size()) result[group] = std::move(list);
    }
    return result;
  }

  int32_t group_of(TensorId t) const { return t && !is_pinned(t) ? find(t.index) : -1; }
  const Convolution* convolution(NodeId id) const {
    const auto it = convolutions_.find(id);
    return it == convolutions_.end() ? nullptr : &it->second;
  }
  // The value a channel always holds.
  std::optional<double> value(TensorId t, int64_t channel) const {
    const auto it = values_.find(t.index);
    return it == values_.end() ? std::nullopt : it->second[static_cast<size_t>(channel)];
  }

 private:
  int32_t find(int32_t t) const {
    while (group_[static_cast<size_t>(t)] != t) t = group_[static_cast<size_t>(t)];
    return t;
  }
  void join(TensorId a, TensorId b) {
    const int32_t x = find(a.index), y = find(b.index);
    group_[static_cast<size_t>(std::max(x, y))] = std::min(x, y);
  }
  void pin(TensorId t) {
    if (t) pinned_tensors_.insert(t.index);
  }
  bool is_pinned(TensorId t) const { return pinned_.contains(find(t.index)); }
  void pin_all(const Node& n) {
    for (const auto* list : {&n.inputs, &n.outputs})
      for (TensorId t : *list) pin(t);
  }
  int64_t channels_of(TensorId t) const {
    const auto dims = dims_of(graph_, t);
    return dims && dims->size() >= 3 ? (*dims)[kChannelAxis] : -1;
  }

  void look_at(NodeId id) {
    const Node& n = graph_.node(id);
    const int64_t channels = channels_of(n.output());
    if (!n.tail.empty() || n.outputs.size() != 1 || channels < 1 || !is_float_tensor(graph_, n.output())) return pin_all(n);
    if (const Weights w = ops::facts_of(n).weights; w == Weights::OutIn || w == Weights::InOut) return look_at_convolution(id, n);
    if (!keeps_channels_apart(n)) return pin_all(n);
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] && !graph_.is_constant(n.inputs[i])) join(n.inputs[i], n.output());
    follow_values(n, channels);
  }

  void look_at_convolution(NodeId id, const Node& n) {
    const TensorData* weights = graph_.constant(n.input(1));
    const bool bias_known = !n.has_input(2) || graph_.is_constant(n.input(2));
    const int64_t in = channels_of(n.input(0)), out = channels_of(n.output()), group = n.attributes.int_or("group", 1);
    const std::string auto_pad = n.attributes.string_or("auto_pad", "NOTSET");
    Convolution c{.weights = weights, .inputs = in, .outputs = out, .transposed = ops::facts_of(n).weights == Weights::InOut};
    c.depthwise = group != 1 && group == in && group == out && !c.transposed;
    if (!weights || weights->dtype() != DType::Float32 || weights->packed() || !bias_known || in < 1 ||
        (group != 1 && !c.depthwise) || (auto_pad != "NOTSET" && auto_pad != "VALID"))
      return pin_all(n);
    c.taps = weights->count() / (c.depthwise ? out : in * out);
    const std::vector<int64_t> pads = n.attributes.ints_or("pads");
    c.bordered = c.transposed || std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
    if (c.depthwise) join(n.input(0), n.output());
    set_values(n, c);
    convolutions_.emplace(id, c);
  }

  // Per-channel parameters have one value, or one for each channel.
  bool is_parameter(TensorId t, int64_t channels, size_t rank) const {
    const Dims& dims = graph_.constant(t)->dims();
    if (graph_.constant(t)->packed()) return false;
    if (graph_.constant(t)->count() == 1) return true;
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != (i + rank == dims.size() + kChannelAxis ? channels : 1)) return false;
    return dims.size() <= rank && graph_.constant(t)->count() == channels;
  }

  bool keeps_channels_apart(const Node& n) const {
    const OpDef* def = ops_.find(n.op);
    const auto out = dims_of(graph_, n.output());
    if (!def || !out || !n.has_input(0)) return false;
    const bool pools =
        (def->pattern == Pattern::Window || def->pattern == Pattern::GlobalWindow) && def->weights == Weights::None;
    const bool pointwise = def->pattern == Pattern::Pointwise || def->pattern == Pattern::Broadcast;
    if (!pools && !pointwise) return false;
    for (TensorId t : n.inputs) {
      if (!t) continue;
      if (graph_.is_constant(t)) {
        if (pools || !is_parameter(t, (*out)[kChannelAxis], out->size())) return false;
      } else {
        const auto dims = dims_of(graph_, t);
        if (!dims || dims->size() != out->size() || (*dims)[kChannelAxis] != (*out)[kChannelAxis] || !is_float_tensor(graph_, t))
          return false;
      }
    }
    return true;
  }

  // What a convolution makes of channels that its weights leave out.
  void set_values(const Node& n, const Convolution& c) {
    const std::vector<double> weights = to_doubles(c.weights->view());
    const std::vector<double> bias =
        n.has_input(2) ? to_doubles(graph_.constant(n.input(2))->view()) : std::vector<double>(static_cast<size_t>(c.outputs), 0);
    std::vector<std::optional<double>> made(static_cast<size_t>(c.outputs));
    for (int64_t o = 0; o < c.outputs; ++o) {
      std::optional<double> v = bias[static_cast<size_t>(o)];
      for (int64_t i = c.depthwise ? o : 0; v && i < (c.depthwise ? o + 1 : c.inputs); ++i) {
        const int64_t first = c.at(o, i);
        if (is_zero(weights, first, c.taps)) continue;
        const auto x = value(n.input(0), i);
        const bool known = x && (*x == 0 || !c.bordered);
        v = known ? std::optional(*v + *x * sum(weights, first, c.taps)) : std::nullopt;
      }
      made[static_cast<size_t>(o)] = v;
    }
    store(n.output(), std::move(made));
  }

  // Channels whose inputs all hold one value hold the node's function of them.
  void follow_values(const Node& n, int64_t channels) {
    std::vector<std::optional<double>> made(static_cast<size_t>(channels), 0.0);
    std::vector<TensorData> inputs;
    const size_t rank = dims_of(graph_, n.output())->size();
    Dims dims(rank, 1);
    dims[kChannelAxis] = channels;
    for (TensorId t : n.inputs) {
      if (!t || graph_.is_constant(t)) {
        inputs.push_back(t ? *graph_.constant(t) : TensorData());
        continue;
      }
      std::vector<float> values(static_cast<size_t>(channels), 0);
      for (int64_t c = 0; c < channels; ++c) {
        const auto x = value(t, c);
        if (x) values[static_cast<size_t>(c)] = static_cast<float>(*x);
        if (!x) made[static_cast<size_t>(c)] = {};
      }
      inputs.push_back(convert(TensorData::from<float>(dims, values).view(), dtype_of(graph_, t)));
    }
    if (std::ranges::none_of(made, [](const auto& v) { return v.has_value(); })) return;
    const OpDef* def = ops_.find(n.op);
    if (def->pattern == Pattern::Window || def->pattern == Pattern::GlobalWindow) {
      // A pool of equal values gives the value; its border only leaves zeros alone for sure.
      for (int64_t c = 0; c < channels; ++c) {
        auto& v = made[static_cast<size_t>(c)];
        if (v) v = value(n.input(0), c);
        if (v && *v != 0 && def->pattern == Pattern::Window) v = {};
      }
      return store(n.output(), std::move(made));
    }
    const auto result = ops::eval_node(n, ops_, inputs);
    if (!result || (*result)[0].count() != channels) return;
    const std::vector<double> values = to_doubles((*result)[0].view());
    for (size_t c = 0; c < made.size(); ++c)
      if (made[c]) made[c] = std::isfinite(values[c]) ? std::optional(values[c]) : std::nullopt;
    store(n.output(), std::move(made));
  }

  void store(TensorId t, std::vector<std::optional<double>> values) {
    if (std::ranges::any_of(values, [](const auto& v) { return v.has_value(); })) values_[t.index] = std::move(values);
  }

  // Whether the results of a convolution depend on a channel it reads, other than by a fixed amount.
  bool needs(NodeId id, const Convolution& c, int64_t channel) const {
    const auto x = value(graph_.node(id).input(0), channel);
    if (x && (*x == 0 || !c.bordered)) return false;
    const std::vector<double>& weights = doubles_of(id, c);
    for (int64_t o = 0; o < c.outputs; ++o)
      if (!is_zero(weights, c.at(o, channel), c.taps)) return true;
    return false;
  }
  const std::vector<double>& doubles_of(NodeId id, const Convolution& c) const {
    if (doubles_node_ != id) {
      doubles_ = to_doubles(c.weights->view());
      doubles_node_ = id;
    }
    return doubles_;
  }

  const Graph& graph_;
  const OpSet& ops_;
  std::vector<int32_t> group_;  // union-find over tensors
  std::set<int32_t> pinned_tensors_, pinned_;
  std::map<NodeId, Convolution> convolutions_;
  std::map<int32_t, std::vector<std::optional<double>>> values_;
  mutable NodeId doubles_node_;
  mutable std::vector<double> doubles_;
};

// The bias of a convolution with what channels of one value add to its results.
std::vector<double> bias_with_values(const Graph& g, const Node& n, const Convolution& c, const Channels& channels,
                                     const std::vector<int64_t>& kept) {
  std::vector<double> bias =
      n.has_input(2) ? to_doubles(g.constant(n.input(2))->view()) : std::vector<double>(static_cast<size_t>(c.outputs), 0);
  const std::vector<double> weights = to_doubles(c.weights->view());
  for (int64_t i = 0; i < c.inputs; ++i) {
    const auto x = channels.value(n.input(0), i);
    if (!x || *x == 0 || std::ranges::binary_search(kept, i)) continue;
    for (int64_t o = 0; o < c.outputs; ++o) bias[static_cast<size_t>(o)] += *x * sum(weights, c.at(o, i), c.taps);
  }
  return bias;
}

class Pruning {
 public:
  Pruning(const Graph& graph, const Channels& channels, std::map<int32_t, std::vector<int64_t>> kept)
      : graph_(graph), result_(graph), channels_(channels), kept_(std::move(kept)) {}

  Graph run() {
    for (NodeId id : graph_.order()) {
      if (const Convolution* c = channels_.convolution(id))
        prune_convolution(id, *c);
      else
        prune_parameters(id);
      shorten(graph_.node(id).output());
    }
    return std::move(result_);
  }

 private:
  const std::vector<int64_t>* kept_of(TensorId t) const {
    const auto it = kept_.find(channels_.group_of(t));
    return it == kept_.end() ? nullptr : &it->second;
  }
  void shorten(TensorId t) {
    const std::vector<int64_t>* kept = t ? kept_of(t) : nullptr;
    if (kept) (*result_.tensor(t).shape)[kChannelAxis] = Dim(static_cast<int64_t>(kept->size()));
  }
  TensorId constant_like(TensorId old, TensorData value) {
    return result_.add_constant(graph_.tensor(old).name, std::move(value));
  }

  void prune_convolution(NodeId id, const Convolution& c) {
    const std::vector<int64_t>*in = kept_of(graph_.node(id).input(0)), *out = kept_of(graph_.node(id).output());
    if (!in && !out) return;
    Node n = graph_.node(id);
    TensorData weights = *c.weights;
    TensorData bias = n.has_input(2) ? *graph_.constant(n.input(2)) : TensorData();
    if (in && !c.depthwise) {
      const std::vector<double> sums = bias_with_values(graph_, n, c, channels_, *in);
      const bool adds =
          n.has_input(2) ? sums != to_doubles(bias.view()) : std::ranges::any_of(sums, [](double v) { return v != 0; });
      if (adds) bias = constant_from(sums, {c.outputs}, DType::Float32);
      weights = slice(weights, c.transposed ? 0 : 1, *in);
    }
    if (out) {
      weights = slice(weights, c.transposed ? 1 : 0, *out);
      if (bias.has_value()) bias = slice(bias, 0, *out);
      if (c.depthwise) n.attributes.set("group", static_cast<int64_t>(out->size()));
    }
    n.inputs[1] = constant_like(n.input(1), std::move(weights));
    if (bias.has_value()) {
      const TensorId fresh =
          n.has_input(2) ? constant_like(n.input(2), std::move(bias)) : result_.add_constant(n.name + "_bias", std::move(bias));
      n.inputs.resize(3);
      n.inputs[2] = fresh;
    }
    result_.replace_node(id, std::move(n));
  }

  void prune_parameters(NodeId id) {
    Node n = graph_.node(id);
    const std::vector<int64_t>* kept = n.output() ? kept_of(n.output()) : nullptr;
    if (!kept) return;
    const int64_t channels = (*dims_of(graph_, n.output()))[kChannelAxis];
    for (TensorId& t : n.inputs) {
      const TensorData* value = t ? graph_.constant(t) : nullptr;
      if (!value || value->count() == 1) continue;
      const size_t axis = static_cast<size_t>(std::ranges::find(value->dims(), channels) - value->dims().begin());
      t = constant_like(t, slice(*value, axis, *kept));
    }
    result_.replace_node(id, std::move(n));
  }

  const Graph& graph_;
  Graph result_;
  const Channels& channels_;
  std::map<int32_t, std::vector<int64_t>> kept_;
};

Status run(Rewriter& r) {
  if (!r.may_rewrite()) return {};
  const Channels channels(r.graph(), r.ops());
  auto kept = channels.kept();
  if (kept.empty()) return {};
  for (NodeId id : r.graph().order()) {
    const Node& n = r.graph().node(id);
    const Convolution* c = channels.convolution(id);
    const auto group = c && !c->depthwise ? kept.find(channels.group_of(n.output())) : kept.end();
    if (group != kept.end())
      r.remark(n.op + ":" + n.name + ": " + std::to_string(group->second.size()) + " of " + std::to_string(c->outputs) +
               " channels are left");
  }
  return r.replace_graph(Pruning(r.graph(), channels, std::move(kept)).run());
}
}  // namespace

Pass prune_channels() {
  return {.name = "prune_channels",
          .summary = "channels that no result depends on (model_pruning)",
          .min_level = 0,
          .graph_pass = run};
}
}  // namespace orknn::optimize
