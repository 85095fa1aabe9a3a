// Formats in which only weights are integers (w8a16, w4a16): activations and sums stay in float.
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

struct WeightOnlyOptions {
  DType type = DType::Int8;  // or Int4
  bool per_channel = true;   // else one scale per tensor
  int64_t group = 0;         // input channels that share a scale within an output channel; 0 = all of them
  int64_t least_count = 0;   // layers with fewer weights are left alone
  std::function<bool(std::string_view output)> keep = {};  // layers to leave alone, by name of the result
  bool search_scales = false;  // the scale with the least squared error instead of the one that reaches the largest weight
  // With samples, biases of convolutions take back what rounding does to the mean of each channel (correct_bias)...
  RunSamples run = {};
  size_t samples = 0;
  // ... or weights and scales are chosen together so that each layer's result stays closest on them (round_adaptively).
  bool fit_to_samples = false;
  passes::Options steps = {};  // level, steps to leave out, dumps
  passes::Trace* trace = nullptr;
};

// Rounds the constant weights of convolutions and matrix products to what the integers of `options` can hold. They stay float
// constants that know their integers (ir/packed.h), so that layers compute in float and files hold the integers. The result says
// which layers.
Result<std::vector<LayerDecision>> round_weights_only(ir::Graph& graph, const ir::OpSet& ops, const WeightOnlyOptions& options);

// The last steps, of every graph: weights that the source model itself holds as symmetric integers (the grid the optimizer noted
// when it folded their DequantizeLinear) and that float layers read keep those integers, other float constants lose the note. No
// value changes.
Status settle_constants(ir::Graph& graph, const ir::OpSet& ops, const passes::Options& options, passes::Trace* trace);

}  // namespace orknn::quantize
