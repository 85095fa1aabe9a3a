// Takes channels out of the network that no result depends on.
//
// Before: %a = Conv(%x, %w1[4,...]) ; %b = Relu(%a) ; %y = Conv(%b, %w2[2,4,...])
// After:  %a = Conv(%x, %w1[3,...]) ; %b = Relu(%a) ; %y = Conv(%b, %w2[2,3,...])
// Legal: every layer that reads the channel multiplies it by zeros, or the channel always holds one value: 0, or any other where
// the reader has no border of zeros, whose share then goes into the bias. Between layers with weights the channel passes
// operators that keep channels apart (optimize/channel_flow.h); whatever else reads or makes it keeps it.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/channel_flow.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;
using Kept = ChannelFlow::Kept;

class Pruning {
 public:
  Pruning(const Graph& graph, const ChannelFlow& flow) : graph_(graph), result_(graph), flow_(flow) {}

  Graph run() {
    for (NodeId id : graph_.order()) {
      const Node& n = graph_.node(id);
      if (const Mixer* m = flow_.mixer(id))
        prune_mixer(id, *m);
      else if (changes(n))
        result_.replace_node(id, adapted(n));
      for (TensorId t : n.outputs)
        if (const auto kept = flow_.kept(t)) (*result_.tensor(t).shape)[kept->axis] = Dim(extent(*kept));
    }
    return std::move(result_);
  }

