#include "optimize/channel_flow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/refusal.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "optimize/match.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Of the axes in [first, last).
int64_t extent_of(const Dims& dims, size_t first, size_t last) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.begin() + static_cast<std::ptrdiff_t>(last),
                         int64_t{1}, std::multiplies<>());
}
int64_t inner_extent(const Dims& dims, size_t axis) { return extent_of(dims, axis + 1, dims.size()); }
int64_t outer_extent(const Dims& dims, size_t axis) { return extent_of(dims, 0, axis); }

bool is_plain_float(const TensorData* value) { return value && is_float(value->dtype()) && !value->packed(); }

// The axis of a view's result along which channels of `from` at `axis` lie: with the same step between them; else in the same
// sample; else as runs that repeat.
std::optional<size_t> axis_in_view(const Dims& from, size_t axis, const Dims& to) {
  for (size_t a = 0; a < to.size(); ++a)
    if (to[a] == from[axis] && inner_extent(to, a) == inner_extent(from, axis)) return a;
  std::optional<size_t> best;
  for (size_t a = 0; a < to.size(); ++a)
    if (outer_extent(to, a) == outer_extent(from, axis) && (!best || to[a] > to[*best])) best = a;
  if (best) return best;
  for (size_t a = 0; a < to.size(); ++a)
    if (to[a] % from[axis] == 0 && inner_extent(to, a) == inner_extent(from, axis)) return a;
  return std::nullopt;
}
}  // namespace

TensorData slice(const TensorData& value, size_t axis, const std::vector<int64_t>& places) {
  Dims dims = value.dims();
  const int64_t extent = dims[axis];
  const auto outer = static_cast<size_t>(outer_extent(dims, axis));
  const size_t inner = static_cast<size_t>(inner_extent(dims, axis)) * dtype_bytes(value.dtype());
  dims[axis] = static_cast<int64_t>(places.size());
  TensorData result = TensorData::allocate(value.dtype(), dims);
  auto* to = static_cast<std::byte*>(result.mutable_data());
  const auto* from = static_cast<const std::byte*>(value.data());
  for (size_t o = 0; o < outer; ++o)
    for (int64_t p : places) {
      std::memcpy(to, from + (o * static_cast<size_t>(extent) + static_cast<size_t>(p)) * inner, inner);
      to += inner;
    }
  return result;
}

double sum_of_weights(const std::vector<double>& weights, const Mixer& m, int64_t output, int64_t input) {
  const auto first = weights.begin() + m.at(output, input);
  return std::accumulate(first, first + m.taps, 0.0);
}

ChannelFlow::ChannelFlow(const Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops), lanes_(graph.tensor_count()) {
  for (TensorId t : graph.inputs()) keep_tensor(t, "they are inputs of the model");
  for (NodeId id : graph.order()) look_at(id);
  for (TensorId t : graph.outputs()) keep_tensor(t, "they are results of the model");
  do follow_needs();
  while (settle_structure());
}

std::optional<ChannelFlow::Kept> ChannelFlow::kept(TensorId t) const {
  const Lane* l = t ? lane(t) : nullptr;
  if (!l) return std::nullopt;
  Kept result{l->axis, {}};
  for (int64_t p = 0; p < l->count; ++p)
    if (stays(l->first + static_cast<int32_t>(p))) result.places.push_back(p);
  if (static_cast<int64_t>(result.places.size()) == l->count) return std::nullopt;
  return result;
}

bool ChannelFlow::loses_any() const {
  for (size_t p = 0; p < same_.size(); ++p)
    if (!stays(static_cast<int32_t>(p))) return true;
  return false;
}

const Mixer* ChannelFlow::mixer(NodeId id) const {
  const auto it = mixers_.find(id);
  return it == mixers_.end() ? nullptr : &it->second;
}

std::optional<double> ChannelFlow::value(TensorId t, int64_t place) const {
  const Lane* l = lane(t);
  if (!l) return std::nullopt;
  const double v = values_[static_cast<size_t>(l->first + place)];
  return std::isnan(v) ? std::nullopt : std::optional(v);
}

