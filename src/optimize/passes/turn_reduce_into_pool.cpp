// Global pools instead of reductions over rows and columns.
//
// Before: %y = ReduceMean(%x, {2,3})     After: %y = GlobalAveragePool(%x)
// Legal: floats of rank 4, exactly the last two axes. Dropped axes come off in a Reshape after it.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite turn_reduce_into_pool_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0)) || rank_of(g, n.input(0)) != 4) return no_match();
  const auto axes = reduce_axes(g, n);
  if (!axes || *axes != std::vector<int64_t>{2, 3}) return no_match();
  const std::string op = n.op == "ReduceMean" ? "GlobalAveragePool" : "GlobalMaxPool";
  if (n.attributes.int_or("keepdims", 1)) return replace_node(g, n, successor(n, op, {n.input(0)}));
  const auto dims = dims_of(g, n.output(0));
  if (!dims) return no_match();
  Patch patch(g);
  const TensorId pooled = patch.add_node(op, n.name, {n.input(0)}, {}, n.origin);
  const TensorId shape = patch.add_constant(g.tensor(n.output(0)).name + "_shape", TensorData::vector(*dims));
  replace_node(g, patch, n, successor(n, "Reshape", {pooled, shape}));
  return rewrite(std::move(patch));
}
}  // namespace

Pass turn_reduce_into_pool() {
  return {.name = "turn_reduce_into_pool",
          .summary = "GlobalAveragePool or GlobalMaxPool from reductions over rows and columns",
          .min_level = 2,
          .rule = turn_reduce_into_pool_rule,
          .roots = {"ReduceMean", "ReduceMax"}};
}
}  // namespace orknn::optimize
