// One constant operation instead of two of a kind.
//
// Before: %y = Mul(Div(%x, 2), 3)     After: %y = Mul(%x, 1.5)
// Legal: floats, both constants finite, the inner node is read nowhere else and neither constant broadcasts x.
#include <algorithm>
#include <cmath>

#include "base/refusal.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool is_additive(const Node& n) { return n.op == "Add" || n.op == "Sub"; }

// x combined with one constant; a constant on the left of Sub or Div does not count.
struct Step {
  TensorId x, constant;
  bool inverse = false;  // Sub or Div
};

std::optional<Step> step_of(const Graph& g, const Node& n) {
  if (!n.tail.empty() || n.inputs.size() != 2) return std::nullopt;
  const bool inverse = n.op == "Sub" || n.op == "Div";
  const size_t side = g.is_constant(n.input(1)) ? 1 : 0;
  if (!g.is_constant(n.input(side)) || (inverse && side == 0) || !same_shape(g, n.input(1 - side), n.output(0)))
    return std::nullopt;
  return Step{n.input(1 - side), n.input(side), inverse};
}

Rewrite merge_constant_arithmetic_rule(const Graph& g, const Node& n) {
  const auto outer = step_of(g, n);
  if (!outer || !is_float_tensor(g, n.output(0)) || !read_once(g, outer->x)) return no_match();
  const Node* before = g.producer_node(outer->x);
  if (!before || !ops::is_basic_arithmetic(before->op)) return no_match();
  const bool additive = is_additive(n);
  if (is_additive(*before) != additive) return no_match();
  const auto inner = step_of(g, *before);
  if (!inner) return no_match();
  // The merged step is an Add or Mul when the inner one is, and a Sub or Div with the constants combined otherwise.
  Node combine;
  const bool opposite = outer->inverse != inner->inverse;
  combine.op = additive ? (opposite ? "Sub" : "Add") : (opposite ? "Div" : "Mul");
  combine.inputs = {inner->constant, outer->constant};
  combine.outputs = {TensorId{0}};
  const TensorData operands[] = {g.tensor(inner->constant).constant, g.tensor(outer->constant).constant};
  const auto value = ops::eval_node(combine, ops::builtin_ops(), operands);
  if (!value && !is_refusal(value.status())) return value.status();
  if (!value || (*value)[0].bytes() > std::max(operands[0].bytes(), operands[1].bytes())) return no_match();
  for (double v : to_doubles((*value)[0].view()))
    if (!std::isfinite(v) || (!additive && v == 0)) return no_match();
  Patch patch(g);
  const TensorId id = patch.add_constant(g.tensor(inner->constant).name, (*value)[0]);
  replace_node(g, patch, n, successor(n, before->op, {inner->x, id}), {before});
  return rewrite(std::move(patch));
}
}  // namespace

Pass merge_constant_arithmetic() {
  return {.name = "merge_constant_arithmetic",
          .summary = "two constant Add/Sub or Mul/Div in a row become one",
          .min_level = 2,
          .rule = merge_constant_arithmetic_rule,
          .roots = {"Add", "Sub", "Mul", "Div"}};
}
}  // namespace orknn::optimize
