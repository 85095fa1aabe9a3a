// Orders the input channels of weights instead of those of the data.
//
// Before: %g = Gather(%x, {2,1,0}) {axis = 1} ; %y = Conv(%g, %w)     After: %y = Conv(%x, %w')
// Legal: the indices are every channel once, the Conv has one group and constant weights, nothing else reads %g. A Transpose may
// stand between.
#include <algorithm>
#include <cstring>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// Weights that give the same result when they read channel order[c] where they read channel c before.
TensorData reordered(const TensorData& weight, const std::vector<int64_t>& order) {
  TensorData result = TensorData::allocate(weight.dtype(), weight.dims());
  const auto channels = order.size();
  const auto rows = static_cast<size_t>(weight.dims()[0]);
  const size_t kernel_bytes = weight.bytes() / (rows * channels);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < channels; ++c)
      std::memcpy(static_cast<std::byte*>(result.mutable_data()) + (r * channels + static_cast<size_t>(order[c])) * kernel_bytes,
                  static_cast<const std::byte*>(weight.data()) + (r * channels + c) * kernel_bytes, kernel_bytes);
  return result;
}

Rewrite fold_channel_order_rule(const Graph& g, const Node& n) {
  const auto order = constant_ints(g, n.input(1));
  const auto dims = dims_of(g, n.input(0)), indices = dims_of(g, n.input(1));
  if (!n.tail.empty() || !order || !dims || dims->empty() || !indices || indices->size() != 1) return no_match();
  int64_t axis = n.attributes.int_or("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(dims->size());
  std::vector<int64_t> sorted = *order;
  for (int64_t& v : sorted) v += v < 0 ? static_cast<int64_t>(order->size()) : 0;
  const std::vector<int64_t> channels = sorted;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return no_match();
  if ((*dims)[static_cast<size_t>(axis)] != static_cast<int64_t>(order->size())) return no_match();

  const Node* transpose = nullptr;
  const Node* reader = only_reader(g, n.output(0));
  if (reader && reader->op == "Transpose" && reader->tail.empty()) {
    const auto perm = transpose_perm(g, *reader);
    if (!perm) return no_match();
    axis = std::ranges::find(*perm, axis) - perm->begin();
    transpose = reader;
    reader = only_reader(g, transpose->output(0));
  }
  if (!reader || reader->op != "Conv" || axis != 1 || reader->input(0) != (transpose ? transpose : &n)->output(0))
    return no_match();
  const auto linear = linear_of(g, *reader);
  if (!linear || linear->group != 1 || linear->in_channels != static_cast<int64_t>(order->size())) return no_match();
  Patch patch(g);
  TensorId x = n.input(0);
  if (transpose) x = patch.add_node("Transpose", transpose->name, {x}, transpose->attributes, transpose->origin);
  Node fused = *reader;
  fused.inputs[0] = x;
  fused.inputs[1] = patch.add_constant(g.tensor(reader->input(1)).name, reordered(*linear->weight, channels));
  replace_node(g, patch, *reader, std::move(fused), {&n});
  return rewrite(std::move(patch));
}
}  // namespace

Pass fold_channel_order() {
  return {.name = "fold_channel_order",
          .summary = "channels of the data put into another order become channels of the weights",
          .min_level = 1,
          .rule = fold_channel_order_rule,
          .roots = {"Gather"}};
}
}  // namespace orknn::optimize
