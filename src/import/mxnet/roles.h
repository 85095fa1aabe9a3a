// What is known about operators beyond how they are lowered: which inputs are parameters, states or labels, and what outputs are
// called.
#pragma once

#include <string>
#include <string_view>

#include "import/mxnet/symbol.h"

namespace orknn::importer::mxnet {

enum class Role { Data, Parameter, State, Label };
Role role_of_input(const SymbolNode& node, size_t input);
// Only there to train: what it computes is compared with labels.
bool is_training_only(std::string_view op);
// The suffix after the node's name: "output", "output1", "state", ...
std::string output_suffix(const SymbolNode& node, uint32_t output);
// Whether the first input's rank is also the output's, so that a rank can be carried through.
bool keeps_rank(std::string_view op);

}  // namespace orknn::importer::mxnet
