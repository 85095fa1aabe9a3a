// Arithmetic with one constant becomes part of the layer before it, whose integer form then computes both in one step, with one
// rounding less.
//
// Before: %c = Add(%x, %z) + Relu() ; %y = Mul(%c, 3)     After: %y = Add(%x, %z) + Relu() + Mul(3)
// Legal: floats; the layer before is arithmetic, or a product or convolution that ends in fused steps already (without any, the
// constant belongs into its weights); its result is read nowhere else and the constant does not broadcast it. On request:
// the caller rejects what the integer form of the layer does not compute (passes::Options::allows).
#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool can_take_constant(const Graph& g, const Node& n) {
  const OpDef& facts = ops::facts_of(n);
  if (n.outputs.size() != 1) return false;
  if (facts.arithmetic != Arithmetic::None) return facts.arithmetic != Arithmetic::Div || g.is_constant(n.input(1));
  return facts.weights != Weights::None && !n.tail.empty();
}

Rewrite fuse_constant_arithmetic_rule(const Graph& g, const Node& n) {
  if (n.own_input_count() != 2 || !is_float_tensor(g, n.output(0))) return no_match();
  const bool constant_first = g.is_constant(n.input(0));
  const TensorId constant = n.input(constant_first ? 0 : 1), value = n.input(constant_first ? 1 : 0);
  const Node* carrier = g.producer_node(value);
  if (!carrier || !can_take_constant(g, *carrier) || !constant_scalar(g, constant)) return no_match();
  if (!read_once(g, value) || !same_shape(g, value, n.output(0))) return no_match();
  Node fused = *carrier;
  fused.outputs = n.outputs;
  fused.tail.push_back({n.op, {}, static_cast<int32_t>(fused.inputs.size()), constant_first});
  fused.inputs.push_back(constant);
  append_tail(fused, n);
  fused.origin.insert(fused.origin.end(), n.origin.begin(), n.origin.end());
  Patch patch(g);
  patch.remove_node(id_of(g, n));
  patch.replace_node(id_of(g, *carrier), std::move(fused));  // the place in the order of execution stays
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_constant_arithmetic() {
  return {.name = "fuse_constant_arithmetic",
          .summary = "arithmetic with one constant into the integer layer before it",
          .min_level = 1,
          .rule = fuse_constant_arithmetic_rule,
          .roots = {"Add", "Sub", "Mul", "Div"}};
}
}  // namespace orknn::optimize
