// Takes the chosen side of a Where whose condition is the same everywhere.
//
// Before: %y = Where(const true, %a, %b)     After: readers of %y read %a
// Legal: the chosen side already has the shape of the result; a smaller one is expanded.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite simplify_where_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  const bool same = n.input(1) == n.input(2);
  const auto condition = constant_splat(g, n.input(0));
  if (!condition && !same) return no_match();
  const TensorId chosen = n.input(same || *condition != 0 ? 1 : 2);
  if (same_shape(g, chosen, n.output(0)))
    return can_replace(g, n.output(0), chosen) ? bypass(g, n.output(0), chosen)
                                               : replace_node(g, n, successor(n, "Identity", {chosen}));
  const auto dims = dims_of(g, n.output(0));
  if (!dims || !dims_of(g, chosen)) return no_match();
  Patch patch(g);
  const TensorId shape = patch.add_constant(g.tensor(n.output(0)).name + "_shape", TensorData::vector(*dims));
  replace_node(g, patch, n, successor(n, "Expand", {chosen, shape}));
  return rewrite(std::move(patch));
}
}  // namespace

Pass simplify_where() {
  return {.name = "simplify_where",
          .summary = "Where with a condition that is the same everywhere",
          .min_level = 1,
          .rule = simplify_where_rule,
          .roots = {"Where"}};
}
}  // namespace orknn::optimize
