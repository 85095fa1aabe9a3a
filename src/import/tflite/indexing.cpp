// Operators that pick or place elements by index, and sources of random numbers.
#include <algorithm>

#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
Result<TensorId> gather(Layer& l, TensorId x, TensorId ids) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pick from it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(0), rank));
  return gather_along(l, x, l.cast(ids, DType::Int64), axis, l.options().number<int32_t>(1));
}

Result<TensorId> one_hot_of_depth(Layer& l, TensorId ids) {
  ORKNN_TRY_ASSIGN(const int64_t depth, l.integer(1, "to size the output"));
  ORKNN_TRY_ASSIGN(const TensorId on, l.operand(2));
  ORKNN_TRY_ASSIGN(const TensorId off, l.operand(3));
  return one_hot(l, ids, depth, l.options().number<int32_t>(0), on, off);
}

Result<TensorId> dense(Layer& l, TensorId ids, TensorId shape, TensorId values) {
  TensorId fill = l.scalar_like(values, 0, "zero");
  if (l.has_input(3)) {
    ORKNN_TRY_ASSIGN(fill, l.operand(3));
  }
  return sparse_to_dense(l, ids, shape, values, fill);
}

std::vector<TensorId> unique(Layer& l, TensorId x) {
  const std::vector<TensorId> results = l.emit_all("Unique", {x}, {{"sorted", int64_t{0}}}, 3);
  return {results[0], results[2]};
}

// What surrounds the piece along an axis is cut from the operand, from the innermost partial axis outwards.
TensorId put_at(Layer& l, TensorId x, TensorId piece, const Dims& dims, const Dims& part, const std::vector<int64_t>& at,
                const std::vector<int64_t>& partial) {
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
    row.push_back(piece);
    if (at[axis] + part[axis] < dims[axis]) row.push_back(around(at[axis] + part[axis], dims[axis]));
    piece = l.concat(std::move(row), partial[k]);
  }
  return piece;
}

// A piece of the operand is replaced, from a start that is moved so that the piece fits.
Result<TensorId> dynamic_update_slice(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId piece, l.like_moved(1));
  ORKNN_TRY_ASSIGN(const TensorId start, l.operand(2));
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
  if (partial.empty()) return piece;
  if (l.constant_of(start)) {
    ORKNN_TRY_ASSIGN(std::vector<int64_t> at, l.ints(2, "to put the piece there"));
    if (at.size() != dims.size())
      return invalid_model("the start does not fit the operand")
          .expected(std::to_string(dims.size()) + " numbers")
          .found(std::to_string(at.size()));
    for (size_t i = 0; i < dims.size(); ++i) at[i] = std::clamp<int64_t>(at[i], 0, dims[i] - part[i]);
    return put_at(l, x, piece, dims, part, at, partial);
  }
  if (partial.size() != 1)
    return unsupported("a piece that is partial along several axes needs a constant start")
        .found(std::to_string(partial.size()) + " axes");
  const int64_t axis = partial[0], extent = part[static_cast<size_t>(axis)];
  const auto last = static_cast<double>(dims[static_cast<size_t>(axis)] - extent);
  const TensorId chosen = l.gather(l.cast(start, DType::Int64), l.add_ints("axis", {axis}), 0);
  const TensorId first = l.with_scalar("Max", l.with_scalar("Min", chosen, last), 0);
  const TensorId rows = l.unsqueeze(l.add(first, positions(l, extent)), {1});
  return l.swap_axes(l.emit("ScatterND", {l.swap_axes(x, 0, axis), rows, l.swap_axes(piece, 0, axis)}), 0, axis);
}

Result<TensorId> diagonal(Layer& l, TensorId x) { return matrix_diagonal(l, x); }

template <OpName Op>
Result<TensorId> random(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, l.ints(0, "to size the output"));
  return l.emit(Op.string(), {}, {{"shape", shape}});
}
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"GATHER", moved<gather>},
      {"GATHER_ND", moved<gather_nd>},
      {"SCATTER_ND", scatter_nd},
      {"ONE_HOT", one_hot_of_depth},
      {"WHERE", indices_of_nonzero},
      {"SPARSE_TO_DENSE", dense},
      {"UNIQUE", unique},
      {"DYNAMIC_UPDATE_SLICE", moved<dynamic_update_slice>},
      {"MATRIX_DIAG", diagonal},
      {"MATRIX_SET_DIAG", with_diagonal},
      {"RANDOM_STANDARD_NORMAL", random<"RandomNormal">},
      {"RANDOM_UNIFORM", random<"RandomUniform">},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
