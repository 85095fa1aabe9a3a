// Adds another tensor to the result of a Conv, ConvTranspose, Gemm or MatMul before that is stored.
//
// Before: %c = Conv(%x, %w) ; %y = Add(%c, %r) + Relu()     After: %y = Conv(%x, %w) + Add(%r) + Relu()
// Legal: floats of one shape; the result is read nowhere else; at most one activation so far and nothing added yet. Level 3 only:
// the platform guides switch it off at level 2.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool adds(const TailStep& s) { return ops::facts_of(s.op).arithmetic == Arithmetic::Add; }

bool can_carry(const Graph& g, TensorId t) {
  const Node* n = g.producer_node(t);
  if (!n || !read_once(g, t) || n->outputs.size() > 1) return false;
  if (ops::facts_of(*n).weights == Weights::None) return false;
  // A constant bias of a MatMul is no residual.
  size_t steps = n->tail.size();
  if (steps > 0 && adds(n->tail[0]) && g.is_constant(n->inputs[static_cast<size_t>(n->tail[0].operand)])) --steps;
  return steps <= 1 && std::ranges::none_of(n->tail, [&](const TailStep& s) {
           return adds(s) && !g.is_constant(n->inputs[static_cast<size_t>(s.operand)]);
         });
}

Rewrite fuse_residual_add_rule(const Graph& g, const Node& n) {
  if (!is_float_tensor(g, n.output(0)) || n.own_input_count() != 2 || n.input(0) == n.input(1)) return no_match();
  if (!same_shape(g, n.input(0), n.output(0)) || !same_shape(g, n.input(1), n.output(0)) || g.is_constant(n.input(0)) ||
      g.is_constant(n.input(1)))
    return no_match();
  const bool left = can_carry(g, n.input(0)), right = can_carry(g, n.input(1));
  if (!left && !right) return no_match();
  // Of two, the later one: the other result is then ready when it is needed.
  const size_t side = left && right ? (g.producer(n.input(1)) > g.producer(n.input(0)) ? 1 : 0) : right ? 1 : 0;
  const Node* carrier = g.producer_node(n.input(side));
  Node fused = *carrier;
  fused.outputs = n.outputs;
  fused.tail.push_back({"Add", {}, static_cast<int32_t>(fused.inputs.size()), false});
  fused.inputs.push_back(n.input(1 - side));
  append_tail(fused, n);
  return replace_node(g, n, std::move(fused), {carrier});
}
}  // namespace

Pass fuse_residual_add() {
  return {.name = "fuse_residual_add",
          .summary = "Add into the Conv, ConvTranspose, Gemm or MatMul before it",
          .min_level = 3,
          .rule = fuse_residual_add_rule,
          .roots = {"Add"}};
}
}  // namespace orknn::optimize
