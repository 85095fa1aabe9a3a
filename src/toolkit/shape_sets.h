// dynamic_input: one model for several sets of input shapes.
#pragma once

#include "ir/graph.h"
#include "ir/op_set.h"
#include "toolkit/config.h"

namespace orknn::toolkit {

// The set with the most elements over all inputs: it governs calibration and predictions.
size_t largest_set(const ShapeSets& sets);

// "[[1,3,224,224],[1,10]]", as the vendor's tool prints a set.
std::string to_text(const std::vector<ir::Dims>& set);

// `changed` with the shapes of `to`, where `from` and `to` are one network in two sets of shapes and `changed` is `from` with
// other weights. Refuses networks whose layers differ by more than constants of shape arithmetic and attributes.
Result<ir::Graph> with_shapes_of(const ir::Graph& changed, const ir::Graph& from, const ir::Graph& to, const ir::OpSet& ops);

}  // namespace orknn::toolkit
