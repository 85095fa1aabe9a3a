// The vendor's operator lists as data: what the NPU of each chip computes, in which types, within which limits.
#pragma once

#include <string_view>

#include "compile/node_facts.h"

namespace orknn::compile {

struct NpuOp {
  std::string_view op;      // name in our op set
  std::string_view vendor;  // name on the vendor's list
  // One entry per operator group A..G: 'i' int8, 'f' float16, "c" rewritten to a convolution, "-" not an NPU op there.
  std::string_view types[7];
  // The tensor that carries the data (and decides the type).
  size_t data_input = 0;
  // Limits beyond the type; nullptr = any tensor of up to four dimensions.
  Objection (*limit)(const NodeFacts&) = nullptr;
};

// nullptr when no chip's NPU computes `op`.
const NpuOp* find_npu_op(std::string_view op);
std::span<const NpuOp> npu_ops();
// Whether the chip's NPU computes the node; the text says why not.
Objection npu_objection(const NodeFacts& facts);

// What a convolution can pad by itself. A wider border is made by a Pad before it: published speeds of networks with dilated
// kernels leave no room for the CPU.
constexpr int64_t kMostPadding = 15;
bool pads_before(const Window& window);

// Limits of Transpose, also for ops that the NPU computes through one.
Objection transpose_limit(const platform::Platform& platform, const Extents& in, const std::array<int, 4>& permutation,
                          DType type);

}  // namespace orknn::compile
