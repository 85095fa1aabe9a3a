#include "sim/kernels/support/window.h"

#include <algorithm>
#include <cstring>

#include "sim/kernels/support/tail.h"

namespace orknn::sim::kernels {

std::optional<Window> window_of(const ir::NodeReader& node, const ir::Dims& input, const ir::Dims& output,
                                std::span<const int64_t> kernel) {
  if (input.size() != output.size() || input.size() < 3 || input.size() > 5) return std::nullopt;
  const size_t axes = input.size() - 2;
  Result<ops::Window> read = ops::read_window(node, axes, kernel);
  if (!read) return std::nullopt;
  const std::span<const int64_t> in(input.data() + 2, axes), out(output.data() + 2, axes);
  ops::settle_pads(*read, in);
  return window_of(*read, in, out);
}

Window window_of(const ops::Window& settled, std::span<const int64_t> in, std::span<const int64_t> out) {
  Window w;
  const size_t axes = in.size(), skip = 3 - axes;
  for (size_t i = 0; i < axes; ++i) {
    w.kernel[skip + i] = settled.kernel[i];
    w.stride[skip + i] = settled.strides[i];
    w.dilation[skip + i] = settled.dilations[i];
    w.pad_begin[skip + i] = settled.pads_begin[i];
    w.pad_end[skip + i] = settled.pads_end[i];
    w.in[skip + i] = in[i];
    w.out[skip + i] = out[i];
  }
  return w;
}

bool is_depthwise(const KernelQuery& q) {
  if (q.node.op != "Conv" || !q.inputs[1].constant) return false;
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims;
  return x.size() == w.size() && x.size() >= 3 && x.size() <= 4 && w[1] == 1 && x[1] > 1 &&
         q.node.attributes.int_or("group", 1) == x[1] && w[0] % x[1] == 0;
}

std::optional<Window> depthwise_window(const KernelQuery& q) {
  if (!is_depthwise(q)) return std::nullopt;
  const OperandFacts &x = q.inputs[0], &w = q.inputs[1], &y = q.outputs[0];
  if (!storage_of(x.dtype) || !storage_of(w.dtype) || !storage_of(y.dtype)) return std::nullopt;
  if (q.node.has_input(2) && (!q.inputs[2].constant || !storage_of(q.inputs[2].dtype))) return std::nullopt;
  if (y.dims.size() != x.dims.size() || y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0]) return std::nullopt;
  return window_of(q.attributes(), x.dims, y.dims, std::span(w.dims).subspan(2));
}

PlaneLayout plane_layout(const Window& w) {
  PlaneLayout layout;
  const int64_t stride = w.stride[2], last = (w.kernel[2] - 1) * w.dilation[2];
  layout.phase_size = (w.out[2] + last / stride + 1 + 15) / 16 * 16 + 16;  // vectors may read past the last column
  layout.row_size = stride * layout.phase_size;
  for (int64_t y = 0; y < w.kernel[1]; ++y)
    for (int64_t x = 0; x < w.kernel[2]; ++x) {
      const int64_t column = x * w.dilation[2];
      layout.offsets.push_back(y * w.dilation[1] * layout.row_size + column % stride * layout.phase_size + column / stride);
    }
  return layout;
}

void pad_pixels(const Window& w, const float* plane, int64_t begin, int64_t lanes, int64_t pitch, int64_t first, int64_t rows,
                float* to) {
  const int64_t left = std::min(w.pad_begin[2], pitch), inside = std::clamp<int64_t>(pitch - left, 0, w.in[2]);
  const auto zero = [&](float* at, int64_t pixels) { std::memset(at, 0, static_cast<size_t>(pixels * lanes) * sizeof(float)); };
  for (int64_t r = 0; r < rows; ++r, to += pitch * lanes) {
    const int64_t y = first + r - w.pad_begin[1];
    if (y < 0 || y >= w.in[1]) {
      zero(to, pitch);
      continue;
    }
    zero(to, left);
    std::memcpy(to + left * lanes, plane + (y - begin) * w.in[2] * lanes, static_cast<size_t>(inside * lanes) * sizeof(float));
    zero(to + (left + inside) * lanes, pitch - left - inside);
  }
}

}  // namespace orknn::sim::kernels
