// One Glu instead of Split, Sigmoid and Mul.
//
// Before: %a, %b = Split(%x) ; %y = Mul(%a, Sigmoid(%b))     After: %y = Glu(%x) {axis = a}
// Legal: two equal halves, nothing between is read elsewhere.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_glu_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  for (size_t i = 0; i < 2; ++i) {
    const Node* sigmoid = g.sole_producer(n.input(i), "Sigmoid");
    if (!sigmoid) continue;
    const Node* split = producer(g, n.input(1 - i), "Split");
    if (!split || split->outputs.size() != 2 || split->output(0) != n.input(1 - i) || split->output(1) != sigmoid->input(0))
      continue;
    if (!same_shape(g, split->output(0), split->output(1)) || !is_closed(g, {split, sigmoid}, n)) continue;
    return replace_node(g, n, successor(n, "Glu", {split->input(0)}, {{"axis", split->attributes.int_or("axis", 0)}}),
                        {split, sigmoid});
  }
  return no_match();
}
}  // namespace

Pass fuse_glu() {
  return {
      .name = "fuse_glu", .summary = "Glu from Split, Sigmoid and Mul", .min_level = 2, .rule = fuse_glu_rule, .roots = {"Mul"}};
}
}  // namespace orknn::optimize
