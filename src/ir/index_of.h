#pragma once

#include "ir/graph.h"

namespace orknn::ir {

// The place of a tensor in lists that have one entry per tensor of a graph.
inline size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

}  // namespace orknn::ir
