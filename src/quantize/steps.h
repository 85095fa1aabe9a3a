// What the quantizer does besides rounding. Each step can be left out by name, and says in the trace what it did.
#pragma once

#include <span>
#include <string_view>

namespace orknn::quantize {

struct Step {
  std::string_view name;     // verb_object, as passes are named
  std::string_view summary;  // one line for lists
  int min_level = 0;         // lowest optimization level that takes it
};

inline constexpr Step kFoldNormalization{
    "fold_normalization",
    "8-bit inputs fed with pixels hold the pixels themselves; biases take what the mean lies beside a pixel", 1};
inline constexpr Step kEqualizeChannels{
    "equalize_channels", "channels that use a small part of their tensor's range are multiplied up, the layers behind divide", 3};
inline constexpr Step kClipOutliers{"clip_outliers",
                                    "a range that few channels stretch is cut where the layers behind hardly read them", 3};
inline constexpr Step kCorrectBias{"correct_bias", "biases take back what rounded weights do to the mean of each channel", 3};
inline constexpr Step kKeepSmallValues{
    "keep_small_values",
    "layers that would round small values away (beside large ones, masked, in front of a logarithm) stay in float", 0};
inline constexpr Step kRoundAdaptively{
    "round_adaptively", "adaround: weights are rounded so that each layer's result stays closest on the samples", 0};

std::span<const Step> steps();

}  // namespace orknn::quantize
