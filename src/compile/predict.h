// Work, traffic and time of each task on one core (platforms.md 5.1 and 7).
#pragma once

#include "compile/node_facts.h"
#include "format/program.h"
#include "ir/op_set.h"

namespace orknn::compile {

// The work of a convolution or matrix product, with the chip's granularity.
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

// Sets macs, read_bytes, write_bytes, tiles and predicted_cycles of every task.
void predict(format::Program& program, const platform::Platform& platform, const ir::OpSet& ops);

}  // namespace orknn::compile
