// One HardSwish instead of x * Clip(x + 3, 0, 6) / 6 or x * HardSigmoid(x).
//
// Before: %a = Clip(Add(%x, 3), 0, 6) ; %y = Div(Mul(%x, %a), 6)     After: %y = HardSwish(%x)
// Legal: nothing between is read elsewhere; the slope is 1/6 and the offset 1/2.
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_hard_swish_rule(const Graph& g, const Node& n) {
  const auto form = match_gated(g, n, {"Clip", "HardSigmoid"}, [&](const GatedForm& f) {
    if (!nearly(f.p, Polynomial{}) || f.q[1] == 0 || !nearly(f.q, Polynomial{0, f.q[1], 0, 0})) return false;
    const double scale = f.q[1];
    if (f.function->op == "HardSigmoid") {
      const double alpha = f.function->attributes.float_or("alpha", 0.2), beta = f.function->attributes.float_or("beta", 0.5);
      return nearly(scale, 1) && nearly(alpha, 1.0 / 6) && nearly(beta, 0.5) && nearly(f.argument, Polynomial{0, 1, 0, 0});
    }
    const auto bounds = clip_bounds(g, *f.function);
    return bounds && bounds->low == 0 && nearly(scale * bounds->high, 1) &&
           nearly(f.argument, Polynomial{0.5 / scale, 1.0 / 6 / scale, 0, 0});
  });
  if (!form) return no_match();
  return replace_node(g, n, successor(n, "HardSwish", {form->x}), form->nodes);
}
}  // namespace

Pass fuse_hard_swish() {
  return {.name = "fuse_hard_swish",
          .summary = "HardSwish from Clip or HardSigmoid formulas",
          .min_level = 1,
          .rule = fuse_hard_swish_rule,
          .roots = {"Mul", "Div"}};
}
}  // namespace orknn::optimize
