// Axes put in order, left out or spread as frameworks state it.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// The axes in this order, counted from the end when negative; reversed when none is stated.
Result<ir::TensorId> permuted(Emitter& e, ir::TensorId x, std::vector<int64_t> order);
// The axes of extent 1, for a squeeze that names none.
Result<std::vector<int64_t>> axes_of_extent_one(Emitter& e, ir::TensorId x);
// Each element along `axis` so many times in a row.
Result<ir::TensorId> repeat_elements(Emitter& e, ir::TensorId x, int64_t axis, int64_t times);
// A vector along one axis of a grid, the same along the others.
ir::TensorId along_axis_of_grid(Emitter& e, ir::TensorId vector, size_t axis, const ir::Dims& grid);

}  // namespace orknn::importer
