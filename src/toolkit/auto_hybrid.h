// Which layers to leave in float so that a quantized network keeps its results: searched by what whole networks give on samples.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/samples.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

// What every output must reach on average over pictures that were not used for calibration.
struct HybridGoal {
  double cosine = 0.98;
  std::optional<double> euclid;  // at most, on every sample
  bool may_leave_float = true;   // false: only whether all layers can be integer ones
};

struct HybridChoice {
  LayerNames float_layers;
  size_t candidates = 0;  // layers that could be integer ones
  std::vector<double> integer_cosine,
      cosine;       // per output, as to be expected on other samples: all layers in integers, and with the choice
  size_t runs = 0;  // networks that were computed
  bool reached = false;
};

// The quantized form of the reference graph with these layers left in float.
using QuantizeWith = std::function<Result<ir::Graph>(const LayerNames& float_layers)>;

// Layers that copy values follow the layers that make them: a copy between two float layers must not round.
LayerNames with_copies(const ir::Graph& reference, LayerNames layers);

// One calibration of the network and the samples it is judged on.
struct HybridTrial {
  const ir::Graph& reference;  // the float graph that `quantize` starts from
  Samples samples;
  size_t count;  // of them, from the first
  QuantizeWith quantize;
};

// Needs at least one trial; the choice must reach the goal in each. Layers are tried in groups, most harmless first; the number
// of networks computed is bounded whatever the size of the graph.
Result<HybridChoice> find_float_layers(const std::vector<HybridTrial>& trials,
                                       const std::vector<quantize::LayerDecision>& decisions, const HybridGoal& goal,
                                       const Progress& progress);

// The choice in sentences, with what it costs on the chip.
struct HybridGraphs {
  const ir::Graph &floats, &integers, &hybrid;
};
Result<std::vector<std::string>> describe_choice(const HybridChoice& choice, const HybridGoal& goal, const HybridGraphs& graphs,
                                                 const compile::CompileOptions& compiling);

// What auto_hybrid decides about a network that is about to be calibrated.
struct AutoHybrid {
  LayerNames float_layers;
  bool equalize = true;  // whether channels are equalized
  std::vector<std::string> summary;
};

// Judged are the network that will be built, calibrated with all samples, and two that each half of the samples gives, by the
// other half: values that calibration has not seen are what costs a finished network its accuracy. Equalized channels all fill
// their range, so that more values leave it: unless no layer has to stay in float, equalization is switched off. `stage` has its
// network and choices, but no calibration yet. Each trial computes up to `trial_samples` samples.
Result<AutoHybrid> choose_float_layers(const BuildOptions& options, const Calibrated& stage, const Samples& samples,
                                       size_t trial_samples);

}  // namespace orknn::toolkit
