// What layers with constant weights read on the samples, as second moments: the squared error of a row of weights e is e' M e with M = E[x x'].
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

struct InputMoments {
  ir::NodeId node;
  int64_t size = 0, groups = 1;     // weights of one output channel; groups of a convolution
  std::span<const float> products;  // groups x size x size, symmetric, positive on the diagonal
};

// Calls `visit` once for every Conv, MatMul and Gemm with constant float weights that was seen; rows too long for their moments are left out. Runs the
// samples as often as the memory for moments demands (once for most networks).
Status visit_input_moments(const ir::Graph& graph, const RunSamples& run, size_t samples, const std::function<void(const InputMoments&)>& visit);

}  // namespace orknn::quantize
