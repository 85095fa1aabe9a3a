// One Attention instead of two MatMuls around a Softmax.
//
// Before: %s = MatMul(%q, Transpose(%k)) ; %p = Softmax(Add(Mul(%s, scale), mask)) ; %y = MatMul(%p, %v)
// After:  %y = Attention(%q, %k, %v, mask) {scale = ...}
// The mask may also be a choice: Where(const open, scores, -inf) adds 0 to open scores and -inf to the others.
// Legal: 4-D [batch, heads, rows, width] tensors with equal batch and heads; Softmax over the last axis; the keys come through a
// Transpose; the scale is a constant (on the scores, on q, on k, or both); nothing between is read elsewhere.
//
// fuse_flat_attention does the same for 3-D [heads, rows, width] tensors, between Reshapes, and remarks on attention of either
// rank whose choice cannot become a constant mask: enable_flash_attention warns of it.
#include <algorithm>
#include <cmath>

#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/pipeline.h"

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

// A choice between the scores and a number far below them.
struct ChosenMask {
  TensorId scores = {};
  TensorData addend = {};     // 0 where the scores are chosen, else the number; no value beside an obstacle
  std::string obstacle = {};  // why no constant addend does the same
};

std::optional<ChosenMask> chosen_mask(const Graph& g, const Node& where) {
  constexpr double kFarBelow = -1e4;       // softmax makes 0 of what lies so far below any other score
  for (const bool open : {true, false}) {  // the value of the condition where the scores are chosen
    const TensorId scores = where.input(open ? 1 : 2);
    const auto masked = constant_splat(g, where.input(open ? 2 : 1));
    if (!masked || !(*masked <= kFarBelow) || !same_shape(g, scores, where.output())) continue;
    const TensorData* condition = g.constant(where.input(0));
    if (!condition)
      return ChosenMask{scores, {}, "the condition '" + g.tensor(where.input(0)).name + "' of its mask is not constant"};
    const std::vector<int64_t> flags = to_ints(condition->view());
    const auto keys = static_cast<std::ptrdiff_t>(condition->dims().empty() ? 1 : condition->dims().back());
    std::vector<double> addend(flags.size());
    for (size_t i = 0; i < flags.size(); ++i) addend[i] = (flags[i] != 0) == open ? 0 : *masked;
    // A query without any open key has equal weights for all of them; an addend would leave its scores as they were.
    for (auto row = addend.begin(); row != addend.end(); row += keys)
      if (std::all_of(row, row + keys, [](double v) { return v != 0; }))
        return ChosenMask{scores, {}, "its mask '" + g.tensor(where.input(0)).name + "' leaves a query without any key"};
    return ChosenMask{scores, constant_from(addend, condition->dims(), dtype_of(g, scores))};
  }
  return {};
}

// The parts of attention around the product `last` of weights and values.
struct Parts {
  TensorId q = {}, v = {}, mask = {};
  TensorData made_mask = {};         // a constant to make instead of `mask`
  std::string obstacle = {};         // why the mask cannot be an input of Attention
  const Node* transpose = nullptr;   // of the keys
  std::vector<int64_t> k_perm = {};  // what is left of it without the exchange of the last axes
  double scale = 1;
  std::vector<const Node*> nodes = {};  // all but `last`
};

std::optional<Parts> parts_of(const Graph& g, const Node& last, size_t rank) {
  if (!last.tail.empty() || !is_float_tensor(g, last.output(0))) return {};
  const Node* softmax = g.sole_producer(last.input(0), "Softmax");
  if (!softmax || softmax->attributes.int_or("flatten", 0)) return {};
  const int64_t axis = softmax->attributes.int_or("axis", -1);
  if (axis != -1 && axis != static_cast<int64_t>(rank) - 1) return {};
  Parts p{.v = last.input(1), .nodes = {softmax}};

  TensorId scores = softmax->input(0);
  if (const Node* sum = g.sole_producer(scores, "Add")) {
    const size_t side = producer(g, sum->input(1), "MatMul") && !producer(g, sum->input(0), "MatMul") &&
                                !producer(g, sum->input(0), "Mul") && !producer(g, sum->input(0), "Div")
                            ? 1
                            : 0;
    if (!same_shape(g, sum->input(side), scores)) return {};
    scores = sum->input(side);
    p.mask = sum->input(1 - side);
    p.nodes.insert(p.nodes.begin(), sum);
  }
  const Node* choice = p.mask ? nullptr : g.sole_producer(scores, "Where");
  if (auto chosen = choice ? chosen_mask(g, *choice) : std::nullopt) {
    scores = chosen->scores;
    p.made_mask = std::move(chosen->addend);
    p.obstacle = std::move(chosen->obstacle);
    p.nodes.insert(p.nodes.begin(), choice);
  }
  scores = unscaled(g, scores, p.scale, p.nodes);
  const Node* product = g.sole_producer(scores, "MatMul");
  if (!product) return {};
  p.nodes.insert(p.nodes.begin(), product);
  p.q = unscaled(g, product->input(0), p.scale, p.nodes);
  const TensorId k_transposed = unscaled(g, product->input(1), p.scale, p.nodes);
  p.transpose = producer(g, k_transposed, "Transpose");
  if (!p.transpose || !std::isfinite(p.scale) || p.scale <= 0) return {};
  auto perm = transpose_perm(g, *p.transpose);
  if (!perm || perm->size() != rank) return {};
  std::swap((*perm)[rank - 2], (*perm)[rank - 1]);
  p.k_perm = std::move(*perm);

  const auto dq = dims_of(g, p.q), dk = dims_of(g, k_transposed), dv = dims_of(g, p.v), ds = dims_of(g, scores);
  if (!dq || !dk || !dv || !ds || dq->size() != rank || dk->size() != rank || dv->size() != rank) return {};
  for (size_t i = 0; i + 2 < rank; ++i)
    if ((*dq)[i] != (*dk)[i] || (*dq)[i] != (*dv)[i]) return {};
  if (p.mask || p.made_mask.has_value()) {
    const auto dm = p.mask ? dims_of(g, p.mask) : p.made_mask.dims();
    if (!dm || dm->size() < 2 || dm->size() > rank || (p.mask && dtype_of(g, p.mask) != dtype_of(g, p.q))) return {};
    // One bias for all keys is no mask: Attention wants the last axis in full.
    if (dm->back() != ds->back()) return {};
  }
  return p;
}

