// One Gelu instead of its formula, exact (Erf) or approximate (Tanh), however it is spelled.
//
// Before: %y = Mul(Mul(%x, 0.5), Add(Erf(Div(%x, 1.41421)), 1))     After: %y = Gelu(%x)
// Legal: nothing between is read elsewhere; constants agree to float16 precision.
#include <cmath>

#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_gelu_rule(const Graph& g, const Node& n) {
  const Polynomial half{0, 0.5, 0, 0};
  const double root = std::sqrt(2 / M_PI);
  const auto form = match_gated(g, n, {"Erf", "Tanh"}, [&](const GatedForm& f) {
    const Polynomial argument =
        f.function->op == "Erf" ? Polynomial{0, M_SQRT1_2, 0, 0} : Polynomial{0, root, 0, root * 0.044715};
    return nearly(f.p, half) && nearly(f.q, half) && nearly(f.argument, argument);
  });
  if (!form) return no_match();
  Attributes attributes;
  if (form->function->op == "Tanh") attributes.set("approximate", std::string("tanh"));
  return replace_node(g, n, successor(n, "Gelu", {form->x}, std::move(attributes)), form->nodes);
}
}  // namespace

Pass fuse_gelu() {
  return {.name = "fuse_gelu",
          .summary = "Gelu from its Erf or Tanh formula",
          .min_level = 2,
          .rule = fuse_gelu_rule,
          .roots = {"Mul", "Div", "Add"}};
}
}  // namespace orknn::optimize
