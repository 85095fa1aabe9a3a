// What the calibration samples say about a float graph, and the changes to the graph that follow from it.
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

// Runs the samples once, a second time when an algorithm needs histograms of tensors that equalization changed. `graph` computes
// the same afterwards.
Result<Calibration> calibrate(ir::Graph& graph, const ir::OpSet& ops, const LayerForms& forms, const RunSamples& run,
                              size_t samples, const QuantizeOptions& options);

}  // namespace orknn::quantize
