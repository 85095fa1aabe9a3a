#include "quantize/steps.h"

namespace orknn::quantize {

std::span<const Step> steps() {
  static constexpr Step kSteps[] = {kFoldNormalization, kEqualizeChannels, kClipOutliers,
                                    kCorrectBias,       kKeepSmallValues,  kRoundAdaptively};
  return kSteps;
}

}  // namespace orknn::quantize