std::map<std::string, int64_t> ChannelFlow::constants_that_stay(NodeId id) const {
  std::map<std::string, int64_t> result;
  const Lane* l = mixer(id) ? lane(graph_.node(id).output()) : nullptr;
  for (int64_t p = 0; l && p < l->count; ++p) {
    const std::string& reason = reason_[static_cast<size_t>(find(l->first + static_cast<int32_t>(p)))];
    if (value(graph_.node(id).output(), p) && !reason.empty()) ++result[reason];
  }
  return result;
}

// --- places

const ChannelFlow::Lane* ChannelFlow::lane(TensorId t) const {
  const auto& l = lanes_[static_cast<size_t>(t.index)];
  return l ? &*l : nullptr;
}

const ChannelFlow::Lane* ChannelFlow::add_lane(TensorId t, size_t axis) {
  auto& l = lanes_[static_cast<size_t>(t.index)];
  const auto dims = dims_of(graph_, t);
  if (l || !dims || dims->size() <= axis || (*dims)[axis] < 1 || !is_float_tensor(graph_, t)) return lane(t);
  l = Lane{axis, static_cast<int32_t>(same_.size()), (*dims)[axis]};
  for (int64_t p = 0; p < l->count; ++p) same_.push_back(l->first + static_cast<int32_t>(p));
  values_.resize(same_.size(), kUnknown);
  reason_.resize(same_.size());
  return &*l;
}

int32_t ChannelFlow::find(int32_t place) const {
  while (same_[static_cast<size_t>(place)] != place) {
    int32_t& above = same_[static_cast<size_t>(place)];
    above = same_[static_cast<size_t>(above)];
    place = above;
  }
  return place;
}

void ChannelFlow::unite(int32_t a, int32_t b) {
  const int32_t x = find(a), y = find(b);
  if (x == y) return;
  const auto low = static_cast<size_t>(std::min(x, y)), high = static_cast<size_t>(std::max(x, y));
  same_[high] = static_cast<int32_t>(low);
  if (reason_[low].empty()) reason_[low] = std::move(reason_[high]);
}

void ChannelFlow::join(const Lane& from, int64_t from_place, const Lane& to, int64_t to_place, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto a = from.first + static_cast<int32_t>(from_place + i), b = to.first + static_cast<int32_t>(to_place + i);
    unite(a, b);
    values_[static_cast<size_t>(b)] = values_[static_cast<size_t>(a)];
  }
}

void ChannelFlow::keep(int32_t place, const std::string& reason) {
  std::string& known = reason_[static_cast<size_t>(find(place))];
  if (known.empty()) known = reason;
}

void ChannelFlow::keep_tensor(TensorId t, const std::string& reason) {
  if (!t || graph_.is_constant(t)) return;
  const Lane* l = add_lane(t, 1);
  for (int64_t p = 0; l && p < l->count; ++p) keep(l->first + static_cast<int32_t>(p), reason);
}

void ChannelFlow::keep_all(const Node& n, const std::string& reason) {
  for (const auto* list : {&n.inputs, &n.outputs})
    for (TensorId t : *list) keep_tensor(t, reason);
}

// --- the flow

void ChannelFlow::look_at(NodeId id) {
  const Node& n = graph_.node(id);
  if (!n.tail.empty()) return keep_all(n, n.op + ":" + n.name + " has fused steps");
  if (look_at_mixer(id, n) || hand_on(n)) return;
  keep_all(n, n.op + ":" + n.name + " does not keep them apart");
}

std::optional<Mixer> ChannelFlow::convolution(const Node& n) const {
  const auto x = dims_of(graph_, n.input(0)), y = dims_of(graph_, n.output());
  if (!x || !y || x->size() < 3 || x->size() != y->size()) return std::nullopt;
  const int64_t groups = n.attributes.int_or("group", 1);
  Mixer m{.inputs = (*x)[1], .outputs = (*y)[1], .groups = groups};
  m.input_first = ops::facts_of(n).weights == Weights::InOut;
  const std::vector<int64_t> pads = n.attributes.ints_or("pads");
  const std::string auto_pad = n.attributes.string_or("auto_pad", "NOTSET");
  m.is_bordered = m.input_first || (auto_pad != "NOTSET" && auto_pad != "VALID") ||
                  std::ranges::any_of(pads, [](int64_t p) { return p != 0; });
  return m;
}

