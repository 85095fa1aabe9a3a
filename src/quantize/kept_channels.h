// Which layers leave the channels of a tensor where they are.
#pragma once

#include "ir/graph.h"

namespace orknn::quantize {

// Channel i (axis 1) of the result holds copies, sums, means or largest elements of channel i of input 0 alone.
bool keeps_channels(const ir::Graph& graph, const ir::Node& node);

}  // namespace orknn::quantize
