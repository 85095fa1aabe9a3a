#include "import/lower/gather.h"

#include <algorithm>
#include <numeric>

#include "import/lower/one_hot.h"

namespace orknn::importer {
using namespace ir;

namespace {
TensorId wide(Emitter& e, TensorId x) { return e.cast(x, DType::Int64); }

std::vector<int64_t> count_up(int64_t from, int64_t to) {
  std::vector<int64_t> numbers(static_cast<size_t>(std::max<int64_t>(to - from, 0)));
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}
}  // namespace

Result<TensorId> gather_along(Emitter& e, TensorId x, TensorId indices, int64_t axis, int64_t batch) {
  if (batch == 0) return e.gather(x, indices, axis);
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to gather from it"));
  ORKNN_TRY_ASSIGN(const int64_t index_rank, e.need_rank(indices, "to gather with it"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank));
  if (batch < 0) batch += index_rank;
  if (batch < 0 || batch > axis || batch > index_rank)
    return invalid_model("the batch axes of the indices are impossible").found(std::to_string(batch));
  // The axis moves right after the shared ones, GatherND picks along it, and what it jumped over moves back in front.
  std::vector<int64_t> front = count_up(0, rank), back;
  std::rotate(front.begin() + batch, front.begin() + axis, front.begin() + axis + 1);
  const TensorId picked =
      e.emit("GatherND", {e.transpose(x, front), e.unsqueeze(wide(e, indices), {-1})}, {{"batch_dims", batch}});
  const int64_t after = index_rank + axis - batch;
  for (const auto& [from, to] : {std::pair(int64_t{0}, batch), std::pair(index_rank, after), std::pair(batch, index_rank),
                                 std::pair(after, rank - 1 + index_rank - batch)})
    std::ranges::copy(count_up(from, to), std::back_inserter(back));
  return e.transpose(picked, back);
}

TensorId gather_nd(Emitter& e, TensorId x, TensorId indices) { return e.emit("GatherND", {x, wide(e, indices)}); }

TensorId scatter_nd(Emitter& e, TensorId indices, TensorId updates, TensorId shape) {
  const TensorId zeros = broadcast_to(e, e.scalar_like(updates, 0.0, "zero"), shape);
  return e.emit("ScatterND", {zeros, wide(e, indices), updates}, {{"reduction", std::string("add")}});
}

Result<TensorId> sparse_to_dense(Emitter& e, TensorId indices, TensorId shape, TensorId values, TensorId fill) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(indices, "to place values by it"));
  ORKNN_TRY_ASSIGN(const Dims of_shape, e.need_dims(shape, "to place values in it"));
  const int64_t rank = of_shape.empty() ? 1 : of_shape[0];
  const int64_t count = dims.size() == 2 || (dims.size() == 1 && rank == 1) ? dims[0] : 1;
  if (dims.size() > 2 || element_count(dims) != count * rank)
    return invalid_model("the indices do not fit the output")
        .expected(std::to_string(rank) + " per value")
        .found(to_string(dims));
  const TensorId places = e.reshape(wide(e, indices), {count, rank});
  return e.emit("ScatterND", {broadcast_to(e, fill, shape), places, e.expand(values, Dims{count})});
}

// Ours wants batch and time in front.
Result<TensorId> reverse_sequence(Emitter& e, TensorId x, TensorId lengths, int64_t time, int64_t batch) {
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to reverse its sequences"));
  ORKNN_TRY_ASSIGN(time, normalize_axis(time, rank));
  ORKNN_TRY_ASSIGN(batch, normalize_axis(batch, rank));
  if (time == batch) return invalid_model("batch and time are the same axis").found(std::to_string(time));
  std::vector<int64_t> order{batch, time}, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i)
    if (i != time && i != batch) order.push_back(i);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const TensorId y = e.emit("ReverseSequence", {e.transpose(x, order), wide(e, lengths)},
                            {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}});
  return e.transpose(y, back);
}

TensorId indices_of_nonzero(Emitter& e, TensorId x) { return e.transpose(e.unary("NonZero", x), {1, 0}); }
TensorId tile(Emitter& e, TensorId x, TensorId times) { return e.emit("Tile", {x, wide(e, times)}); }
TensorId broadcast_to(Emitter& e, TensorId x, TensorId shape) { return e.emit("Expand", {x, wide(e, shape)}); }

Result<TensorId> broadcast_shapes(Emitter& e, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> first, e.need_ints(a, "to broadcast shapes"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> second, e.need_ints(b, "to broadcast shapes"));
  ORKNN_TRY_ASSIGN(const Dims both, broadcast(std::span<const int64_t>(first), std::span<const int64_t>(second)));
  return e.cast(e.add_ints("shape", both), e.dtype_of(a));
}

TensorId bucketize(Emitter& e, TensorId x, const std::vector<float>& boundaries) {
  const TensorId limits =
      e.add_constant("boundaries", TensorData::from<float>({static_cast<int64_t>(boundaries.size())}, boundaries));
  const TensorId reached = e.binary("GreaterOrEqual", e.unsqueeze(e.cast(x, DType::Float32), {-1}), limits);
  return e.reduce("ReduceSum", e.cast(reached, DType::Int32), {-1}, false);
}

Result<TensorId> swap_last_two(Emitter& e, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to transpose its matrices"));
  if (rank < 2) return shape_mismatch("a matrix is needed").found("rank " + std::to_string(rank));
  return e.swap_axes(x, -1, -2);
}

Result<TensorId> matrix_product(Emitter& e, TensorId a, TensorId b, bool transposes_a, bool transposes_b) {
  if (transposes_a) {
    ORKNN_TRY_ASSIGN(a, swap_last_two(e, a));
  }
  if (transposes_b) {
    ORKNN_TRY_ASSIGN(b, swap_last_two(e, b));
  }
  return e.matmul(a, b);
}

namespace {
// True on the diagonal of a matrix.
Result<TensorId> diagonal_mask(Emitter& e, int64_t rows, int64_t columns) {
  constexpr int64_t kMost = 1 << 24;
  if (!checked_element_count(Dims{rows, columns}, kMost))
    return unsupported("the matrix is too large").found(to_string(Dims{rows, columns}));
  return e.binary("Equal", positions(e, rows, 0, 2), positions(e, columns, 1, 2));
}
}  // namespace

Result<TensorId> matrix_diagonal(Emitter& e, TensorId diagonal, TensorId fill) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(diagonal, "to put it on a diagonal"));
  if (dims.empty()) return invalid_model("the diagonal is a scalar");
  ORKNN_TRY_ASSIGN(const TensorId mask, diagonal_mask(e, dims.back(), dims.back()));
  return e.where(mask, e.unsqueeze(diagonal, {-1}), fill ? fill : e.scalar_like(diagonal, 0.0, "zero"));
}

Result<TensorId> with_diagonal(Emitter& e, TensorId x, TensorId diagonal) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to replace its diagonal"));
  if (dims.size() < 2) return shape_mismatch("a matrix is needed").found(to_string(dims));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  ORKNN_TRY_ASSIGN(const TensorId mask, diagonal_mask(e, rows, columns));
  // The diagonal is as long as the shorter side, along which it is broadcast to all rows or columns.
  return e.where(mask, e.unsqueeze(diagonal, {rows <= columns ? int64_t{-1} : int64_t{-2}}), x);
}

}  // namespace orknn::importer
