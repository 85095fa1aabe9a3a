#include "import/lower/one_hot.h"

namespace orknn::importer {
using namespace ir;

TensorId positions(Emitter& e, int64_t count, int64_t axis, int64_t rank) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) others.push_back(i);
  const TensorId numbers =
      e.emit("Range", {e.add_int_scalar("first", 0), e.add_int_scalar("end", count), e.add_int_scalar("step", 1)});
  return e.unsqueeze(numbers, others);
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
