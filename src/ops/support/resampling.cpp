#include "ops/support/resampling.h"

#include <algorithm>
#include <cmath>

#include "ops/support/movement.h"

namespace orknn::ops {
using namespace ir;

Result<ResizeMode> resize_mode(const NodeReader& c) {
  const std::string& mode = c.get_string("mode");
  if (mode == "nearest") return ResizeMode::Nearest;
  if (mode == "linear") return ResizeMode::Linear;
  if (mode == "cubic") return ResizeMode::Cubic;
  return unsupported("unknown interpolation mode").expected("nearest, linear or cubic").found(mode);
}

Result<ResizeCoordinates> resize_coordinates(const NodeReader& c) {
  const std::string& mode = c.get_string("coordinate_transformation_mode");
  if (mode == "half_pixel") return ResizeCoordinates::HalfPixel;
  if (mode == "half_pixel_symmetric") return ResizeCoordinates::HalfPixelSymmetric;
  if (mode == "pytorch_half_pixel") return ResizeCoordinates::PytorchHalfPixel;
  if (mode == "align_corners") return ResizeCoordinates::AlignCorners;
  if (mode == "asymmetric") return ResizeCoordinates::Asymmetric;
  if (mode == "tf_half_pixel_for_nn") return ResizeCoordinates::TfHalfPixelForNn;
  if (mode == "tf_crop_and_resize") return ResizeCoordinates::CropAndResize;
  return unsupported("unknown coordinate transformation").found(mode);
}

Result<AspectPolicy> aspect_policy(const NodeReader& c) {
  const std::string& policy = c.get_string("keep_aspect_ratio_policy");
  if (policy == "stretch") return AspectPolicy::Stretch;
  if (policy == "not_larger") return AspectPolicy::NotLarger;
  if (policy == "not_smaller") return AspectPolicy::NotSmaller;
  return unsupported("unknown aspect ratio policy").expected("stretch, not_larger or not_smaller").found(policy);
}

Result<std::vector<size_t>> resized_axes(const NodeReader& c, size_t rank) {
  std::vector<size_t> axes;
  const auto* given = c.find<std::vector<int64_t>>("axes");
  if (given) ORKNN_TRY(distinct_axes(*given, static_cast<int64_t>(rank)).status());
  for (size_t i = 0; i < (given ? given->size() : rank); ++i)
    axes.push_back(given ? static_cast<size_t>(*normalize_axis((*given)[i], static_cast<int64_t>(rank))) : i);
  return axes;
}

Result<ResizeTarget> scaled_extent(int64_t extent, float scale) {
  const float size = static_cast<float>(extent) * scale;
  if (!(scale > 0) || !(size < 1e12f)) return invalid_argument("illegal scale").found(std::to_string(scale));
  return ResizeTarget{static_cast<int64_t>(size), scale};
}

namespace {
Result<std::vector<ResizeTarget>> targets_from_scales(std::span<const int64_t> extents, const std::vector<double>& scales) {
  if (scales.size() != extents.size())
    return invalid_argument("one scale per axis is needed")
        .expected(std::to_string(extents.size()))
        .found(std::to_string(scales.size()));
  std::vector<ResizeTarget> out;
  for (size_t i = 0; i < extents.size(); ++i) {
    ORKNN_TRY_ASSIGN(const ResizeTarget t, scaled_extent(extents[i], static_cast<float>(scales[i])));
    out.push_back(t);
  }
  return out;
}
}  // namespace

Result<std::vector<ResizeTarget>> resize_targets(std::span<const int64_t> extents, const std::vector<int64_t>& sizes,
                                                 AspectPolicy policy) {
  if (sizes.size() != extents.size())
    return invalid_argument("one size per axis is needed")
        .expected(std::to_string(extents.size()))
        .found(std::to_string(sizes.size()));
  std::vector<ResizeTarget> out;
  double common = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (sizes[i] < 0 || (extents[i] == 0 && sizes[i] > 0))
      return invalid_argument("illegal size").found(std::to_string(sizes[i]) + " from extent " + std::to_string(extents[i]));
    const double scale = extents[i] == 0 ? 1.0 : static_cast<double>(sizes[i]) / static_cast<double>(extents[i]);
    out.push_back({sizes[i], scale});
    common = i == 0 ? scale : policy == AspectPolicy::NotLarger ? std::min(common, scale) : std::max(common, scale);
  }
  if (policy == AspectPolicy::Stretch) return out;
  for (size_t i = 0; i < extents.size(); ++i) {
    const float size = std::floor(static_cast<float>(extents[i]) * static_cast<float>(common) + 0.5f);
    if (!(size < 1e12f)) return invalid_argument("illegal size").found(std::to_string(size));
    out[i] = {static_cast<int64_t>(size), common};
  }
  return out;
}