TensorId keys(Patch& patch, const Parts& p) {
  const TensorId k = p.transpose->input(0);
  if (std::ranges::is_sorted(p.k_perm)) return k;
  return patch.add_node("Transpose", p.transpose->name, {k}, {{"perm", p.k_perm}}, p.transpose->origin);
}

// Nothing where there is no mask.
TensorId mask(Patch& patch, const Parts& p, const Node& last) {
  return p.made_mask.has_value() ? patch.add_constant(last.name + "_mask", p.made_mask) : p.mask;
}

Rewrite fuse_attention_rule(const Graph& g, const Node& n) {
  const std::optional<Parts> p = parts_of(g, n, 4);
  if (!p || !p->obstacle.empty()) return no_match();
  Patch patch(g);
  std::vector<TensorId> inputs{p->q, keys(patch, *p), p->v};
  if (const TensorId added = mask(patch, *p, n)) inputs.push_back(added);
  replace_node(g, patch, n, successor(n, "Attention", std::move(inputs), {{"scale", p->scale}}), p->nodes);
  return rewrite(std::move(patch));
}

Rewrite flat_attention(const Graph& g, const Node& n) {
  const std::optional<Parts> p = parts_of(g, n, 3);
  if (!p || !p->obstacle.empty()) return no_match();
  const auto dq = dims_of(g, p->q), dv = dims_of(g, p->v);
  if (!dq || !dv) return no_match();
  Patch patch(g);
  const auto reshaped = [&](TensorId t, const std::string& part, const Dims& dims) {
    const TensorId shape = patch.add_constant(n.name + "_" + part + "_shape", TensorData::vector(dims));
    return patch.add_node("Reshape", n.name + "_" + part, {t, shape}, {}, n.origin);
  };
  const int64_t heads = (*dq)[0], rows = (*dq)[1], columns = (*dv)[1], width = (*dq)[2], out = (*dv)[2];
  std::vector<TensorId> inputs{reshaped(p->q, "q", {1, heads, rows, width}),
                               reshaped(keys(patch, *p), "k", {1, heads, columns, width}),
                               reshaped(p->v, "v", {1, heads, columns, out})};
  if (const TensorId added = mask(patch, *p, n)) inputs.push_back(added);
  const TensorId attended = patch.add_node("Attention", n.name, std::move(inputs), {{"scale", p->scale}}, n.origin);
  const TensorId shape = patch.add_constant(n.name + "_shape", TensorData::vector(Dims{heads, rows, out}));
  replace_node(g, patch, n, successor(n, "Reshape", {attended, shape}), p->nodes);
  return rewrite(std::move(patch));
}

// Its last run finds nothing to rewrite and remarks on what only a mask keeps from being Attention.
Status fuse_flat_attention_pass(Rewriter& r) {
  const Graph& g = r.graph();
  bool is_last = true;
  std::vector<std::string> remarks;
  const std::vector<NodeId> order = g.order();
  for (const NodeId id : order) {
    if (!r.may_rewrite()) return {};
    if (!g.is_alive(id) || g.node(id).op != "MatMul") continue;
    const Node& n = g.node(id);
    for (const size_t rank : {3, 4})
      if (const auto p = parts_of(g, n, rank); p && !p->obstacle.empty()) remarks.push_back("'" + n.name + "': " + p->obstacle);
    ORKNN_TRY_ASSIGN(const std::optional<Patch> patch, flat_attention(g, n));
    if (!patch) continue;
    ORKNN_TRY_ASSIGN(const bool applied, r.apply(*patch));
    is_last = is_last && !applied;
  }
  if (is_last)
    for (const std::string& text : remarks) r.remark(std::string(kUnfusedAttention) + text);
  return {};
}
}  // namespace

Pass fuse_flat_attention() {
  return {.name = "fuse_flat_attention",
          .summary = "Attention from 3-D tensors too (enable_flash_attention)",
          .min_level = 0,
          .graph_pass = fuse_flat_attention_pass};
}

Pass fuse_attention() {
  return {.name = "fuse_attention",
          .summary = "Attention from MatMul, scale, mask, Softmax, MatMul",
          .min_level = 2,
          .rule = fuse_attention_rule,
          .roots = {"MatMul"}};
}
}  // namespace orknn::optimize
