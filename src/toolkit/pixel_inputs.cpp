#include "toolkit/pixel_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "toolkit/builder.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// pixel / std - mean / std = ((pixel - whole_mean) / one_std) * scale + shift
struct Split {
  double whole_mean = 0, one_std = 1;
  std::vector<double> scale, shift;  // per channel
  bool has_rest = false;
  bool reaches_border = false;  // zero is not the pixel nearest to the mean
};

double average(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}

std::optional<Split> split(const compile::Normalization& normalization, size_t channels) {
  const auto values = [&](const std::vector<float>& given, double neutral) {
    return given.empty() ? std::vector<double>(channels, neutral) : std::vector<double>(given.begin(), given.end());
  };
  const std::vector<double> mean = values(normalization.mean, 0), std = values(normalization.std, 1);
  if (channels == 0 || mean.size() != channels || std.size() != channels) return std::nullopt;
  for (double s : std)
    if (!(s > 0) || !std::isfinite(s)) return std::nullopt;
  Split result;
  result.whole_mean = std::nearbyint(average(mean));
  result.one_std = std::ranges::count(std, std[0]) == static_cast<std::ptrdiff_t>(channels) ? std[0] : average(std);
  if (!(result.whole_mean >= 0 && result.whole_mean <= 255)) return std::nullopt;  // a range holds zero
  constexpr double kBetweenPixels = 0.5;
  for (size_t c = 0; c < channels; ++c) {
    result.scale.push_back(result.one_std / std[c]);
    result.shift.push_back((result.whole_mean - mean[c]) / std[c]);
    result.has_rest |= result.scale[c] != 1 || result.shift[c] != 0;
    result.reaches_border |= std::abs(result.whole_mean - mean[c]) > kBetweenPixels;
  }
  return result;
}

// The layers that take the rest; transposes on the way to them are passed. Nothing when another node reads `t`.
bool find_readers(const Graph& g, TensorId t, int64_t axis, const Split& rest, std::vector<NodeId>& readers) {
  if (std::ranges::count(g.outputs(), t) > 0) return false;
  for (NodeId id : g.users(t)) {
    const Node& n = g.node(id);
    if (n.op == "Transpose" && n.tail.empty()) {
      const auto perm = optimize::transpose_perm(g, n);
      if (!perm) return false;
      const auto at = std::ranges::find(*perm, axis);
      if (at == perm->end() || !find_readers(g, n.output(), at - perm->begin(), rest, readers)) return false;
      continue;
    }
    const auto linear = optimize::linear_of(g, n, optimize::Tail::Kept);
    if (!linear || n.input(0) != t || std::ranges::count(n.inputs, t) > 1 || linear->input_axis != axis ||
        linear->in_channels != static_cast<int64_t>(rest.scale.size()) || !linear->can_have_bias ||
        (linear->is_padded && rest.reaches_border))
      return false;
    readers.push_back(id);
  }
  return true;
}
}  // namespace

std::optional<PixelInput> read_pixels(const std::vector<Graph*>& graphs, size_t index,
                                      const compile::Normalization& normalization) {
  std::vector<std::vector<NodeId>> readers(graphs.size());
  std::optional<Split> rest;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Graph& g = *graphs[i];
    const TensorId t = g.inputs()[index];
    const Tensor& tensor = g.tensor(t);
    if (tensor.dtype != DType::Float32 || !tensor.shape || tensor.shape->empty()) return std::nullopt;
    const size_t axis = channel_axis(tensor);
    const Dim& channels = (*tensor.shape)[axis];
    if (!channels.is_known()) return std::nullopt;
    rest = split(normalization, static_cast<size_t>(channels.value()));
    if (!rest) return std::nullopt;
    if (rest->has_rest && !find_readers(g, t, static_cast<int64_t>(axis), *rest, readers[i])) return std::nullopt;
  }
  if (!rest) return std::nullopt;
  PixelInput result;
  for (size_t i = 0; i < graphs.size(); ++i)
    for (NodeId id : readers[i]) {
      Graph& g = *graphs[i];
      const Node& n = g.node(id);
      if (i == 0) result.layers.push_back(g.tensor(n.output()).name);
      Patch patch(g);
      const auto linear = optimize::linear_of(g, n, optimize::Tail::Kept);
      optimize::replace_node(g, patch, n, optimize::scale_input(patch, g, *linear, n.input(0), rest->scale, rest->shift));
      patch.apply(g);
    }
  if (rest->whole_mean != 0 || rest->one_std != 1) {
    result.normalization.mean.assign(rest->scale.size(), static_cast<float>(rest->whole_mean));
    result.normalization.std.assign(rest->scale.size(), static_cast<float>(rest->one_std));
  }
  result.range = {-rest->whole_mean / rest->one_std, (255 - rest->whole_mean) / rest->one_std};
  return result;
}

}  // namespace orknn::toolkit
