// Two tensors, or a tensor and a constant, element by element: sums, products, larger and smaller values.
#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;
namespace {

struct Operand {
  TensorId tensor;
  double scale = 1;
  int64_t zero_point = 0;
};

TensorData reciprocals(const TensorData& values) {
  TensorData result = TensorData::allocate(DType::Float32, values.dims());
  auto* to = static_cast<float*>(result.mutable_data());
  for (int64_t i = 0; i < result.count(); ++i) to[i] = 1.0f / values.as<float>()[i];
  return result;
}

// A constant is rounded to the format of the result that it goes into, unless the model states its integers.
Operand operand(Lowering& l, TensorId t, bool reciprocal, DType result, bool fixed_point) {
  const TensorData* value = l.graph().constant(t);
  if (!value) return {l.integer(t), l.scale(t), l.zero(t)};
  const TensorData real = reciprocal ? reciprocals(*value) : *value;
  const std::optional<QuantParams>& stated = l.graph().tensor(t).quant;
  QuantizedConstant q;
  if (auto stored = stated && !reciprocal && stated->scale.size() == 1 ? stored_weights(real, *stated) : std::nullopt)
    q = {stored->values, *stated};
  else
    q = round_constant(real, result, fixed_point);
  const TensorId made =
      l.constant(l.graph().tensor(t).name + "_" + std::string(dtype_name(q.values.dtype())), std::move(q.values));
  l.out().tensor(made).quant = q.parameters;
  return {made, q.parameters.scale[0], q.parameters.zero_point[0]};
}

// What brings `b` to the scale of `a` times a small factor; nothing when they are too far apart.
struct CommonScale {
  int64_t a_factor = 0;
  ops::Multiplier b;
};
std::optional<CommonScale> common_scale(double a_scale, double b_scale, DType data) {
  // Sums stay within 32 bits: operands have up to 9 bits, or 17.
  const double most = data == DType::Int16 ? 1 << 13 : ops::kMaxAddFactor / 2;
  const auto factor = static_cast<int64_t>(std::clamp(most * a_scale / b_scale, 1.0, 127.0));
  const auto m = ops::make_multiplier(b_scale * static_cast<double>(factor) / a_scale, ops::kMaxAddFactor);
  if (!m || std::ldexp(static_cast<double>(m->factor), -static_cast<int>(m->shift)) > 2 * most) return std::nullopt;
  return CommonScale{factor, *m};
}

// The operand of the finer scale passes as `a`, so that nothing of it is lost, or the one that is subtracted: only `a` can be
// negated.
bool set_sum(Attributes& attributes, const Node& n, const Target& target, Operand& a, Operand& b, DType data) {
  const bool subtracts = ops::facts_of(n).arithmetic == Arithmetic::Sub;
  if (subtracts || a.scale > b.scale) std::swap(a, b);
  const auto scale = common_scale(a.scale, b.scale, data);
  if (!scale) return false;
  const auto m = ops::make_multiplier(a.scale / static_cast<double>(scale->a_factor) / target.scale);
  if (!m) return false;
  attributes.set("a_multiplier", subtracts ? -scale->a_factor : scale->a_factor);
  attributes.set("b_multiplier", scale->b.factor);
  attributes.set("b_shift", scale->b.shift);
  set_stage(attributes, target, *m, functions_of(n.tail));
  return true;
}

// Differences are sums with a negative factor, quotients are products with the reciprocal.
const char* integer_operator(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::Mul:
    case Arithmetic::Div: return "int:Mul";
    case Arithmetic::Max: return "int:Max";
    case Arithmetic::Min: return "int:Min";
    default: return "int:Add";
  }
}

bool set_product(Attributes& attributes, const Node& n, const Target& target, double ratio) {
  const auto m = ops::make_multiplier(ratio);
  if (m) set_stage(attributes, target, *m, functions_of(n.tail));
  return m.has_value();
}
}  // namespace

Result<Outcome> lower_binary(Lowering& l, const Node& n) {
  auto target = target_of(l, n, n.tail);
  if (!target) return outcome_of(std::move(target).status());
  const bool fixed_point = l.parameters(n.output())->fixed_point, product = multiplies_or_divides(n);
  Operand a = operand(l, n.input(0), false, target->type, fixed_point),
          b = operand(l, n.input(1), ops::facts_of(n).arithmetic == Arithmetic::Div, target->type, fixed_point);
  Attributes attributes;
  if (!(product ? set_product(attributes, n, *target, a.scale * b.scale / target->scale)
                : set_sum(attributes, n, *target, a, b, target->type)))
    return l.scale_too_small(n.output());
  attributes.set("a_zero_point", a.zero_point);
  attributes.set("b_zero_point", b.zero_point);
  l.add_layer(n, integer_operator(ops::facts_of(n).arithmetic), {a.tensor, b.tensor, table_input(l, n, *target)},
              std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
