// Inputs and outputs that a built model has otherwise than its source: without the Reshapes next to them (remove_reshape), and
// pictures as cameras give them (inputs_yuv_fmt). Calibration and analysis see the network before these changes.
#pragma once

#include <string>
#include <vector>

#include "compile/compile.h"

namespace orknn::toolkit {

// Takes Reshapes (also Flatten, Squeeze, Unsqueeze) off the inputs and outputs, which get the shapes that the layers next to them
// have; names stay. Says in the log which ones, and why another one next to an input or output stays.
void remove_port_reshapes(ir::Graph& graph, const std::vector<compile::Normalization>& normalization);

// Inputs with a format take the bytes of a picture, uint8 [1, 1, rows, columns]; conversion, normalization and quantization
// become layers. `formats` and `swapped` (the network takes BGR) count inputs like the graph; missing entries change nothing. The
// normalization of such an input is emptied.
Status take_yuv_pictures(ir::Graph& graph, std::vector<compile::Normalization>& normalization,
                         const std::vector<std::string>& formats, const std::vector<bool>& swapped);

}  // namespace orknn::toolkit
