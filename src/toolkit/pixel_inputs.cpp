#include "toolkit/pixel_inputs.h"

#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "optimize/linear.h"
#include "optimize/match.h"
#include "toolkit/normalization.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// (pixel - mean) / std = (pixel - whole_mean) / std + rest
struct Split {
  double whole_mean = 0, std = 1, rest = 0;
};

std::optional<Split> split(const compile::Normalization& normalization) {
  const auto common = [](const std::vector<float>& values, double neutral) -> std::optional<double> {
    if (values.empty()) return neutral;
    if (std::ranges::any_of(values, [&](float v) { return v != values[0]; })) return std::nullopt;
    return values[0];
  };
  const auto mean = common(normalization.mean, 0), std = common(normalization.std, 1);
  if (!mean || !std || !(*std > 0) || !std::isfinite(*std)) return std::nullopt;
  const double whole = std::nearbyint(*mean);
  if (!(whole >= 0 && whole <= 255)) return std::nullopt;  // a range holds zero
  return Split{whole, *std, (whole - *mean) / *std};
}

// The layers that take the rest; transposes on the way to them are passed. False when another node reads `t`.
bool find_readers(const Graph& g, TensorId t, int64_t axis, int64_t channels, std::vector<NodeId>& readers) {
  if (std::ranges::count(g.outputs(), t) > 0) return false;
  for (NodeId id : g.users(t)) {
    const Node& n = g.node(id);
    if (n.op == "Transpose" && n.tail.empty()) {
      const auto perm = optimize::transpose_perm(g, n);
      if (!perm) return false;
      const auto at = std::ranges::find(*perm, axis);
      if (at == perm->end() || !find_readers(g, n.output(), at - perm->begin(), channels, readers)) return false;
      continue;
    }
    // A transposed convolution gives each result another number of taps: no bias makes up for a shift.
    const auto linear = optimize::linear_of(g, n, optimize::Tail::Kept);
    if (!linear || ops::facts_of(n).weights == Weights::InOut || n.input(0) != t || std::ranges::count(n.inputs, t) > 1 ||
        linear->input_axis != axis || linear->in_channels != channels || !linear->can_have_bias)
      return false;
    readers.push_back(id);
  }
  return true;
}
}  // namespace

std::optional<PixelInput> read_pixels(const std::vector<Graph*>& graphs, size_t index,
                                      const compile::Normalization& normalization) {
  const auto given = split(normalization);
  if (!given) return std::nullopt;
  PixelInput result;
  for (const Graph* g : graphs) result.patches.emplace_back(*g);
  result.normalization = normalization;
  result.range = {-given->whole_mean / given->std, (255 - given->whole_mean) / given->std};
  if (given->rest == 0) return result;
  std::ranges::fill(result.normalization.mean, static_cast<float>(given->whole_mean));

  const auto channels = static_cast<int64_t>(normalization.mean.size());
  std::vector<std::vector<NodeId>> readers(graphs.size());
  for (size_t i = 0; i < graphs.size(); ++i) {
    const TensorId t = graphs[i]->inputs()[index];
    const auto axis = static_cast<int64_t>(channel_axis(graphs[i]->tensor(t)));
    if (!find_readers(*graphs[i], t, axis, channels, readers[i])) return std::nullopt;
  }
  const std::vector<double> scale(normalization.mean.size(), 1), shift(normalization.mean.size(), given->rest);
  for (size_t i = 0; i < graphs.size(); ++i)
    for (NodeId id : readers[i]) {
      const Graph& g = *graphs[i];
      const Node& n = g.node(id);
      if (i == 0) result.layers.push_back(g.tensor(n.output()).name);
      const auto linear = optimize::linear_of(g, n, optimize::Tail::Kept);
      Patch& patch = result.patches[i];
      optimize::replace_node(g, patch, n, optimize::scale_input(patch, g, *linear, n.input(0), scale, shift));
    }
  return result;
}

}  // namespace orknn::toolkit
