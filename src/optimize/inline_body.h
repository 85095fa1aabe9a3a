// Copies the body of a control-flow node into the graph around it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/patch.h"

namespace orknn::optimize {

// Adds the nodes and constants of `body` to the patch with `arguments` for its inputs; returns its outputs. Names get
// `prefix` in front; origins get those of `owner` added.
std::vector<ir::TensorId> inline_body(ir::Patch& patch, const ir::Graph& body, std::span<const ir::TensorId> arguments,
                                      const std::string& prefix, const ir::Node& owner);

// Lets the readers of `owner`'s outputs read `results` instead. A result that cannot take over the name of a graph output
// (an input, an older constant, another output) is copied by an Identity.
void replace_outputs(ir::Patch& patch, const ir::Graph& g, const ir::Node& owner, std::span<const ir::TensorId> results);

}  // namespace orknn::optimize
