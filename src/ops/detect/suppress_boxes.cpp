// Greedy suppression over boxes that are already in order, best first: a box is kept unless it overlaps a kept one before it. The
// result is a mask, so that the size of the result does not depend on values.
#include <algorithm>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Boxes [..., boxes, 4]; groups and candidates [..., boxes].
Status check_shapes(const Shape* boxes, const Shape* other, std::string_view what) {
  if (boxes && (boxes->size() < 2 || (boxes->back().is_known() && boxes->back().value() != 4)))
    return shape_mismatch("boxes must be [..., boxes, 4]").found(to_string(*boxes));
  if (!boxes || !other) return {};
  bool fits = other->size() + 1 == boxes->size();
  for (size_t i = 0; fits && i < other->size(); ++i)
    fits = !(*other)[i].is_known() || !(*boxes)[i].is_known() || (*other)[i] == (*boxes)[i];
  if (!fits)
    return shape_mismatch(std::string(what) + " do not fit the boxes")
        .expected(to_string(*boxes) + " without its last axis")
        .found(to_string(*other));
  return {};
}

Status infer(InferContext& c) {
  if (!is_float(c.dtype(0))) return invalid_model("boxes must be floats").found(std::string(dtype_name(c.dtype(0))));
  ORKNN_TRY(check_shapes(c.shape(0), c.shape(1), "groups"));
  ORKNN_TRY(check_shapes(c.shape(0), c.shape(2), "candidates"));
  if (c.has_input(2) && c.dtype(2) != DType::Bool)
    return invalid_model("candidates must be bool").found(std::string(dtype_name(c.dtype(2))));
  std::optional<Shape> out;
  if (const Shape* s = c.shape(0)) out = Shape(s->begin(), s->end() - 1);
  c.set_output(0, DType::Bool, std::move(out));
  return {};
}

struct Box {
  float left, top, right, bottom, area;
};

Status run(RunContext& c) {
  const Shape boxes_shape = to_shape(c.input(0).dims);
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has_input(i)) continue;
    const Shape other = to_shape(c.input(i).dims);
    ORKNN_TRY(check_shapes(&boxes_shape, &other, i == 1 ? "groups" : "candidates"));
  }
  ORKNN_TRY(check_shapes(&boxes_shape, nullptr, ""));
  const TensorData boxes = convert(c.input(0), DType::Float32);
  const std::vector<double> groups = c.has_input(1) ? to_doubles(c.input(1)) : std::vector<double>();
  const bool* candidate = c.has_input(2) ? c.input(2).as<bool>() : nullptr;
  const auto threshold = static_cast<float>(c.get_float("iou_threshold")), border = static_cast<float>(c.get_float("border"));
  const bool inclusive = c.get_int("inclusive") != 0;
  const std::span<const int64_t> dims = c.input(0).dims;
  const int64_t count = dims[dims.size() - 2], batches = extent_product(dims, 0, dims.size() - 2);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Bool, dims.first(dims.size() - 1)));
  bool* keep = y.as<bool>();
  c.pool.parallel_for(batches, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      std::vector<std::pair<Box, double>> kept;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = b * count + i;
        const float* v = boxes.as<float>() + at * 4;
        const Box box{v[0], v[1], v[2], v[3], (v[2] - v[0] + border) * (v[3] - v[1] + border)};
        const double group = groups.empty() ? 0 : groups[static_cast<size_t>(at)];
        const auto hides = [&](const std::pair<Box, double>& other) {
          if (other.second != group) return false;
          const Box& o = other.first;
          const float width = std::min(o.right, box.right) - std::max(o.left, box.left) + border,
                      height = std::min(o.bottom, box.bottom) - std::max(o.top, box.top) + border;
          const float shared = std::max(width, 0.0f) * std::max(height, 0.0f), all = o.area + box.area - shared;
          const float overlap = all > 0 ? shared / all : 0.0f;
          return inclusive ? overlap >= threshold : overlap > threshold;
        };
        keep[at] = (!candidate || candidate[at]) && std::none_of(kept.begin(), kept.end(), hides);
        if (keep[at]) kept.emplace_back(box, group);
      }
    }
  });
  return {};
}
}  // namespace

std::span<const OpDef> suppress_boxes() {
  static const OpDef def{
      .name = "SuppressBoxes",
      .summary = "marks boxes, best first, that overlap no better one of their group",
      .inputs = {1, 3},
      .attributes = {required(attr_float("iou_threshold")), attr_int("inclusive", 0), attr_float("border", 0.0)},
      .infer = infer,
      .run = run};
  return {&def, 1};
}
}  // namespace orknn::ops
