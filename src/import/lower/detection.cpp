#include "import/lower/detection.h"

#include <algorithm>
#include <cmath>

namespace orknn::importer {
using namespace ir;

namespace {
constexpr int64_t kMaxPriors = int64_t{1} << 22;

// Each ratio once, followed by its reciprocal; 1 is not among them.
std::vector<float> distinct_ratios(const std::vector<double>& stated, bool flip) {
  const auto are_same = [](float a, float b) { return std::abs(a - b) < 1e-6f; };
  std::vector<float> ratios;
  for (double r : stated) {
    const auto ratio = static_cast<float>(r);
    if (are_same(ratio, 1) || std::ranges::any_of(ratios, [&](float other) { return are_same(ratio, other); })) continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  return ratios;
}
}  // namespace

Result<std::vector<PriorGrid::Size>> prior_sizes(const PriorSizes& sizes) {
  if (sizes.least.empty()) return invalid_model("boxes have no least size");
  if (!sizes.most.empty() && sizes.most.size() != sizes.least.size())
    return invalid_model("as many largest as least sizes are needed, or none")
        .expected(std::to_string(sizes.least.size()))
        .found(std::to_string(sizes.most.size()));
  for (double ratio : sizes.ratios)
    if (!(ratio > 0)) return invalid_model("a ratio of width to height must be positive").found(std::to_string(ratio));
  const std::vector<float> ratios = distinct_ratios(sizes.ratios, sizes.flip);
  std::vector<PriorGrid::Size> boxes;
  for (size_t i = 0; i < sizes.least.size(); ++i) {
    const auto side = static_cast<float>(sizes.least[i]);
    const auto add_between = [&] {
      if (sizes.most.empty()) return;
      const float middle = std::sqrt(side * static_cast<float>(sizes.most[i]));
      boxes.push_back({middle, middle});
    };
    boxes.push_back({side, side});
    if (sizes.between_before_ratios) add_between();
    for (float ratio : ratios) boxes.push_back({side * std::sqrt(ratio), side / std::sqrt(ratio)});
    if (!sizes.between_before_ratios) add_between();
  }
  return boxes;
}

Result<std::vector<float>> place_priors(const PriorGrid& grid) {
  const auto boxes = static_cast<int64_t>(grid.boxes.size()), offsets = static_cast<int64_t>(grid.offsets.size());
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(Dims{grid.height, grid.width, boxes, offsets}, kMaxPriors));
  std::vector<float> sides;
  sides.reserve(static_cast<size_t>(count) * 4);
  const auto add = [&](int64_t row, int64_t column, const PriorGrid::Size& box, const PriorGrid::Offset& offset) {
    const float x = (static_cast<float>(column) + offset.x) * grid.step_x, y = (static_cast<float>(row) + offset.y) * grid.step_y;
    const float half_width = box.width * 0.5f, half_height = box.height * 0.5f;
    for (float side : {(x - half_width) / grid.unit_x, (y - half_height) / grid.unit_y,
                       (x + half_width - grid.border) / grid.unit_x, (y + half_height - grid.border) / grid.unit_y})
      sides.push_back(grid.clip ? std::min(std::max(side, 0.0f), 1.0f) : side);
  };
  for (int64_t row = 0; row < grid.height; ++row)
    for (int64_t column = 0; column < grid.width; ++column)
      for (const PriorGrid::Size& box : grid.boxes)
        for (const PriorGrid::Offset& offset : grid.offsets) add(row, column, box, offset);
  return sides;
}

TensorId box_column(Emitter& e, TensorId boxes, int64_t i) { return e.slice(boxes, -1, i, i + 1); }

CentredBoxes columns_of_centred(Emitter& e, TensorId boxes) {
  return {box_column(e, boxes, 0), box_column(e, boxes, 1), box_column(e, boxes, 2), box_column(e, boxes, 3)};
}

CentredBoxes centred_from_corners(Emitter& e, TensorId corners) {
  const TensorId left = box_column(e, corners, 0), top = box_column(e, corners, 1), right = box_column(e, corners, 2),
                 bottom = box_column(e, corners, 3);
  return {e.mul(e.add(left, right), 0.5), e.mul(e.add(top, bottom), 0.5), e.sub(right, left), e.sub(bottom, top)};
}

TensorId corners_from_centred(Emitter& e, const CentredBoxes& boxes) {
  const TensorId half_width = e.mul(boxes.width, 0.5), half_height = e.mul(boxes.height, 0.5);
  return e.concat(
      {e.sub(boxes.x, half_width), e.sub(boxes.y, half_height), e.add(boxes.x, half_width), e.add(boxes.y, half_height)}, -1);
}

CentredBoxes decode_boxes(Emitter& e, TensorId offsets, const CentredBoxes& anchors, const BoxCode& code) {
  const auto part = [&](int64_t i) {
    const double scale = code.scales[static_cast<size_t>(i)];
    const TensorId offset = box_column(e, offsets, i);
    return scale == 1 ? offset : e.with_scalar(code.divides ? "Div" : "Mul", offset, scale);
  };
  const auto growth = [&](int64_t i) {
    const TensorId logarithm = part(i);
    return e.unary("Exp", code.most_growth > 0 ? e.with_scalar("Min", logarithm, code.most_growth) : logarithm);
  };
  return {e.add(e.mul(part(0), anchors.width), anchors.x), e.add(e.mul(part(1), anchors.height), anchors.y),
          e.mul(growth(2), anchors.width), e.mul(growth(3), anchors.height)};
}

TensorId suppress_boxes(Emitter& e, TensorId boxes, TensorId scores, TensorId most, TensorId overlap, TensorId threshold) {
  const auto number = [&](TensorId x, DType dtype) { return e.reshape(e.cast(x, dtype), {1}); };
  return e.emit("NonMaxSuppression",
                {e.unsqueeze(e.cast(boxes, DType::Float32), {0}), e.unsqueeze(e.cast(scores, DType::Float32), {0}),
                 number(most, DType::Int64), number(overlap, DType::Float32), number(threshold, DType::Float32)});
}

TensorId of_length(Emitter& e, TensorId list, int64_t length, Dims rest, double fill) {
  rest.insert(rest.begin(), length);
  const TensorId longer = e.concat({list, e.full(rest, fill, e.dtype_of(list))}, 0);
  return e.reshape(e.slice(longer, 0, 0, length), rest);
}

Regions split_regions(Emitter& e, TensorId rows) {
  return {e.slice(rows, 1, 1, 5), e.cast(e.reshape(e.slice(rows, 1, 0, 1), {-1}), DType::Int64)};
}

TensorId roi_align(Emitter& e, TensorId x, const Regions& regions, const RegionPooling& pooling) {
  return e.emit("RoiAlign", {x, regions.boxes, regions.images},
                {{"output_height", pooling.height},
                 {"output_width", pooling.width},
                 {"spatial_scale", pooling.scale},
                 {"sampling_ratio", std::max<int64_t>(pooling.samples, 0)},
                 {"coordinate_transformation_mode", std::string(pooling.aligned ? "half_pixel" : "output_half_pixel")}});
}

TensorId roi_max_pool(Emitter& e, TensorId x, TensorId rows, const RegionPooling& pooling) {
  return e.emit("MaxRoiPool", {x, rows},
                {{"pooled_shape", std::vector<int64_t>{pooling.height, pooling.width}}, {"spatial_scale", pooling.scale}});
}

TensorId position_sensitive_pool(Emitter& e, TensorId x, TensorId rows, int64_t channels, int64_t size, double scale) {
  return e.emit("PSRoiPool", {x, rows}, {{"output_channels", channels}, {"group_size", size}, {"spatial_scale", scale}});
}

}  // namespace orknn::importer
