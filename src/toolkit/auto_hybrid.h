// Which layers to leave in float, or in 16-bit integers where those are faster or the chip has no float, so that a quantized
// network keeps its results: searched by what whole networks give on samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "toolkit/trials.h"

namespace orknn::toolkit {

// What every output must reach on average over pictures that were not used for calibration.
struct HybridGoal {
  double cosine = 0.98;
  std::optional<double> euclid;  // at most, on every sample
};

struct HybridChoice {
  LayerNames wide_layers;
  size_t candidates = 0;          // layers that could be integer ones
  Losses integer_losses, losses;  // all layers in integers, and with the choice
  size_t runs = 0;                // networks that were computed
  bool reached = false;
  bool all_wide = false;  // no layer is left in the format of the rest
};

// Layers that copy values follow the layers that make them: a copy between two float layers must not round.
LayerNames with_copies(const ir::Graph& reference, const quantize::LayerForms& forms, LayerNames layers);

// The layers in float (or in the trials' wider format) with which the network reaches the goal in the least predicted time, all
// of them when integers save none. Needs at least one trial. Layers are tried in groups; the number of networks computed is
// bounded whatever the size of the graph.
Result<HybridChoice> find_wide_layers(Trials& trials, const HybridGoal& goal, const compile::CompileOptions& compiling,
                                      const Progress& progress);

// What auto_hybrid decides about a network that is about to be calibrated.
struct AutoHybrid {
  std::map<std::string, quantize::NumberFormat, std::less<>> formats;  // those of the stage, and layers in 16-bit integers
  LayerNames float_layers;
  bool all_float = false;  // there is nothing left to quantize
  std::vector<std::string> summary;
};

// Judged are the network that will be built, calibrated with all samples, and those that parts of the samples give, by the other
// samples. `stage` has its network and choices, but no calibration yet. Each trial computes up to `trial_samples` samples.
Result<AutoHybrid> choose_layer_formats(const BuildOptions& options, const Calibrated& stage, FloatNetwork& floats,
                                        size_t trial_samples, const HybridGoal& goal);

}  // namespace orknn::toolkit
