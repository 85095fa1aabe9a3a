#pragma once

#include "ir/graph.h"

namespace orknn::ir {

// The extents of a tensor, if there is one and all of them are known.
inline std::optional<Dims> dims_of(const Graph& graph, TensorId t) {
  return t && graph.tensor(t).shape ? to_dims(*graph.tensor(t).shape) : std::nullopt;
}

}  // namespace orknn::ir
