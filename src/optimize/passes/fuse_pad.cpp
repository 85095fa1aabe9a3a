// Moves explicit padding into the window that reads it.
//
// Before: %p = Pad(%x, {0,0,1,1,0,0,1,1}) ; %y = Conv(%p, %w)     After: %y = Conv(%x, %w) {pads = [1,1,1,1]}
// Legal: constant mode, spatial axes only, no other reader. Conv: zeros. AveragePool: zeros, all of them counted. MaxPool: a
// value that never wins (-inf, the lowest number of a float type), or zeros around values that are never negative; pads stay
// smaller than the kernel.
#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// What converters write for -inf in float16 models: no half lies below it.
constexpr double kLowestHalf = -65504;

// Begin and end pads of every axis, -1 axes resolved; nothing unless constant and non-negative.
std::optional<std::vector<int64_t>> full_pads(const Graph& g, const Node& pad, int64_t rank) {
  const auto given = constant_ints(g, pad.input(1));
  if (!given || rank < 3) return std::nullopt;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (pad.has_input(3)) {
    const auto chosen = constant_ints(g, pad.input(3));
    if (!chosen) return std::nullopt;
    axes = *chosen;
  }
  if (given->size() != 2 * axes.size()) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || (*given)[i] < 0 || (*given)[i + axes.size()] < 0) return std::nullopt;
    pads[static_cast<size_t>(axis)] = (*given)[i];
    pads[static_cast<size_t>(axis + rank)] = (*given)[i + axes.size()];
  }
  return pads;
}

bool never_negative(const Graph& g, TensorId t) {
  const Node* p = g.producer_node(t);
  if (!p || !p->tail.empty()) return false;
  const OpDef& def = ops::facts_of(*p);
  if (def.bounds == Bounds::Given) return p->has_input(1) && constant_scalar(g, p->input(1)).value_or(-1) >= 0;
  return def.never_negative || (def.pattern == Pattern::Pointwise && def.quant == QuantRule::Fixed01);
}

Rewrite fuse_pad_rule(const Graph& g, const Node& n) {
  const Node* pad = g.sole_producer(n.input(0), "Pad");
  if (!pad || pad->attributes.string_or("mode", "constant") != "constant" || !only_first_output(g, n)) return no_match();
  if (n.attributes.string_or("auto_pad", "NOTSET") != "NOTSET" || n.attributes.int_or("ceil_mode", 0)) return no_match();
  const int64_t rank = rank_of(g, n.input(0));
  const auto pads = full_pads(g, *pad, rank);
  if (!pads) return no_match();
  for (size_t axis = 0; axis < 2; ++axis)
    if ((*pads)[axis] || (*pads)[axis + static_cast<size_t>(rank)]) return no_match();
  const std::optional<double> value = pad->has_input(2) ? constant_scalar(g, pad->input(2)) : 0.0;
  if (!value) return no_match();

  const auto spatial = static_cast<size_t>(rank - 2);
  std::vector<int64_t> own = n.attributes.ints_or("pads", std::vector<int64_t>(2 * spatial, 0));
  if (own.size() != 2 * spatial) return no_match();
  const bool unpadded = std::ranges::all_of(own, [](int64_t p) { return p == 0; });
  for (size_t i = 0; i < spatial; ++i) {
    own[i] += (*pads)[i + 2];
    own[i + spatial] += (*pads)[i + 2 + static_cast<size_t>(rank)];
  }
  Node fresh = n;
  if (ops::facts_of(n).weights == Weights::None) {
    const std::vector<int64_t> kernel = n.attributes.ints_or("kernel_shape");
    if (kernel.size() != spatial) return no_match();
    for (size_t i = 0; i < spatial; ++i)
      if (own[i] >= kernel[i] || own[i + spatial] >= kernel[i]) return no_match();
  }
  if (n.op == "MaxPool") {
    if (n.outputs.size() > 1 && n.outputs[1]) return no_match();
    const bool loses = *value <= kLowestHalf || (*value == 0 && never_negative(g, pad->input(0)));
    if (!loses) return no_match();
  } else if (*value != 0) {
    return no_match();
  }
  if (n.op == "AveragePool") {
    if (!unpadded && !n.attributes.int_or("count_include_pad", 0)) return no_match();
    fresh.attributes.set("count_include_pad", int64_t{1});
  }
  fresh.inputs[0] = pad->input(0);
  fresh.attributes.set("pads", own);
  return replace_node(g, n, std::move(fresh), {pad});
}
}  // namespace

Pass fuse_pad() {
  return {.name = "fuse_pad",
          .summary = "Pad into the Conv or pool that reads it",
          .min_level = 1,
          .rule = fuse_pad_rule,
          .roots = {"Conv", "AveragePool", "MaxPool"}};
}
}  // namespace orknn::optimize
