#include "import/lower/axes.h"

#include <numeric>

namespace orknn::importer {
using namespace ir;

Result<TensorId> permuted(Emitter& e, TensorId x, std::vector<int64_t> order) {
  if (order.empty()) {
    ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to reverse its axes"));
    order.resize(static_cast<size_t>(rank));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  for (int64_t& axis : order) {
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, std::ssize(order)));
  }
  return e.transpose(x, std::move(order));
}

Result<std::vector<int64_t>> axes_of_extent_one(Emitter& e, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to drop extents of 1"));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Result<TensorId> repeat_elements(Emitter& e, TensorId x, int64_t axis, int64_t times) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to repeat its elements"));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  constexpr int64_t kMost = 1 << 24;
  if (times < 1 || !checked_element_count(Dims{times, extent}, kMost))
    return invalid_model("illegal number of repetitions").found(std::to_string(times));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < times * extent; ++i) places.push_back(i / times);
  return e.gather(x, e.add_ints("places", places), axis);
}

TensorId along_axis_of_grid(Emitter& e, TensorId vector, size_t axis, const Dims& grid) {
  std::vector<int64_t> shape(grid.size(), 1);
  shape[axis] = grid[axis];
  return e.expand(e.reshape(vector, std::move(shape)), grid);
}

}  // namespace orknn::importer
