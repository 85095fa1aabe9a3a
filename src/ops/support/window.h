// Geometry of a window that slides over the spatial axes: kernel, strides, dilations, padding and the output extents they
// give. Shared by convolutions and pools, and by passes that make padding explicit.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

enum class AutoPad : uint8_t { NotSet, SameUpper, SameLower, Valid };
Result<AutoPad> auto_pad_from_name(std::string_view name);

// One entry per spatial axis in every list. Extents, strides and dilations are at least 1 and small enough that sums of
// their products fit an int64.
struct Window {
  ir::Dims kernel, strides, dilations, pads_begin, pads_end;
  AutoPad auto_pad = AutoPad::NotSet;
  bool ceil_mode = false;  // a last window that only partly covers the padded input counts too

  size_t rank() const { return kernel.size(); }
  // Input positions from the first to the last tap of the kernel.
  int64_t span(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  int64_t taps() const { return ir::element_count(kernel); }
};

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode (those that the op has). `kernel` is what the weights
// say; empty for ops that only have the attribute. Fails on lists of the wrong length and on values out of range.
Result<Window> read_window(const ir::NodeReader& node, size_t spatial_rank, std::span<const int64_t> kernel = {});

// Output extent on one axis. Fails when the kernel does not fit in the padded input. Symbols give expressions.
Result<ir::Dim> window_output(const Window& window, size_t axis, const ir::Dim& input);
Result<ir::Dims> window_output(const Window& window, std::span<const int64_t> input);

// For ops that spread their input out by the strides: refuses strides that only a lying attribute has.
Status check_spread(const Window& window);

// Replaces auto_pad by the pads it means for this input.
void settle_pads(Window& window, std::span<const int64_t> input);

// The outputs o in [begin, end) for which o * stride + offset lies in [0, input).
struct OutputRange {
  int64_t begin, end;
};
OutputRange outputs_inside(int64_t offset, int64_t stride, int64_t input, int64_t output);

// Steps `index` to the next position in row-major order; false after the last one. Works for rank 0 (one position).
bool next_index(std::span<int64_t> index, std::span<const int64_t> dims);

}  // namespace orknn::ops
