// Operators that pick or place elements by index, and sources of random numbers.
#include <algorithm>

#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
std::vector<int64_t> count_up(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}

Status gather(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId ids, l.int64_input(1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pick from it"));
  ORKNN_TRY_ASSIGN(const int64_t ids_rank, l.need_rank(ids, "to pick by it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(0), rank));
  int64_t batch = l.options().number<int32_t>(1);
  if (batch < 0) batch += ids_rank;
  if (batch < 0 || batch > axis || batch > ids_rank)
    return invalid_model("the batch axes of the indices are impossible").found(std::to_string(batch));
  if (batch == 0) return l.set_moved(0, 0, l.emit("Gather", {x, ids}, {{"axis", axis}}));
  // The picked axis goes right behind the batch; what is picked has the extents of the indices there, and goes back.
  std::vector<int64_t> front = count_up(rank);
  front.erase(front.begin() + axis);
  front.insert(front.begin() + batch, axis);
  const TensorId picked = l.emit("GatherND", {l.transpose(x, front), l.unsqueeze(ids, {ids_rank})}, {{"batch_dims", batch}});
  // Now: batch, indices, then the axes between batch and `axis`, then the rest.
  std::vector<int64_t> back = count_up(batch);
  for (int64_t i = 0; i < axis - batch; ++i) back.push_back(ids_rank + i);
  for (int64_t i = batch; i < ids_rank; ++i) back.push_back(i);
  for (int64_t i = ids_rank + axis - batch; i < rank + ids_rank - batch - 1; ++i) back.push_back(i);
  return l.set_moved(0, 0, l.transpose(picked, back));
}

Status gather_nd(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId ids, l.int64_input(1));
  return l.set_moved(0, 0, l.emit("GatherND", {x, ids}));
}

Status scatter_nd(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId ids, l.int64_input(0));
  ORKNN_TRY_ASSIGN(const TensorId updates, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId shape, l.int64_input(2));
  const TensorId empty = l.emit("Expand", {l.add_scalar("zero", 0, l.dtype_of(updates)), shape});
  return l.set(0, l.emit("ScatterND", {empty, ids, updates}, {{"reduction", std::string("add")}}));
}

// Written as comparison with every position: an index outside of the range marks nothing, ours would count from the end.
Status one_hot(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId ids, l.int64_input(0));
  ORKNN_TRY_ASSIGN(const int64_t depth, l.int_scalar(1, "to size the output"));
  ORKNN_TRY_ASSIGN(const TensorId on, l.real(2));
  ORKNN_TRY_ASSIGN(const TensorId off, l.real(3));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(ids, "to add an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(0), rank + 1));
  if (depth < 0 || depth > int64_t{1} << 28) return invalid_model("the depth is impossible").found(std::to_string(depth));
  std::vector<int64_t> along(static_cast<size_t>(rank) + 1, 1);
  along[static_cast<size_t>(axis)] = depth;
  const TensorId positions =
      l.emit("Range", {l.add_int_scalar("start", 0), l.add_int_scalar("limit", depth), l.add_int_scalar("delta", 1)});
  return l.set(0, l.emit("Where", {l.emit("Equal", {l.unsqueeze(ids, {axis}), l.reshape(positions, along)}), on, off}));
}

Status where(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  return l.set(0, l.emit("Transpose", {l.emit("NonZero", {x})}, {{"perm", std::vector<int64_t>{1, 0}}}));
}

Status sparse_to_dense(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId ids, l.int64_input(0));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, l.ints(1, "to size the output"));
  ORKNN_TRY_ASSIGN(TensorId values, l.real(2));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(ids, "to place values by it"));
  TensorId fill = l.add_scalar("zero", 0, l.dtype_of(values));
  if (l.has_input(3)) {
    ORKNN_TRY_ASSIGN(fill, l.real(3));
  }
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t count = dims.size() == 2 ? dims[0] : dims.empty() ? 1 : rank == 1 ? dims[0] : 1;
  if (dims.size() > 2 || element_count(dims) != count * rank)
    return invalid_model("the indices do not fit the output")
        .expected(std::to_string(rank) + " per value")
        .found(to_string(dims));
  ids = l.reshape(ids, {count, rank});
  values = l.emit("Expand", {values, l.add_ints("count", {count})});
  return l.set(0, l.emit("ScatterND", {l.emit("Expand", {fill, l.add_ints("shape", shape)}), ids, values}));
}

Status unique(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  const std::vector<TensorId> results = l.emit_all("Unique", {x}, {{"sorted", int64_t{0}}}, 3);
  ORKNN_TRY(l.set(0, results[0]));
  return l.set(1, results[2]);
}