float source_coordinate(ResizeCoordinates mode, const ResizeAxis& a, int64_t position) {
  const auto x = static_cast<float>(position), from = static_cast<float>(a.from), to = static_cast<float>(a.to);
  const auto scale = static_cast<float>(a.scale);
  switch (mode) {
    case ResizeCoordinates::HalfPixel: return (x + 0.5f) / scale - 0.5f;
    case ResizeCoordinates::HalfPixelSymmetric: {
      const float adjustment = to / (scale * from);
      return from / 2 * (1 - adjustment) + (x + 0.5f) / scale - 0.5f;
    }
    case ResizeCoordinates::PytorchHalfPixel: return a.to > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
    case ResizeCoordinates::AlignCorners: {
      // The length asked for, which ONNX does not round before it aligns; equal to the real one where sizes are given.
      const float wanted = scale * from, length = std::abs(wanted - to) < 1e-3f ? to : wanted;
      return a.to == 1 ? 0.0f : x * (from - 1) / (length - 1);
    }
    // Halves of a pixel are met exactly where sizes are given.
    case ResizeCoordinates::Asymmetric: return static_cast<float>(static_cast<double>(position) / a.scale);
    case ResizeCoordinates::TfHalfPixelForNn: return (x + 0.5f) / scale;
    case ResizeCoordinates::CropAndResize:
      return a.to > 1 ? a.roi_start * (from - 1) + x * (a.roi_end - a.roi_start) * (from - 1) / (to - 1)
                      : 0.5f * (a.roi_start + a.roi_end) * (from - 1);
  }
  return 0;
}

namespace {
float linear_weight(float distance) { return std::max(0.0f, 1.0f - std::abs(distance)); }

float cubic_weight(float distance, float a) {
  const float s = std::abs(distance);
  if (s <= 1) return ((a + 2) * s - (a + 3)) * s * s + 1;
  if (s < 2) return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  return 0;
}
}  // namespace

Result<ResizeTaps> resize_taps(const ResizeFilter& filter, ResizeCoordinates coordinates, const ResizeAxis& a) {
  // Downsampling with antialias widens the filter by the inverse of the scale.
  const float stretch = filter.antialias ? std::min(static_cast<float>(a.scale), 1.0f) : 1.0f;
  const float reach = (filter.mode == ResizeMode::Cubic ? 2.0f : 1.0f) / stretch;
  if (!(reach < 1e6f) || (reach + 1) * static_cast<float>(a.to) > 1e9f)
    return unsupported("the filter of an antialiased axis is too wide").found(std::to_string(reach));
  ResizeTaps taps;
  taps.width = static_cast<size_t>(2 * std::ceil(reach));
  taps.positions.assign(taps.width * static_cast<size_t>(a.to), 0);
  taps.weights.assign(taps.positions.size(), 0.0f);
  taps.identity = a.from == a.to;
  for (int64_t n = 0; n < a.to; ++n) {
    const float limit = 1e9f;  // far beyond any axis, safe to convert
    const float raw = source_coordinate(coordinates, a, n);
    const float at = std::isnan(raw) ? 0.0f : std::clamp(raw, -limit, limit);
    if (coordinates == ResizeCoordinates::CropAndResize)
      taps.outside.push_back(!(at >= 0 && at <= static_cast<float>(a.from - 1)));
    const float base = std::floor(at), fraction = at - base;
    const auto first = static_cast<int64_t>(base) - static_cast<int64_t>(std::ceil(reach)) + 1;
    int64_t* positions = taps.positions.data() + static_cast<size_t>(n) * taps.width;
    float* weights = taps.weights.data() + static_cast<size_t>(n) * taps.width;
    float total = 0;
    for (size_t k = 0; k < taps.width; ++k) {
      const int64_t position = first + static_cast<int64_t>(k);
      const float distance = (static_cast<float>(position - static_cast<int64_t>(base)) - fraction) * stretch;
      const bool inside = position >= 0 && position < a.from;
      positions[k] = std::clamp<int64_t>(position, 0, a.from - 1);
      weights[k] = filter.exclude_outside && !inside  ? 0.0f
                   : filter.mode == ResizeMode::Cubic ? cubic_weight(distance, filter.cubic_a)
                                                      : linear_weight(distance);
      total += weights[k];
    }
    if ((filter.exclude_outside || filter.antialias) && total != 0)
      for (size_t k = 0; k < taps.width; ++k) weights[k] /= total;
    taps.identity &= at == static_cast<float>(n) && (taps.outside.empty() || !taps.outside.back());
  }
  return taps;
}

