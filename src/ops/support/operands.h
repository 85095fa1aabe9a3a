// Checks of operands in shape rules, so that a wrong one is refused when a model is loaded. What is not known yet passes: kernels
// look again. An absent operand passes too.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

// Rank and known extents of input i are those of `expected`; an unknown extent there stands for any.
Status require_shape(const ir::InferContext& c, size_t i, std::string_view what, const ir::Shape& expected);
// Input i is a scalar or has one element.
Status require_one_value(const ir::InferContext& c, size_t i, std::string_view what);
// Input i broadcasts to `to`.
Status require_broadcast(const ir::InferContext& c, size_t i, std::string_view what, const ir::Shape& to);
// Input i has one element, or one for each of `count`.
Status require_one_or_each(const ir::InferContext& c, size_t i, std::string_view what, const ir::Dim& count);

}  // namespace orknn::ops
