#include "import/lower/one_hot.h"

#include <numeric>

namespace orknn::importer {
using namespace ir;

TensorId positions(Emitter& e, int64_t count, int64_t axis, int64_t rank) {
  std::vector<int64_t> numbers(static_cast<size_t>(count)), shape(static_cast<size_t>(rank), 1);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  shape[static_cast<size_t>(axis)] = count;
  return e.add_constant("positions", TensorData::from<int64_t>(shape, numbers));
}

Result<TensorId> one_hot(Emitter& e, TensorId numbers, int64_t depth, int64_t axis, TensorId on, TensorId off) {
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(numbers, "to insert an axis"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank + 1));
  constexpr int64_t kMost = 1 << 24;
  if (depth < 0 || depth > kMost) return invalid_model("the depth is out of range").found(std::to_string(depth));
  const TensorId own = e.unsqueeze(e.cast(numbers, DType::Int64), {axis});
  return e.where(e.binary("Equal", own, positions(e, depth, axis, rank + 1)), on, off);
}

}  // namespace orknn::importer