 private:
  static int64_t extent(const Kept& kept) { return static_cast<int64_t>(kept.places.size()); }
  bool changes(const Node& n) const {
    const auto shrinks = [&](TensorId t) { return flow_.kept(t).has_value(); };
    return std::ranges::any_of(n.inputs, shrinks) || std::ranges::any_of(n.outputs, shrinks);
  }
  // The constant of a node that is sliced or written anew, under the name of the old one.
  TensorId constant_like(TensorId old, TensorData value) {
    return result_.add_constant(graph_.tensor(old).name, std::move(value));
  }
  TensorId ints_like(TensorId old, const std::vector<int64_t>& values) {
    return constant_like(old, TensorData::from<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  std::vector<int64_t> places_left(TensorId t, int64_t count) const {
    if (const auto kept = flow_.kept(t)) return kept->places;
    std::vector<int64_t> all;
    for (int64_t p = 0; p < count; ++p) all.push_back(p);
    return all;
  }

  // --- layers with weights
  // The bias with what channels of one value that leave add to results that stay; empty where it stays as it is.
  std::vector<double> bias_with_values(const Node& n, const Mixer& m, const std::vector<int64_t>& inputs,
                                       const std::vector<int64_t>& outputs) const {
    std::vector<double> bias(static_cast<size_t>(m.outputs), 0);
    for (size_t o = 0; o < m.bias.size(); ++o) bias[o] = m.bias_scale * m.bias[o];
    const std::vector<double> weights = to_doubles(m.weights->view());
    bool adds = false;
    for (int64_t i = 0; i < m.inputs; ++i) {
      const auto x = flow_.value(n.input(0), i);
      if (!x || *x == 0 || std::ranges::binary_search(inputs, i)) continue;
      for (int64_t o : outputs) {
        if (m.group_of_output(o) != m.group_of_input(i)) continue;
        adds = true;
        bias[static_cast<size_t>(o)] += m.scale * *x * sum_of_weights(weights, m, o, i);
      }
    }
    return adds ? bias : std::vector<double>();
  }

  // The weights between channels that stay; every group keeps as many.
  static TensorData weights_left(const Mixer& m, const std::vector<int64_t>& inputs, const std::vector<int64_t>& outputs) {
    const std::vector<int64_t>&first = m.input_first ? inputs : outputs, &second = m.input_first ? outputs : inputs;
    const int64_t first_size = m.input_first ? m.inputs_of_group() : m.outputs_of_group();
    const int64_t second_size = m.input_first ? m.outputs_of_group() : m.inputs_of_group();
    std::vector<std::byte> bytes;
    Dims dims;
    for (int64_t f : first) {
      std::vector<int64_t> columns;
      for (int64_t s : second)
        if (s / second_size == f / first_size) columns.push_back(s % second_size);
      const TensorData row = slice(slice(*m.weights, 0, {f}), 1, columns);
      const auto* data = static_cast<const std::byte*>(row.data());
      bytes.insert(bytes.end(), data, data + row.bytes());
      dims = row.dims();
    }
    dims[0] = static_cast<int64_t>(first.size());
    TensorData result = TensorData::allocate(m.weights->dtype(), dims);
    std::ranges::copy(bytes, static_cast<std::byte*>(result.mutable_data()));
    return result;
  }

  void prune_mixer(NodeId id, const Mixer& m) {
    const Node& old = graph_.node(id);
    if (!changes(old)) return;
    const std::vector<int64_t> inputs = places_left(old.input(0), m.inputs), outputs = places_left(old.output(), m.outputs);
    Node n = old;
    n.inputs[1] = constant_like(old.input(1), weights_left(m, inputs, outputs));
    if (m.groups != 1) n.attributes.set("group", groups_left(m, inputs));
    const TensorData* bias = graph_.constant(old.input(2));
    const std::vector<double> sums = bias_with_values(old, m, inputs, outputs);
    if (!sums.empty()) {
      if (old.op == "MatMul") n.op = "Gemm";
      if (m.bias_scale != 1) n.attributes.set("beta", 1.0);
      const TensorData fresh = slice(constant_from(sums, {m.outputs}, m.weights->dtype()), 0, outputs);
      n.inputs.resize(3);
      n.inputs[2] = bias ? constant_like(old.input(2), fresh) : result_.add_constant(n.name + "_bias", fresh);
    } else if (bias && bias->count() > 1) {
      n.inputs[2] = constant_like(old.input(2), slice(*bias, bias->dims().size() - 1, outputs));
    }
    result_.replace_node(id, std::move(n));
  }

  static int64_t groups_left(const Mixer& m, const std::vector<int64_t>& inputs) {
    int64_t count = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (i == 0 || m.group_of_input(inputs[i]) != m.group_of_input(inputs[i - 1])) ++count;
    return count;
  }

  // --- layers that hand channels on
  Node adapted(const Node& old) {
    const OpDef& def = ops::facts_of(old);
    Node n = old;
    if (def.pattern == Pattern::View && old.op != "Flatten")
      view_as_left(n);
    else if (def.parts == ir::Parts::Divided)
      divide_what_is_left(n);
    else if (def.is_elementwise())
      slice_operands(n);
    else if (def.channels_apart)
      slice_parameters(n);
    else if (old.op == "Resize")
      resize_to_what_is_left(n);
    else if (old.op == "Slice")
      cut_from_what_is_left(n);
    return n;
  }

  Dims dims_left(TensorId t) const {
    Dims dims = *dims_of(graph_, t);
    if (const auto kept = flow_.kept(t)) dims[kept->axis] = extent(*kept);
    return dims;
  }

  void view_as_left(Node& n) {
    const TensorId shape = result_.add_constant(n.name + "_shape", TensorData::vector(dims_left(n.output())));
    n = successor(n, "Reshape", {n.input(0), shape});
  }

  void divide_what_is_left(Node& n) {
    std::vector<int64_t> sizes;
    const int64_t axis = n.attributes.int_or("axis", 0);
    for (TensorId t : n.outputs) {
      const Dims dims = dims_left(t);
      sizes.push_back(dims[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)]);
    }
    n.inputs.resize(2);
    n.inputs[1] = result_.add_constant(n.name + "_sizes", TensorData::vector(sizes));
    n.attributes.erase("num_outputs");
  }

  void slice_operands(Node& n) {
    const auto kept = flow_.kept(n.output());
    const size_t rank = dims_of(graph_, n.output())->size();
    for (TensorId& t : n.inputs) {
      const TensorData* value = t ? graph_.constant(t) : nullptr;
      if (!value || value->dims().size() + kept->axis < rank) continue;
      const size_t axis = value->dims().size() + kept->axis - rank;
      if (value->dims()[axis] != 1) t = constant_like(t, slice(*value, axis, kept->places));
    }
  }

  void slice_parameters(Node& n) {
    const auto kept = flow_.kept(n.output());
    for (size_t i = 1; i < n.inputs.size(); ++i)
      n.inputs[i] = constant_like(n.inputs[i], slice(*graph_.constant(n.inputs[i]), 0, kept->places));
  }

  // Where it is told extents instead of factors.
  void resize_to_what_is_left(Node& n) {
    const TensorData* sizes = n.has_input(3) ? graph_.constant(n.input(3)) : nullptr;
    if (!sizes || sizes->count() == 0) return;
    const auto kept = flow_.kept(n.output());
    const std::vector<int64_t> axes = n.attributes.ints_or("axes");
    std::vector<int64_t> left = to_ints(sizes->view());
    for (size_t i = 0; i < left.size(); ++i)
      if ((axes.empty() ? i : static_cast<size_t>(axes[i])) == kept->axis) left[i] = extent(*kept);
    n.inputs[3] = constant_like(n.input(3), TensorData::vector(left));
  }

  // A part of the channels, in steps of 1: it begins after those that are left before it.
  void cut_from_what_is_left(Node& n) {
    const Dims whole = *dims_of(graph_, n.input(0));
    const auto in = flow_.kept(n.input(0));
    std::vector<int64_t> starts = to_ints(graph_.constant(n.input(1))->view()),
                         ends = to_ints(graph_.constant(n.input(2))->view());
    const std::vector<int64_t> axes = n.has_input(3) ? to_ints(graph_.constant(n.input(3))->view()) : std::vector<int64_t>();
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t named = axes.empty() ? static_cast<int64_t>(i) : axes[i];
      const auto axis = static_cast<size_t>(named < 0 ? named + static_cast<int64_t>(whole.size()) : named);
      if (axis != in->axis) continue;
      const int64_t first = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + whole[axis] : starts[i], 0, whole[axis]);
      starts[i] = std::ranges::lower_bound(in->places, first) - in->places.begin();
      ends[i] = starts[i] + dims_left(n.output())[axis];
    }
    // The indices have one type, and axes and steps keep theirs.
    const DType type = graph_.constant(n.input(1))->dtype();
    n.inputs[1] = constant_like(n.input(1), convert(TensorData::vector(starts).view(), type));
    n.inputs[2] = constant_like(n.input(2), convert(TensorData::vector(ends).view(), type));
  }

  const Graph& graph_;
  Graph result_;
  const ChannelFlow& flow_;
};

