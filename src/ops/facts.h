// What the built-in operators say about themselves (ir::OpDef), looked up by name.
#pragma once

#include <string_view>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

// The definition of `op`. One without any facts when no such operator is built in (a custom op).
const ir::OpDef& facts_of(std::string_view op);
inline const ir::OpDef& facts_of(const ir::Node& node) { return facts_of(node.op); }

// Add, Sub, Mul, Div: with a constant operand, a line through the other one.
bool is_basic_arithmetic(std::string_view op);

// Names of the operators for which `holds`, sorted.
std::vector<std::string_view> ops_where(bool (*holds)(const ir::OpDef&));

}  // namespace orknn::ops
