// What the calibration samples say about a float graph, and the changes to the graph that follow from it.
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

struct Calibration {
  TensorStatistics statistics;                   // of the graph as calibrate() leaves it
  std::shared_ptr<const RoundedLayers> rounded;  // for QuantizeOptions
};

// Runs the samples once, a second time when an algorithm needs histograms of tensors that equalization changed. `graph` computes
// the same afterwards.
Result<Calibration> calibrate(ir::Graph& graph, const RunSamples& run, size_t samples, const QuantizeOptions& options);

}  // namespace orknn::quantize
