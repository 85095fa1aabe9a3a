// Inputs that are fed with pixels, 0 to 255: their integers can be the pixels themselves, and nothing is rounded on the way in.
#pragma once

#include <optional>
#include <vector>

#include "compile/compile.h"
#include "ir/graph.h"
#include "quantize/ranges.h"

namespace orknn::toolkit {

struct PixelInput {
  compile::Normalization normalization;  // what is left: one mean, a whole number, and one deviation for all channels
  quantize::Range range;                 // of the pixels behind it
  std::vector<std::string> layers;       // whose weights and biases took the rest
};

// Splits the normalization of input `index` into one that maps pixels one to one to 8-bit integers and a rest per channel, which
// goes into the weights and biases of the layers that read the input. `graphs` are one network in several shapes. Nothing, and no
// change, where a reader cannot take the rest: it is no convolution or matrix product, or zeros beyond its border would no
// longer be what they were. Means that lie between two pixels do not count there: the border is off by half a pixel at most.
std::optional<PixelInput> read_pixels(const std::vector<ir::Graph*>& graphs, size_t index,
                                      const compile::Normalization& normalization);

}  // namespace orknn::toolkit
