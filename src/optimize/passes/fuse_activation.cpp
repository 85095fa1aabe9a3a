// Computes an activation on the result of the node before it, before that is stored.
//
// Before: %c = Conv(%x, %w) ; %y = Relu(%c)     After: %y = Conv(%x, %w) + Relu()
// Legal: floats; the op says that the output stage of a layer computes it, and the node before that its layer has one
// (OpDef::npu); the result between is read nowhere else and has no activation yet (an Add may stand between).
#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "optimize/gated_form.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool is_activation(const OpDef& def) {
  return def.npu.form != NpuForm::None && (def.npu.stage == OutputStage::Plain || def.npu.stage == OutputStage::Table);
}

Rewrite fuse_activation_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  const Node* carrier = g.producer_node(n.input(0));
  if (!carrier || !ops::facts_of(*carrier).npu.takes_tail || carrier->output(0) != n.input(0) || !read_once(g, n.input(0)))
    return no_match();
  if (carrier->outputs.size() > 1 || dtype_of(g, n.input(0)) != dtype_of(g, n.output(0))) return no_match();
  if (std::ranges::any_of(carrier->tail, [](const TailStep& s) { return ops::facts_of(s.op).npu.stage != OutputStage::Addend; }))
    return no_match();

  Node fused = *carrier;
  fused.outputs = n.outputs;
  TailStep step{n.op, n.attributes, -1, false};
  if (ops::facts_of(n).bounds == Bounds::Given) {
    const auto bounds = clip_bounds(g, n);
    if (!bounds) return no_match();
    if (std::isfinite(bounds->low)) step.attributes.set("min", bounds->low);
    if (std::isfinite(bounds->high)) step.attributes.set("max", bounds->high);
  } else if (n.has_input(1)) {
    // Only a value per channel or one for all (slopes of a PRelu): anything else is not what the output stage can do.
    const TensorData* values = g.constant(n.input(1));
    const auto dims = dims_of(g, n.output(0));
    if (!values || !dims || (values->count() != 1 && (dims->size() < 2 || values->count() != (*dims)[1]))) return no_match();
    step.operand = static_cast<int32_t>(fused.inputs.size());
    fused.inputs.push_back(n.input(1));
  }
  fused.tail.push_back(std::move(step));
  return replace_node(g, n, std::move(fused), {carrier});
}
}  // namespace

Pass fuse_activation() {
  return {.name = "fuse_activation",
          .summary = "activation into the Conv, Gemm, MatMul, Add, Mul or BatchNormalization before it",
          .min_level = 1,
          .rule = fuse_activation_rule,
          .roots = ops::ops_where(is_activation)};
}
}  // namespace orknn::optimize