std::optional<Mixer> ChannelFlow::product(const Node& n) const {
  const auto x = dims_of(graph_, n.input(0)), y = dims_of(graph_, n.output());
  const auto w = dims_of(graph_, n.input(1));
  if (!x || !y || !w || x->size() < 2 || w->size() != 2 || n.attributes.int_or("transA", 0) != 0) return std::nullopt;
  Mixer m{.inputs = x->back(), .outputs = y->back()};
  m.input_axis = m.output_axis = x->size() - 1;
  m.input_first = n.attributes.int_or("transB", 0) == 0;
  // A product without a bias becomes one with a bias where it is one of matrices.
  m.takes_bias = x->size() == 2;
  m.scale = n.attributes.float_or("alpha", 1);
  m.bias_scale = n.attributes.float_or("beta", 1);
  return m;
}

bool ChannelFlow::look_at_mixer(NodeId id, const Node& n) {
  const Weights form = ops::facts_of(n).weights;
  if (form == Weights::None || n.outputs.size() != 1 || !n.output() || !is_float_tensor(graph_, n.output())) return false;
  auto m = form == Weights::Matrix ? product(n) : convolution(n);
  if (!m || !is_plain_float(graph_.constant(n.input(1))) || m->groups < 1 || m->inputs < 1 || m->outputs < 1 ||
      m->inputs % m->groups != 0 || m->outputs % m->groups != 0)
    return false;
  m->weights = graph_.constant(n.input(1));
  m->taps = m->weights->count() / (m->inputs_of_group() * m->outputs);
  const TensorData* bias = n.has_input(2) ? graph_.constant(n.input(2)) : nullptr;
  const bool fits =
      !n.has_input(2) ||
      (is_plain_float(bias) && (bias->count() == 1 || (bias->count() == m->outputs && bias->dims().back() == m->outputs)));
  if (bias && fits) {
    m->bias = to_doubles(bias->view());
    if (m->bias.size() == 1) m->bias.resize(static_cast<size_t>(m->outputs), m->bias[0]);
  }
  m->takes_bias &= fits;
  const Lane* in = lane(n.input(0));
  if (in && in->axis != m->input_axis) keep_tensor(n.input(0), n.op + ":" + n.name + " works along another axis");
  const Lane* out = add_lane(n.output(), m->output_axis);
  if (!out) return false;
  if (fits)
    set_mixed_values(n, *m);
  else
    keep_all(n, n.op + ":" + n.name + " adds a tensor that is no bias");
  mixers_.emplace(id, std::move(*m));
  return true;
}

bool ChannelFlow::hand_on(const Node& n) {
  const OpDef* def = ops_.find(n.op);
  if (!def || !def->deterministic || n.inputs.empty() || !n.has_input(0)) return false;
  for (TensorId t : n.outputs)
    if (!t || !is_float_tensor(graph_, t) || !dims_of(graph_, t)) return false;
  if (def->parts == Parts::Joined) return n.outputs.size() == 1 && hand_on_parts(n, true);
  if (def->parts == Parts::Divided) return lane(n.input(0)) && hand_on_parts(n, false);
  if (n.outputs.size() != 1) return false;
  if (def->is_elementwise()) return hand_on_elementwise(n);
  if (!lane(n.input(0))) return false;
  if ((def->pattern == Pattern::Window || def->pattern == Pattern::GlobalWindow) && def->weights == Weights::None)
    return hand_on_by_window(n);
  if (def->pattern == Pattern::Reduce) return hand_on_by_reduction(n);
  if (def->pattern == Pattern::View) return hand_on_by_view(n);
  if (def->channels_apart) return hand_on_by_norm(n);
  if (n.op == "Resize") return hand_on_by_resize(n);
  if (n.op == "Transpose") return hand_on_by_transpose(n);
  if (n.op == "Pad") return hand_on_by_pad(n);
  if (n.op == "Slice") return hand_on_by_slice(n);
  return false;
}

