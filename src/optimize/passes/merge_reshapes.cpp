// One Reshape instead of several views in a row.
//
// Before: %a = Flatten(%x) ; %y = Unsqueeze(%a, 0)     After: %y = Reshape(%x, const)
// Legal: the final shape is static and not empty.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool is_view(const Node& n) { return ops::facts_of(n).pattern == Pattern::View && n.tail.empty(); }

Rewrite merge_reshapes_rule(const Graph& g, const Node& n) {
  const Node* first = g.producer_node(n.input(0));
  if (!first || !is_view(*first) || !is_view(n)) return no_match();
  const auto dims = dims_of(g, n.output(0));
  if (!dims || std::ranges::count(*dims, 0)) return no_match();
  if (same_shape(g, first->input(0), n.output(0)) && can_replace(g, n.output(0), first->input(0)))
    return bypass(g, n.output(0), first->input(0));
  Patch patch(g);
  const TensorId shape = patch.add_constant(g.tensor(n.output(0)).name + "_shape", TensorData::vector(*dims));
  replace_node(g, patch, n, successor(n, "Reshape", {first->input(0), shape}), {first});
  return rewrite(std::move(patch));
}
}  // namespace

Pass merge_reshapes() {
  return {.name = "merge_reshapes",
          .summary = "consecutive Reshape, Flatten, Squeeze, Unsqueeze become one Reshape",
          .min_level = 1,
          .rule = merge_reshapes_rule,
          .roots = ops::ops_where([](const OpDef& d) { return d.pattern == Pattern::View; })};
}
}  // namespace orknn::optimize
