// One Mish instead of x * Tanh(Softplus(x)).
//
// Before: %p = Softplus(%x) ; %t = Tanh(%p) ; %y = Mul(%x, %t)     After: %y = Mish(%x)
// Legal: nothing between is read elsewhere.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_mish_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  for (size_t i = 0; i < 2; ++i) {
    const Node* tanh = g.sole_producer(n.input(i), "Tanh");
    const Node* softplus = tanh ? g.sole_producer(tanh->input(0), "Softplus") : nullptr;
    if (!softplus || softplus->input(0) != n.input(1 - i)) continue;
    return replace_node(g, n, successor(n, "Mish", {softplus->input(0)}), {softplus, tanh});
  }
  return no_match();
}
}  // namespace

Pass fuse_mish() {
  return {.name = "fuse_mish",
          .summary = "Mish from x * Tanh(Softplus(x))",
          .min_level = 1,
          .rule = fuse_mish_rule,
          .roots = {"Mul"}};
}
}  // namespace orknn::optimize
