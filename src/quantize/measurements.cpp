#include "quantize/measurements.h"

#include <algorithm>

#include "quantize/channel_importance.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Statistics of one tensor, of all samples and of the halves.
struct TensorParts {
  Statistics all;
  std::array<Statistics, 2> halves;
  bool with_features = false;
  size_t samples = 0;
};

// `first_half` samples count for the first half, the others for the second; nothing = there are no halves.
Result<std::array<TensorStatistics, 3>> measure_parts(const Graph& graph, const LayerForms& forms, const RunSamples& run,
                                                      size_t samples, Detail detail, std::optional<size_t> first_half) {
  const ChannelImportance importance = detail.weighted ? channel_importance(graph) : ChannelImportance{};
  const std::vector<char> carried_out = tensors_carried_out(graph, forms);
  // Made ahead: several tensors may be observed at once.
  std::map<std::string, TensorParts, std::less<>> tensors;
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId t{static_cast<int32_t>(i)};
    const std::string& name = graph.tensor(t).name;
    if (graph.is_constant(t)) continue;
    const auto known = importance.find(name);
    const Statistics none(detail.histograms, known == importance.end() ? AxisImportance{} : known->second);
    tensors.try_emplace(name, TensorParts{none, {none, none}, carried_out[i] != 0});
  }
  ORKNN_TRY(run(graph, samples, [&](std::string_view name, const TensorView& value) {
    const auto it = tensors.find(name);
    if (it == tensors.end() || value.dtype != DType::Float32) return;
    TensorParts& parts = it->second;
    Statistics* half = !first_half ? nullptr : &parts.halves[parts.samples < *first_half ? 0 : 1];
    ++parts.samples;
    if (half)
      Statistics::add(value, {&parts.all, half});
    else
      parts.all.add(value);
    if (!parts.with_features) return;
    parts.all.add_features(value);
    if (half) half->add_features(value);
  }));
  std::array<TensorStatistics, 3> result;
  for (auto& [name, parts] : tensors) {
    if (parts.samples == 0) continue;
    result[0].emplace(name, std::move(parts.all));
    for (size_t h = 0; first_half && h < 2; ++h) result[1 + h].emplace(name, std::move(parts.halves[h]));
  }
  return result;
}
}  // namespace

Result<TensorStatistics> measure(const Graph& graph, const LayerForms& forms, const RunSamples& run, size_t samples,
                                 Detail detail) {
  ORKNN_TRY_ASSIGN(auto parts, measure_parts(graph, forms, run, samples, detail, std::nullopt));
  return std::move(parts[0]);
}

Result<TensorStatistics> Measurements::of(Part part, Detail detail) {
  auto it = std::ranges::find_if(known_, [&](const Measured& m) {
    return m.detail.histograms == detail.histograms && (m.detail.weighted || !detail.weighted);
  });
  if (it == known_.end()) {
    ORKNN_TRY_ASSIGN(auto parts,
                     measure_parts(graph_, forms_, run_, samples_, detail, halves_ ? std::optional(samples_ / 2) : std::nullopt));
    known_.push_back({detail, std::move(parts)});
    it = known_.end() - 1;
  }
  TensorStatistics statistics = it->parts[static_cast<size_t>(part)];
  if (it->detail.weighted && !detail.weighted)
    for (auto& [name, seen] : statistics) seen.forget_importance();
  return statistics;
}

}  // namespace orknn::quantize
