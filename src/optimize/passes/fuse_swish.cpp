// One Swish (SiLU) instead of x * Sigmoid(alpha * x).
//
// Before: %s = Sigmoid(%x) ; %y = Mul(%x, %s)     After: %y = Swish(%x)
// Legal: the Sigmoid is read nowhere else.
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_swish_rule(const Graph& g, const Node& n) {
  const auto form = match_gated(g, n, {"Sigmoid"}, [](const GatedForm& f) {
    return nearly(f.p, Polynomial{}) && nearly(f.q, Polynomial{0, 1, 0, 0}) && f.argument[1] != 0 &&
           nearly(f.argument, Polynomial{0, f.argument[1], 0, 0});
  });
  if (!form) return no_match();
  Attributes attributes;
  if (form->argument[1] != 1) attributes.set("alpha", form->argument[1]);
  return replace_node(g, n, successor(n, "Swish", {form->x}, std::move(attributes)), form->nodes);
}
}  // namespace

Pass fuse_swish() {
  return {.name = "fuse_swish",
          .summary = "Swish (SiLU) from x * Sigmoid(alpha * x)",
          .min_level = 1,
          .rule = fuse_swish_rule,
          .roots = {"Mul"}};
}
}  // namespace orknn::optimize
