// Moves a Transpose to channels first up through element-wise ops, so that these meet the Conv that wanted it.
//
// Before: %a = Sub(%x, const) ; %t = Transpose(%a) {perm = [0,3,1,2]}     After: %t' = Transpose(%x) ; %t = Sub(%t', const')
// Legal: one operand is computed, the others are constants; the Transpose is the only reader.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/permute.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite rule(const Graph& g, const Node& n) {
  const auto perm = transpose_perm(g, n);
  if (!perm || !is_channels_first(*perm) || !n.tail.empty()) return no_match();
  const Node* f = g.producer_node(n.input(0));
  if (!f || !f->tail.empty() || f->outputs.size() != 1 || !read_once(g, n.input(0))) return no_match();
  const bool broadcasts = is_broadcasting(f->op);
  if (!broadcasts && !is_pointwise(f->op)) return no_match();
  size_t computed = 0, data = 0;
  for (size_t i = 0; i < f->inputs.size(); ++i)
    if (f->inputs[i] && !g.is_constant(f->inputs[i])) ++computed, data = i;
  if (computed != 1 || (!broadcasts && data != 0) || rank_of(g, f->inputs[data]) != static_cast<int64_t>(perm->size())) return no_match();

  Patch patch(g);
  Node above = *f;
  above.outputs = n.outputs;
  above.inputs[data] = patch.add_node("Transpose", n.name, {f->inputs[data]}, {{"perm", *perm}}, n.origin);
  for (size_t i = 0; broadcasts && i < f->inputs.size(); ++i) {
    const TensorData* c = g.constant(f->inputs[i]);
    if (!c || c->count() == 1) continue;
    above.inputs[i] = patch.add_constant(g.tensor(f->inputs[i]).name, permuted_operand(*c, *perm));
  }
  patch.remove_node(id_of(g, n));
  patch.add_node(std::move(above));
  return rewrite(std::move(patch));
}
}  // namespace

Pass hoist_transposes() {
  return {.name = "hoist_transposes", .summary = "channels-first Transpose up through element-wise ops", .min_level = 2, .rule = rule, .roots = {"Transpose"}};
}
}  // namespace orknn::optimize
