#include "quantize/calibrate.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "quantize/adaptive_rounding.h"
#include "quantize/channel_importance.h"
#include "quantize/equalize.h"

namespace orknn::quantize {
using namespace ir;
namespace {

std::string text_of(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}
std::string text_of(const Range& r) { return "[" + text_of(r.low) + ", " + text_of(r.high) + "]"; }

// One calibration in the making.
class Calibrator {
 public:
  Calibrator(const LayerForms& forms, const RunSamples& run, size_t samples, const QuantizeOptions& options,
             const KnownStatistics& known)
      : forms_(forms),
        run_(run),
        samples_(samples),
        options_(options),
        known_(known),
        histograms_(options.algorithm != Algorithm::Normal),
        clips_(options.takes(kClipOutliers) && options.format.bits() == 8),
        // Equalization changes histograms: where an algorithm needs them, the samples run a second time.
        again_(histograms_ && options.takes(kEqualizeChannels)) {}

  std::vector<passes::Pass> steps() {
    std::vector<passes::Pass> list{pass_of(kMeasureTensors, [this](passes::Rewriter& r) { return measure_first(r.graph()); }),
                                   pass_of(kEqualizeChannels, [this](passes::Rewriter& r) { return equalize(r); })};
    if (again_) list.push_back(pass_of(kMeasureTensors, [this](passes::Rewriter& r) { return measure_again(r.graph()); }));
    if (clips_) list.push_back(pass_of(kClipOutliers, [this](passes::Rewriter& r) { return clip(r); }));
    if (options_.adaptive_rounding)
      list.push_back(pass_of(kRoundAdaptively, [this](passes::Rewriter& r) { return round_weights(r); }));
    return list;
  }
  Calibration take() { return std::move(result_); }

 private:
  Status measure_first(const Graph& graph) {
    const Detail detail{.histograms = histograms_ && !again_, .weighted = clips_ && !again_};
    ORKNN_TRY_ASSIGN(result_.statistics,
                     known_.measured ? known_.measured->of(known_.part, detail) : measure(graph, forms_, run_, samples_, detail));
    return {};
  }

  Status measure_again(const Graph& graph) {
    ORKNN_TRY_ASSIGN(result_.statistics, measure(graph, forms_, run_, samples_, {.histograms = true, .weighted = clips_}));
    return {};
  }

  Status equalize(passes::Rewriter& rewriter) {
    const Equalization changes = equalize_channels(rewriter.graph(), result_.statistics);
    for (const std::string& text : changes.remarks) rewriter.remark(text);
    if (!changes.patch.empty()) {
      ORKNN_TRY_ASSIGN(const bool applied, rewriter.apply(changes.patch));
      if (!applied) return internal_error("equalized weights change a type");
      result_.equalized = true;
    }
    if (!clips_ || again_) return {};
    for (const auto& [name, known] : channel_importance(rewriter.graph()))  // what was measured with weights that have changed
      if (const auto it = result_.statistics.find(name); it != result_.statistics.end() && it->second.importance() != known)
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
  const KnownStatistics known_;
  bool histograms_, clips_, again_;
  Calibration result_;
};
}  // namespace

Result<Calibration> calibrate(Graph& graph, const OpSet& ops, const LayerForms& forms, const RunSamples& run, size_t samples,
                              const QuantizeOptions& options, const KnownStatistics& known) {
  Calibrator calibrator(forms, run, samples, options, known);
  ORKNN_TRY(run_steps(graph, ops, calibrator.steps(), options.steps, options.trace));
  return calibrator.take();
}

}  // namespace orknn::quantize
