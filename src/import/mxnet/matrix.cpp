// Fully connected layers and products of matrices. Results that are one number have shape [1].
#include <algorithm>
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

Result<TensorId> fully_connected(Layer& l, TensorId x) {
  const bool flatten = l.flag("flatten", true);
  const auto rank = l.rank_of(x);
  if (flatten && rank && *rank == 1) x = l.reshape(x, {-1, 1});
  if (flatten && (!rank || *rank > 2)) x = l.emit("Flatten", {x}, {{"axis", int64_t{1}}});
  const int64_t hidden = l.integer("num_hidden", 0), features = l.extent_of(x, -1);
  const std::optional<Dims> dims = features > 0 && hidden > 0 ? std::optional(Dims{hidden, features}) : std::nullopt;
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(const TensorId weight, l.parameter(1, "weight", dims, Fill::Random, dtype, features));
  TensorId bias;
  if (!l.flag("no_bias", false)) {
    ORKNN_TRY_ASSIGN(bias, l.vector(2, "bias", hidden, Fill::Zeros, dtype));
  }
  if (flatten || (rank && *rank == 2)) return l.linear(x, weight, bias);
  const TensorId y = l.matmul(x, l.transpose(weight, {1, 0}));
  return bias ? l.add(y, bias) : y;
}

namespace {
// An operand of dot: only the contracted axis of a transposed one moves, to the end of the left operand, to the front of the
// right one.
struct Factor {
  TensorId x;
  Dims dims;
};
Result<Factor> factor_of(Layer& l, TensorId x, std::string_view flip_key, bool is_left) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to multiply it"));
  if (dims.empty()) dims = {1};
  if (!l.flag(flip_key, false) || dims.size() < 2) return Factor{x, dims};
  std::vector<int64_t> order(dims.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::rotate(order.begin(), is_left ? order.begin() + 1 : order.end() - 1, order.end());
  std::rotate(dims.begin(), is_left ? dims.begin() + 1 : dims.end() - 1, dims.end());
  return Factor{l.transpose(x, order), dims};
}

// The last axis of one against the first of the other, whatever their ranks.
Result<TensorId> dot(Layer& l, TensorId left, TensorId right) {
  ORKNN_TRY_ASSIGN(const Factor a, factor_of(l, left, "transpose_a", true));
  ORKNN_TRY_ASSIGN(const Factor b, factor_of(l, right, "transpose_b", false));
  if (a.dims.back() != b.dims.front())
    return shape_mismatch("the operands do not fit").expected(to_string(a.dims)).found(to_string(b.dims));
  Dims result(a.dims.begin(), a.dims.end() - 1);
  result.insert(result.end(), b.dims.begin() + 1, b.dims.end());
  if (result.empty()) result = {1};
  const TensorId rows = a.dims.size() == 2 ? a.x : l.reshape(a.x, {-1, a.dims.back()});
  const TensorId columns = b.dims.size() == 2 ? b.x : l.reshape(b.x, {b.dims.front(), -1});
  const TensorId y = l.matmul(rows, columns);
  return a.dims.size() == 2 && b.dims.size() == 2 ? y : l.reshape(y, result);
}

Result<TensorId> product(Layer& l, TensorId a, TensorId b, bool flip_a, bool flip_b) {
  ORKNN_TRY_ASSIGN(const int64_t rank_a, l.need_rank(a, "to multiply it"));
  ORKNN_TRY_ASSIGN(const int64_t rank_b, l.need_rank(b, "to multiply it"));
  if (rank_a < 2 || rank_b < 2)
    return shape_mismatch("the operands must be matrices")
        .found("ranks " + std::to_string(rank_a) + " and " + std::to_string(rank_b));
  return l.matmul(flip_a ? l.swap_axes(a, -1, -2) : a, flip_b ? l.swap_axes(b, -1, -2) : b);
}

Result<TensorId> batch_dot(Layer& l, TensorId a, TensorId b) {
  return product(l, a, b, l.flag("transpose_a", false), l.flag("transpose_b", false));
}

TensorId scaled(Layer& l, TensorId x, std::string_view key) {
  const double factor = l.number(key, 1.0);
  return factor == 1.0 ? x : l.mul(x, factor);
}

Result<TensorId> linalg_gemm2(Layer& l, TensorId a, TensorId b) {
  if (l.integer("axis", -2) != -2)
    return unsupported("a product along other axes than the last two is not supported").found("axis " + l.text("axis", ""));
  ORKNN_TRY_ASSIGN(const TensorId y, batch_dot(l, a, b));
  return scaled(l, y, "alpha");
}
Result<TensorId> linalg_gemm(Layer& l, TensorId a, TensorId b, TensorId c) {
  ORKNN_TRY_ASSIGN(const TensorId y, linalg_gemm2(l, a, b));
  return l.add(y, scaled(l, c, "beta"));
}

Result<TensorId> linalg_syrk(Layer& l, TensorId a) {
  const bool flip = l.flag("transpose", false);
  ORKNN_TRY_ASSIGN(const TensorId y, product(l, a, a, flip, !flip));
  return scaled(l, y, "alpha");
}
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"FullyConnected", fully_connected}, {"dot|_np_dot", dot},          {"batch_dot", batch_dot}, {"_linalg_gemm", linalg_gemm},
      {"_linalg_gemm2", linalg_gemm2},     {"_linalg_syrk", linalg_syrk},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
