// One Softmax instead of Exp, ReduceSum and Div, with or without the largest value subtracted first.
//
// Before: %e = Exp(Sub(%x, ReduceMax(%x))) ; %y = Div(%e, ReduceSum(%e))     After: %y = Softmax(%x) {axis = a}
// Legal: one axis, kept; nothing between is read elsewhere. Where the plain form overflows the result is better.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_softmax_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  const Node* exp = producer(g, n.input(0), "Exp");
  const Node* sum = producer(g, n.input(1), "ReduceSum");
  if (!exp || !sum || sum->input(0) != n.input(0) || !sum->attributes.int_or("keepdims", 1)) return no_match();
  const auto axes = reduce_axes(g, *sum);
  if (!axes || axes->size() != 1) return no_match();
  std::vector<const Node*> nodes{exp, sum, &n};
  TensorId x = exp->input(0);
  if (const Node* shifted = producer(g, x, "Sub")) {
    const Node* largest = producer(g, shifted->input(1), "ReduceMax");
    if (largest && largest->input(0) == shifted->input(0) && largest->attributes.int_or("keepdims", 1) &&
        reduce_axes(g, *largest) == axes && read_once(g, x)) {
      x = shifted->input(0);
      nodes.insert(nodes.begin(), {largest, shifted});
    }
  }
  if (!is_closed(g, nodes, n)) return no_match();
  return replace_node(g, n, successor(n, "Softmax", {x}, {{"axis", axes->front()}}), nodes);
}
}  // namespace

Pass fuse_softmax() {
  return {.name = "fuse_softmax",
          .summary = "Softmax from Exp, ReduceSum and Div",
          .min_level = 2,
          .rule = fuse_softmax_rule,
          .roots = {"Div"}};
}
}  // namespace orknn::optimize
