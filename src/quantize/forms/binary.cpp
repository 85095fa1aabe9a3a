// Two tensors, or a tensor and a constant, element by element: sums, products, larger and smaller values.
#include <algorithm>
#include <cmath>

#include "ops/support/requantize.h"
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

// Both factors of a sum below 2^30 with one shift; false when the scale of the result is too small for that.
bool set_sum(Attributes& attributes, const Node& n, const Target& target, double ratio_a, double ratio_b) {
  int exponent = 0;
  static_cast<void>(std::frexp(std::max(ratio_a, ratio_b), &exponent));
  const int shift = std::min<int>(29 - exponent, static_cast<int>(ops::kMaxShift));
  if (shift < 1) return false;
  const auto factor = [&](double ratio) { return static_cast<int64_t>(std::nearbyint(std::ldexp(ratio, shift))); };
  attributes.set("b_multiplier", n.op == "Sub" ? -factor(ratio_b) : factor(ratio_b));
  set_stage(attributes, target, {factor(ratio_a)}, {shift}, functions_of(n.tail));
  return true;
}

bool set_product(Attributes& attributes, const Node& n, const Target& target, double ratio) {
  const auto m = ops::make_multiplier(ratio);
  if (m) set_stage(attributes, target, {m->factor}, {m->shift}, functions_of(n.tail));
  return m.has_value();
}
}  // namespace

Result<Outcome> lower_binary(Lowering& l, const Node& n) {
  auto target = target_of(l, n, n.tail);
  if (!target) return Outcome::stays_float(target.status().message());
  const bool fixed_point = l.parameters(n.output())->fixed_point, product = n.op == "Mul" || n.op == "Div";
  const Operand a = operand(l, n.input(0), false, target->type, fixed_point),
                b = operand(l, n.input(1), n.op == "Div", target->type, fixed_point);
  Attributes attributes;
  attributes.set("a_zero_point", a.zero_point);
  attributes.set("b_zero_point", b.zero_point);
  if (!(product ? set_product(attributes, n, *target, a.scale * b.scale / target->scale)
                : set_sum(attributes, n, *target, a.scale / target->scale, b.scale / target->scale)))
    return l.scale_too_small(n.output());
  const char* op = product ? "int:Mul" : n.op == "Max" ? "int:Max" : n.op == "Min" ? "int:Min" : "int:Add";
  l.add_layer(n, op, {a.tensor, b.tensor, table_input(l, n, *target)}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
