// Checks of operands in shape rules, so that a wrong one is refused when a model is loaded. What is not known yet passes: kernels
// look again. An absent operand passes too.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

// The number of elements of input i, where every extent is known.
std::optional<int64_t> known_count(const ir::InferContext& c, size_t i);

// Rank and known extents of input i are those of `expected`; an unknown extent there stands for any.
Status require_shape(const ir::InferContext& c, size_t i, std::string_view what, const ir::Shape& expected);
// Input i is a scalar or has one element.
Status require_one_value(const ir::InferContext& c, size_t i, std::string_view what);
// Input i broadcasts to `to`.
Status require_broadcast(const ir::InferContext& c, size_t i, std::string_view what, const ir::Shape& to);
// Input i has one element, or one for each of `count`.
Status require_one_or_each(const ir::InferContext& c, size_t i, std::string_view what, const ir::Dim& count);

// Known elements of integer input i lie from `low` to `high`; an unknown bound stands for any.
Status require_values(const ir::InferContext& c, size_t i, std::string_view what, const ir::Dim& low, const ir::Dim& high);
// Elements of input i, where it is a constant, lie from `low` to `high`; NaN does not.
Status require_numbers(const ir::InferContext& c, size_t i, std::string_view what, double low, double high);
// Known elements of integer input i index an axis of `extent`, from its end where they are negative.
Status require_indices(const ir::InferContext& c, size_t i, std::string_view what, const ir::Dim& extent);
// As above, for tuples along the last axis of input i: element k of each indexes axis k of `axes`.
Status require_index_tuples(const ir::InferContext& c, size_t i, std::string_view what, std::span<const ir::Dim> axes);

}  // namespace orknn::ops
