// Matrix products, einsum, diagonals and triangles.
#include <algorithm>

#include "import/lower/gather.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> matmul(Layer& l, TensorId a, TensorId b) {
  return matrix_product(l, a, b, l.bool_or("transpose_a", false), l.bool_or("transpose_b", false));
}
Result<TensorId> batch_matmul(Layer& l, TensorId a, TensorId b) {
  return matrix_product(l, a, b, l.bool_or("adj_x", false), l.bool_or("adj_y", false));
}

TensorId einsum(Layer& l, Operands inputs) {
  return l.emit("Einsum", {inputs.begin(), inputs.end()}, {{"equation", std::string(l.string_or("equation", ""))}});
}

// Keeps `lower` diagonals below the main one and `upper` above; negative keeps all.
Result<TensorId> band_part(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t lower, l.integer(1, "to keep diagonals"));
  ORKNN_TRY_ASSIGN(const int64_t upper, l.integer(2, "to keep diagonals"));
  if (lower >= 0) x = l.emit("Trilu", {x, l.add_int_scalar("below", -lower)}, {{"upper", int64_t{1}}});
  if (upper >= 0) x = l.emit("Trilu", {x, l.add_int_scalar("above", upper)}, {{"upper", int64_t{0}}});
  return x;
}

// The newer forms take the number of a diagonal; only the main one is read.
Status only_main_diagonal(Layer& l, size_t at) {
  if (l.operand_count() <= at) return {};
  ORKNN_TRY_ASSIGN(const auto k, l.ints(at, "to choose the diagonal"));
  if (std::ranges::any_of(k, [](int64_t v) { return v != 0; }))
    return unsupported("only the main diagonal is supported").found("diagonal " + to_string(k));
  return {};
}

Result<TensorId> diagonal(Layer& l, TensorId x) {
  ORKNN_TRY(only_main_diagonal(l, 1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to place it on a diagonal"));
  if (dims.empty() || (l.op() == "Diag" && dims.size() != 1)) return unsupported("a vector is needed").found(to_string(dims));
  for (size_t i : {2u, 3u})
    if (l.operand_count() > i) {
      ORKNN_TRY_ASSIGN(const int64_t size, l.integer(i, "to size the matrix"));
      if (size != -1 && size != dims.back()) return unsupported("only square matrices are supported").found(std::to_string(size));
    }
  TensorId padding;
  if (l.operand_count() > 4) {
    ORKNN_TRY_ASSIGN(padding, l.operand(4));
  }
  return matrix_diagonal(l, x, padding);
}

Result<TensorId> set_diagonal(Layer& l, TensorId x, TensorId values) {
  ORKNN_TRY(only_main_diagonal(l, 2));
  return with_diagonal(l, x, values);
}

Result<TensorId> diagonal_part(Layer& l, TensorId x) {
  ORKNN_TRY(only_main_diagonal(l, 1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read its diagonal"));
  if (dims.size() < 2 || (l.op() == "DiagPart" && dims.size() != 2))
    return unsupported("a matrix is needed").found(to_string(dims));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  constexpr int64_t kMost = 1 << 24;
  if (rows > kMost || columns > kMost) return unsupported("the matrix is too large").found(to_string(dims));
  Dims flat(dims.begin(), dims.end() - 2);
  flat.push_back(rows * columns);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < std::min(rows, columns); ++i) indices.push_back(i * columns + i);
  return l.gather(l.reshape(x, flat), l.add_ints("diagonal", indices), -1);
}

// a x b over the last axis: every component from the other two, rotated.
TensorId cross(Emitter& e, TensorId a, TensorId b) {
  const TensorId next = e.add_ints("next", {1, 2, 0}), last = e.add_ints("last", {2, 0, 1});
  return e.sub(e.mul(e.gather(a, next, -1), e.gather(b, last, -1)), e.mul(e.gather(a, last, -1), e.gather(b, next, -1)));
}
// The inverse, of the transposed matrix where the node says so.
TensorId inverse(Layer& l, TensorId x) { return l.unary("Inverse", l.bool_or("adjoint", false) ? l.swap_axes(x, -2, -1) : x); }
Result<TensorId> inverse_of_matrix(Layer& l, TensorId x) {
  ORKNN_TRY(l.need_rank(x, "to invert it").status());
  return inverse(l, x);
}
Result<TensorId> solve(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY(l.need_rank(a, "to solve for it").status());
  return l.matmul(inverse(l, a), b);
}
// Only one triangle of the matrix counts.
Result<TensorId> solve_triangle(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY(l.need_rank(a, "to solve for it").status());
  const int64_t upper = l.bool_or("lower", true) ? 0 : 1;
  return l.matmul(inverse(l, l.emit("Trilu", {a}, {{"upper", upper}})), b);
}
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"MatMul|SparseMatMul", matmul},
      {"BatchMatMul|BatchMatMulV2|BatchMatMulV3", batch_matmul},
      {"Einsum|XlaEinsum", einsum},
      {"MatrixBandPart|BatchMatrixBandPart", band_part},
      {"MatrixDiag|MatrixDiagV2|MatrixDiagV3|Diag", diagonal},
      {"MatrixSetDiag|MatrixSetDiagV2|MatrixSetDiagV3", set_diagonal},
      {"MatrixDiagPart|MatrixDiagPartV2|MatrixDiagPartV3|DiagPart", diagonal_part},
      {"MatrixDeterminant", same<"Det">},
      {"MatrixInverse|BatchMatrixInverse", inverse_of_matrix},
      {"MatrixSolve|BatchMatrixSolve", solve},
      {"MatrixTriangularSolve|BatchMatrixTriangularSolve", solve_triangle},
      {"Cross", cross},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
