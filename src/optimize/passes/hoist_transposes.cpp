// Moves a Transpose to channels first up through element-wise ops, so that these meet the Conv that wanted it. Usually that is
// the preprocessing at the beginning of an NHWC model.
//
// Before: %a = Sub(%x, const) ; %t = Transpose(%a) {perm = [0,3,1,2]}     After: %t' = Transpose(%x) ; %t = Sub(%t', const')
// Legal: one operand is computed, the others are constants; the Transpose is the only reader. Done when such ops lead all the way
// to a graph input or another Transpose; elsewhere they belong to what is above them.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/permute.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// The one computed input of an element-wise node whose other inputs are constants; -1 when there is no such.
int computed_input(const Graph& g, const Node& f) {
  const Pattern pattern = ops::facts_of(f).pattern;
  const bool broadcasts = pattern == Pattern::Broadcast;
  const bool one_scale = pattern == Pattern::Rescale && rank_of(g, f.input(1)) == 0;
  if (!f.tail.empty() || f.outputs.size() != 1 || (!broadcasts && !one_scale && pattern != Pattern::Pointwise)) return -1;
  int computed = 0, data = -1;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    if (f.inputs[i] && !g.is_constant(f.inputs[i])) ++computed, data = static_cast<int>(i);
  if (computed != 1 || (!broadcasts && data != 0)) return -1;
  return same_shape(g, f.inputs[static_cast<size_t>(data)], f.output(0)) ? data : -1;
}

bool leads_to_the_top(const Graph& g, TensorId t) {
  for (int step = 0; step < 16; ++step) {
    if (g.is_input(t)) return true;
    const Node* n = g.producer_node(t);
    if (!n || n->op == "Transpose") return n != nullptr;
    const int data = read_once(g, t) ? computed_input(g, *n) : -1;
    if (data < 0) return false;
    t = n->inputs[static_cast<size_t>(data)];
  }
  return false;
}

Rewrite hoist_transposes_rule(const Graph& g, const Node& n) {
  const auto perm = transpose_perm(g, n);
  if (!perm || !is_channels_first(*perm) || !n.tail.empty()) return no_match();
  const Node* f = g.producer_node(n.input(0));
  if (!f || f->op == "Transpose" || !leads_to_the_top(g, n.input(0))) return no_match();
  const auto data = static_cast<size_t>(computed_input(g, *f));
  const bool broadcasts = ops::facts_of(*f).pattern == Pattern::Broadcast;

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
  return {.name = "hoist_transposes",
          .summary = "channels-first Transpose up through element-wise ops",
          .min_level = 2,
          .rule = hoist_transposes_rule,
          .roots = {"Transpose"}};
}
}  // namespace orknn::optimize
