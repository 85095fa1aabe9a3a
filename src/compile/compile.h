// The compiler: an optimized graph becomes a Program for one chip.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/predict.h"
#include "format/program.h"
#include "ir/op_set.h"
#include "platform/platforms.h"

namespace orknn::compile {

// (x - mean) / std per channel of one model input; empty = nothing to do.
struct Normalization {
  std::vector<float> mean, std;
};

// Types of an estimate: sizes and speed as if the model had been quantized, values meaningless.
struct AssumedTypes {
  DType activations = DType::Int8, weights = DType::Int8;
};

struct CompileOptions {
  const platform::Platform* platform = nullptr;  // nullptr = the default one
  const ir::OpSet* ops = nullptr;                // nullptr = the built-in ones
  DType float_dtype = DType::Float16;            // what float32 tensors become: Float16, or Float32 for exact comparison
  std::optional<AssumedTypes> assume;            // for estimates only: the program cannot be run
  // config(op_target=...): output tensor name, node name or op type -> "npu", "cpu", "gpu" or "auto".
  std::map<std::string, std::string> op_target;
  std::vector<Normalization> normalization;       // per graph input; missing entries do nothing
  bool single_core = false;                       // config(single_core_mode=...)
  CostOptions cost;                               // sparse and compressed weights, memory of the chip
  bool share_memory = true;                       // false: every intermediate result keeps its own buffer (debugging)
  std::string label;                              // of the Program
  std::function<void(uint64_t bytes)> converted;  // receives the size of each constant whose number format was settled
  // Receives sentences about what the user should know (an op that falls back, a value that does not fit).
  std::function<void(std::string_view)> warn;
};

// Takes an optimized graph whose shapes are inferred. Constants are shared with the caller's copy, not duplicated; those that
// change type are converted one at a time. Reports every problem it finds at once.
Result<format::Program> compile(ir::Graph graph, const CompileOptions& options);

// The same with what each task's figures were made of.
struct Estimate {
  format::Program program;
  std::vector<TaskCost> costs;  // one per task
};
Result<Estimate> estimate(ir::Graph graph, const CompileOptions& options);

}  // namespace orknn::compile
