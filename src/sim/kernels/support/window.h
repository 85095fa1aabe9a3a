// Geometry of convolution and pooling windows: kernel, stride, dilation and padding of up to three spatial axes.
#pragma once

#include <array>
#include <optional>

#include "sim/kernel.h"

namespace orknn::sim::kernels {

// One entry per axis z, y, x; missing leading axes have extent 1.
struct Window {
  using Axes = std::array<int64_t, 3>;
  Axes kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_begin{0, 0, 0}, pad_end{0, 0, 0};
  Axes in{1, 1, 1}, out{1, 1, 1};
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  // No position computed from this leaves the range of 32 bits.
  bool fits_int32() const {
    for (size_t i = 0; i < 3; ++i)
      for (int64_t v : {kernel[i] * dilation[i], out[i] * stride[i], pad_begin[i], pad_end[i], in[i]})
        if (v > INT32_MAX / 4 || v < -(INT32_MAX / 4)) return false;
    return true;
  }
  bool padded() const { return pad_begin != Axes{0, 0, 0} || pad_end != Axes{0, 0, 0}; }
};

// The window of a node with ONNX window attributes, for input and output [N, C, spatial...]. `kernel` gives the extents where
// the node has no kernel_shape. Nothing for more than three spatial axes or attributes that do not fit the shapes.
std::optional<Window> window_of(const ir::NodeReader& node, const ir::Dims& input, const ir::Dims& output, std::span<const int64_t> kernel);

}  // namespace orknn::sim::kernels
