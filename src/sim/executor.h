// Runs a Program: planned memory, a fast kernel per task where there is one, the reference kernel elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/threads.h"
#include "format/program.h"
#include "ir/op_set.h"
#include "sim/form.h"

namespace orknn::sim {

// What one run does besides computing. Hooks are called on the calling thread, in task order.
struct RunHooks {
  // Time of each task; `index` counts Program::tasks.
  std::function<void(size_t index, std::chrono::nanoseconds duration)> timing;
  // Every input and every computed tensor while it is valid (calibration, layer dumps, accuracy analysis).
  std::function<void(ir::TensorId tensor, const ir::TensorView& value)> observe;
  // Every computed tensor right after observe: what is written here is what later tasks read (layers fed with other values).
  std::function<void(ir::TensorId tensor, const ir::MutableTensorView& value)> amend;
  // Floats are the same on every machine and instruction set, at a price on machines without vectors of eight (calibration).
  bool reproducible = false;
  // Threads to compute with; nullptr = those of the executor.
  ThreadPool* pool = nullptr;
  // No task begins later; the run then fails.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  // Asked before every task: true = the results are not wanted any more. No further task begins, and the run fails.
  std::function<bool()> stop;
};

// One context of a program: its own activation memory, outputs of its own. Not for use from two threads at once; several
// executors of one program (duplicate()) may run in parallel.
class Executor {
 public:
  // Checks the program, which may come from an untrusted file: format::verify, then shapes against the ops' shape rules. Unknown
  // ops are accepted here and fail when run. `program`, `ops` and `pool` must outlive the executor.
  static Result<std::unique_ptr<Executor>> create(const format::Program& program, const ir::OpSet& ops,
                                                  ThreadPool& pool = ThreadPool::shared());
  // A second context that shares everything prepared so far or later (packed weights).
  Result<std::unique_ptr<Executor>> duplicate(ThreadPool& pool) const;
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Does ahead what runs do when they first come to a layer: weights are packed, the layers shared among the threads of `pool`.
  // `reproducible` as those runs have it (RunHooks). The error names the node.
  Status prepare(bool reproducible, ThreadPool& pool);

  // Inputs in the order of program.inputs, in the dtypes of the program's tensors; read in place, so they must stay valid
  // until the call returns. The error names the node.
  Status run(std::span<const ir::TensorView> inputs, const RunHooks& hooks = {});
  // Result i of the last successful run, in the order of program.outputs; valid until the next run. Without such a run
  // its data is nullptr.
  ir::TensorView output(size_t i) const;

  // Activations live in the caller's memory: `bytes` holds program().arena_bytes, aligned to 64. Several executors that run one
  // after the other may share it.
  void use_arena(std::byte* bytes);
  // Result i, whose shape the program states, is computed into the caller's memory; nullptr = into memory of the executor's own.
  // No input may overlap it.
  void place_output(size_t i, void* to);

  // The task is computed by `def`, which must outlive the executor, instead of the program's operator, in this context alone;
  // nullptr = by the program's again. Its results may lie in the memory of operands that are not read later.
  void replace_operator(size_t task, const ir::OpDef* def);

  // Whether all that a run does with input i is to bring it into the form that kernels want, or, with the place of result i, to
  // write it out of that form. No value directs these copies, so somebody who changes the memory meanwhile changes values only.
  bool only_converts_input(size_t i) const;
  bool only_converts_output(size_t i) const;

  // Name of the kernel a task uses, "reference" where there is no faster one.
  std::string_view kernel_name(size_t task) const;
  // How a tensor lies in memory between the tasks of this executor. Inputs, outputs and constants of the program are rows.
  Form form(ir::TensorId tensor) const;
  // Operands and results of a task that are brought into the other form before or after it.
  std::vector<ir::TensorId> conversions(size_t task) const;
  const format::Program& program() const;

 private:
  struct Plan;   // shared by duplicates
  struct State;  // memory of this context
  Executor();
  bool is_replaced(size_t task) const;
  static Result<std::unique_ptr<Executor>> from_plan(std::shared_ptr<Plan> plan, ThreadPool& pool);
  std::shared_ptr<Plan> plan_;
  std::unique_ptr<State> state_;
};

}  // namespace orknn::sim
