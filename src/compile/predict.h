// Work, traffic and time of each task (docs/npu_model.md). Work is counted from shapes and the chip's granularity;
// time comes from the chip's speed constants.
#pragma once

#include "compile/node_facts.h"
#include "compile/weight_forms.h"
#include "format/program.h"
#include "ir/op_set.h"

namespace orknn::compile {

// The work of a convolution or matrix product, with the chip's granularity, as the vendor's tables state it.
struct ConvWork {
  uint64_t macs = 0;          // true multiply-accumulates
  uint64_t array_cycles = 0;  // cycles of the MAC array: channels and pixels padded
  uint64_t weight_bytes = 0;  // weights and bias in native form
};

// `first_layer`: it reads the picture itself.
ConvWork conv_work(const platform::Platform& platform, const Window& window, DType type, bool first_layer);
// [m, k] x [k, n], `batch` times, as a 1x1 convolution over m pixels.
ConvWork mat_mul_work(const platform::Platform& platform, uint64_t batch, uint64_t m, uint64_t k, uint64_t n, DType type);

// Bytes of a tensor as DDR traffic counts them: channels padded to the native lanes, the area as it is.
uint64_t traffic_bytes(const platform::Platform& platform, DType type, std::span<const int64_t> dims, bool picture = false);

// One thing a block of the chip, or its CPU, does for a task.
struct Step {
  enum class Work : uint8_t {
    Conv,
    Pointwise,
    Stem,
    Depthwise,
    MatMul,  // cycles, bytes, weight_bytes, table_elements
    Move,
    Pool,
    GlobalPool,
    Norm,  // bytes; elements for the last three; table_elements
    Attention,
    Softmax,
    Transpose,
    Reshape,       // elements
    SpaceToBatch,  // elements
    Narrow,        // elements
    CpuMacs,
    CpuElements,  // macs; elements
  };
  Work work = Work::Move;
  bool npu = true, half = false;
  bool serial = false;       // weights are fetched before the array is loaded with them, not beside it
  double tasks = 1;          // started one after the other; each has the fixed time of a layer
  double cycles = 0;         // of the MAC array, with the granularity that time shows (pixels in fours)
  double bytes = 0;          // activations read from and written to DDR
  double on_chip_bytes = 0;  // those that stay in memory of the chip
  double weight_bytes = 0;
  double table_elements = 0;  // activations looked up
  double elements = 0, macs = 0;
  double least_cycles =
      0;  // what the multiply-accumulates take when the whole array works; 0 = nothing to multiply, or the array is unknown
};
std::string_view to_string(Step::Work work);

struct TaskCost {
  uint64_t macs = 0, array_cycles = 0, read_bytes = 0, write_bytes = 0;
  uint64_t weight_bytes = 0;      // traffic of weights and bias, part of read_bytes
  uint64_t packed_bytes = 0;      // memory of the layer's constants: native form, each aligned to 64 bytes
  uint64_t read_again_bytes = 0;  // because of the tiling; in the steps' bytes, not in read_bytes
  uint32_t tiles = 1, pieces = 1;
  format::Tiling tiling;
  format::Sparsity sparsity = format::Sparsity::None;
  std::vector<Step> steps;  // their times add up
};

struct CostOptions {
  WeightForms weights;
  uint64_t on_chip_bytes = 0;  // system SRAM that holds the bottom of the arena; the NPU's own buffer always counts
};
// `program` has its tasks placed, and its buffers planned when memory of the chip takes part.
TaskCost cost_of(const format::Program& program, const format::Task& task, const platform::Platform& platform,
                 const ir::OpSet& ops, const CostOptions& options = {});

// What if: other clocks. 0 = the chip's own.
struct Conditions {
  int64_t npu_hz = 0, ddr_hz = 0;
  int neighbours = 0;  // other cores that run something else at the same time and share the memory bus
};

// What `cores` cores get of the memory bus under these conditions, as a multiple of what one gets at the chip's own clock.
double bus_share(const platform::Platform& platform, const Conditions& conditions, int cores);

// Where the time of a step goes, in microseconds. `total` is less than the sum: compute, traffic and tables overlap.
struct StepTime {
  double total = 0, compute = 0, traffic = 0, table = 0, fixed = 0;
};
// Zero for a chip without speed constants. `cores`: how many share the step, of which the busiest does `share` of the work (0 =
// an even part).
StepTime time_of(const Step& step, const platform::Platform& platform, const Conditions& conditions, int cores = 1,
                 double share = 0);
// The same for the steps of a task on `cores` cores, of which it uses those it can.
std::vector<StepTime> times_of(const format::Task& task, const TaskCost& cost, const platform::Platform& platform,
                               const Conditions& conditions, int cores);
// Their sum.
double microseconds(const format::Task& task, const TaskCost& cost, const platform::Platform& platform,
                    const Conditions& conditions, int cores);

// Sets everything predicted about every task, and returns what it was predicted from.
std::vector<TaskCost> predict(format::Program& program, const platform::Platform& platform, const ir::OpSet& ops,
                              const CostOptions& options = {});

}  // namespace orknn::compile
