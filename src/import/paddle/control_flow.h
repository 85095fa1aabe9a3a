// Operators with blocks of their own: `if` (condition; what to do if so, and if not) and `while` (condition and values that go
// round; one block that makes them anew).
#pragma once

#include <functional>

#include "import/paddle/program.h"

namespace orknn::importer::paddle {

bool has_blocks(const Operator& op);
// Names that the blocks of an operator read and do not make, each once.
std::vector<std::string_view> captured_names(const Operator& op);
// Lowers an operator of a block; its results are bound in the network.
using LowerOperator = std::function<Status(Network& network, const Operator& op)>;
// The operator as one node of `network`, its outputs in their order.
Result<std::vector<ir::TensorId>> lower_blocks(Network& network, const Operator& op, const LowerOperator& lower);

}  // namespace orknn::importer::paddle
