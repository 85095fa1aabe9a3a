// Post-training quantization of an optimized float graph to integers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_set.h"
#include "quantize/layer_forms.h"
#include "quantize/number_format.h"
#include "quantize/ranges.h"
#include "quantize/steps.h"

namespace orknn::quantize {

// By tensor name.
using TensorStatistics = std::map<std::string, Statistics, std::less<>>;

struct RoundedLayer;  // adaptive_rounding.h
using RoundedLayers = std::map<std::string, RoundedLayer, std::less<>>;

// What the samples showed, and what was decided from it once for all that follows.
struct Calibration {
  TensorStatistics statistics;                   // of the graph as calibrate() leaves it
  bool equalized = false;                        // equalize_channels changed the graph
  std::map<std::string, Cut, std::less<>> cuts;  // ranges that leave outliers out (clip_outliers), by tensor
  std::shared_ptr<const RoundedLayers> rounded;  // weights that were rounded on the samples, if any

  // The range of a tensor that was measured: its cut, or the algorithm's. Wider formats hold the outliers too.
  Range range(const std::string& tensor, const Statistics& seen, Algorithm algorithm, int bits) const;
};

struct QuantizeOptions {
  Algorithm algorithm = Algorithm::Normal;  // of the ranges of activations
  bool adaptive_rounding = false;           // of weights (adaptive_rounding.h)
  // Layers whose weights take the nearest integers all the same, by name of the result.
  std::set<std::string, std::less<>> nearest_layers;
  NumberFormat format;
  bool per_channel = true;         // weights: one scale per output channel, else one per tensor
  double output_room = 1;          // 8-bit outputs hold values of up to so many times what the samples show
  passes::Options steps;           // level, steps to leave out, dumps
  passes::Trace* trace = nullptr;  // what the steps did; nullptr = not recorded
  // Layers to leave in float, by name of the node or of an output tensor.
  std::function<bool(const ir::Node&, std::string_view output)> keep_float;
  // Layers in another format than `format`, by name of the result.
  std::map<std::string, NumberFormat, std::less<>> formats;
  // Given by the user instead of found by the algorithm, by name of the tensor.
  std::map<std::string, Range, std::less<>> ranges;
  // Whose channels lie far apart (parameters.h), where no statistics are at hand.
  std::set<std::string, std::less<>> uneven_tensors;
  // Mean of each channel where no statistics are at hand, by name of the tensor.
  std::map<std::string, std::vector<double>, std::less<>> channel_means;

  bool takes(const Step& step) const { return steps.runs(step.name, step.min_level); }
  void leave_out(const Step& step) { steps.disable.emplace_back(step.name); }
};
// Sets both by the name of `quantized_algorithm`.
Status set_algorithm(QuantizeOptions& options, std::string_view name);

// Called with every input and every computed tensor of a graph, by name, while the value is valid: with the values of one tensor
// in the order of the samples, with several tensors at once on different threads.
using Observe = std::function<void(std::string_view tensor, const ir::TensorView& value)>;
// Computes a graph (floats in float32) on up to `count` calibration samples. What samples are and how graphs are computed is the
// caller's business; every run sees the same samples in the same order.
using RunSamples = std::function<Status(const ir::Graph& graph, size_t count, const Observe& observe)>;

// What became of one layer, for reports.
struct LayerDecision {
  std::string node, op, output;
  bool integer = false;
  std::string reason;     // why it stayed in float
  bool notable = false;   // the user should know: it has an integer form that would lose small or masked values
  std::string loss = {};  // of an integer layer: what its form cannot state exactly; empty as a rule
};

// Gives every layer that can be computed in integers its integer form. `graph` must be the one that was calibrated, `forms` those
// of its layers; tensors without statistics or a given range stay in float. Inputs and outputs that integer
// layers read or write become integers with quantization parameters; their names and order stay.
Result<std::vector<LayerDecision>> quantize(ir::Graph& graph, const ir::OpSet& ops, const LayerForms& forms,
                                            const Calibration& calibration, const QuantizeOptions& options);

}  // namespace orknn::quantize
