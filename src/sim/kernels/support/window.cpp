#include "sim/kernels/support/window.h"

#include <algorithm>

namespace orknn::sim::kernels {

std::optional<Window> window_of(const ir::NodeReader& reader, const ir::Dims& input, const ir::Dims& output, std::span<const int64_t> kernel) {
  if (input.size() != output.size() || input.size() < 3 || input.size() > 5) return std::nullopt;
  const size_t axes = input.size() - 2, skip = 3 - axes;
  const ir::Attributes& attributes = reader.node().attributes;
  const auto ints = [&](std::string_view name, size_t count, int64_t fallback) -> std::optional<std::vector<int64_t>> {
    std::vector<int64_t> v = attributes.ints_or(name);
    if (v.empty()) v.assign(count, fallback);
    return v.size() == count ? std::optional(std::move(v)) : std::nullopt;
  };
  const auto strides = ints("strides", axes, 1), dilations = ints("dilations", axes, 1), pads = ints("pads", 2 * axes, 0);
  auto shape = attributes.ints_or("kernel_shape");
  if (shape.empty()) shape.assign(kernel.begin(), kernel.end());
  if (!strides || !dilations || !pads || shape.size() != axes) return std::nullopt;
  const std::string auto_pad = attributes.string_or("auto_pad", "NOTSET");
  Window w;
  for (size_t i = 0; i < axes; ++i) {
    for (int64_t v : {shape[i], (*strides)[i], (*dilations)[i]})
      if (v < 1 || v > INT32_MAX) return std::nullopt;
    w.kernel[skip + i] = shape[i];
    w.stride[skip + i] = (*strides)[i];
    w.dilation[skip + i] = (*dilations)[i];
    w.in[skip + i] = input[2 + i];
    w.out[skip + i] = output[2 + i];
    int64_t begin = (*pads)[i], end = (*pads)[axes + i];
    if (auto_pad == "VALID") begin = end = 0;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t reach = (output[2 + i] - 1) * (*strides)[i] + (shape[i] - 1) * (*dilations)[i] + 1;
      const int64_t total = std::max<int64_t>(0, reach - input[2 + i]);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    w.pad_begin[skip + i] = begin;
    w.pad_end[skip + i] = end;
  }
  return w;
}

bool is_depthwise(const KernelQuery& q) {
  if (q.node.op != "Conv" || !q.inputs[1].constant) return false;
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims;
  return x.size() == w.size() && x.size() >= 3 && x.size() <= 4 && w[1] == 1 && x[1] > 1 && q.node.attributes.int_or("group", 1) == x[1] &&
         w[0] % x[1] == 0;
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

}  // namespace orknn::sim::kernels
