#include "quantize/calibrate.h"

#include <algorithm>

#include "quantize/adaptive_rounding.h"
#include "quantize/channel_importance.h"
#include "quantize/equalize.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
using namespace ir;
namespace {

Result<TensorStatistics> gather(const Graph& graph, const RunSamples& run, size_t samples, bool histograms,
                                const ChannelImportance& importance) {
  TensorStatistics statistics;
  const std::vector<char> carried_out = tensors_carried_out(graph);
  ORKNN_TRY(run(graph, samples, [&](std::string_view name, const TensorView& value) {
    if (value.dtype != DType::Float32) return;
    auto it = statistics.find(name);
    if (it == statistics.end()) {
      const auto known = importance.find(name);
      it = statistics.emplace(name, Statistics(histograms, known == importance.end() ? std::vector<float>{} : known->second))
               .first;
    }
    it->second.add(value);
    if (const TensorId t = graph.find_tensor(name); t && carried_out[static_cast<size_t>(t.index)])
      it->second.add_features(value);
  }));
  return statistics;
}
}  // namespace

Result<Calibration> calibrate(Graph& graph, const RunSamples& run, size_t samples, const QuantizeOptions& options) {
  Calibration result;
  const bool histograms = options.algorithm != Algorithm::Normal, clips = options.clip_outliers && options.format.bits() == 8;
  const auto importance = [&](bool wanted) { return wanted && clips ? channel_importance(graph) : ChannelImportance{}; };
  const bool again = histograms && options.equalize;
  ORKNN_TRY_ASSIGN(result.statistics, gather(graph, run, samples, histograms && !again, importance(!again)));
  if (options.equalize) {
    for (const std::string& text : equalize_channels(graph, result.statistics))
      if (options.remark) options.remark(kEqualizeChannels, text);
    for (const auto& [name, list] : importance(!again))  // of layers that it changed
      if (const auto it = result.statistics.find(name);
          it != result.statistics.end() && !std::ranges::equal(it->second.channel_importance(), list))
        it->second.forget_importance();
    if (again) {
      ORKNN_TRY_ASSIGN(result.statistics, gather(graph, run, samples, true, importance(true)));
    }
  }
  if (options.algorithm == Algorithm::AdaptiveRounding && options.round_adaptively) {
    ORKNN_TRY_ASSIGN(RoundedLayers rounded, round_adaptively(graph, run, samples, result.statistics, options));
    for (const auto& [name, layer] : rounded)
      if (options.remark)
        options.remark(kRoundAdaptively, "'" + name + "': " + std::to_string(layer.moved) + " of " +
                                             std::to_string(layer.weights.values.count()) + " weights leave the nearest integer");
    result.rounded = std::make_shared<const RoundedLayers>(std::move(rounded));
  }
  return result;
}

}  // namespace orknn::quantize
