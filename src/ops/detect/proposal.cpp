// The region proposals of Faster R-CNN: anchors at every place of a feature map, moved by predicted offsets, cut to the image;
// the best of them that overlap little. Outputs: regions [n, 5] (image 0, left, top, right, bottom) and their scores [n, 1].
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/support/boxes.h"
#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

struct Options {
  std::vector<double> ratios, scales;
  float stride, base, min_size, threshold;
  int64_t before, after;
  int64_t anchors() const { return static_cast<int64_t>(ratios.size() * scales.size()); }
};

Result<Options> options_of(const NodeReader& c) {
  Options o;
  if (const auto* ratios = c.find<std::vector<double>>("ratios")) o.ratios = *ratios;
  if (const auto* scales = c.find<std::vector<double>>("scales")) o.scales = *scales;
  o.stride = static_cast<float>(c.get_float("feat_stride"));
  o.base = static_cast<float>(c.get_float("base_size"));
  o.min_size = static_cast<float>(c.get_float("min_size"));
  o.threshold = static_cast<float>(c.get_float("nms_threshold"));
  o.before = c.get_int("pre_nms_topn");
  o.after = c.get_int("post_nms_topn");
  if (o.ratios.empty() || o.scales.empty() || o.ratios.size() > 1024 || o.scales.size() > 1024)
    return invalid_model("ratios and scales must not be empty");
  for (double r : o.ratios)
    if (!(r > 0)) return invalid_model("ratios must be positive").found(std::to_string(r));
  return o;
}

Status infer(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) ORKNN_TRY(require_float(c, i));
  ORKNN_TRY(require_rank(c, 0, 4));
  ORKNN_TRY(require_rank(c, 1, 4));
  ORKNN_TRY_ASSIGN(const Options o, options_of(c));
  if (const Shape* s = c.shape(0); s && (*s)[1].is_known() && (*s)[1].value() != 2 * o.anchors())
    return shape_mismatch("scores do not fit the anchors")
        .expected(std::to_string(2 * o.anchors()) + " channels")
        .found(to_string(*s));
  if (const Shape* s = c.shape(1); s && (*s)[1].is_known() && (*s)[1].value() != 4 * o.anchors())
    return shape_mismatch("offsets do not fit the anchors")
        .expected(std::to_string(4 * o.anchors()) + " channels")
        .found(to_string(*s));
  const Shape *scores = c.shape(0), *offsets = c.shape(1);
  ORKNN_TRY(require_shape(c, 0, "scores", {1, Dim(), offsets ? (*offsets)[2] : Dim(), offsets ? (*offsets)[3] : Dim()}));
  ORKNN_TRY(require_shape(c, 1, "offsets", {1, Dim(), scores ? (*scores)[2] : Dim(), scores ? (*scores)[3] : Dim()}));
  if (const auto size = c.shape(2) ? to_dims(*c.shape(2)) : std::nullopt; size && element_count(*size) < 2)
    return shape_mismatch("the size of the image is missing").expected("height, width and scale").found(to_string(*size));
  c.set_output(0, c.dtype(0), Shape{Dim(), 5});
  if (c.output_count() > 1) c.set_output(1, c.dtype(0), Shape{Dim(), 1});
  return {};
}

