// What a fast kernel of the simulator is. A file in sim/kernels/ named after its function offers some; the executor asks
// for one per task and falls back to the reference kernel of the op where none accepts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "ir/op_set.h"
#include "sim/form.h"

namespace orknn::sim {

// What is known about an operand before anything runs. Shapes are concrete and agree with the op's shape rule.
struct OperandFacts {
  DType dtype = DType::Undefined;  // Undefined = absent optional input or unused output
  ir::Dims dims;
  const ir::TensorData* constant = nullptr;  // the value, for constants
  Form form = Form::Rows;                    // in which the kernel gets or makes it

  bool exists() const { return dtype != DType::Undefined; }
};

// A node with everything known about it. Only nodes whose shapes are all known ahead are offered to fast kernels.
struct KernelQuery {
  const ir::Node& node;
  const ir::OpDef& def;
  std::span<const OperandFacts> inputs;   // as node.inputs: own inputs, then the operands of tail steps
  std::span<const OperandFacts> outputs;  // as node.outputs

  ir::NodeReader attributes() const { return {node, def}; }
};

// What a kernel prepares once per node (packed weights, tables). Never changes after preparation: contexts that share a
// model share it and run it from several threads.
struct KernelState {
  virtual ~KernelState() = default;
};

// One execution. Views have the dtypes and shapes of the query, whatever the form of their data; computed data is aligned to 64
// bytes, graph inputs and constants at least to their element. Absent operands have dtype Undefined. An output may share its
// memory with an input of the same size when the memory planner let it, only for tasks that allow it (element-wise kernels and
// copies).
struct KernelContext {
  const ir::Node& node;
  const ir::OpDef& def;
  std::span<const ir::TensorView> inputs;
  std::span<const ir::MutableTensorView> outputs;
  ThreadPool& pool;
  // Working memory that lives until the kernel returns, aligned to 64 bytes, contents undefined; nullptr when memory is
  // short. A second call may move it: ask once for everything.
  virtual std::byte* scratch(size_t bytes) = 0;

  ir::NodeReader attributes() const { return {node, def}; }

 protected:
  KernelContext(const ir::Node& n, const ir::OpDef& d, std::span<const ir::TensorView> in,
                std::span<const ir::MutableTensorView> out, ThreadPool& thread_pool)
      : node(n), def(d), inputs(in), outputs(out), pool(thread_pool) {}
  ~KernelContext() = default;
};

// Kernels of feature maps in blocks are offered nodes whose results are in blocks and whose operands are in the form that each
// one states; other kernels get rows only.
enum class Blocks : uint8_t {
  Never,
  Continue,  // where an operand is in blocks already
  Begin,     // also where none is: the conversion pays
};

struct Kernel {
  std::string_view name;  // for profiles and tests: "conv_pointwise_f32_avx2"
  // True when `run` computes this node, its whole tail included, bit for bit as the reference evaluator does on integers, and to
  // its float tolerance.
  bool (*accepts)(const KernelQuery& query);
  // Called once before the first run; nullptr = nothing to prepare.
  Result<std::unique_ptr<const KernelState>> (*prepare)(const KernelQuery& query, ThreadPool& pool);
  Status (*run)(KernelContext& context, const KernelState* state);
  Blocks blocks = Blocks::Never;
};

// The first kernel for the forms of the query, in the order of file names and then of the rows of a file, that accepts; nullptr
// when none does.
const Kernel* find_kernel(const KernelQuery& query);
// All of them, for tests and benchmarks.
std::vector<const Kernel*> all_kernels();

}  // namespace orknn::sim
