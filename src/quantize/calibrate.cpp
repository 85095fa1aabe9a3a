#include "quantize/calibrate.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "quantize/adaptive_rounding.h"
#include "quantize/channel_importance.h"
#include "quantize/equalize.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
using namespace ir;
namespace {

std::string text_of(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}
std::string text_of(const Range& r) { return "[" + text_of(r.low) + ", " + text_of(r.high) + "]"; }

Result<TensorStatistics> gather(const Graph& graph, const LayerForms& forms, const RunSamples& run, size_t samples,
                                bool histograms, const ChannelImportance& importance) {
  TensorStatistics statistics;
  const std::vector<char> carried_out = tensors_carried_out(graph, forms);
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

// One calibration in the making.
class Calibrator {
 public:
  Calibrator(const LayerForms& forms, const RunSamples& run, size_t samples, const QuantizeOptions& options)
      : forms_(forms),
        run_(run),
        samples_(samples),
        options_(options),
        histograms_(options.algorithm != Algorithm::Normal),
        clips_(options.takes(kClipOutliers) && options.format.bits() == 8),
        // Equalization changes histograms: where an algorithm needs them, the samples run a second time.
        again_(histograms_ && options.takes(kEqualizeChannels)) {}

  std::vector<passes::Pass> steps() {
    std::vector<passes::Pass> list{
        pass_of(kMeasureTensors, [this](passes::Rewriter& r) { return measure(r.graph(), histograms_ && !again_, !again_); }),
        pass_of(kEqualizeChannels, [this](passes::Rewriter& r) { return equalize(r); })};
    if (again_) list.push_back(pass_of(kMeasureTensors, [this](passes::Rewriter& r) { return measure(r.graph(), true, true); }));
    if (clips_) list.push_back(pass_of(kClipOutliers, [this](passes::Rewriter& r) { return clip(r); }));
    if (options_.adaptive_rounding)
      list.push_back(pass_of(kRoundAdaptively, [this](passes::Rewriter& r) { return round_weights(r); }));
    return list;
  }
  Calibration take() { return std::move(result_); }

 private:
  Status measure(const Graph& graph, bool histograms, bool weighted) {
    ORKNN_TRY_ASSIGN(result_.statistics, gather(graph, forms_, run_, samples_, histograms,
                                                weighted && clips_ ? channel_importance(graph) : ChannelImportance{}));
    return {};
  }

  Status equalize(passes::Rewriter& rewriter) {
    const Equalization changes = equalize_channels(rewriter.graph(), result_.statistics);
    for (const std::string& text : changes.remarks) rewriter.remark(text);
    if (!changes.patch.empty()) {
      ORKNN_TRY_ASSIGN(const bool applied, rewriter.apply(changes.patch));
      if (!applied) return internal_error("equalized weights change a type");
    }
    if (!clips_ || again_) return {};
    for (const auto& [name, list] : channel_importance(rewriter.graph()))  // what was measured with weights that have changed
      if (const auto it = result_.statistics.find(name);
          it != result_.statistics.end() && !std::ranges::equal(it->second.channel_importance(), list))
        it->second.forget_importance();
    return {};
  }

  Status clip(passes::Rewriter& rewriter) {
    for (const auto& [name, seen] : result_.statistics)
      if (const auto cut = cut_outliers(seen, options_.format.bits())) {
        result_.cuts.emplace(name, *cut);
        rewriter.remark("the range of '" + name + "' is " + text_of(cut->range) + " although values reach " +
                        text_of({seen.min(), seen.max()}) + ", predicted noise after it " + text_of(cut->error) +
                        " of what it was");
      }
    return {};
  }

  Status round_weights(passes::Rewriter& rewriter) {
    ORKNN_TRY_ASSIGN(RoundedLayers rounded, round_adaptively(rewriter.graph(), forms_, run_, samples_, result_, options_));
    for (const auto& [name, layer] : rounded)
      rewriter.remark("'" + name + "': " + std::to_string(layer.moved) + " of " + std::to_string(layer.weights.values.count()) +
                      " weights leave the nearest integer");
    result_.rounded = std::make_shared<const RoundedLayers>(std::move(rounded));
    return {};
  }

  const LayerForms& forms_;
  const RunSamples& run_;
  size_t samples_;
  const QuantizeOptions& options_;
  bool histograms_, clips_, again_;
  Calibration result_;
};
}  // namespace

Result<Calibration> calibrate(Graph& graph, const OpSet& ops, const LayerForms& forms, const RunSamples& run, size_t samples,
                              const QuantizeOptions& options) {
  Calibrator calibrator(forms, run, samples, options);
  ORKNN_TRY(run_steps(graph, ops, calibrator.steps(), options.steps, options.trace));
  return calibrator.take();
}

}  // namespace orknn::quantize