// Constants have one value along the channels or one for each; a tensor with one value for all channels keeps its own.
bool ChannelFlow::hand_on_elementwise(const Node& n) {
  const Dims y = *dims_of(graph_, n.output());
  // Where an operand has the axis of the result; nothing where it is missing.
  const auto axis_of_operand = [&](TensorId t, size_t axis) -> std::optional<size_t> {
    const auto dims = dims_of(graph_, t);
    return dims && dims->size() + axis >= y.size() ? std::optional(dims->size() + axis - y.size()) : std::nullopt;
  };
  std::optional<size_t> axis;
  for (TensorId t : n.inputs) {
    const Lane* l = t ? lane(t) : nullptr;
    if (axis || !l) continue;
    const size_t at = l->axis + y.size() - dims_of(graph_, t)->size();
    if (l->count == y[at] && (l->count > 1 || y.size() == dims_of(graph_, t)->size())) axis = at;
  }
  if (!axis) return false;
  std::vector<const Lane*> lanes(n.inputs.size(), nullptr);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const TensorId t = n.inputs[i];
    if (!t) continue;
    if (!is_float_tensor(graph_, t) || !dims_of(graph_, t)) return false;
    const auto at = axis_of_operand(t, *axis);
    const int64_t extent = at ? (*dims_of(graph_, t))[*at] : 1;
    if (graph_.is_constant(t)) {
      if (graph_.constant(t)->packed()) return false;
    } else if (const Lane* l = lane(t); l && at && l->axis == *at && extent == y[*axis]) {
      lanes[i] = l;
    } else if (extent != 1) {
      return false;
    }
  }
  const Lane& out = *add_lane(n.output(), *axis);
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i])
      join(*lanes[i], 0, out, 0, out.count);
    else
      keep_tensor(n.inputs[i], n.op + ":" + n.name + " reads them for every channel");
  }
  set_elementwise_values(n, lanes, out);
  return true;
}

bool ChannelFlow::hand_on_by_window(const Node& n) {
  const Lane in = *lane(n.input(0));
  if (in.axis != 1 || n.inputs.size() != 1) return false;
  const Lane& out = *add_lane(n.output(), in.axis);
  join(in, 0, out, 0, in.count);
  set_values_by_trial(n, in, out);
  return true;
}

bool ChannelFlow::hand_on_by_reduction(const Node& n) {
  const Lane in = *lane(n.input(0));
  const auto axes = reduce_axes(graph_, n);
  const auto axis = static_cast<int64_t>(in.axis);
  if (!axes || std::ranges::count(*axes, axis) != 0) return false;
  const bool keeps = n.attributes.int_or("keepdims", 1) != 0;
  const auto gone = keeps ? 0 : std::ranges::count_if(*axes, [&](int64_t a) { return a < axis; });
  const Lane* out = add_lane(n.output(), in.axis - static_cast<size_t>(gone));
  if (!out || out->count != in.count) return false;
  join(in, 0, *out, 0, in.count);
  set_values_by_trial(n, in, *out);
  return true;
}

// Its parameters have one value for each channel.
bool ChannelFlow::hand_on_by_norm(const Node& n) {
  const Lane in = *lane(n.input(0));
  if (in.axis != 1 || n.attributes.int_or("training_mode", 0) != 0) return false;
  for (size_t i = 1; i < n.inputs.size(); ++i)
    if (!n.inputs[i] || !is_plain_float(graph_.constant(n.inputs[i])) || graph_.constant(n.inputs[i])->count() != in.count)
      return false;
  const Lane& out = *add_lane(n.output(), in.axis);
  join(in, 0, out, 0, in.count);
  set_elementwise_values(n, {&in}, out);
  return true;
}

