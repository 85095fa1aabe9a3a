#include "quantize/tails.h"

#include "ir/known_dims.h"
#include "ops/facts.h"

namespace orknn::quantize {
using namespace ir;

TailParts tail_parts(const Graph& g, const Node& n, Form form) {
  TailParts parts;
  if (form != Form::Conv && form != Form::MatMul && form != Form::Binary) return parts;
  size_t at = 0;
  const auto added = [&]() {
    return at < n.tail.size() && ops::facts_of(n.tail[at].op).arithmetic == Arithmetic::Add && n.tail[at].operand >= 0
               ? n.inputs[static_cast<size_t>(n.tail[at].operand)]
               : TensorId{};
  };
  const auto result = dims_of(g, n.output());
  if (form == Form::MatMul && !n.has_input(2) && g.is_constant(n.input(1)) && result && !result->empty()) {
    const TensorData* bias = g.constant(added());
    if (bias && bias->dtype() == DType::Float32 && !bias->dims().empty() && bias->count() == result->back() &&
        bias->dims().back() == result->back()) {
      parts.bias = bias;
      ++at;
    }
  }
  if (const TensorId other = added(); form != Form::Binary && other && !g.is_constant(other) &&
                                      g.tensor(other).dtype == DType::Float32 && result && dims_of(g, other) == result) {
    parts.addend = other;
    ++at;
  }
  if (form == Form::Conv && !parts.addend && at < n.tail.size()) {
    const TailStep& step = n.tail[at];
    const OpDef& facts = ops::facts_of(step.op);
    if (!facts.slope_attribute.empty()) parts.slopes = {facts.float_of(step.attributes, facts.slope_attribute)};
    if (facts.quant == QuantRule::Slopes && step.operand >= 0 && !step.operand_first)
      if (const auto s = slopes_of(g, n.output(), n.inputs[static_cast<size_t>(step.operand)]);
          s && (s->values.size() == 1 || s->axis == 1))
        parts.slopes = s->values;
    at += parts.slopes.empty() ? 0 : 1;
  }
  parts.functions = at;
  while (at < n.tail.size() && is_function(g, n, n.tail[at])) ++at;
  parts.end = at;
  return parts;
}

size_t tail_steps_taken(const Graph& g, const Node& n, Form form) {
  return form == Form::Float ? n.tail.size() : tail_parts(g, n, form).end;
}

bool computes_tail(const Graph& g, const Node& n) { return tail_steps_taken(g, n, form_of(g, n).form) == n.tail.size(); }

}  // namespace orknn::quantize
