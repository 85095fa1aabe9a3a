// Keeps the best boxes of each class and drops those that overlap a kept one too much.
#include <algorithm>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_shapes(const Shape* boxes, const Shape* scores) {
  if (boxes && (boxes->size() != 3 || (boxes->back().is_known() && boxes->back().value() != 4)))
    return shape_mismatch("boxes must be [batch, boxes, 4]").found(to_string(*boxes));
  if (scores && scores->size() != 3) return shape_mismatch("scores must be [batch, classes, boxes]").found(to_string(*scores));
  if (!boxes || !scores) return {};
  const auto differ = [](const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a != b; };
  if (differ((*boxes)[0], (*scores)[0]) || differ((*boxes)[1], (*scores)[2]))
    return shape_mismatch("boxes and scores do not fit together").expected(to_string(*boxes)).found(to_string(*scores));
  return {};
}

Status infer(InferContext& c) {
  for (size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{4}})
    if (c.has_input(i) && !is_float(c.dtype(i)))
      return invalid_model("input " + std::to_string(i) + " must be floats").found(std::string(dtype_name(c.dtype(i))));
  ORKNN_TRY(require_integer(c, 2, "the number of boxes"));
  if (const int64_t format = c.get_int("center_point_box"); format != 0 && format != 1)
    return unsupported("unknown box format").expected("0 or 1").found(std::to_string(format));
  ORKNN_TRY(check_shapes(c.shape(0), c.shape(1)));
  ORKNN_TRY(require_one_value(c, 2, "the number of boxes"));
  ORKNN_TRY(require_one_value(c, 3, "the threshold of overlaps"));
  ORKNN_TRY(require_one_value(c, 4, "the threshold of scores"));
  ORKNN_TRY(require_numbers(c, 3, "the threshold of overlaps is", 0, 1));
  c.set_output(0, DType::Int64, Shape{Dim(), 3});
  return {};
}

struct Box {
  float x_min, x_max, y_min, y_max;
};

Box box_from(const float* v, bool center_form) {
  if (center_form) return {v[0] - v[2] / 2, v[0] + v[2] / 2, v[1] - v[3] / 2, v[1] + v[3] / 2};
  return {std::min(v[1], v[3]), std::max(v[1], v[3]), std::min(v[0], v[2]), std::max(v[0], v[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min),
              height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  if (!(width > 0) || !(height > 0)) return false;
  const float shared = width * height;
  const float area_a = (a.x_max - a.x_min) * (a.y_max - a.y_min), area_b = (b.x_max - b.x_min) * (b.y_max - b.y_min);
  const float all = area_a + area_b - shared;
  if (!(area_a > 0) || !(area_b > 0) || !(all > 0)) return false;
  return shared / all > threshold;
}

// The value of an optional input of one element.
Result<double> number(const RunContext& c, size_t i, double fallback) {
  if (!c.has_input(i)) return fallback;
  const std::vector<double> values = to_doubles(c.input(i));
  if (values.size() > 1)
    return invalid_argument("input " + std::to_string(i) + " must be one number").found(to_string(c.input(i).dims));
  return values.empty() ? fallback : values[0];
}

Status run(RunContext& c) {
  const Shape box_shape = to_shape(c.input(0).dims), score_shape = to_shape(c.input(1).dims);
  ORKNN_TRY(check_shapes(&box_shape, &score_shape));
  ORKNN_TRY_ASSIGN(const double limit, number(c, 2, 0));
  ORKNN_TRY_ASSIGN(const double iou_threshold, number(c, 3, 0));
  ORKNN_TRY_ASSIGN(const double score_threshold, number(c, 4, 0));
  const bool filtered = c.has_input(4) && c.input(4).count() > 0;
  if (!(iou_threshold >= 0 && iou_threshold <= 1))
    return invalid_argument("the threshold of overlaps is out of range")
        .expected("between 0 and 1")
        .found(std::to_string(iou_threshold));
  const TensorData boxes = convert(c.input(0), DType::Float32), scores = convert(c.input(1), DType::Float32);
  const int64_t batches = scores.dims()[0], classes = scores.dims()[1], count = scores.dims()[2];
  const bool center_form = c.get_int("center_point_box") != 0;
  std::vector<std::vector<int64_t>> kept(static_cast<size_t>(batches * classes));
  if (limit > 0) {
    const size_t most = limit >= static_cast<double>(count) ? static_cast<size_t>(count) : static_cast<size_t>(limit);
    c.pool.parallel_for(batches * classes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const float* score = scores.as<float>() + n * count;
        const float* box = boxes.as<float>() + n / classes * count * 4;
        std::vector<int64_t> order;
        for (int64_t i = 0; i < count; ++i)
          if (score[i] == score[i] && (!filtered || score[i] > static_cast<float>(score_threshold))) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
        std::vector<Box> chosen;
        for (int64_t i : order) {
          if (chosen.size() >= most) break;
          const Box candidate = box_from(box + i * 4, center_form);
          if (std::any_of(chosen.begin(), chosen.end(),
                          [&](const Box& b) { return overlaps(candidate, b, static_cast<float>(iou_threshold)); }))
            continue;
          chosen.push_back(candidate);
          kept[static_cast<size_t>(n)].push_back(i);
        }
      }
    });
  }
  int64_t total = 0;
  for (const auto& k : kept) total += static_cast<int64_t>(k.size());
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, Dims{total, 3}));
  int64_t* to = y.as<int64_t>();
  for (size_t n = 0; n < kept.size(); ++n)
    for (int64_t i : kept[n]) {
      *to++ = static_cast<int64_t>(n) / classes;
      *to++ = static_cast<int64_t>(n) % classes;
      *to++ = i;
    }
  return {};
}
}  // namespace

std::span<const OpDef> non_max_suppression() {
  static const OpDef def{.name = "NonMaxSuppression",
                         .summary = "best boxes that overlap little",
                         .inputs = {2, 5},
                         .attributes = {attr_int("center_point_box", 0)},
                         .infer = infer,
                         .run = run,
                         .exact_inputs = input_slots({3, 4})};
  return {&def, 1};
}
}  // namespace orknn::ops