bool ChannelFlow::hand_on_by_resize(const Node& n) {
  const Lane in = *lane(n.input(0));
  const Dims x = *dims_of(graph_, n.input(0)), y = *dims_of(graph_, n.output());
  // Elsewhere every result is a mean of elements whose weights add up to 1.
  if (n.attributes.string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
      n.attributes.string_or("keep_aspect_ratio_policy", "stretch") != "stretch" || x.size() != y.size() ||
      y[in.axis] != in.count)
    return false;
  for (size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i] && !graph_.is_constant(n.inputs[i])) return false;
  const std::vector<int64_t> axes = n.attributes.ints_or("axes");
  const auto place =
      axes.empty() ? static_cast<std::ptrdiff_t>(in.axis) : std::ranges::find(axes, static_cast<int64_t>(in.axis)) - axes.begin();
  if (n.has_input(2) && graph_.constant(n.input(2))->count() > place &&
      to_doubles(graph_.constant(n.input(2))->view())[static_cast<size_t>(place)] != 1)
    return false;
  join(in, 0, *add_lane(n.output(), in.axis), 0, in.count);
  return true;
}

bool ChannelFlow::hand_on_by_view(const Node& n) {
  const Lane in = *lane(n.input(0));
  const Dims x = *dims_of(graph_, n.input(0)), y = *dims_of(graph_, n.output());
  if (element_count(x) == 0) return false;
  const auto axis = axis_in_view(x, in.axis, y);
  const Lane* out = axis ? add_lane(n.output(), *axis) : nullptr;
  if (!out) return false;
  const int64_t inner_x = inner_extent(x, in.axis), inner_y = inner_extent(y, *axis), step = std::gcd(inner_x, inner_y);
  std::vector<bool> met(static_cast<size_t>(out->count));
  for (int64_t e = 0; e < element_count(x); e += step) {
    const auto a = static_cast<size_t>(in.first + e / inner_x % in.count);
    const int64_t place = e / inner_y % out->count;
    const auto b = static_cast<size_t>(out->first + place);
    unite(static_cast<int32_t>(a), static_cast<int32_t>(b));
    if (!met[static_cast<size_t>(place)])
      values_[b] = values_[a];
    else if (values_[b] != values_[a])
      values_[b] = kUnknown;
    met[static_cast<size_t>(place)] = true;
  }
  return true;
}

bool ChannelFlow::hand_on_by_transpose(const Node& n) {
  const Lane in = *lane(n.input(0));
  const auto perm = transpose_perm(graph_, n);
  if (!perm) return false;
  const auto axis = static_cast<size_t>(std::ranges::find(*perm, static_cast<int64_t>(in.axis)) - perm->begin());
  join(in, 0, *add_lane(n.output(), axis), 0, in.count);
  return true;
}

bool ChannelFlow::hand_on_by_pad(const Node& n) {
  const Lane in = *lane(n.input(0));
  const size_t rank = dims_of(graph_, n.input(0))->size();
  for (size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i] && !graph_.is_constant(n.inputs[i])) return false;
  const auto pads = constant_ints(graph_, n.input(1));
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has_input(3)) axes = constant_ints(graph_, n.input(3)).value_or(std::vector<int64_t>());
  if (!pads || pads->size() != 2 * axes.size()) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i];
    if (axis == static_cast<int64_t>(in.axis) && ((*pads)[i] != 0 || (*pads)[i + axes.size()] != 0)) return false;
  }
  const Lane& out = *add_lane(n.output(), in.axis);
  join(in, 0, out, 0, in.count);
  if (n.attributes.string_or("mode", "constant") != "constant") return true;
  const double border = n.has_input(2) ? constant_scalar(graph_, n.input(2)).value_or(kUnknown) : 0;
  for (int64_t p = 0; p < out.count; ++p) {
    double& v = values_[static_cast<size_t>(out.first + p)];
    if (v != border) v = kUnknown;
  }
  return true;
}

