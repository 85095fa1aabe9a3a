// One LayerNormalization instead of its arithmetic, with the factors and offsets that follow it.
//
// Before: %d = Sub(%x, ReduceMean(%x)) ; %n = Div(%d, Sqrt(Add(ReduceMean(Pow(%d, 2)), eps))) ; %y = Add(Mul(%n, scale), bias)
// After:  %y = LayerNormalization(%x, scale, bias) {axis = -1, epsilon = eps}
// Legal: the last axes, nothing between is read elsewhere; scale and bias are constants of the normalized axes.
#include "optimize/match.h"
#include "optimize/normalization.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// Extents of the last axes; the others may be unknown.
std::optional<Dims> normalized_dims(const Shape& shape, size_t axes) {
  return to_dims(Shape(shape.end() - static_cast<int64_t>(axes), shape.end()));
}

Rewrite fuse_core(const Graph& g, const Node& n) {
  const auto m = match_normalization(g, n);
  if (!m || !m->is_centered || !are_trailing(m->axes, rank_of(g, m->x))) return no_match();
  const auto normalized = normalized_dims(*g.tensor(m->x).shape, m->axes.size());
  if (!normalized) return no_match();
  const Dims& dims = *normalized;
  const DType dtype = dtype_of(g, m->x);
  Patch patch(g);
  std::vector<TensorId> inputs{m->x};
  const auto add = [&](TensorId id, double fallback, const char* suffix) {
    std::optional<TensorData> value =
        constant_from(std::vector<double>(static_cast<size_t>(element_count(dims)), fallback), dims, dtype);
    if (id) value = broadcast_constant(g.tensor(id).constant, dims);
    if (value) inputs.push_back(patch.add_constant(id ? g.tensor(id).name : g.tensor(n.output(0)).name + suffix, *value));
    return value.has_value();
  };
  if (!add(m->scale, 1, "_scale")) return no_match();
  if (m->shift && !add(m->shift, 0, "_bias")) return no_match();
  replace_node(
      g, patch, n,
      successor(n, "LayerNormalization", inputs, {{"axis", -static_cast<int64_t>(m->axes.size())}, {"epsilon", m->epsilon}}),
      m->nodes);
  return rewrite(std::move(patch));
}

// Takes the constant of a following Mul as scale or of a following Add as bias.
Rewrite absorb_into_layer_norm(const Graph& g, const Node& n) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* norm = g.sole_producer(n.input(i), "LayerNormalization");
    const TensorData* constant = g.constant(n.input(1 - i));
    if (!norm || !constant || norm->has_input(2) || norm->outputs.size() > 1 || !same_shape(g, n.input(i), n.output(0))) continue;
    if (n.op == "Mul" && constant_splat(g, norm->input(1)) != 1.0) continue;
    const TensorData* scale = g.constant(norm->input(1));
    if (!scale || constant->dtype() != dtype_of(g, norm->input(0))) continue;
    const auto value = broadcast_constant(*constant, scale->dims());
    if (!value) continue;
    Patch patch(g);
    const TensorId id = patch.add_constant(g.tensor(n.input(1 - i)).name, *value);
    Node fresh = *norm;
    fresh.outputs = n.outputs;
    if (n.op == "Mul")
      fresh.inputs[1] = id;
    else
      fresh.inputs = {norm->input(0), norm->input(1), id};
    replace_node(g, patch, n, std::move(fresh), {norm});
    return rewrite(std::move(patch));
  }
  return no_match();
}

Rewrite fuse_layer_norm_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  if (n.op != "Div") {
    Rewrite taken = absorb_into_layer_norm(g, n);
    if (!taken || *taken) return taken;
  }
  return fuse_core(g, n);
}
}  // namespace

Pass fuse_layer_norm() {
  return {.name = "fuse_layer_norm",
          .summary = "LayerNormalization from its arithmetic",
          .min_level = 2,
          .rule = fuse_layer_norm_rule,
          .roots = {"Div", "Mul", "Add"}};
}
}  // namespace orknn::optimize
