// Removes nodes that give back their input.
//
// Before: %y = Dropout(%x) ; %z = Reshape(%y, {1,8}) (already 1x8)     After: readers of %z read %x
// Legal: same type, same shape, same elements in the same order. A node between a graph input or a constant and a graph
// output stays, and so does one between two graph outputs: both ports keep their names.
#include "ops/eval.h"
#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// The input that `n` gives back by its own account (OpDef::copied_input); nothing when there is none.
TensorId copied_input(const Graph& g, const Node& n) {
  const OpDef& def = ops::facts_of(n);
  if (!def.copied_input || !only_first_output(g, n)) return {};
  std::vector<TensorFacts> facts;
  for (TensorId t : n.inputs)
    facts.push_back(t ? TensorFacts{g.tensor(t).dtype, g.tensor(t).shape, g.constant(t), {}} : TensorFacts{});
  InferContext context(n, def, ops::builtin_ops(), std::move(facts), 1);
  context.set_output(0, dtype_of(g, n.output(0)), g.tensor(n.output(0)).shape);
  const int input = def.copied_input(context);
  return input < 0 ? TensorId{} : n.input(static_cast<size_t>(input));
}

Rewrite drop_identity_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !n.input(0) || !n.output(0) || dtype_of(g, n.output(0)) == DType::Undefined) return no_match();
  const TensorId source = copied_input(g, n);
  if (!source || dtype_of(g, source) != dtype_of(g, n.output(0)) || !can_replace(g, n.output(0), source)) return no_match();
  return bypass(g, n.output(0), source);
}
}  // namespace

Pass drop_identity() {
  return {.name = "drop_identity", .summary = "nodes that give back their input", .min_level = 1, .rule = drop_identity_rule};
}
}  // namespace orknn::optimize
