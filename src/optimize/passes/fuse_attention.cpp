// One Attention instead of two MatMuls around a Softmax.
//
// Before: %s = MatMul(%q, Transpose(%k)) ; %p = Softmax(Add(Mul(%s, scale), mask)) ; %y = MatMul(%p, %v)
// After:  %y = Attention(%q, %k, %v, mask) {scale = ...}
// Legal: 4-D [batch, heads, rows, width] tensors with equal batch and heads; Softmax over the last axis; the keys come through a
// Transpose; the scale is a constant (on the scores, on q, on k, or both); nothing between is read elsewhere.
#include <algorithm>
#include <cmath>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// Takes constant factors off `t`, as long as nothing else reads it.
TensorId unscaled(const Graph& g, TensorId t, double& scale, std::vector<const Node*>& nodes) {
  for (;;) {
    const Node* n = read_once(g, t) ? g.producer_node(t) : nullptr;
    if (!n || !n->tail.empty() || (n->op != "Mul" && n->op != "Div")) return t;
    const auto right = constant_scalar(g, n->input(1)), left = constant_scalar(g, n->input(0));
    TensorId next;
    if (right && (n->op == "Mul" || *right != 0))
      scale *= n->op == "Mul" ? *right : 1 / *right, next = n->input(0);
    else if (left && n->op == "Mul")
      scale *= *left, next = n->input(1);
    else
      return t;
    if (!same_shape(g, next, t)) return t;
    nodes.push_back(n);
    t = next;
  }
}

Rewrite fuse_attention_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  const Node* softmax = g.sole_producer(n.input(0), "Softmax");
  if (!softmax || softmax->attributes.int_or("flatten", 0)) return no_match();
  const int64_t axis = softmax->attributes.int_or("axis", -1);
  if (axis != -1 && axis != 3) return no_match();
  std::vector<const Node*> nodes{softmax};

  TensorId scores = softmax->input(0), mask;
  if (const Node* sum = g.sole_producer(scores, "Add")) {
    const size_t side = producer(g, sum->input(1), "MatMul") && !producer(g, sum->input(0), "MatMul") &&
                                !producer(g, sum->input(0), "Mul") && !producer(g, sum->input(0), "Div")
                            ? 1
                            : 0;
    if (!same_shape(g, sum->input(side), scores)) return no_match();
    scores = sum->input(side);
    mask = sum->input(1 - side);
    nodes.insert(nodes.begin(), sum);
  }
  double scale = 1;
  scores = unscaled(g, scores, scale, nodes);
  const Node* product = g.sole_producer(scores, "MatMul");
  if (!product) return no_match();
  nodes.insert(nodes.begin(), product);
  const TensorId q = unscaled(g, product->input(0), scale, nodes);
  const TensorId k_transposed = unscaled(g, product->input(1), scale, nodes);
  const Node* transpose = producer(g, k_transposed, "Transpose");
  if (!transpose || !std::isfinite(scale) || scale <= 0) return no_match();
  auto perm = transpose_perm(g, *transpose);
  if (!perm || perm->size() != 4) return no_match();
  std::swap((*perm)[2], (*perm)[3]);

  const auto dq = dims_of(g, q), dk = dims_of(g, k_transposed), dv = dims_of(g, n.input(1)), ds = dims_of(g, scores);
  if (!dq || !dk || !dv || !ds || dq->size() != 4 || dk->size() != 4 || dv->size() != 4) return no_match();
  for (size_t i = 0; i < 2; ++i)
    if ((*dq)[i] != (*dk)[i] || (*dq)[i] != (*dv)[i]) return no_match();
  if (mask) {
    const auto dm = dims_of(g, mask);
    if (!dm || dm->size() < 2 || dm->size() > 4 || dtype_of(g, mask) != dtype_of(g, q)) return no_match();
    // One bias for all keys is no mask: Attention wants the last axis in full.
    if (dm->back() != (*ds)[3]) return no_match();
  }
  Patch patch(g);
  TensorId k = transpose->input(0);
  if (!std::ranges::is_sorted(*perm)) k = patch.add_node("Transpose", transpose->name, {k}, {{"perm", *perm}}, transpose->origin);
  std::vector<TensorId> inputs{q, k, n.input(1)};
  if (mask) inputs.push_back(mask);
  replace_node(g, patch, n, successor(n, "Attention", std::move(inputs), {{"scale", scale}}), nodes);
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_attention() {
  return {.name = "fuse_attention",
          .summary = "Attention from MatMul, scale, mask, Softmax, MatMul",
          .min_level = 2,
          .rule = fuse_attention_rule,
          .roots = {"MatMul"}};
}
}  // namespace orknn::optimize
