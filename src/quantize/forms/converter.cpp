#include "quantize/forms/converter.h"

#include <algorithm>
#include <cmath>

#include "ops/facts.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Entries of the table after a layer's sums: fine enough that its rounding does not show next to that of the result. (An index's
// zero point has 16 bits.)
int64_t table_entries(DType result) { return result == DType::Int16 ? 32768 : 4096; }

// Steps that set bounds are bounds of the result itself.
Target bounded_target(const Lowering& l, TensorId y, std::span<const TailStep> steps) {
  Target target = plain_target(l, y);
  for (const TailStep& s : steps) {
    const Interval bounds = *bounds_of(s);
    if (bounds.low > -INFINITY) target.low = std::max(target.low, l.quantized(bounds.low, y));
    if (bounds.high < INFINITY) target.high = std::min(target.high, l.quantized(bounds.high, y));
  }
  target.high = std::max(target.high, target.low);
  return target;
}

Functions functions_from(const Lowering& l, const Node& n, std::span<const TailStep> steps) {
  Functions f(l.ops());
  for (const TailStep& s : steps) {
    std::vector<TensorData> operands;
    Attributes attributes = s.attributes;
    if (ops::facts_of(s.op).bounds == Bounds::Given) {  // a step states its bounds as attributes, a node as inputs
      for (const char* name : {"min", "max"}) {
        operands.push_back(attributes.has(name) ? TensorData::scalar<double>(attributes.float_or(name, 0)) : TensorData());
        attributes.erase(name);
      }
    }
    if (s.operand >= 0)
      operands.push_back(
          ir::convert(l.graph().constant(n.inputs[static_cast<size_t>(s.operand)])->view(), DType::Float64).reshaped({}));
    f.add(s.op, std::move(attributes), std::move(operands), s.operand_first);
  }
  return f;
}

// Where the result still changes, looked for from far outside in ever finer steps.
Result<Interval> changing_part(const Lowering& l, const Functions& f, TensorId y) {
  constexpr int64_t kPoints = 2048;
  constexpr double kFar = 1024;
  const QuantParams& p = *l.parameters(y);
  const double reach = 4 * std::max(std::abs(static_cast<double>(p.min[0])), std::abs(static_cast<double>(p.max[0])));
  Interval part{std::min(-kFar, -reach), std::max(kFar, reach)};
  for (int round = 0; round < 4; ++round) {
    std::vector<double> x(kPoints);
    for (int64_t i = 0; i < kPoints; ++i)
      x[static_cast<size_t>(i)] = part.low + (part.high - part.low) * static_cast<double>(i) / (kPoints - 1);
    ORKNN_TRY_ASSIGN(const std::vector<double> values, f(x));
    size_t first = 0, last = kPoints - 1;
    while (first < last && l.quantized(values[first + 1], y) == l.quantized(values[0], y)) ++first;
    while (last > first && l.quantized(values[last - 1], y) == l.quantized(values[kPoints - 1], y)) --last;
    part = {x[first], x[last]};
    if (part.high <= part.low) part.high = part.low + 1;
  }
  return part;
}

Result<Target> through_table(const Lowering& l, const Functions& f, TensorId y) {
  ORKNN_TRY_ASSIGN(const Interval part, changing_part(l, f, y));
  const int64_t entries = table_entries(l.type(y));
  Target target;
  target.type = l.type(y);
  target.scale = (part.high - part.low) / static_cast<double>(entries - 1);
  target.zero_point = static_cast<int64_t>(std::nearbyint(-part.low / target.scale));
  if (target.zero_point < INT16_MIN || target.zero_point > INT16_MAX)
    return unsupported("the function changes too far from zero");
  target.low = 0;
  target.high = entries - 1;
  std::vector<double> x(static_cast<size_t>(entries));
  for (int64_t i = 0; i < entries; ++i) x[static_cast<size_t>(i)] = static_cast<double>(i - target.zero_point) * target.scale;
  ORKNN_TRY_ASSIGN(const std::vector<double> values, f(x));
  target.table = l.integers(y, {entries}, values);
  return target;
}
}  // namespace

Target plain_target(const Lowering& l, TensorId y) {
  return {.scale = l.scale(y), .zero_point = l.zero(y), .low = l.limits(y).low, .high = l.limits(y).high, .type = l.type(y)};
}

Result<Target> target_of(const Lowering& l, const Node& n, std::span<const TailStep> steps) {
  if (std::ranges::all_of(steps, [](const TailStep& s) { return bounds_of(s).has_value(); }))
    return bounded_target(l, n.output(), steps);
  return through_table(l, functions_from(l, n, steps), n.output());
}

void set_stage(Attributes& attributes, const Target& target, const ops::Multiplier& multiplier, std::vector<std::string> fused) {
  attributes.set("multiplier", std::vector<int64_t>{multiplier.factor});
  attributes.set("shift", std::vector<int64_t>{multiplier.shift});
  attributes.set("y_zero_point", target.zero_point);
  attributes.set("low", target.low);
  attributes.set("high", target.high);
  if (target.type != DType::Int8) attributes.set("y_type", static_cast<int64_t>(target.type));
  if (!fused.empty()) attributes.set("fused", std::move(fused));
}

bool set_slopes(Attributes& attributes, const std::vector<double>& slopes) {
  double steepest = 0;
  for (double s : slopes) steepest = std::max(steepest, std::abs(s));
  const auto m = ops::make_multiplier(steepest, ops::kMaxChannelFactor);
  if (!m) return false;
  std::vector<int64_t> factors;
  for (double s : slopes) factors.push_back(static_cast<int64_t>(std::nearbyint(std::ldexp(s, static_cast<int>(m->shift)))));
  attributes.set("slope_multiplier", std::move(factors));
  attributes.set("slope_shift", m->shift);
  return true;
}

TensorId table_input(Lowering& l, const Node& n, const Target& target) {
  return target.table.has_value() ? l.constant(n.name + "/table", target.table) : TensorId{};
}

std::vector<std::string> functions_of(std::span<const TailStep> steps) {
  std::vector<std::string> names;
  for (const TailStep& s : steps) names.push_back(s.op);
  return names;
}

}  // namespace orknn::quantize
