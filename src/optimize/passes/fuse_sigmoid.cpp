// One Sigmoid or Softplus instead of formulas with Exp.
//
// Before: %y = Div(1, Add(Exp(Neg(%x)), 1))     After: %y = Sigmoid(%x)
// Before: %y = Log(Add(Exp(%x), 1))             After: %y = Softplus(%x)
// Legal: nothing between is read elsewhere. The result is the same or, where Exp overflows, better.
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_sigmoid_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  const bool sigmoid = n.op != "Log";
  if (n.op == "Div" && !is_scalar(g, n.input(0), 1)) return no_match();
  const TensorId inner = n.input(n.op == "Div" ? 1 : 0);
  const Node* sum = g.sole_producer(inner, "Add");
  if (!sum) return no_match();
  const Polynomial one{1, 0, 0, 0};
  const auto form = match_gated(g, *sum, {"Exp"}, [&](const GatedForm& f) {
    return nearly(f.p, one) && nearly(f.q, one) && nearly(f.argument, Polynomial{0, sigmoid ? -1.0 : 1.0, 0, 0});
  });
  if (!form || !same_shape(g, form->x, n.output(0))) return no_match();
  return replace_node(g, n, successor(n, sigmoid ? "Sigmoid" : "Softplus", {form->x}), form->nodes);
}
}  // namespace

Pass fuse_sigmoid() {
  return {.name = "fuse_sigmoid",
          .summary = "Sigmoid and Softplus from formulas with Exp",
          .min_level = 2,
          .rule = fuse_sigmoid_rule,
          .roots = {"Div", "Reciprocal", "Log"}};
}
}  // namespace orknn::optimize
