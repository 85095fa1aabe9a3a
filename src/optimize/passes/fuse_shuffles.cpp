// One ShuffleChannel, DepthToSpace or SpaceToDepth instead of Reshape, Transpose, Reshape.
//
// Before: %a = Reshape(%x, {1,2,4,8,8}) ; %b = Transpose(%a) {perm = [0,2,1,3,4]} ; %y = Reshape(%b, {1,8,8,8})
// After:  %y = ShuffleChannel(%x) {group = 2}
// Legal: static 4-D tensors; the axes between are split and joined exactly so; nothing between is read elsewhere.
#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/permute.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// The op that splitting x into `split`, permuting and joining to `out` amounts to.
std::optional<Node> recognize(const Node& n, TensorId input, const Dims& x, const Dims& split, const Perm& perm,
                              const Dims& out) {
  const int64_t batch = x[0], channels = x[1], height = x[2], width = x[3];
  const auto named = [&](std::string op, Attributes attributes) {
    return successor(n, std::move(op), {input}, std::move(attributes));
  };
  if (out == x) {
    const bool keeps_pixels = (perm == Perm{0, 2, 1, 3, 4} && split.size() == 5 && split[3] == height && split[4] == width) ||
                              (perm == Perm{0, 2, 1, 3} && split.size() == 4 && split[3] == height * width);
    if (keeps_pixels && split[0] == batch && split[1] * split[2] == channels)
      return named("ShuffleChannel", {{"group", split[1]}});
    return std::nullopt;
  }
  if (split.size() != 6 || split[0] != batch || out[0] != batch) return std::nullopt;
  if (const int64_t block = width > 0 ? out[3] / width : 0;
      block > 1 && out == Dims{batch, channels / (block * block), height * block, width * block}) {
    if (perm == Perm{0, 3, 4, 1, 5, 2} && split == Dims{batch, block, block, out[1], height, width})
      return named("DepthToSpace", {{"blocksize", block}, {"mode", std::string("DCR")}});
    if (perm == Perm{0, 1, 4, 2, 5, 3} && split == Dims{batch, out[1], block, block, height, width})
      return named("DepthToSpace", {{"blocksize", block}, {"mode", std::string("CRD")}});
    return std::nullopt;
  }
  const int64_t block = out[3] > 0 ? width / out[3] : 0;
  if (block > 1 && out == Dims{batch, channels * block * block, height / block, width / block} &&
      perm == Perm{0, 3, 5, 1, 2, 4} && split == Dims{batch, channels, out[2], block, out[3], block})
    return named("SpaceToDepth", {{"blocksize", block}});
  return std::nullopt;
}

Rewrite fuse_shuffles_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty()) return no_match();
  const Node* transpose = g.sole_producer(n.input(0), "Transpose");
  const Node* reshape = transpose ? g.sole_producer(transpose->input(0), "Reshape") : nullptr;
  if (!reshape) return no_match();
  const auto x = dims_of(g, reshape->input(0)), split = dims_of(g, reshape->output(0)), out = dims_of(g, n.output(0));
  const auto perm = transpose_perm(g, *transpose);
  if (!x || !split || !out || !perm || x->size() != 4 || out->size() != 4) return no_match();
  auto fresh = recognize(n, reshape->input(0), *x, *split, *perm, *out);
  if (!fresh) return no_match();
  return replace_node(g, n, std::move(*fresh), {reshape, transpose});
}
}  // namespace

Pass fuse_shuffles() {
  return {.name = "fuse_shuffles",
          .summary = "ShuffleChannel, DepthToSpace, SpaceToDepth from Reshape, Transpose, Reshape",
          .min_level = 2,
          .rule = fuse_shuffles_rule,
          .roots = {"Reshape"}};
}
}  // namespace orknn::optimize
