// rknn_batch_size: a model that computes several samples at once.
#pragma once

#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::toolkit {

// The graph with the first extent of every input and output multiplied by `batch`. Where every layer works on one sample after
// the other, the layers themselves get the larger extent; otherwise the layers are repeated, over the same constants, between a
// Split of the inputs and a Concat of the results. Needs static shapes; refuses ports without extents.
Result<ir::Graph> with_batch(const ir::Graph& graph, const ir::OpSet& ops, int64_t batch);

// Whether with_batch() enlarges the layers of `graph` instead of repeating them.
bool works_on_samples_alone(const ir::Graph& graph);

}  // namespace orknn::toolkit
