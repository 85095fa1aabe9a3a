// What detectors of all frameworks are made of: boxes placed around a feature map, offsets decoded around anchors, suppression
// of boxes that overlap, and pooling of regions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

// --- priors. They follow from shapes alone.
struct PriorGrid {
  struct Size {
    float width, height;
  };
  struct Offset {
    float x, y;
  };
  int64_t height = 0, width = 0;              // of the feature map
  std::vector<Size> boxes;                    // at each place, in their order
  std::vector<Offset> offsets{{0.5f, 0.5f}};  // where in its cell a box has its middle; every box is placed at each
  float step_x = 1, step_y = 1;               // from cell to cell
  float unit_x = 1, unit_y = 1;               // what coordinates are divided by
  float border = 0;                           // 1 where right and bottom name the last pixel within
  bool clip = false;                          // to 0..1
};
// The boxes of SSD at one place: of every least side a square, boxes of its area with the other ratios of width to height, and,
// where there are largest sides, a square between the two.
struct PriorSizes {
  std::vector<double> least, most;  // as many, or no largest ones
  std::vector<double> ratios;       // each counts once, 1 not at all
  bool flip = false;                // each ratio is followed by its reciprocal
  bool between_before_ratios = true;
};
Result<std::vector<PriorGrid::Size>> prior_sizes(const PriorSizes& sizes);
// Rows of left, top, right, bottom: places in the order of rows and columns, at each place its boxes.
Result<std::vector<float>> place_priors(const PriorGrid& grid);

// --- boxes as the last axis of a tensor: left, top, right, bottom, or (with x and y swapped throughout) top, left, bottom, right
ir::TensorId box_column(Emitter& e, ir::TensorId boxes, int64_t i);  // keeps the axis
struct CentredBoxes {
  ir::TensorId x, y, width, height;  // each with a last axis of 1
};
CentredBoxes columns_of_centred(Emitter& e, ir::TensorId boxes);  // the four columns as they are
CentredBoxes centred_from_corners(Emitter& e, ir::TensorId corners);
ir::TensorId corners_from_centred(Emitter& e, const CentredBoxes& boxes);

// How offsets are coded: scaled, the growth of the sides as a logarithm.
struct BoxCode {
  std::array<double, 4> scales{1, 1, 1, 1};  // of x, y, width, height
  bool divides = false;                      // offsets are divided by the scales, not multiplied
  double most_growth = 0;                    // limit of the logarithm; 0 = none
};
CentredBoxes decode_boxes(Emitter& e, ir::TensorId offsets, const CentredBoxes& anchors, const BoxCode& code);

// --- suppression
// Rows [picture, class, box] of the boxes [n, 4] that survive for each class of the scores [classes, n]; how many there are is
// known when the model runs. `most` is an integer, the thresholds are numbers, of any type and of one element each.
ir::TensorId suppress_boxes(Emitter& e, ir::TensorId boxes, ir::TensorId scores, ir::TensorId most, ir::TensorId overlap,
                            ir::TensorId threshold);
// The first axis of such a list cut to `length`, or filled up to it; `rest` are the other extents.
ir::TensorId of_length(Emitter& e, ir::TensorId list, int64_t length, ir::Dims rest, double fill = 0);

// --- regions: rows [image, left, top, right, bottom] in pixels of the network's input
struct RegionPooling {
  int64_t height = 0, width = 0;  // of each pooled region
  double scale = 1;               // from pixels to places of the feature map
  int64_t samples = 0;            // per bin and axis when aligning; 0 or less = as many as fit
  bool aligned = false;           // places are the middles of pixels, not their corners
};
struct Regions {
  ir::TensorId boxes, images;  // [R, 4], [R]
};
Regions split_regions(Emitter& e, ir::TensorId rows);
ir::TensorId roi_align(Emitter& e, ir::TensorId x, const Regions& regions, const RegionPooling& pooling);
ir::TensorId roi_max_pool(Emitter& e, ir::TensorId x, ir::TensorId rows, const RegionPooling& pooling);
// Each bin of a region has channels of its own; `size` bins along each axis.
ir::TensorId position_sensitive_pool(Emitter& e, ir::TensorId x, ir::TensorId rows, int64_t channels, int64_t size, double scale);

}  // namespace orknn::importer
