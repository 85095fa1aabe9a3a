// Bias correction: rounded weights shift the mean of a layer's result; the bias takes the shift back.
#pragma once

#include <span>
#include <vector>

#include "quantize/statistics.h"
#include "quantize/weights.h"

namespace orknn::quantize {

// What to add to the bias of each output channel, given the 8-bit weights of `node` (Conv, ConvTranspose, Gemm or MatMul; laid
// out as `weights`) and what its input's channels were on the samples. Empty when the input's channels are not known.
std::vector<double> bias_correction(const ir::Node& node, const ir::TensorData& weights, const QuantizedWeights& rounded,
                                    std::span<const ChannelStatistics> input);
// The same where the rounded weights are floats.
std::vector<double> bias_correction(const ir::Node& node, const ir::TensorData& weights, const ir::TensorData& rounded,
                                    std::span<const ChannelStatistics> input);

}  // namespace orknn::quantize
