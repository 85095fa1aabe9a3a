// Multiplications and roots instead of Pow.
//
// Before: %y = Pow(%x, 2)     After: %y = Mul(%x, %x)
// Legal: exponents 2, 3, 0.5, -1 and -0.5 of floats, one for all elements.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite expand_pow_rule(const Graph& g, const Node& n) {
  const TensorId x = n.input(0);
  const auto exponent = constant_splat(g, n.input(1));
  if (!n.tail.empty() || !exponent || !is_float_tensor(g, x) || !same_shape(g, x, n.output(0))) return no_match();
  if (*exponent == 2) return replace_node(g, n, successor(n, "Mul", {x, x}));
  if (*exponent == 0.5) return replace_node(g, n, successor(n, "Sqrt", {x}));
  if (*exponent == -1) return replace_node(g, n, successor(n, "Reciprocal", {x}));
  if (*exponent != 3 && *exponent != -0.5) return no_match();
  Patch patch(g);
  if (*exponent == 3) {
    const TensorId square = patch.add_node("Mul", n.name, {x, x}, {}, n.origin);
    replace_node(g, patch, n, successor(n, "Mul", {square, x}));
  } else {
    const TensorId root = patch.add_node("Sqrt", n.name, {x}, {}, n.origin);
    replace_node(g, patch, n, successor(n, "Reciprocal", {root}));
  }
  return rewrite(std::move(patch));
}
}  // namespace

Pass expand_pow() {
  return {.name = "expand_pow",
          .summary = "Pow with a simple exponent becomes Mul, Sqrt or Reciprocal",
          .min_level = 1,
          .rule = expand_pow_rule,
          .roots = {"Pow"}};
}
}  // namespace orknn::optimize
