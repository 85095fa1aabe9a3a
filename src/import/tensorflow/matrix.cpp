// Matrix products, einsum, diagonals and triangles.
#include <algorithm>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> swap_last_two(Layer& layer, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to transpose it"));
  if (rank < 2) return shape_mismatch("a matrix is needed").found("rank " + std::to_string(rank));
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < rank; ++i) permutation.push_back(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return layer.transpose(x, std::move(permutation));
}

Status lower_matmul(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId a, layer.input(0));
  ORKNN_TRY_ASSIGN(TensorId b, layer.input(1));
  const bool is_batched = layer.op().starts_with("Batch");
  if (layer.bool_or(is_batched ? "adj_x" : "transpose_a", false)) {
    ORKNN_TRY_ASSIGN(a, swap_last_two(layer, a));
  }
  if (layer.bool_or(is_batched ? "adj_y" : "transpose_b", false)) {
    ORKNN_TRY_ASSIGN(b, swap_last_two(layer, b));
  }
  layer.set(layer.emit("MatMul", {a, b}));
  return {};
}

Status lower_einsum(Layer& layer) {
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < layer.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, layer.input(i));
    inputs.push_back(x);
  }
  layer.set(layer.emit("Einsum", std::move(inputs), {{"equation", std::string(layer.string_or("equation", ""))}}));
  return {};
}

// Keeps `lower` diagonals below the main one and `upper` above; negative keeps all.
Status lower_band_part(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t lower, layer.integer(1, "to keep diagonals"));
  ORKNN_TRY_ASSIGN(const int64_t upper, layer.integer(2, "to keep diagonals"));
  if (lower >= 0) x = layer.emit("Trilu", {x, layer.add_int_scalar("below", -lower)}, {{"upper", int64_t{1}}});
  if (upper >= 0) x = layer.emit("Trilu", {x, layer.add_int_scalar("above", upper)}, {{"upper", int64_t{0}}});
  layer.set(x);
  return {};
}

// The newer forms take the number of a diagonal; only the main one is read.
Status only_main_diagonal(Layer& layer) {
  if (!layer.op().ends_with("V2") && !layer.op().ends_with("V3")) return {};
  const size_t at = layer.op().starts_with("MatrixSetDiag") ? 2 : 1;
  if (layer.input_count() <= at) return {};
  ORKNN_TRY_ASSIGN(const auto k, layer.ints(at, "to choose the diagonal"));
  if (std::any_of(k.begin(), k.end(), [](int64_t v) { return v != 0; }))
    return unsupported("only the main diagonal is supported").found("diagonal " + to_string(k));
  return {};
}

// True on the diagonal of a matrix of this size.
TensorId diagonal_mask(Layer& layer, int64_t rows, int64_t columns) {
  TensorData mask = TensorData::zeros(DType::Bool, {rows, columns});
  auto* values = static_cast<uint8_t*>(mask.mutable_data());
  for (int64_t i = 0; i < std::min(rows, columns); ++i) values[i * columns + i] = 1;
  return layer.add_constant("diagonal", std::move(mask));
}
constexpr int64_t kMostElements = 1 << 24;

Status lower_diagonal(Layer& layer) {
  ORKNN_TRY(only_main_diagonal(layer));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to place it on a diagonal"));
  if (dims.empty() || (layer.op() == "Diag" && dims.size() != 1)) return unsupported("a vector is needed").found(to_string(dims));
  if (dims.back() > kMostElements || dims.back() * dims.back() > kMostElements)
    return unsupported("the matrix is too large").found(to_string(dims));
  for (size_t i : {2u, 3u})
    if (layer.input_count() > i) {
      ORKNN_TRY_ASSIGN(const int64_t size, layer.integer(i, "to size the matrix"));
      if (size != -1 && size != dims.back()) return unsupported("only square matrices are supported").found(std::to_string(size));
    }
  TensorId padding = layer.constant_like(x, "zero", 0);
  if (layer.input_count() > 4) {
    ORKNN_TRY_ASSIGN(padding, layer.input(4));
  }
  layer.set(layer.emit("Where", {diagonal_mask(layer, dims.back(), dims.back()), layer.unsqueeze(x, {-1}), padding}));
  return {};
}

