#include "quantize/forms/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quantize/tails.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// What a converter makes of sums, in units of its target.
struct Scaling {
  std::span<const double> ratios;   // of a sum, one or one per channel
  std::optional<double> add_ratio;  // of an added operand
  double add_reach = 0;             // of that operand less its zero point
  double range = 256;               // values of the target
};

// Channels share a scale, an operand is brought to that of the sums.
bool set_common_scale(Attributes& attributes, const Scaling& s, ops::Multiplier& multiplier) {
  if (s.ratios.size() != 1) return false;
  const auto m = ops::make_multiplier(s.ratios[0]);
  if (!m) return false;
  if (s.add_ratio) {
    const double wanted = *s.add_ratio / std::ldexp(static_cast<double>(m->factor), -static_cast<int>(m->shift));
    const auto add = m->factor > 0 ? ops::make_multiplier(wanted, ops::kMaxAddFactor) : std::nullopt;
    if (!add || wanted * s.add_reach > 1 << 30) return false;
    attributes.set("add_multiplier", add->factor);
    attributes.set("add_shift", add->shift);
  }
  multiplier = *m;
  return true;
}

// Factors of channels bring all sums to one scale, which may be chosen: as fine as 32 bits allow for what the target can hold.
bool set_channel_scale(Attributes& attributes, const Scaling& s, ops::Multiplier& multiplier, int64_t channels) {
  const double most = *std::ranges::max_element(s.ratios);
  if (!(most > 0) || !std::isfinite(most) || channels == 0) return false;
  // In units of the target: what it can hold fits 32 bits, and the operand's factor 16.
  const double add_ratio = s.add_ratio.value_or(0),
               finest = std::max((2 * s.range + add_ratio * s.add_reach) / (1 << 30), add_ratio / (1 << 15));
  const double step = most / static_cast<double>(ops::kMaxChannelFactor);
  int64_t shift = 0;
  while (std::ldexp(step, static_cast<int>(shift)) < finest) ++shift;
  const auto m = ops::make_multiplier(std::ldexp(step, static_cast<int>(shift)));
  if (!m || m->factor == 0 || shift > ops::kMaxShift) return false;
  if (s.add_ratio) {
    const double wanted = *s.add_ratio / std::ldexp(static_cast<double>(m->factor), -static_cast<int>(m->shift));
    const auto add = ops::make_multiplier(wanted, ops::kMaxAddFactor);
    if (!add) return false;
    attributes.set("add_multiplier", add->factor);
    attributes.set("add_shift", add->shift);
  }
  std::vector<int64_t> factors;
  for (int64_t c = 0; c < channels; ++c)
    factors.push_back(static_cast<int64_t>(std::nearbyint(s.ratios[s.ratios.size() == 1 ? 0 : static_cast<size_t>(c)] / step)));
  attributes.set("channel_multiplier", std::move(factors));
  attributes.set("channel_shift", shift);
  multiplier = *m;
  return true;
}

// Says how many channels have a factor that is off by more than one in 4096 from the scale that the model states.
std::string coarse_channels(std::span<const double> ratios) {
  const double step = *std::ranges::max_element(ratios) / static_cast<double>(ops::kMaxChannelFactor);
  const auto coarse =
      std::ranges::count_if(ratios, [&](double r) { return std::abs(std::nearbyint(r / step) * step - r) > r / 4096; });
  if (coarse == 0) return {};
  return fmt::format("{} of {} channels have a scale so small that the chip's 16-bit factors state it less exactly", coarse,
                     ratios.size());
}

// 0 = not known.
int64_t channels_of(const Graph& g, const Node& n, Form form) {
  const std::optional<Shape>& shape = g.tensor(n.output()).shape;
  if (!shape || shape->size() < 2) return 0;
  const Dim& channels = form == Form::Conv ? (*shape)[1] : shape->back();
  return channels.is_known() ? channels.value() : 0;
}

// After the source's bias, when there is one.
std::string bias_name(const Graph& g, const Node& n, const TailParts& parts) {
  if (n.has_input(2)) return g.tensor(n.input(2)).name + "_int32";
  return parts.bias ? g.tensor(n.inputs[static_cast<size_t>(n.tail[0].operand)]).name + "_int32" : n.name + "/bias";
}

