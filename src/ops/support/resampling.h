// Where the elements of a resampled axis come from, in every mode and coordinate convention of ONNX Resize.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

enum class ResizeMode { Nearest, Linear, Cubic };

enum class ResizeCoordinates {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  CropAndResize
};

enum class AspectPolicy { Stretch, NotLarger, NotSmaller };

Result<ResizeMode> resize_mode(const ir::NodeReader& node);
Result<ResizeCoordinates> resize_coordinates(const ir::NodeReader& node);
Result<AspectPolicy> aspect_policy(const ir::NodeReader& node);

// The axes that scales, sizes and roi speak of, in their order.
Result<std::vector<size_t>> resized_axes(const ir::NodeReader& node, size_t rank);

// Extent and scale of one resized axis. Single precision throughout, as in the runtimes that exporters are tested with:
// a scale such as 1.1 then meets the whole numbers it is meant to meet.
struct ResizeTarget {
  int64_t extent = 0;
  double scale = 1;  // a float where the model gives scales, the ratio of the extents where it gives sizes
};

Result<ResizeTarget> scaled_extent(int64_t extent, float scale);
Result<std::vector<ResizeTarget>> resize_targets(std::span<const int64_t> extents, const std::vector<int64_t>& sizes,
                                                 AspectPolicy policy);

struct ResizeAxis {
  size_t axis = 0;
  int64_t from = 0, to = 0;  // extents
  double scale = 1;          // as in ResizeTarget
  float roi_start = 0, roi_end = 1;
};

// Where output position `position` lies in the source.
float source_coordinate(ResizeCoordinates mode, const ResizeAxis& axis, int64_t position);

// The element of an axis of `extent` that a position between elements takes, by `nearest_mode` of Resize.
int64_t nearest_position(std::string_view mode, float at, int64_t extent);

struct ResizeFilter {
  ResizeMode mode = ResizeMode::Linear;
  float cubic_a = -0.75f;
  bool antialias = false, exclude_outside = false;
};

// Source positions and weights of every output position of an axis; `width` of each, unused ones with weight 0.
struct ResizeTaps {
  size_t width = 1;
  std::vector<int64_t> positions;
  std::vector<float> weights;
  std::vector<bool> outside;  // the position takes the extrapolation value; empty = none does
  bool identity = false;
};

Result<ResizeTaps> resize_taps(const ResizeFilter& filter, ResizeCoordinates coordinates, const ResizeAxis& axis);

// Of coordinates that crop: the roi has a start and an end of each resized axis.
Status check_roi(int64_t entries, size_t axes);

// Everything that inputs and attributes of a Resize node say.
struct ResizePlan {
  ResizeMode mode = ResizeMode::Nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::HalfPixel;
  ResizeFilter filter;
  std::vector<ResizeAxis> axes;
  ir::Dims dims;  // of the result
};
// Absent inputs are nothing.
struct ResizeInputs {
  std::optional<ir::TensorView> roi, scales, sizes;
};
Result<ResizePlan> plan_resize(const ir::NodeReader& node, std::span<const int64_t> x, const ResizeInputs& inputs);

}  // namespace orknn::ops