// Corners around the middle of the first place; pixels count, so that a box from 0 to 9 is 10 wide.
std::vector<Box> base_anchors(const Options& o) {
  std::vector<Box> boxes;
  const float center = 0.5f * (o.base - 1);
  for (double ratio : o.ratios) {
    const float width = std::floor(o.base / std::sqrt(static_cast<float>(ratio)) + 0.5f),
                height = std::floor(width * static_cast<float>(ratio) + 0.5f);
    for (double scale : o.scales) {
      const float half_width = 0.5f * (width * static_cast<float>(scale) - 1),
                  half_height = 0.5f * (height * static_cast<float>(scale) - 1);
      boxes.push_back({center - half_width, center - half_height, center + half_width, center + half_height});
    }
  }
  return boxes;
}

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Options o, options_of(c));
  const TensorData scores = convert(c.input(0), DType::Float32), offsets = convert(c.input(1), DType::Float32);
  const std::vector<double> image = to_doubles(c.input(2));
  const std::span<const int64_t> dims = c.input(0).dims, offset_dims = c.input(1).dims;
  const int64_t kinds = o.anchors();
  if (dims.size() != 4 || offset_dims.size() != 4 || dims[0] != 1 || offset_dims[0] != 1 || dims[1] != 2 * kinds ||
      offset_dims[1] != 4 * kinds || dims[2] != offset_dims[2] || dims[3] != offset_dims[3])
    return shape_mismatch("scores and offsets do not fit the anchors")
        .expected("one image, " + std::to_string(2 * kinds) + " and " + std::to_string(4 * kinds) + " channels")
        .found(to_string(dims) + ", " + to_string(offset_dims));
  if (image.size() < 2)
    return shape_mismatch("the size of the image is missing")
        .expected("height, width and scale")
        .found(to_string(c.input(2).dims));
  const int64_t height = dims[2], width = dims[3], plane = height * width;
  const auto last_column = static_cast<float>(image[1]) - 1, last_row = static_cast<float>(image[0]) - 1;
  const float least = o.min_size * (image.size() > 2 ? static_cast<float>(image[2]) : 1.0f);
  const std::vector<Box> base = base_anchors(o);

  std::vector<Box> boxes;
  std::vector<float> points;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column)
      for (int64_t kind = 0; kind < kinds; ++kind) {
        const Box& b = base[static_cast<size_t>(kind)];
        const float* d = offsets.as<float>() + kind * 4 * plane + row * width + column;
        const float anchor_width = b.right - b.left + 1, anchor_height = b.bottom - b.top + 1;
        const float x = d[0] * anchor_width + b.left + static_cast<float>(column) * o.stride + 0.5f * anchor_width;
        const float y = d[plane] * anchor_height + b.top + static_cast<float>(row) * o.stride + 0.5f * anchor_height;
        const float half_width = 0.5f * std::exp(d[2 * plane]) * anchor_width,
                    half_height = 0.5f * std::exp(d[3 * plane]) * anchor_height;
        const Box moved{
            std::max(std::min(x - half_width, last_column), 0.0f), std::max(std::min(y - half_height, last_row), 0.0f),
            std::max(std::min(x + half_width, last_column), 0.0f), std::max(std::min(y + half_height, last_row), 0.0f)};
        const float score = scores.as<float>()[(kinds + kind) * plane + row * width + column];
        if (!(moved.right - moved.left + 1 >= least && moved.bottom - moved.top + 1 >= least) || score != score) continue;
        boxes.push_back(moved);
        points.push_back(score);
      }
  std::vector<int64_t> order(boxes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return points[static_cast<size_t>(a)] > points[static_cast<size_t>(b)]; });
  if (o.before > 0 && order.size() > static_cast<size_t>(o.before)) order.resize(static_cast<size_t>(o.before));
  const std::vector<int64_t> kept =
      suppress(order, [&](int64_t i) -> const Box& { return boxes[static_cast<size_t>(i)]; },
               {.threshold = o.threshold, .eta = 1, .border = 1, .limit = o.after > 0 ? static_cast<size_t>(o.after) : SIZE_MAX});
  const auto count = static_cast<int64_t>(kept.size());
  std::vector<float> regions, region_scores;
  for (int64_t i : kept) {
    const Box& b = boxes[static_cast<size_t>(i)];
    regions.insert(regions.end(), {0, b.left, b.top, b.right, b.bottom});
    region_scores.push_back(points[static_cast<size_t>(i)]);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView rois, c.output(0, c.input(0).dtype, Dims{count, 5}));
  convert_elements(TensorData::from<float>({count, 5}, regions).view(), rois);
  if (!c.has_output(1)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView best, c.output(1, c.input(0).dtype, Dims{count, 1}));
  convert_elements(TensorData::from<float>({count, 1}, region_scores).view(), best);
  return {};
}
}  // namespace

std::span<const OpDef> proposal() {
  static const OpDef def{
      .name = "Proposal",
      .summary = "regions of interest from anchors, scores and offsets",
      .inputs = {3, 3},
      .outputs = {1, 2},
      .attributes = {required(attr_floats("ratios")), required(attr_floats("scales")), attr_float("feat_stride", 16.0),
                     attr_float("base_size", 16.0), attr_float("min_size", 16.0), attr_int("pre_nms_topn", 6000),
                     attr_int("post_nms_topn", 300), attr_float("nms_threshold", 0.7)},
      .infer = infer,
      .run = run,
      .exact_inputs = input_slots({0, 1, 2})};
  return {&def, 1};
}
}  // namespace orknn::ops
