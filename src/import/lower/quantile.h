// Order statistics: the value below which a share of the elements lies.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

struct Quantile {
  ir::TensorId x;             // floats with known extents, at least one element along the axes
  ir::TensorId share;         // 0 to 1: one number, or a list of them
  std::vector<int64_t> axes;  // ascending or not, none twice; all of them: of the whole tensor
  bool keeps_axes = false;
  std::string interpolation = "linear";  // between neighbours: linear, lower, higher, midpoint or nearest
  bool skips_nan = false;                // values that are no numbers do not count; otherwise they make the result none
};

// The quantiles along the axes. A list of shares is a new first axis.
Result<ir::TensorId> quantiles(Emitter& e, const Quantile& wanted);

// Elements and where they lie along the axis, which keeps one place.
struct Ranked {
  ir::TensorId value, place;
};
// The element with `n` smaller ones along the axis.
Ranked nth_smallest(Emitter& e, ir::TensorId x, int64_t axis, int64_t n);
// The lower median of the elements that are numbers; not a number where there are none. `count` elements lie along the axis.
Ranked median_of_numbers(Emitter& e, ir::TensorId x, int64_t axis, int64_t count);

}  // namespace orknn::importer