bool ChannelFlow::hand_on_by_slice(const Node& n) {
  const Lane in = *lane(n.input(0));
  const Dims x = *dims_of(graph_, n.input(0)), y = *dims_of(graph_, n.output());
  const auto starts = constant_ints(graph_, n.input(1));
  if (!starts || !constant_ints(graph_, n.input(2))) return false;
  std::vector<int64_t> axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has_input(3)) axes = constant_ints(graph_, n.input(3)).value_or(std::vector<int64_t>());
  if (n.has_input(4)) steps = constant_ints(graph_, n.input(4)).value_or(std::vector<int64_t>());
  if (axes.size() != starts->size() || steps.size() != starts->size()) return false;
  int64_t first = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.size()) : axes[i];
    if (axis != static_cast<int64_t>(in.axis)) continue;
    if (steps[i] != 1) return false;
    first = std::clamp<int64_t>((*starts)[i] < 0 ? (*starts)[i] + in.count : (*starts)[i], 0, in.count);
  }
  const Lane* out = add_lane(n.output(), in.axis);
  if (!out) return false;
  join(in, first, *out, 0, y[in.axis]);
  return true;
}

bool ChannelFlow::hand_on_parts(const Node& n, bool joins) {
  const TensorId whole = joins ? n.output() : n.input(0);
  const std::vector<TensorId>& parts = joins ? n.inputs : n.outputs;
  const size_t rank = dims_of(graph_, whole)->size();
  int64_t axis = n.attributes.int_or("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(rank);
  std::optional<size_t> channel_axis;
  for (TensorId t : n.inputs)
    if (const Lane* l = t ? lane(t) : nullptr; l && !channel_axis) channel_axis = l->axis;
  if (!channel_axis) return false;
  if (joins)
    for (TensorId t : parts)
      if (const Lane* l = lane(t); !graph_.is_constant(t) && (!l || l->axis != *channel_axis)) return false;
  const auto known = [](const Lane& l, int64_t p) { return static_cast<size_t>(l.first + p); };
  if (!joins) {
    const Lane in = *lane(whole);
    int64_t at = 0;
    for (TensorId t : parts) {
      const Lane* out = add_lane(t, in.axis);
      if (!out) return false;
      join(in, at, *out, 0, out->count);
      if (static_cast<int64_t>(in.axis) == axis) at += out->count;
    }
    return true;
  }
  const Lane& out = *add_lane(whole, *channel_axis);
  if (static_cast<int64_t>(*channel_axis) == axis) {
    int64_t at = 0;
    for (TensorId t : parts) {
      const int64_t count = (*dims_of(graph_, t))[*channel_axis];
      if (const Lane* l = lane(t))
        join(*l, 0, out, at, count);
      else
        for (int64_t p = 0; p < count; ++p)
          keep(out.first + static_cast<int32_t>(at + p), n.op + ":" + n.name + " joins constants");
      at += count;
    }
    return true;
  }
  if (std::ranges::any_of(parts, [&](TensorId t) { return graph_.is_constant(t); })) return false;
  for (int64_t p = 0; p < out.count; ++p) {
    double same = values_[known(*lane(parts[0]), p)];
    for (TensorId t : parts) {
      const Lane& l = *lane(t);
      unite(l.first + static_cast<int32_t>(p), out.first + static_cast<int32_t>(p));
      if (values_[known(l, p)] != same) same = kUnknown;
    }
    values_[known(out, p)] = same;
  }
  return true;
}

// --- values

void ChannelFlow::set_mixed_values(const Node& n, const Mixer& m) {
  const Lane& out = *lane(n.output());
  const std::vector<double> weights = to_doubles(m.weights->view());
  for (int64_t o = 0; o < m.outputs; ++o) {
    double v = m.bias.empty() ? 0 : m.bias_scale * m.bias[static_cast<size_t>(o)];
    const int64_t first = m.group_of_output(o) * m.inputs_of_group();
    for (int64_t i = first; i < first + m.inputs_of_group() && !std::isnan(v); ++i) {
      const auto w = weights.begin() + m.at(o, i);
      if (std::all_of(w, w + m.taps, [](double x) { return x == 0; })) continue;
      const auto x = value(n.input(0), i);
      const bool known = x && (*x == 0 || !m.is_bordered);
      v = known ? v + m.scale * *x * sum_of_weights(weights, m, o, i) : kUnknown;
    }
    values_[static_cast<size_t>(out.first + o)] = std::isfinite(v) ? v : kUnknown;
  }
}

// A channel whose operands all hold one value holds the node's function of them; a product with 0 is 0.
void ChannelFlow::set_elementwise_values(const Node& n, const std::vector<const Lane*>& lanes, const Lane& out) {
  std::vector<double> made(static_cast<size_t>(out.count), 0);
  std::vector<TensorData> inputs;
  const size_t rank = dims_of(graph_, n.output())->size();
  const bool multiplies = ops::facts_of(n).arithmetic == Arithmetic::Mul;
  std::vector<bool> is_zero(made.size());
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const TensorId t = n.inputs[i];
    if (!t || graph_.is_constant(t)) {
      inputs.push_back(t ? *graph_.constant(t) : TensorData());
      continue;
    }
    Dims dims(rank, 1);
    dims[out.axis] = out.count;
    std::vector<float> values(made.size(), 0);
    for (size_t c = 0; c < made.size(); ++c) {
      const double x = i < lanes.size() && lanes[i] ? values_[static_cast<size_t>(lanes[i]->first) + c] : kUnknown;
      if (std::isnan(x))
        made[c] = kUnknown;
      else
        values[c] = static_cast<float>(x);
      if (multiplies && x == 0) is_zero[c] = true;
    }
    inputs.push_back(convert(TensorData::from<float>(dims, values).view(), dtype_of(graph_, t)));
  }
  std::vector<double> results;
  if (std::ranges::any_of(made, [](double v) { return !std::isnan(v); })) {
    const auto result = ops::eval_node(n, ops_, inputs);
    if (!result && !is_refusal(result.status())) problem_.also(result.status());
    if (result && (*result)[0].count() == out.count) results = to_doubles((*result)[0].view());
  }
  for (size_t c = 0; c < made.size(); ++c) {
    const bool known = !results.empty() && !std::isnan(made[c]) && std::isfinite(results[c]);
    values_[static_cast<size_t>(out.first) + c] = is_zero[c] ? 0 : known ? results[c] : kUnknown;
  }
}

