// Runs the shape rules of a whole graph.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::ir {

// Sets dtype and shape of every tensor a node produces, in execution order, from graph inputs and constants. Small integer
// tensors are followed element by element, so shape arithmetic (Shape, Gather, Concat, Mul, ...) settles without
// being folded first, symbols included. Collects every failing node before it returns.
// Axes that attributes name are counted from the first axis afterwards, wherever the rank is known (AttributeDef::axes_of).
// A shape the graph states already (value_info) is overwritten. `contents`, if given, receives what is known of the elements
// of small integer tensors, by tensor index (constants are not repeated there); what it holds already counts as known.
using TensorContents = std::vector<std::optional<std::vector<Dim>>>;
Status infer_shapes(Graph& graph, const OpSet& ops, TensorContents* contents = nullptr);

// The same for one node, given facts about its inputs; no graph is changed. Checks arity and attributes first.
Result<std::vector<TensorFacts>> infer_node(const Node& node, const OpSet& ops, std::vector<TensorFacts> inputs);

}  // namespace orknn::ir
