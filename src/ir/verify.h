// States what is legal after each stage.
#pragma once

#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::ir {

enum class Stage {
  Imported,   // wiring is consistent; ops, arities and attributes fit the op set
  Inferred,   // plus: every tensor has a dtype, shapes where the ops can tell
  Optimized,  // plus: nothing that was folded away is left (no unused nodes)
};

// Limits of every graph. Beyond them there is no network, but memory and the stack to lose to a damaged or hostile file: readers
// that recurse stop there.
inline constexpr size_t kMostAxes = 64;       // of a tensor
inline constexpr int kMostNestedGraphs = 32;  // graphs in attributes of graphs

// What holds at every stage and for every graph, whatever its operators mean: the limits above, known element types and layouts,
// extents that make sense, constants that fit their tensors, well-formed nodes, one source for every value, no cycle. Bodies in
// attributes are included. Returns the first violation.
Status verify_structure(const Graph& graph);
// One node of the graph, or about to be added to it: its ids are tensors of the graph, it has outputs, none twice, and its fused
// steps have operands of their own.
Status verify_form(const Graph& graph, const Node& node);

// The structure, then what the stage demands: all violations at once, each naming its node.
Status verify(const Graph& graph, const OpSet& ops, Stage stage);
// Arity and attributes of one node against its definition.
Status verify_node(const Node& node, const OpDef& def);

}  // namespace orknn::ir
