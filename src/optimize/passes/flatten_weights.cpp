// Weights of a matrix product without leading axes of 1: what looks for weights wants a matrix.
//
// Before: %y = MatMul(%x: [2,4,8], const[1,8,16])     After: %y = MatMul(%x, const[8,16])
// Legal: constant floats, the data has as many axes at least.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite flatten_weights_rule(const Graph& g, const Node& n) {
  const TensorData* w = g.constant(n.input(1));
  if (!w || !is_float_tensor(g, n.input(1)) || w->dims().size() < 3) return no_match();
  const Dims& dims = w->dims();
  if (rank_of(g, n.input(0)) < static_cast<int64_t>(dims.size())) return no_match();
  if (!std::all_of(dims.begin(), dims.end() - 2, [](int64_t d) { return d == 1; })) return no_match();
  const Dims matrix(dims.end() - 2, dims.end());
  Patch patch(g);
  Node fresh = n;
  fresh.inputs[1] = patch.add_constant(g.tensor(n.input(1)).name, w->reshaped(matrix));
  replace_node(g, patch, n, std::move(fresh), {});
  return rewrite(std::move(patch));
}
}  // namespace

Pass flatten_weights() {
  return {.name = "flatten_weights",
          .summary = "weights of a MatMul lose leading axes of 1",
          .min_level = 1,
          .rule = flatten_weights_rule,
          .roots = {"MatMul"}};
}
}  // namespace orknn::optimize
