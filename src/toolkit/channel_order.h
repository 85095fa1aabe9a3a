// Toolkit1's reorder_channel: the model takes RGB pictures though the network was trained on BGR.
#pragma once

#include "ir/graph.h"

namespace orknn::toolkit {

// Puts a swap of the first and third channel after every input whose flag is set. An input must have three channels; missing
// flags count as not set. The normalization of such an input is applied ahead of the swap.
Status swap_input_channels(ir::Graph& graph, const std::vector<bool>& swapped);

}  // namespace orknn::toolkit
