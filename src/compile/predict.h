// Work, traffic and time of each task (docs/npu_model.md). Work is counted from shapes and the chip's granularity;
// time comes from the chip's speed constants.
#pragma once

#include "compile/node_facts.h"
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

// Row bands a convolution needs because its input and weights exceed the convolution buffer. Bands overlap by the kernel's height
// minus one.
uint32_t row_bands(const platform::Platform& platform, const Window& window, DType type, uint64_t weight_bytes);

// Bytes of a tensor as DDR traffic counts them: channels padded to the native lanes, the area as it is.
uint64_t traffic_bytes(const platform::Platform& platform, DType type, std::span<const int64_t> dims, bool picture = false);

// One thing a block of the chip, or its CPU, does for a task.
struct Step {
  enum class Work : uint8_t {
    Conv, Pointwise, Stem, Depthwise, MatMul,   // cycles, bytes, weight_bytes, table_elements
    Move, Pool, GlobalPool, Norm,               // bytes; elements for the last three; table_elements
    Attention, Softmax, Transpose, Reshape,     // elements
    SpaceToBatch,                               // elements
    CpuMacs, CpuElements,                       // macs; elements
  };
  Work work = Work::Move;
  bool npu = true, half = false;
  double cycles = 0;          // of the MAC array, with the granularity that time shows (pixels in fours)
  double bytes = 0;           // activations read and written
  double weight_bytes = 0;
  double table_elements = 0;  // activations looked up
  double elements = 0, macs = 0;
};
std::string_view to_string(Step::Work work);

struct TaskCost {
  uint64_t macs = 0, array_cycles = 0, read_bytes = 0, write_bytes = 0;
  uint64_t weight_bytes = 0;  // traffic of weights and bias, part of read_bytes
  uint64_t packed_bytes = 0;  // memory of the layer's constants: native form, each aligned to 64 bytes
  uint32_t tiles = 1;
  std::vector<Step> steps;  // their times add up
};
TaskCost cost_of(const ir::Graph& graph, const format::Task& task, const platform::Platform& platform, const ir::OpSet& ops);

// What if: other clocks, several cores. 0 = the chip's own clock.
struct Conditions {
  int64_t npu_hz = 0, ddr_hz = 0;
  int cores = 1;
};

// Where the time of a step goes, in microseconds. `total` is less than the sum: compute, traffic and tables overlap.
struct StepTime {
  double total = 0, compute = 0, traffic = 0, table = 0, fixed = 0;
};
// Zero for a chip without speed constants. `cores`: how many share the step.
StepTime time_of(const Step& step, const platform::Platform& platform, const Conditions& conditions, int cores = 1);

// Sets everything predicted about every task, on one core.
void predict(format::Program& program, const platform::Platform& platform, const ir::OpSet& ops);

}  // namespace orknn::compile
