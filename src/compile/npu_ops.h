// The vendor's operator lists as data: what the NPU of each chip computes, in which types, within which limits.
#pragma once

#include <string_view>

#include "compile/node_facts.h"

namespace orknn::compile {

// One entry per operator group A..G: 'i' int8, 'f' float16, "c" rewritten to a convolution, "-" not an NPU op there.
using NpuTypes = std::array<std::string_view, 7>;

// What a form is computed in, within which limits; an operator states its form in its own file.
struct NpuRow {
  ir::NpuForm form;
  NpuTypes types;
  Objection (*limit)(const NodeFacts&);
  size_t data_input = 0;  // the tensor that carries the data and decides the type
};

// nullptr when no chip's NPU computes operators of this form.
const NpuRow* npu_row(ir::NpuForm form);
// The operator's name on the vendor's list.
std::string_view listed_name(const ir::OpDef& def);
// Whether the chip's NPU computes the node; the text says why not.
Objection npu_objection(const NodeFacts& facts);

// What a convolution can pad by itself. A wider border is made by a Pad before it: published speeds of networks with dilated
// kernels leave no room for the CPU.
constexpr int64_t kMostPadding = 15;
bool pads_before(const Window& window);

// Axes of a reduction, counted from the front; nullopt when they are known only at run time.
std::optional<std::vector<int64_t>> reduced_axes(const NodeFacts& facts);
// The convolution with equal weights that a sum or mean over channels, rows or columns of a 4-D tensor is; nullopt for others.
std::optional<Window> total_window(const NodeFacts& facts);
// Averages of windows beyond the pooling block are depthwise convolutions with equal weights.
bool averages_as_convolution(ir::NpuForm form, const Window& window);
// A 4-D tensor becomes a 3-D one with a short last axis, on a chip that leaves this to its CPU: published speeds of a detector
// whose outputs are lists of boxes show it.
bool brings_into_narrow(const NodeFacts& facts);

// Limits of Transpose, also for ops that the NPU computes through one.
Objection transpose_limit(const platform::Platform& platform, const Extents& in, const std::array<int, 4>& permutation,
                          DType type);

}  // namespace orknn::compile