// A piece of the operand is replaced, from a start that is moved so that the piece fits.
Status dynamic_update_slice(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId piece, l.moves_stored(0, 0) ? l.stored(1) : l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId start, l.int64_input(2));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to replace a piece of it"));
  ORKNN_TRY_ASSIGN(const Dims part, l.need_dims(piece, "to put it in place"));
  bool fits = dims.size() == part.size();
  std::vector<int64_t> partial;  // axes that are not replaced as a whole
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits &= part[i] <= dims[i];
    if (part[i] != dims[i]) partial.push_back(static_cast<int64_t>(i));
  }
  if (!fits)
    return shape_mismatch("the piece is larger than the operand").expected("at most " + to_string(dims)).found(to_string(part));
  if (partial.empty()) return l.set_moved(0, 0, piece);
  if (l.constant_of(start)) {
    ORKNN_TRY_ASSIGN(std::vector<int64_t> at, l.ints(2, "to put the piece there"));
    if (at.size() != dims.size())
      return invalid_model("the start does not fit the operand")
          .expected(std::to_string(dims.size()) + " numbers")
          .found(std::to_string(at.size()));
    for (size_t i = 0; i < dims.size(); ++i) at[i] = std::clamp<int64_t>(at[i], 0, dims[i] - part[i]);
    // From the innermost partial axis outwards: what surrounds the piece along an axis is cut from the operand.
    TensorId grown = piece;
    for (size_t k = partial.size(); k-- > 0;) {
      const auto axis = static_cast<size_t>(partial[k]);
      const auto around = [&](int64_t from, int64_t to) {
        std::vector<int64_t> starts{from}, ends{to}, axes{partial[k]};
        for (size_t j = 0; j < k; ++j) {
          const auto outer = static_cast<size_t>(partial[j]);
          starts.push_back(at[outer]);
          ends.push_back(at[outer] + part[outer]);
          axes.push_back(partial[j]);
        }
        return l.slice(x, starts, ends, axes);
      };
      std::vector<TensorId> row;
      if (at[axis] > 0) row.push_back(around(0, at[axis]));
      row.push_back(grown);
      if (at[axis] + part[axis] < dims[axis]) row.push_back(around(at[axis] + part[axis], dims[axis]));
      grown = l.concat(std::move(row), partial[k]);
    }
    return l.set_moved(0, 0, grown);
  }
  if (partial.size() != 1)
    return unsupported("a piece that is partial along several axes needs a constant start")
        .found(std::to_string(partial.size()) + " axes");
  const int64_t axis = partial[0], extent = part[static_cast<size_t>(axis)];
  std::vector<int64_t> front = count_up(static_cast<int64_t>(dims.size()));
  std::swap(front[0], front[static_cast<size_t>(axis)]);
  TensorId first = l.emit("Gather", {start, l.add_ints("axis", {axis})});
  first = l.emit("Max", {l.emit("Min", {first, l.add_int_scalar("last", dims[static_cast<size_t>(axis)] - extent)}),
                         l.add_int_scalar("zero", 0)});
  const TensorId offsets =
      l.emit("Range", {l.add_int_scalar("start", 0), l.add_int_scalar("limit", extent), l.add_int_scalar("delta", 1)});
  const TensorId rows = l.emit("Add", {first, offsets});
  const TensorId y = l.emit("ScatterND", {l.transpose(x, front), l.unsqueeze(rows, {1}), l.transpose(piece, front)});
  return l.set_moved(0, 0, l.transpose(y, front));
}

// True on the diagonal of rows x columns.
TensorId diagonal_mask(Layer& l, int64_t rows, int64_t columns) {
  const TensorId r =
      l.emit("Range", {l.add_int_scalar("start", 0), l.add_int_scalar("limit", rows), l.add_int_scalar("delta", 1)});
  const TensorId c =
      l.emit("Range", {l.add_int_scalar("start", 0), l.add_int_scalar("limit", columns), l.add_int_scalar("delta", 1)});
  return l.emit("Equal", {l.unsqueeze(r, {1}), l.unsqueeze(c, {0})});
}

Status matrix_diag(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to put it on a diagonal"));
  if (dims.empty()) return invalid_model("the diagonal is a scalar");
  const TensorId column = l.unsqueeze(x, {static_cast<int64_t>(dims.size())});
  return l.set(0, l.emit("Where", {diagonal_mask(l, dims.back(), dims.back()), column, l.add_scalar("zero", 0, l.dtype_of(x))}));
}

Status matrix_set_diag(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId diagonal, l.real(1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to replace its diagonal"));
  if (dims.size() < 2) return invalid_model("the input is no matrix").found(to_string(dims));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const auto place =
      static_cast<int64_t>(dims.size()) - (rows <= columns ? 1 : 2);  // the diagonal is as long as the shorter side
  return l.set(0, l.emit("Where", {diagonal_mask(l, rows, columns), l.unsqueeze(diagonal, {place}), x}));
}

Status random(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, l.ints(0, "to size the output"));
  const bool normal = l.op().name == "RANDOM_STANDARD_NORMAL";
  return l.set(0, l.emit(normal ? "RandomNormal" : "RandomUniform", {}, {{"shape", shape}}));
}
}  // namespace

std::span<const Row> index_rows() {
  static constexpr Row rows[] = {
      {"GATHER", gather},
      {"GATHER_ND", gather_nd},
      {"SCATTER_ND", scatter_nd},
      {"ONE_HOT", one_hot},
      {"WHERE", where},
      {"SPARSE_TO_DENSE", sparse_to_dense},
      {"UNIQUE", unique},
      {"DYNAMIC_UPDATE_SLICE", dynamic_update_slice},
      {"MATRIX_DIAG", matrix_diag},
      {"MATRIX_SET_DIAG", matrix_set_diag},
      {"RANDOM_STANDARD_NORMAL", random},
      {"RANDOM_UNIFORM", random},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
