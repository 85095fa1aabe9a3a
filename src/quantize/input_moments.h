// What layers with constant weights read on the samples, as moments of their inputs: the squared error of a row of weights e is
// e' M e with M = E[x x'], and with the covariance of x where a bias takes back what rounding does to the mean.
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

struct InputMoments {
  ir::NodeId node;
  std::string_view input;
  int64_t size = 0, groups = 1,
          columns = 0;        // weights of one output channel; groups of a convolution; inputs that were summed, above 0
  std::span<float> products;  // groups x size x size: sums, the lower half alone
  std::span<double> sums;     // groups x size
};

// Turns sums into means and products into whole matrices, positive on the diagonal: covariances when `centered`. `rounding` is a
// variance that every input has besides.
void finish(const InputMoments& moments, bool centered, double rounding);

// Calls `visit` once for every `wanted` Conv, MatMul and Gemm with constant float weights that was seen; rows too long for their
// moments are left out. The spans are the visitor's to change. Runs the samples as often as the memory for moments demands (once
// for most networks).
Status visit_input_moments(const ir::Graph& graph, const RunSamples& run, size_t samples,
                           const std::function<bool(ir::NodeId)>& wanted, const std::function<void(const InputMoments&)>& visit);

}  // namespace orknn::quantize
