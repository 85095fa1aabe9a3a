// What the quantizer does, step by step, under the driver of passes/. Steps that are not required can be left out by name.
#pragma once

#include <span>
#include <string_view>

#include "passes/driver.h"

namespace orknn::quantize {

struct Step {
  std::string_view name;     // verb_object, as passes are named
  std::string_view summary;  // one line for lists
  int min_level = 0;         // lowest optimization level that takes it
  bool required = false;     // without it there is no quantized network: it cannot be left out
};

inline constexpr Step kExpandOperators{
    "expand_operators",
    "operators of quantized source models become float ones between the conversions that state their parameters", 0};
inline constexpr Step kFoldNormalization{
    "fold_normalization",
    "8-bit inputs fed with pixels hold the pixels themselves; biases take what the mean differs from a pixel by", 1};
inline constexpr Step kTrySteps{"try_steps",
                                "steps below that make results worse on samples held back from calibration are left out", 3};
inline constexpr Step kWidenLayers{
    "widen_layers", "auto_hybrid and quantized_hybrid_level: layers that lose most are computed in float16 or int16", 0};
inline constexpr Step kMeasureTensors{"measure_tensors", "what the calibration samples show about each tensor", 0, true};
inline constexpr Step kEqualizeChannels{
    "equalize_channels", "channels that use a small part of their tensor's range are multiplied up, the layers after it divide",
    3};
inline constexpr Step kClipOutliers{"clip_outliers",
                                    "a range that few channels stretch is cut where the layers after it hardly read them", 3};
inline constexpr Step kRoundAdaptively{
    "round_adaptively", "adaround: weights are rounded so that each layer's result stays closest on the samples", 0};
inline constexpr Step kChooseParameters{"choose_parameters",
                                        "which layers become integer ones; scales and zero points of tensors", 0, true};
inline constexpr Step kKeepSmallValues{
    "keep_small_values",
    "layers that would round small values away (beside large ones, masked, before a logarithm) stay in float", 0};
inline constexpr Step kShareParameters{"share_parameters", "operands of a Concat are computed in the parameters of its result", 0,
                                       true};
inline constexpr Step kConvertFormats{"convert_formats", "layers in a number format of their own, conversions between formats", 0,
                                      true};
inline constexpr Step kRoundWeights{"round_weights", "constant weights of convolutions and products become integers", 0, true};
inline constexpr Step kCorrectBias{"correct_bias", "biases take back what rounded weights do to the mean of each channel", 3};
inline constexpr Step kReadParameters{"read_parameters", "scales and zero points that the source model states", 0, true};
inline constexpr Step kLowerToIntegers{"lower_to_integers",
                                       "layers become integer layers, conversions where representations meet", 0, true};

inline constexpr Step kKeepStoredWeights{
    "keep_stored_weights", "weights that the source model holds as integers, and float layers read, are stored as those", 0};
inline constexpr Step kForgetConstantGrids{"forget_constant_grids",
                                           "constants that stay float no longer say which integers they were", 0, true};

// In the order of their run.
std::span<const Step> steps();

// The step as a pass of the driver.
passes::Pass pass_of(const Step& step, passes::GraphPass run);

// Runs the steps that `options` leave in once each, in this order.
Status run_steps(ir::Graph& graph, const ir::OpSet& ops, std::vector<passes::Pass> steps, const passes::Options& options,
                 passes::Trace* trace);

}  // namespace orknn::quantize