Status run(Rewriter& r) {
  if (!r.may_rewrite()) return {};
  const ChannelFlow flow(r.graph(), r.ops());
  ORKNN_TRY(flow.problem());
  for (NodeId id : r.graph().order()) {
    const Node& n = r.graph().node(id);
    const Mixer* m = flow.mixer(id);
    const auto kept = m ? flow.kept(n.output()) : std::nullopt;
    if (kept)
      r.remark(n.op + ":" + n.name + ": " + std::to_string(kept->places.size()) + " of " + std::to_string(m->outputs) +
               " channels are left");
  }
  if (flow.loses_any()) return r.replace_graph(Pruning(r.graph(), flow).run());
  // Nothing leaves any more: what stays although it never changes is worth a word.
  for (NodeId id : r.graph().order())
    for (const auto& [reason, count] : flow.constants_that_stay(id)) {
      const Node& n = r.graph().node(id);
      r.remark(n.op + ":" + n.name + ": " + std::to_string(count) + " channel(s) that always hold one value stay: " + reason);
    }
  return {};
}
}  // namespace

Pass prune_channels() {
  return {.name = "prune_channels",
          .summary = "channels that no result depends on (model_pruning)",
          .min_level = 0,
          .graph_pass = run};
}
}  // namespace orknn::optimize
