#include "quantize/steps.h"

namespace orknn::quantize {

std::span<const Step> steps() {
  static constexpr Step kSteps[] = {
      kExpandOperators, kFoldNormalization, kTrySteps,         kWidenLayers,     kMeasureTensors,    kEqualizeChannels,
      kClipOutliers,    kRoundAdaptively,   kChooseParameters, kKeepSmallValues, kShareParameters,   kConvertFormats,
      kRoundWeights,    kCorrectBias,       kReadParameters,   kLowerToIntegers, kKeepStoredWeights, kForgetConstantGrids};
  return kSteps;
}

passes::Pass pass_of(const Step& step, passes::GraphPass run) {
  return {.name = step.name, .summary = step.summary, .min_level = step.min_level, .graph_pass = std::move(run)};
}

Status run_steps(ir::Graph& graph, const ir::OpSet& ops, std::vector<passes::Pass> passes, const passes::Options& options,
                 passes::Trace* trace) {
  passes::Options own = options;
  // A half-changed network is no network: single steps are left out whole, and the optimizer's limits are not theirs.
  own.stop_after.clear();
  own.max_rewrites = SIZE_MAX;
  own.progress = {};
  return passes::run_once(graph, ops, "quantize", std::move(passes), own, trace);
}

}  // namespace orknn::quantize
