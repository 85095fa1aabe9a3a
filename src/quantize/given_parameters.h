// Models that come quantized: their own scales and zero points instead of calibrated ones.
#pragma once

#include <optional>
#include <vector>

#include "quantize/quantize.h"

namespace orknn::quantize {

// Turns the layers between DequantizeLinear and QuantizeLinear of an optimized graph into integer layers with the parameters
// stated there. uint8 becomes int8 with the zero point less 128. A layer without parameters of its own takes its neighbour's
// where it cannot leave that range, or the range of its function; other layers without parameters stay in float. Inputs and
// outputs keep names and order; integers without a stated scale stay the integers they were.
Result<std::vector<LayerDecision>> use_given_parameters(ir::Graph& graph, const ir::OpSet& ops,
                                                        const passes::Options& options = {}, passes::Trace* trace = nullptr);

}  // namespace orknn::quantize
