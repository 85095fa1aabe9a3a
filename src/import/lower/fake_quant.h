// Values rounded to a grid of integers and back, as training inserts it to imitate them.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// Integers low..high that stand for (integer - zero_point) * scale.
struct IntegerGrid {
  double scale = 1;
  int64_t zero_point = 0;
  int64_t low = 0, high = 255;
  double least() const { return static_cast<double>(low - zero_point) * scale; }
  double most() const { return static_cast<double>(high - zero_point) * scale; }
};
// The grid of `bits` bits over a range, moved so that 0 is hit exactly; `narrow` leaves out the lowest integer.
Result<IntegerGrid> nudged_grid(double least, double most, int64_t bits, bool narrow);
// Through signed integers: those of the grid less 128, or 32768 for more than 8 bits. One grid, or one per element of `axis`.
ir::TensorId fake_quant(Emitter& e, ir::TensorId x, const std::vector<IntegerGrid>& grids, std::optional<int64_t> axis,
                        int64_t bits);

}  // namespace orknn::importer
