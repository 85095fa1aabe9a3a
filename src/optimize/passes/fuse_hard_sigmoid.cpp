// One HardSigmoid instead of a scaled and clipped line.
//
// Before: %y = Div(Clip(Add(%x, 3), 0, 6), 6)     After: %y = HardSigmoid(%x) {alpha = 0.1667, beta = 0.5}
// Legal: the result runs from 0 to 1, has an offset (a bare Clip stays one) and nothing between is read elsewhere.
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_hard_sigmoid_rule(const Graph& g, const Node& n) {
  const auto form = match_gated(g, n, {"Clip"}, [&](const GatedForm& f) {
    const double scale = f.q[0];
    if (!nearly(f.p, Polynomial{}) || scale <= 0 || !nearly(f.q, Polynomial{scale, 0, 0, 0})) return false;
    const auto bounds = clip_bounds(g, *f.function);
    return bounds && bounds->low == 0 && nearly(scale * bounds->high, 1, 1e-6) && f.argument[0] != 0 && f.argument[1] > 0 &&
           f.argument[2] == 0 && f.argument[3] == 0;
  });
  if (!form) return no_match();
  const double scale = form->q[0];
  return replace_node(
      g, n, successor(n, "HardSigmoid", {form->x}, {{"alpha", form->argument[1] * scale}, {"beta", form->argument[0] * scale}}),
      form->nodes);
}
}  // namespace

Pass fuse_hard_sigmoid() {
  return {.name = "fuse_hard_sigmoid",
          .summary = "HardSigmoid from Clip formulas",
          .min_level = 1,
          .rule = fuse_hard_sigmoid_rule,
          .roots = {"Mul", "Div", "Clip"}};
}
}  // namespace orknn::optimize
