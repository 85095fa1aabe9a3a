// A Transpose that only moves axes of extent 1 moves no data.
//
// Before: %y = Transpose(%x: [1,8,1,1]) {perm = [0,2,3,1]}     After: %y = Reshape(%x, {1,1,1,8})
// Legal: static shape; the axes longer than 1 keep their order.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite turn_transpose_into_reshape_rule(const Graph& g, const Node& n) {
  const auto perm = transpose_perm(g, n);
  const auto dims = dims_of(g, n.input(0)), out = dims_of(g, n.output(0));
  if (!perm || !dims || !out || !n.tail.empty() || std::ranges::is_sorted(*perm) || std::ranges::count(*dims, 0))
    return no_match();
  int64_t last = -1;
  for (int64_t axis : *perm) {
    if ((*dims)[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return no_match();
    last = axis;
  }
  Patch patch(g);
  const TensorId shape = patch.add_constant(g.tensor(n.output(0)).name + "_shape", TensorData::vector(*out));
  replace_node(g, patch, n, successor(n, "Reshape", {n.input(0), shape}));
  return rewrite(std::move(patch));
}
}  // namespace

Pass turn_transpose_into_reshape() {
  return {.name = "turn_transpose_into_reshape",
          .summary = "Transpose that moves only axes of extent 1",
          .min_level = 1,
          .rule = turn_transpose_into_reshape_rule,
          .roots = {"Transpose"}};
}
}  // namespace orknn::optimize