Status lower_set_diagonal(Layer& layer) {
  ORKNN_TRY(only_main_diagonal(layer));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(TensorId diagonal, layer.input(1));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to set its diagonal"));
  if (dims.size() < 2) return shape_mismatch("a matrix is needed").found(to_string(dims));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  if (rows > kMostElements || columns > kMostElements || rows * columns > kMostElements)
    return unsupported("the matrix is too large").found(to_string(dims));
  // As a column it reaches along every row; a short diagonal is made as long as the rows.
  if (columns < rows) {
    std::vector<int64_t> pads(2 * (dims.size() - 1), 0);
    pads.back() = rows - columns;
    diagonal = layer.emit("Pad", {diagonal, layer.add_ints("pads", pads)});
  }
  layer.set(layer.emit("Where", {diagonal_mask(layer, rows, columns), layer.unsqueeze(diagonal, {-1}), x}));
  return {};
}

Status lower_diagonal_part(Layer& layer) {
  ORKNN_TRY(only_main_diagonal(layer));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to read its diagonal"));
  if (dims.size() < 2 || (layer.op() == "DiagPart" && dims.size() != 2))
    return unsupported("a matrix is needed").found(to_string(dims));
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  if (rows > kMostElements || columns > kMostElements) return unsupported("the matrix is too large").found(to_string(dims));
  Dims flat(dims.begin(), dims.end() - 2);
  flat.push_back(rows * columns);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < std::min(rows, columns); ++i) indices.push_back(i * columns + i);
  layer.set(layer.emit("Gather", {layer.reshape(x, flat), layer.add_ints("diagonal", indices)}, {{"axis", int64_t{-1}}}));
  return {};
}

Status lower_determinant(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Det", {x}));
  return {};
}

// a x b over the last axis: every component from the other two, rotated.
Status lower_cross(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId a, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId b, layer.input(1));
  const auto rotated = [&](TensorId x, std::vector<int64_t> order) {
    return layer.emit("Gather", {x, layer.add_ints("order", order)}, {{"axis", int64_t{-1}}});
  };
  const TensorId left = layer.emit("Mul", {rotated(a, {1, 2, 0}), rotated(b, {2, 0, 1})}),
                 right = layer.emit("Mul", {rotated(a, {2, 0, 1}), rotated(b, {1, 2, 0})});
  layer.set(layer.emit("Sub", {left, right}));
  return {};
}
}  // namespace

std::span<const Row> matrix_rows() {
  static constexpr Row kRows[] = {
      {"MatMul", lower_matmul},
      {"SparseMatMul", lower_matmul},
      {"BatchMatMul", lower_matmul},
      {"BatchMatMulV2", lower_matmul},
      {"BatchMatMulV3", lower_matmul},
      {"Einsum", lower_einsum},
      {"XlaEinsum", lower_einsum},
      {"MatrixBandPart", lower_band_part},
      {"BatchMatrixBandPart", lower_band_part},
      {"MatrixDiag", lower_diagonal},
      {"MatrixDiagV2", lower_diagonal},
      {"MatrixDiagV3", lower_diagonal},
      {"Diag", lower_diagonal},
      {"MatrixSetDiag", lower_set_diagonal},
      {"MatrixSetDiagV2", lower_set_diagonal},
      {"MatrixSetDiagV3", lower_set_diagonal},
      {"MatrixDiagPart", lower_diagonal_part},
      {"MatrixDiagPartV2", lower_diagonal_part},
      {"MatrixDiagPartV3", lower_diagonal_part},
      {"DiagPart", lower_diagonal_part},
      {"MatrixDeterminant", lower_determinant},
      {"Cross", lower_cross},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
