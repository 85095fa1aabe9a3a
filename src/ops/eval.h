// The reference evaluator: runs a node or a whole graph with the naive kernels. It is the oracle for constant folding,
// golden values and tests, and the runtime's way to execute what has no faster kernel.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/threads.h"
#include "ir/op_set.h"

namespace orknn::ops {

// Every operator of this room.
const ir::OpSet& builtin_ops();

// Memory for the wide values of a node, kept between calls of run_node: with the same sizes and no tail they allocate nothing.
class WideValues;
struct WideValuesDelete {
  void operator()(WideValues* values) const;
};
using WideValuesPtr = std::unique_ptr<WideValues, WideValuesDelete>;
WideValuesPtr make_wide_values();

// Runs `node` on `context`: widens half types where the op asks for it, calls the kernel and applies the tail.
// `context.input(i)` for i >= node.own_input_count() gives the operands of tail steps. `output_types` are the dtypes of the
// node's outputs after the tail (from inference). `wide`: nullptr = memory for this call alone.
Status run_node(const ir::Node& node, const ir::OpDef& def, ir::RunContext& context, std::span<const DType> output_types,
                WideValues* wide = nullptr);

// Runs one node on values. Inputs are node.inputs in order (TensorData without value = absent); one result per output
// (without value where node.outputs has none).
Result<std::vector<ir::TensorData>> eval_node(const ir::Node& node, const ir::OpSet& ops, std::span<const ir::TensorData> inputs,
                                              ThreadPool& pool = ThreadPool::shared());

struct EvalOptions {
  ThreadPool* pool = nullptr;  // nullptr = the shared one
  // Called with every computed tensor, in execution order.
  std::function<void(ir::TensorId, const ir::TensorData&)> observe;
};

// Runs a graph; inputs in the order of graph.inputs(), results in the order of graph.outputs(). Values are freed after
// their last reader. The error names the node.
Result<std::vector<ir::TensorData>> eval_graph(const ir::Graph& graph, const ir::OpSet& ops,
                                               std::span<const ir::TensorData> inputs, const EvalOptions& options = {});

}  // namespace orknn::ops
