// Which layers to leave in float so that a quantized network keeps its results: searched by what whole networks give on samples.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "toolkit/builder.h"
#include "toolkit/samples.h"

namespace orknn::toolkit {

using LayerNames = std::set<std::string, std::less<>>;  // of output tensors

// What every output must reach on every sample: an average would hide the picture whose values leave the calibrated ranges.
struct HybridGoal {
  double cosine = 0.98;
  std::optional<double> euclid;  // at most
  bool may_leave_float = true;   // false: only whether all layers can be integer ones
};

struct HybridChoice {
  LayerNames float_layers;
  size_t candidates = 0;           // layers that could be integer ones
  std::vector<double> integer_cosine, cosine;  // per output, on its worst sample: all layers in integers, and with the choice
  size_t runs = 0;                 // networks that were computed
  bool reached = false;
};

// The quantized form of the reference graph with these layers left in float.
using QuantizeWith = std::function<Result<ir::Graph>(const LayerNames& float_layers)>;

// Layers that copy values follow the layers that make them: a copy between two float layers must not round.
LayerNames with_copies(const ir::Graph& reference, LayerNames layers);

// `reference` is the float graph that `quantize` starts from; `count` samples are used. Layers are tried in groups, most harmless
// first; the number of networks computed is bounded whatever the size of the graph.
Result<HybridChoice> find_float_layers(const ir::Graph& reference, const std::vector<quantize::LayerDecision>& decisions, const Samples& samples, size_t count,
                                       const HybridGoal& goal, const QuantizeWith& quantize, const Progress& progress);

// The choice in sentences, with what it costs on the chip.
struct HybridGraphs {
  const ir::Graph &floats, &integers, &hybrid;
};
Result<std::vector<std::string>> describe_choice(const HybridChoice& choice, const HybridGoal& goal, const HybridGraphs& graphs, const compile::CompileOptions& compiling);

}  // namespace orknn::toolkit