// Runs the node, whose results see one channel each, on tensors full of the values that channels hold.
void ChannelFlow::set_values_by_trial(const Node& n, const Lane& in, const Lane& out) {
  std::map<double, double> results;
  for (int64_t p = 0; p < in.count; ++p)
    if (const double x = values_[static_cast<size_t>(in.first + p)]; !std::isnan(x)) results[x] = kUnknown;
  Dims dims = *dims_of(graph_, n.input(0));
  dims[in.axis] = 1;
  for (auto& [x, result] : results) {
    const std::vector<float> values(static_cast<size_t>(element_count(dims)), static_cast<float>(x));
    std::vector<TensorData> inputs = {convert(TensorData::from<float>(dims, values).view(), dtype_of(graph_, n.input(0)))};
    for (size_t i = 1; i < n.inputs.size(); ++i)
      inputs.push_back(n.inputs[i] && graph_.is_constant(n.inputs[i]) ? *graph_.constant(n.inputs[i]) : TensorData());
    const auto made = ops::eval_node(n, ops_, inputs);
    if (!made && !is_refusal(made.status())) problem_.also(made.status());
    if (!made) continue;
    const std::vector<double> y = to_doubles((*made)[0].view());
    if (!y.empty() && std::isfinite(y[0]) && std::ranges::all_of(y, [&](double v) { return v == y[0]; })) result = y[0];
  }
  for (int64_t p = 0; p < in.count; ++p) {
    const double x = values_[static_cast<size_t>(in.first + p)];
    values_[static_cast<size_t>(out.first + p)] = std::isnan(x) ? kUnknown : results[x];
  }
}

// --- what stays