Status check_roi(int64_t entries, size_t axes) {
  if (entries == 2 * static_cast<int64_t>(axes)) return {};
  return invalid_argument("roi needs two entries per axis").expected(std::to_string(2 * axes)).found(std::to_string(entries));
}

Result<ResizePlan> plan_resize(const NodeReader& node, std::span<const int64_t> x, const ResizeInputs& inputs) {
  ResizePlan plan;
  ORKNN_TRY_ASSIGN(plan.mode, resize_mode(node));
  ORKNN_TRY_ASSIGN(plan.coordinates, resize_coordinates(node));
  ORKNN_TRY_ASSIGN(const AspectPolicy policy, aspect_policy(node));
  plan.filter = {plan.mode, static_cast<float>(node.get_float("cubic_coeff_a")), node.get_int("antialias") != 0,
                 node.get_int("exclude_outside") != 0};
  ORKNN_TRY_ASSIGN(const std::vector<size_t> axes, resized_axes(node, x.size()));
  Dims extents;
  plan.dims.assign(x.begin(), x.end());
  for (const size_t axis : axes) extents.push_back(x[axis]);
  std::vector<ResizeTarget> targets;
  if (inputs.sizes && inputs.sizes->count() > 0) {
    ORKNN_TRY_ASSIGN(targets, resize_targets(extents, to_ints(*inputs.sizes), policy));
  } else if (inputs.scales) {
    ORKNN_TRY_ASSIGN(targets, targets_from_scales(extents, to_doubles(*inputs.scales)));
  } else {
    return invalid_argument("either scales or sizes must be given");
  }
  std::vector<double> roi;
  if (plan.coordinates == ResizeCoordinates::CropAndResize) {
    if (inputs.roi) roi = to_doubles(*inputs.roi);
    ORKNN_TRY(check_roi(static_cast<int64_t>(roi.size()), axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    plan.dims[axes[i]] = targets[i].extent;
    plan.axes.push_back({axes[i], extents[i], targets[i].extent, targets[i].scale});
    if (roi.empty()) continue;
    plan.axes[i].roi_start = static_cast<float>(roi[i]);
    plan.axes[i].roi_end = static_cast<float>(roi[axes.size() + i]);
  }
  return plan;
}

int64_t nearest_position(std::string_view mode, float at, int64_t extent) {
  float position = std::round(at);
  if (mode == "floor")
    position = std::floor(at);
  else if (mode == "ceil")
    position = std::ceil(at);
  else if (mode == "round_prefer_floor" && at - std::floor(at) == 0.5f)
    position = std::floor(at);
  else if (mode == "round_prefer_ceil" && at - std::floor(at) == 0.5f)
    position = std::ceil(at);
  const float last = static_cast<float>(extent - 1);
  return position >= last ? extent - 1 : position > 0 ? static_cast<int64_t>(position) : 0;
}

}  // namespace orknn::ops
