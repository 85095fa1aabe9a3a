#include "sim/kernels/support/nearest.h"

#include <algorithm>

#include "ops/support/resampling.h"

namespace orknn::sim::kernels {

std::optional<NearestPixels> nearest_pixels(const KernelQuery& q) {
  if (q.node.op != "Resize" || !q.node.tail.empty() || q.outputs[0].dtype != q.inputs[0].dtype) return std::nullopt;
  ops::ResizeInputs inputs;
  for (size_t i = 1; i < q.inputs.size(); ++i) {
    if (!q.inputs[i].exists()) continue;
    if (!q.inputs[i].constant) return std::nullopt;
    (i == 1 ? inputs.roi : i == 2 ? inputs.scales : inputs.sizes) = q.inputs[i].constant->view();
  }
  const ir::Dims &x = q.inputs[0].dims, &y = q.outputs[0].dims;
  if (x.size() != 4 || ir::element_count(x) == 0) return std::nullopt;
  const auto resize = ops::plan_resize(q.attributes(), x, inputs);
  if (!resize || resize->mode != ops::ResizeMode::Nearest || resize->coordinates == ops::ResizeCoordinates::CropAndResize ||
      resize->dims != y || x[0] != y[0] || x[1] != y[1])
    return std::nullopt;
  NearestPixels pixels;
  for (int64_t i = 0; i < y[2]; ++i) pixels.rows.push_back(i);
  for (int64_t i = 0; i < y[3]; ++i) pixels.columns.push_back(i);
  const std::string& mode = q.attributes().get_string("nearest_mode");
  for (const ops::ResizeAxis& axis : resize->axes) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < axis.to; ++i)
      positions.push_back(ops::nearest_position(mode, ops::source_coordinate(resize->coordinates, axis, i), axis.from));
    if (axis.axis >= 2)
      (axis.axis == 2 ? pixels.rows : pixels.columns) = std::move(positions);
    else if (!std::ranges::is_sorted(positions, std::ranges::less_equal{}))  // some element twice
      return std::nullopt;
  }
  return pixels;
}

}  // namespace orknn::sim::kernels
