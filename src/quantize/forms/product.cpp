#include "quantize/forms/product.h"

#include <algorithm>
#include <cmath>

#include "ops/support/requantize.h"
#include "quantize/tails.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Multipliers of the sums, and of a tensor that is added to them with the same shifts.
struct Multipliers {
  std::vector<int64_t> factors, shifts, add_factors;
};

std::optional<Multipliers> multipliers_of(std::span<const double> ratios, std::optional<double> add_ratio) {
  Multipliers result;
  const auto add_factor = [&](const ops::Multiplier& m) { return std::ldexp(*add_ratio, static_cast<int>(m.shift)); };
  for (double ratio : ratios) {
    auto m = ops::make_multiplier(ratio);
    if (!m) return std::nullopt;
    if (add_ratio) {
      constexpr auto kMost = static_cast<double>(ops::kMaxAddFactor);
      while (m->shift > 1 && add_factor(*m) > kMost) {
        m->factor = (m->factor + 1) >> 1;
        --m->shift;
      }
      const double factor = std::nearbyint(add_factor(*m));
      if (factor > kMost) return std::nullopt;
      result.add_factors.push_back(static_cast<int64_t>(factor));
    }
    result.factors.push_back(m->factor);
    result.shifts.push_back(m->shift);
  }
  return result;
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
  if (!target) return Outcome::stays_float(target.status().message());
  std::vector<double> units, ratios;
  for (double w : weights.scales) {
    units.push_back(l.scale(x) * w);
    ratios.push_back(l.scale(x) * w / target->scale);
  }
  auto multipliers = multipliers_of(ratios, parts.addend ? std::optional(l.scale(parts.addend) / target->scale) : std::nullopt);
  if (!multipliers) return l.scale_too_small(y);
  TensorId bias;
  if (!weights.bias.empty()) {
    auto values = integer_bias(weights.bias, units);
    if (!values) return Outcome::stays_float("its bias does not fit 32 bits");
    bias = l.constant(bias_name(l.graph(), n, parts), std::move(*values));
    l.out().tensor(bias).quant = bias_parameters(weights.bias, units, l.parameters(x)->fixed_point);
  }
  if (!parts.slopes.empty() && !set_slopes(attributes, l.scale(x) / target->scale, {weights.scales.begin(), weights.scales.end()},
                                           parts.slopes, multipliers->factors, multipliers->shifts))
    return l.scale_too_small(y);
  attributes.set("x_zero_point", l.zero(x));
  if (parts.addend) {
    attributes.set("add_zero_point", l.zero(parts.addend));
    attributes.set("add_multiplier", std::move(multipliers->add_factors));
  }
  set_stage(attributes, *target, std::move(multipliers->factors), std::move(multipliers->shifts), functions_of(n.tail));
  const TensorId data = l.integer(x), other = parts.addend ? l.integer(parts.addend) : TensorId{};
  l.add_layer(n, op, {data, weights.tensor, bias, other, table_input(l, n, *target)}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
