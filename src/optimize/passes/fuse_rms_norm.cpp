// One RMSNormalization instead of its arithmetic, with the factor that follows it.
//
// Before: %n = Mul(%x, Reciprocal(Sqrt(Add(ReduceMean(Pow(%x, 2)), eps)))) ; %y = Mul(%n, scale)
// After:  %y = RMSNormalization(%x, scale) {axis = -1, epsilon = eps}
// Legal: the last axes, nothing between is read elsewhere; the scale is a constant of the normalized axes.
#include "optimize/match.h"
#include "optimize/normalization.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite absorb_into_rms_norm(const Graph& g, const Node& n) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* norm = g.sole_producer(n.input(i), "RMSNormalization");
    const TensorData* constant = g.constant(n.input(1 - i));
    if (!norm || !constant || constant_splat(g, norm->input(1)) != 1.0 || !same_shape(g, n.input(i), n.output(0))) continue;
    const auto value = broadcast_constant(*constant, g.tensor(norm->input(1)).constant.dims());
    if (!value || constant->dtype() != dtype_of(g, norm->input(0))) continue;
    Patch patch(g);
    Node fresh = *norm;
    fresh.outputs = n.outputs;
    fresh.inputs[1] = patch.add_constant(g.tensor(n.input(1 - i)).name, *value);
    replace_node(g, patch, n, std::move(fresh), {norm});
    return rewrite(std::move(patch));
  }
  return no_match();
}

Rewrite fuse_rms_norm_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  if (n.op == "Mul") {
    Rewrite taken = absorb_into_rms_norm(g, n);
    if (!taken || *taken) return taken;
  }
  const auto m = match_normalization(g, n);
  if (!m || m->is_centered || !are_trailing(m->axes, rank_of(g, m->x))) return no_match();
  const Shape& shape = *g.tensor(m->x).shape;
  const auto dims = to_dims(Shape(shape.end() - static_cast<int64_t>(m->axes.size()), shape.end()));
  if (!dims) return no_match();
  Patch patch(g);
  const TensorData ones =
      constant_from(std::vector<double>(static_cast<size_t>(element_count(*dims)), 1.0), *dims, dtype_of(g, m->x));
  const TensorId scale = patch.add_constant(g.tensor(n.output(0)).name + "_scale", ones);
  replace_node(
      g, patch, n,
      successor(n, "RMSNormalization", {m->x, scale}, {{"axis", -static_cast<int64_t>(m->axes.size())}, {"epsilon", m->epsilon}}),
      m->nodes);
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_rms_norm() {
  return {.name = "fuse_rms_norm",
          .summary = "RMSNormalization from its arithmetic",
          .min_level = 2,
          .rule = fuse_rms_norm_rule,
          .roots = {"Div", "Mul"}};
}
}  // namespace orknn::optimize
