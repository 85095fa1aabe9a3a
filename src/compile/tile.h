// Cuts a convolution or matrix product into NPU tasks that fit the convolution buffer.
#pragma once

#include "compile/node_facts.h"
#include "format/program.h"

namespace orknn::compile {

struct TilePlan {
  format::Tiling tiling;
  // Traffic beyond reading everything once: overlaps of bands, features per group of kernels, kernels per band, sums of segments.
  uint64_t features_again = 0, weights_again = 0;
  uint32_t tasks() const;
};

// Keeps features or weights resident, whichever costs less traffic; cuts columns when not even the rows one output row needs fit,
// and input channels when not even one group of kernels does. `weight_bytes` without bias.
TilePlan tile(const platform::Platform& platform, const Window& window, DType type, uint64_t weight_bytes);

}  // namespace orknn::compile
