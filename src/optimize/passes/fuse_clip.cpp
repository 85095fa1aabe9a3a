// One Clip instead of Min, Max, Relu and Clip in a row.
//
// Before: %y = Min(Max(%x, 0), 6)     After: %y = Clip(%x, 0, 6)
// Legal: constant bounds, one value each; the inner node is read nowhere else. A lower bound alone at 0 is a Relu.
#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

struct Limited {
  TensorId x;
  double low = -INFINITY, high = INFINITY;
};

// Reads a node as a limit to its input.
std::optional<Limited> limits_of(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return std::nullopt;
  Limited l;
  const OpDef& facts = ops::facts_of(n);
  if (facts.bounds == Bounds::Zero) {
    l = {n.input(0), 0};
  } else if (facts.bounds == Bounds::Given) {
    const auto bounds = clip_bounds(g, n);
    if (!bounds || bounds->low > bounds->high) return std::nullopt;
    l = {n.input(0), bounds->low, bounds->high};
  } else if ((facts.arithmetic == Arithmetic::Max || facts.arithmetic == Arithmetic::Min) && n.inputs.size() == 2) {
    const size_t side = g.is_constant(n.input(0)) ? 0 : 1;
    const auto bound = constant_splat(g, n.input(side));
    if (!bound || std::isnan(*bound)) return std::nullopt;
    l.x = n.input(1 - side);
    (facts.arithmetic == Arithmetic::Max ? l.low : l.high) = *bound;
  } else {
    return std::nullopt;
  }
  return same_shape(g, l.x, n.output(0)) ? std::optional(l) : std::nullopt;
}

Rewrite fuse_clip_rule(const Graph& g, const Node& n) {
  const DType dtype = dtype_of(g, n.output(0));
  auto outer = limits_of(g, n);
  if (!outer || !is_float(dtype)) return no_match();
  std::vector<const Node*> nodes;
  if (const Node* before = read_once(g, outer->x) ? g.producer_node(outer->x) : nullptr) {
    if (const auto inner = limits_of(g, *before)) {
      outer =
          Limited{inner->x, std::clamp(inner->low, outer->low, outer->high), std::clamp(inner->high, outer->low, outer->high)};
      nodes.push_back(before);
    }
  }
  if (nodes.empty() && ops::facts_of(n).bounds != Bounds::None) return no_match();
  if (outer->low == 0 && outer->high == INFINITY) return replace_node(g, n, successor(n, "Relu", {outer->x}), nodes);
  Patch patch(g);
  std::vector<TensorId> inputs{outer->x};
  const std::string name = g.tensor(n.output(0)).name;
  inputs.push_back(outer->low == -INFINITY ? TensorId{}
                                           : patch.add_constant(name + "_min", constant_from({outer->low}, {}, dtype)));
  if (outer->high != INFINITY) inputs.push_back(patch.add_constant(name + "_max", constant_from({outer->high}, {}, dtype)));
  replace_node(g, patch, n, successor(n, "Clip", std::move(inputs)), nodes);
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_clip() {
  return {.name = "fuse_clip",
          .summary = "Clip or Relu from Min, Max, Relu and Clip with constant bounds",
          .min_level = 1,
          .rule = fuse_clip_rule,
          .roots = {"Min", "Max", "Relu", "Clip"}};
}
}  // namespace orknn::optimize
