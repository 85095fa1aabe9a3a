// Rewrites a float graph into one of integer layers, given the parameters of its tensors.
#pragma once

#include "quantize/parameters.h"

namespace orknn::quantize {

// A new graph with the same inputs and outputs. Layers whose numbers do not fit the output converter are left in float;
// `assignment` is updated to say so. `statistics` are for bias correction.
Result<ir::Graph> make_integer_graph(const ir::Graph& graph, const ir::OpSet& ops, Assignment& assignment,
                                     const QuantizeOptions& options, const TensorStatistics& statistics = {});

// What became of each layer, in execution order.
std::vector<LayerDecision> describe(const ir::Graph& graph, const Assignment& assignment);

}  // namespace orknn::quantize
