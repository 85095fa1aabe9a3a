// Interpolation and sampling of images [N, C, spatial...].
#pragma once

#include <string>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

struct Interpolation {
  enum class Mode { Nearest, Linear, Cubic };
  Mode mode = Mode::Nearest;
  bool compares_centres = false;  // nearest: the pixel whose centre is nearest, otherwise the one the edge falls into
  bool antialias = false;
  bool align_corners = false;  // corner pixels lie on corner pixels
};
// To `size`, or by `factors` (one per spatial axis, either may be empty). A factor also decides which pixels are read, as long as
// it gives the stated size; without one that follows from the extents.
Result<ir::TensorId> interpolated(Emitter& e, ir::TensorId x, const Interpolation& how, std::vector<int64_t> size,
                                  std::vector<double> factors);
// The extent that a factor gives.
Result<int64_t> scaled_extent(int64_t extent, double factor);

// Coordinates [N, spatial..., axes] between -1 and 1 of an image of `size` [N, C, spatial...] under affine matrices.
ir::TensorId affine_grid(Emitter& e, ir::TensorId matrices, const std::vector<int64_t>& size, bool align_corners);
// `mode` is nearest, linear or cubic; `padding` zeros, border or reflection.
ir::TensorId grid_sampled(Emitter& e, ir::TensorId x, ir::TensorId grid, std::string mode, std::string padding,
                          bool align_corners);

}  // namespace orknn::importer
