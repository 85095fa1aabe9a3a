// One InstanceNormalization instead of its arithmetic, with the per-channel factors and offsets that follow it.
//
// Before: %d = Sub(%x, ReduceMean(%x, {2,3})) ; %y = Div(%d, Sqrt(Add(ReduceMean(Mul(%d, %d), {2,3}), eps)))
// After:  %y = InstanceNormalization(%x, ones, zeros) {epsilon = eps}
// Legal: at least two axes, all those after the channel axis (over one axis it is a LayerNormalization); nothing between is read
// elsewhere.
#include <algorithm>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/normalization.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite absorb_into_instance_norm(const Graph& g, const Node& n) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* norm = g.sole_producer(n.input(i), "InstanceNormalization");
    if (!norm || !same_shape(g, n.input(i), n.output(0))) continue;
    const Dim extent = (*g.tensor(n.output(0)).shape)[1];
    if (!extent.is_known()) continue;
    const int64_t channels = extent.value();
    const auto values = per_channel(g, n.input(1 - i), 1, rank_of(g, n.output(0)), channels);
    auto scale = per_channel(g, norm->input(1), 0, 1, channels), shift = per_channel(g, norm->input(2), 0, 1, channels);
    if (!values || !scale || !shift) continue;
    for (size_t c = 0; c < values->size(); ++c) {
      if (n.op == "Mul")
        (*scale)[c] *= (*values)[c], (*shift)[c] *= (*values)[c];
      else
        (*shift)[c] += (*values)[c];
    }
    Patch patch(g);
    Node fresh = *norm;
    fresh.outputs = n.outputs;
    fresh.inputs[1] =
        patch.add_constant(g.tensor(norm->input(1)).name, constant_from(*scale, {channels}, dtype_of(g, norm->input(1))));
    fresh.inputs[2] =
        patch.add_constant(g.tensor(norm->input(2)).name, constant_from(*shift, {channels}, dtype_of(g, norm->input(2))));
    replace_node(g, patch, n, std::move(fresh), {norm});
    return rewrite(std::move(patch));
  }
  return no_match();
}

Rewrite fuse_instance_norm_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  if (n.op != "Div") {
    Rewrite taken = absorb_into_instance_norm(g, n);
    if (!taken || *taken) return taken;
  }
  const auto m = match_normalization(g, n);
  if (!m || !m->is_centered || m->scale || m->shift) return no_match();
  const Shape& shape = *g.tensor(m->x).shape;
  if (shape.size() < 4 || m->axes.size() + 2 != shape.size() || m->axes.front() != 2 || !shape[1].is_known()) return no_match();
  const int64_t channels = shape[1].value();
  const std::string name = g.tensor(n.output(0)).name;
  const auto filled = [&](double v) {
    return constant_from(std::vector<double>(static_cast<size_t>(channels), v), {channels}, dtype_of(g, m->x));
  };
  Patch patch(g);
  const TensorId scale = patch.add_constant(name + "_scale", filled(1)), bias = patch.add_constant(name + "_bias", filled(0));
  replace_node(g, patch, n, successor(n, "InstanceNormalization", {m->x, scale, bias}, {{"epsilon", m->epsilon}}), m->nodes);
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_instance_norm() {
  return {.name = "fuse_instance_norm",
          .summary = "InstanceNormalization from its arithmetic",
          .min_level = 2,
          .rule = fuse_instance_norm_rule,
          .roots = {"Div", "Mul", "Add"}};
}
}  // namespace orknn::optimize
