// Rules for OpDef::copied_input: which input a node gives back unchanged, element for element.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

constexpr int kNoCopy = -1;

int copies_always(const ir::InferContext& c);
// Where input 0 and the result surely have one shape.
int copies_in_same_shape(const ir::InferContext& c);
// Where input 0 and the result have one type.
int copies_in_same_type(const ir::InferContext& c);
// Where there is nothing to join input 0 with.
int copies_single_input(const ir::InferContext& c);
// Of windows of one element that move by one.
int copies_unit_window(const ir::InferContext& c);

// Both shapes are known to be equal; symbols count, unknown extents do not.
bool keeps_shape(const ir::InferContext& c, size_t input);
// The value that all elements of a constant input share; the value of one with a single element.
std::optional<double> splat_of(const ir::InferContext& c, size_t input);
std::optional<double> scalar_of(const ir::InferContext& c, size_t input);

}  // namespace orknn::ops
