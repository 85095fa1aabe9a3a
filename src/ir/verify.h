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

// All violations at once, each naming its node.
Status verify(const Graph& graph, const OpSet& ops, Stage stage);
// Arity and attributes of one node against its definition.
Status verify_node(const Node& node, const OpDef& def);

}  // namespace orknn::ir
