// Names that came from a file of a stranger, before anybody prints them.
#pragma once

#include "ir/graph.h"

namespace orknn::ir {

// Every name becomes one line of valid UTF-8 without control characters (base/utf8.h), which Python, JSON and terminals can take.
// Returns whether anything changed.
bool make_names_printable(Node& node);
// The same for a graph, its tensors and nodes, and the graphs inside of it.
void make_names_printable(Graph& graph);

}  // namespace orknn::ir
