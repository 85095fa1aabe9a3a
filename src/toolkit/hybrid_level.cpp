#include "toolkit/hybrid_level.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "quantize/layer_forms.h"
#include "toolkit/auto_hybrid.h"

namespace orknn::toolkit {
namespace {

// Variance of the rounding error by the mean square of the values; nothing for a tensor that never changes.
std::optional<double> relative_noise(const quantize::Statistics& s, int bits) {
  if (!s.varies() || s.count() == 0) return {};
  double squares = 0;
  int64_t count = 0;
  for (const quantize::ChannelStatistics& c : s.channels()) {
    squares += c.squares;
    count += c.count;
  }
  if (count == 0 || squares <= 0) return {};
  const double low = std::min(0.0, static_cast<double>(s.min())), high = std::max(0.0, static_cast<double>(s.max()));
  const double step = (high - low) / (std::exp2(bits) - 1);
  return step * step / 12 / (squares / static_cast<double>(count));
}
}  // namespace

LevelChoice layers_of_level(const ir::Graph& graph, const quantize::LayerForms& forms,
                            const quantize::TensorStatistics& statistics, int level, int bits) {
  constexpr double kShares[] = {0, 0.05, 0.15, 0.3};  // of the layers that integers could compute
  if (level < 1) return {};
  struct Layer {
    double noise;
    std::string name;
  };
  std::vector<Layer> layers;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    const quantize::Form form = forms[id].form;
    if (form == quantize::Form::Float || form == quantize::Form::Move || form == quantize::Form::Concat || !n.output()) continue;
    const std::string& name = graph.tensor(n.output()).name;
    const auto seen = statistics.find(name);
    const auto noise = seen == statistics.end() ? std::nullopt : relative_noise(seen->second, bits);
    if (noise) layers.push_back({*noise, name});
  }
  std::ranges::stable_sort(layers, std::greater<>(), &Layer::noise);
  const auto share = kShares[static_cast<size_t>(std::min(level, 3))] * static_cast<double>(layers.size());
  const size_t count = std::min(layers.size(), std::max(static_cast<size_t>(level), static_cast<size_t>(std::ceil(share))));
  LevelChoice choice;
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    choice.float_layers.insert(layers[i].name);
    names.push_back(layers[i].name);
  }
  choice.float_layers = with_copies(graph, forms, std::move(choice.float_layers));
  choice.summary = fmt::format("quantized_hybrid_level {}: {} of {} layer(s) stay in float: {}", level, count, layers.size(),
                               fmt::join(names, ", "));
  return choice;
}

}  // namespace orknn::toolkit
