// Number formats for an estimate: what each tensor would be after quantization, without a dataset and without converting a value.
#pragma once

#include "compile/compile.h"

namespace orknn::compile {

// Every float32 tensor becomes `activations`; float32 constants become `weights`, their contents are meaningless afterwards.
// Where the chip has an operator in float16 only, the node computes in float16 between two Casts. Values that steer shapes stay.
void assume_types(ir::Graph& graph, const platform::Platform& platform, AssumedTypes types);

}  // namespace orknn::compile
