// Geometry of convolution and pooling windows: kernel, stride, dilation and padding of up to three spatial axes.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ops/support/window.h"
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
  // Negative padding cuts the input; kernels that copy it into a padded buffer leave such windows to the reference kernel.
  bool cuts_input() const {
    for (size_t i = 0; i < 3; ++i)
      if (pad_begin[i] < 0 || pad_end[i] < 0) return true;
    return false;
  }
  // A padded copy of a plane is not out of proportion to it, as with a window far larger than the plane, and can be made.
  bool suits_a_padded_copy() const {
    return fits_int32() && !cuts_input() && kernel[2] * dilation[2] <= 2 * (in[2] + 16) &&
           (kernel[1] - 1) * dilation[1] + 1 <= 2 * (in[1] + 16);
  }
  bool padded() const { return pad_begin != Axes{0, 0, 0} || pad_end != Axes{0, 0, 0}; }
};

// The window of a node with ONNX window attributes, for input and output [N, C, spatial...]. `kernel` is what the weights say,
// empty for pools. Nothing for more than three spatial axes or attributes that do not fit the shapes.
std::optional<Window> window_of(const ir::NodeReader& node, const ir::Dims& input, const ir::Dims& output,
                                std::span<const int64_t> kernel);
// The same for up to three axes whose padding is settled.
Window window_of(const ops::Window& settled, std::span<const int64_t> in, std::span<const int64_t> out);

// True for a Conv with constant weights whose every output channel reads one input channel, on at most two spatial axes.
bool is_depthwise(const KernelQuery& query);
// The window of a float depthwise convolution with constant weights and bias whose result has their channels; nothing otherwise.
std::optional<Window> depthwise_window(const KernelQuery& query);

// A padded copy of a plane laid out for the plane cores (forms.h): where each tap of the window reads.
struct PlaneLayout {
  int64_t phase_size = 0;
  int64_t row_size = 0;          // floats per padded row
  std::vector<int64_t> offsets;  // per tap, from the first column of the padded row an output row begins at
};
PlaneLayout plane_layout(const Window& window);
// Padded rows that `out_rows` rows of output read.
inline int64_t padded_rows(const Window& w, int64_t out_rows) {
  return (out_rows - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
}

// Columns of a padded row that a row of output reads.
inline int64_t padded_columns(const Window& w) { return (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1; }
// Copies padded rows [first, first + rows) of a plane of pixels, `lanes` floats each, `pitch` pixels per row; `plane` begins with
// row `begin`.
void pad_pixels(const Window& window, const float* plane, int64_t begin, int64_t lanes, int64_t pitch, int64_t first,
                int64_t rows, float* to);

}  // namespace orknn::sim::kernels