const std::vector<bool>& ChannelFlow::links(NodeId id, const Mixer& m) {
  std::vector<bool>& result = links_[id];
  if (!result.empty()) return result;
  const std::vector<double> weights = to_doubles(m.weights->view());
  result.resize(weights.size() / static_cast<size_t>(m.taps));
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0) result[i / static_cast<size_t>(m.taps)] = true;
  return result;
}

bool ChannelFlow::follow_needs_of(NodeId id, const Mixer& m) {
  const Node& n = graph_.node(id);
  const Lane *in = lane(n.input(0)), *out = lane(n.output());
  if (!in) return false;
  const std::vector<bool>& linked = links(id, m);
  bool changed = false;
  for (int64_t i = 0; i < m.inputs; ++i) {
    const int32_t place = in->first + static_cast<int32_t>(i);
    const auto x = value(n.input(0), i);
    if (stays(place) || (x && (*x == 0 || (!m.is_bordered && m.takes_bias)))) continue;
    const int64_t first = m.group_of_input(i) * m.outputs_of_group();
    for (int64_t o = first; o < first + m.outputs_of_group(); ++o) {
      if (!linked[static_cast<size_t>(m.at(o, i) / m.taps)] || !stays(out->first + static_cast<int32_t>(o))) continue;
      keep(place, n.op + ":" + n.name +
                      (!x              ? " reads other values at their places"
                       : m.is_bordered ? " has a border of zeros, and they hold another value there"
                                       : " takes no bias, and they hold another value than 0 there"));
      changed = true;
      break;
    }
  }
  return changed;
}

void ChannelFlow::follow_needs() {
  const std::vector<NodeId> order = graph_.order();
  for (bool changed = true; changed;) {
    changed = false;
    for (auto id = order.rbegin(); id != order.rend(); ++id)
      if (const Mixer* m = mixer(*id)) changed |= follow_needs_of(*id, *m);
  }
}

// Every group that stays has as many inputs and outputs as all others.
bool ChannelFlow::settle_groups(NodeId id, const Mixer& m) {
  const Node& n = graph_.node(id);
  const Lane *in = lane(n.input(0)), *out = lane(n.output());
  const auto left = [&](const Lane* l, int64_t g, int64_t size) {
    int64_t count = l ? 0 : size;
    for (int64_t p = g * size; l && p < (g + 1) * size; ++p) count += stays(l->first + static_cast<int32_t>(p)) ? 1 : 0;
    return count;
  };
  int64_t most_in = 1, most_out = 1;
  for (int64_t g = 0; g < m.groups; ++g) {
    most_in = std::max(most_in, left(in, g, m.inputs_of_group()));
    most_out = std::max(most_out, left(out, g, m.outputs_of_group()));
  }
  bool changed = false;
  const auto restore = [&](const Lane* l, int64_t g, int64_t size, int64_t wanted) {
    for (int64_t p = g * size; l && p < (g + 1) * size && left(l, g, size) < wanted; ++p)
      if (const int32_t place = l->first + static_cast<int32_t>(p); !stays(place)) {
        keep(place, "all groups of " + n.op + ":" + n.name + " have the same number of channels");
        changed = true;
      }
  };
  for (int64_t g = 0; g < m.groups; ++g) {
    if (left(in, g, m.inputs_of_group()) == 0 && left(out, g, m.outputs_of_group()) == 0) continue;
    restore(in, g, m.inputs_of_group(), most_in);
    restore(out, g, m.outputs_of_group(), most_out);
  }
  return changed;
}

// Whether places had to be brought back.
bool ChannelFlow::settle_structure() {
  bool changed = false;
  for (const auto& l : lanes_) {
    if (!l) continue;
    bool any = false;
    for (int64_t p = 0; p < l->count && !any; ++p) any = stays(l->first + static_cast<int32_t>(p));
    if (any) continue;
    keep(l->first, "a tensor has at least one channel");
    changed = true;
  }
  for (const auto& [id, m] : mixers_)
    if (m.groups != 1) changed |= settle_groups(id, m);
  return changed;
}

}  // namespace orknn::optimize