// The bias in units of the sums; nothing when it does not fit 32 bits.
std::optional<TensorData> integer_bias(std::span<const double> bias, std::span<const double> units) {
  TensorData values = TensorData::allocate(DType::Int32, {static_cast<int64_t>(bias.size())});
  auto* to = static_cast<int32_t*>(values.mutable_data());
  for (size_t i = 0; i < bias.size(); ++i) {
    const double q = std::nearbyint(bias[i] / units[units.size() == 1 ? 0 : i]);
    if (std::abs(q) > 2147483647.0) return std::nullopt;
    to[i] = std::isnan(q) ? 0 : static_cast<int32_t>(q);
  }
  return values;
}

QuantParams bias_parameters(std::span<const double> bias, std::span<const double> units, bool fixed_point) {
  QuantParams p;
  for (size_t i = 0; i < bias.size(); ++i) p.scale.push_back(static_cast<float>(units[units.size() == 1 ? 0 : i]));
  p.zero_point.assign(bias.size(), 0);
  p.axis = 0;
  p.min.assign(bias.begin(), bias.end());
  p.max = p.min;
  p.fixed_point = fixed_point;
  return p;
}
}  // namespace

ProductWeights add_weights(Lowering& l, const Node& n, const LayerWeights& weights) {
  const QuantizedWeights& q = weights.rounded;
  const TensorId tensor =
      l.constant(l.graph().tensor(n.input(1)).name + "_" + std::string(dtype_name(q.values.dtype())), q.values);
  QuantParams p;
  p.scale.assign(q.scales.begin(), q.scales.end());
  p.zero_point.assign(q.scales.size(), 0);
  for (size_t i = 0; i < q.zero_points.size(); ++i) p.zero_point[i] = static_cast<int32_t>(q.zero_points[i]);
  p.axis = weights.axis && q.scales.size() > 1 ? static_cast<int32_t>(*weights.axis) : -1;
  l.out().tensor(tensor).quant = std::move(p);
  return {tensor, q.scales, weights.bias};
}

void set_weight_zero_points(Attributes& attributes, const QuantizedWeights& weights) {
  if (std::ranges::any_of(weights.zero_points, [](int64_t z) { return z != 0; }))
    attributes.set("w_zero_point", weights.zero_points);
}

Result<Outcome> lower_product(Lowering& l, const Node& n, Form form, const std::string& op, const ProductWeights& weights,
                              Attributes attributes) {
  const TensorId x = n.input(0), y = n.output();
  const TailParts parts = tail_parts(l.graph(), n, form);
  auto target = target_of(l, n, std::span(n.tail).subspan(parts.functions));
  if (!target) return outcome_of(std::move(target).status());
  std::vector<double> units, ratios;
  for (double w : weights.scales) {
    units.push_back(l.scale(x) * w);
    ratios.push_back(l.scale(x) * w / target->scale);
  }
  Scaling scaling{.ratios = ratios, .range = static_cast<double>(target->high - target->low)};
  if (parts.addend) {
    scaling.add_ratio = l.scale(parts.addend) / target->scale;
    scaling.add_reach = l.type(parts.addend) == DType::Int16 ? 1 << 16 : 1 << 9;
  }
  ops::Multiplier multiplier;
  if (!set_common_scale(attributes, scaling, multiplier) &&
      !set_channel_scale(attributes, scaling, multiplier, channels_of(l.graph(), n, form)))
    return l.scale_too_small(y);
  TensorId bias;
  if (!weights.bias.empty()) {
    auto values = integer_bias(weights.bias, units);
    if (!values) return Outcome::stays_float("its bias does not fit 32 bits");
    bias = l.constant(bias_name(l.graph(), n, parts), std::move(*values));
    l.out().tensor(bias).quant = bias_parameters(weights.bias, units, l.parameters(x)->fixed_point);
  }
  if (!parts.slopes.empty() && !set_slopes(attributes, parts.slopes)) return l.scale_too_small(y);
  attributes.set("x_zero_point", l.zero(x));
  if (parts.addend) attributes.set("add_zero_point", l.zero(parts.addend));
  set_stage(attributes, *target, multiplier, functions_of(n.tail));
  const TensorId data = l.integer(x), other = parts.addend ? l.integer(parts.addend) : TensorId{};
  l.add_layer(n, op, {data, weights.tensor, bias, other, table_input(l, n, *target)}, std::move(attributes));
  return Outcome::lowered(coarse_channels(ratios));
}

}  // namespace orknn::quantize
