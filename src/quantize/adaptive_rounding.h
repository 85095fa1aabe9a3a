// Adaptive rounding: weights are rounded up or down so that a layer's result stays close to the float one on the samples, not
// each weight to its own value.
#pragma once

#include "quantize/quantize.h"
#include "quantize/weights.h"

namespace orknn::quantize {

// The error of a row of weights e on inputs x is e' C e with C the covariance of x, once the bias takes the mean of it. Starting
// at the nearest integers, single weights are moved a step at a time as long as that error falls: no random numbers, no order of
// threads, no learning rate. `covariance` is size x size, symmetric; `weights` one row. Returns the integers for `scale`.
std::vector<int8_t> round_row(std::span<const float> weights, std::span<const float> covariance, double scale, int limit = 127);

struct RoundedLayer {
  QuantizedWeights weights;        // as round_weights() lays them out: Conv as it is, products [K, N]
  std::vector<double> bias_shift;  // to add per output channel
  int64_t moved = 0;               // weights that left their nearest integer
};

// By name of the layer's result: convolutions and matrix products with constant weights; those too large for their moments are
// left out. Runs the samples as often as the memory for moments demands (once for most networks).
Result<RoundedLayers> round_adaptively(const ir::Graph& graph, const LayerForms& forms, const RunSamples& run, size_t samples,
                                       const Calibration& calibration, const QuantizeOptions& options);

}  // namespace orknn::quantize
