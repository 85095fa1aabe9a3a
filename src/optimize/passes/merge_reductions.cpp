// One reduction instead of two of a kind in a row.
//
// Before: %a = ReduceMean(%x, {3}) ; %y = ReduceMean(%a, {2})     After: %y = ReduceMean(%x, {2,3})
// Legal: the same op (mean, sum, largest, smallest, product), both keep their axes or neither does, the inner one is read nowhere
// else.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite merge_reductions_rule(const Graph& g, const Node& n) {
  const Node* inner = g.sole_producer(n.input(0), n.op);
  if (!inner || !n.tail.empty()) return no_match();
  const int64_t keeps = n.attributes.int_or("keepdims", 1);
  if (inner->attributes.int_or("keepdims", 1) != keeps) return no_match();
  const auto first = reduce_axes(g, *inner), second = reduce_axes(g, n);
  if (!first || !second || first->empty() || second->empty()) return no_match();
  std::vector<int64_t> axes = *first;
  for (int64_t axis : *second) {
    // Axes of the inner result are counted without those it dropped.
    if (!keeps)
      for (int64_t gone : *first) axis += gone <= axis;
    if (!std::ranges::count(axes, axis)) axes.push_back(axis);
  }
  std::ranges::sort(axes);
  Patch patch(g);
  const TensorId id = patch.add_constant(g.tensor(n.output(0)).name + "_axes", TensorData::vector(axes));
  replace_node(g, patch, n, successor(n, n.op, {inner->input(0), id}, {{"keepdims", keeps}}), {inner});
  return rewrite(std::move(patch));
}
}  // namespace

Pass merge_reductions() {
  return {.name = "merge_reductions",
          .summary = "two reductions of a kind in a row become one",
          .min_level = 1,
          .rule = merge_reductions_rule,
          .roots = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"}};
}
}  // namespace orknn::optimize
