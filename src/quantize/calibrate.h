// What the calibration samples say about a float graph, and the changes to the graph that follow from it.
#pragma once

#include "quantize/measurements.h"

namespace orknn::quantize {

// Statistics of the graph that is calibrated, where others have measured it too.
struct KnownStatistics {
  Measurements* measured = nullptr;  // nullptr = the samples are run
  Part part = Part::All;             // that the samples of the calibration are
};

// Runs the samples once unless that is done, a second time when an algorithm needs histograms of tensors that equalization
// changed. `graph` computes the same afterwards.
Result<Calibration> calibrate(ir::Graph& graph, const ir::OpSet& ops, const LayerForms& forms, const RunSamples& run,
                              size_t samples, const QuantizeOptions& options, const KnownStatistics& known = {});

}  // namespace orknn::quantize
