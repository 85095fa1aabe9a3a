// Gives every tensor of a program its buffer: arena offsets for intermediate results, memory of their own for model inputs
// and outputs, the weight section for constants.
#pragma once

#include "compile/memory_planner.h"
#include "format/program.h"
#include "platform/platforms.h"

namespace orknn::compile {

// What made a tensor, which decides how many channels its native form has.
enum class Producer : uint8_t { Conv, Depthwise, Other, Cpu };

// Bytes of a tensor in the chip's native layout: channels padded for the producer, H*W rounded up to 4, per batch entry. Only
// 4-D tensors made by the NPU are padded. Nothing when the product overflows.
std::optional<uint64_t> native_bytes(const platform::Platform& platform, DType dtype, std::span<const int64_t> dims,
                                     Producer producer);

// Fills program.buffers and arena_bytes. Needs program.graph and program.tasks. Tensors whose size is known only at run time get
// no place. An error means that the sizes overflow.
Status plan_memory(format::Program& program, const platform::Platform& platform, const MemoryPlanner& planner);

}  // namespace orknn::compile
