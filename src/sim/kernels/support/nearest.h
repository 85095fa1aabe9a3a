// Which pixels a nearest Resize takes, known before anything runs.
#pragma once

#include <optional>
#include <vector>

#include "sim/kernel.h"

namespace orknn::sim::kernels {

// The row and the column of the source that each one of the result takes.
struct NearestPixels {
  std::vector<int64_t> rows, columns;
};

// Of a Resize of pictures [N,C,H,W] that repeats or leaves out pixels, not channels or samples, and has no tail.
std::optional<NearestPixels> nearest_pixels(const KernelQuery& query);

}  // namespace orknn::sim::kernels
