// Additions instead of the Sum of many.
//
// Before: %y = Sum(%a, %b, %c)     After: %y = Add(Add(%a, %b), %c)
// Legal: always; the order of additions is the same.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite expand_sum_rule(const Graph& g, const Node& n) {
  if (n.inputs.size() < 2 || !n.tail.empty()) return no_match();
  Patch patch(g);
  TensorId sum = n.input(0);
  for (size_t i = 1; i + 1 < n.inputs.size(); ++i) sum = patch.add_node("Add", n.name, {sum, n.inputs[i]}, {}, n.origin);
  replace_node(g, patch, n, successor(n, "Add", {sum, n.inputs.back()}));
  return rewrite(std::move(patch));
}
}  // namespace

Pass expand_sum() {
  return {.name = "expand_sum", .summary = "Sum becomes Adds", .min_level = 1, .rule = expand_sum_rule, .roots = {"Sum"}};
}
}  // namespace orknn::optimize
