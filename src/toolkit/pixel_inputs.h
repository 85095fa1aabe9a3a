// Inputs that are fed with pixels, 0 to 255: their integers can be the pixels themselves, and nothing is rounded on the way in.
#pragma once

#include <optional>
#include <vector>

#include "compile/compile.h"
#include "ir/patch.h"
#include "quantize/ranges.h"

namespace orknn::toolkit {

struct PixelInput {
  compile::Normalization normalization;  // the one given, but its mean is a whole number
  quantize::Range range;                 // of the normalized pixels
  std::vector<std::string> layers;       // whose biases take the rest of the mean
  std::vector<ir::Patch> patches;        // by graph: what the layers become
};

// Makes the mean of input `index` a whole number, so that pixels map one to one to 8-bit integers; the rest goes into the biases
// of the layers that read the input. `graphs` are one network in several shapes. Nothing where channels have
// different means or deviations (callers that quantize on their own have the input's one scale only) or a reader cannot
// take the rest. Where a convolution is padded, the zeros beyond its border are off by the rest, half a pixel at most.
std::optional<PixelInput> read_pixels(const std::vector<ir::Graph*>& graphs, size_t index,
                                      const compile::Normalization& normalization);

}  // namespace orknn::toolkit
