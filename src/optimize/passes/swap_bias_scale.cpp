// Scales before the bias is added, so that the factor can go into the weights.
//
// Before: %a = Add(MatMul(%x, %w), bias) ; %y = Mul(%a, scale)     After: %m = Mul(MatMul(%x, %w), scale) ; %y = Add(%m, bias *
// scale) Legal: floats, both constants along the last axis (or one value), finite; nothing between is read elsewhere. Where the
// product has a bias of its own (rank 2) fold_scale does it in one step.
#include <algorithm>
#include <cmath>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite swap_bias_scale_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  const size_t side = g.is_constant(n.input(0)) ? 0 : 1;
  if (n.op == "Div" && side == 0) return no_match();
  const Node* add = g.sole_producer(n.input(1 - side), "Add");
  if (!add || !same_shape(g, add->output(0), n.output(0))) return no_match();
  const size_t bias_side = g.is_constant(add->input(0)) ? 0 : 1;
  const TensorId product = add->input(1 - bias_side);
  const Node* matmul = g.sole_producer(product, "MatMul");
  if (!matmul || !g.is_constant(matmul->input(1)) || !same_shape(g, product, n.output(0))) return no_match();
  const Shape& shape = *g.tensor(n.output(0)).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 1 || !shape.back().is_known()) return no_match();
  const int64_t channels = shape.back().value();
  const auto bias = per_channel(g, add->input(bias_side), rank - 1, rank, channels),
             scale = per_channel(g, n.input(side), rank - 1, rank, channels);
  if (!bias || !scale) return no_match();
  std::vector<double> scaled;
  for (size_t i = 0; i < bias->size(); ++i) scaled.push_back(n.op == "Mul" ? (*bias)[i] * (*scale)[i] : (*bias)[i] / (*scale)[i]);
  if (!std::ranges::all_of(scaled, [](double v) { return std::isfinite(v); })) return no_match();

  Patch patch(g);
  const TensorId product_scaled = patch.add_node(n.op, n.name, {product, n.input(side)}, {}, n.origin);
  const TensorId constant =
      patch.add_constant(g.tensor(add->input(bias_side)).name, constant_from(scaled, {channels}, dtype_of(g, n.output(0))));
  Node sum = successor(*add, "Add", {product_scaled, constant});
  sum.outputs = n.outputs;
  patch.remove_node(id_of(g, n));
  patch.add_node(std::move(sum));
  return rewrite(std::move(patch));
}
}  // namespace

Pass swap_bias_scale() {
  return {.name = "swap_bias_scale",
          .summary = "constant factor after a MatMul's bias moves before it",
          .min_level = 2,
          .rule = swap_bias_scale_rule,
          .roots = {"Mul", "Div"}};
}
}  // namespace orknn::optimize
