// Dense layers, products and lookups.
#include "import/keras/layer.h"
#include "import/lower/functions.h"
#include "import/lower/gather.h"
#include "import/lower/one_hot.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
Result<TensorId> with_bias(Layer& l, TensorId y, bool has_bias) {
  if (has_bias) {
    ORKNN_TRY_ASSIGN(const TensorId bias, l.weight(1));
    y = l.add(y, bias);
  }
  return with_activation(l, y);
}
Result<TensorId> dense(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  return with_bias(l, l.matmul(x, kernel), l.flag("use_bias", true));
}
Result<TensorId> einsum_dense(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  const TensorId y = l.emit("Einsum", {x, kernel}, {{"equation", l.text("equation")}});
  return with_bias(l, y, !l.config["bias_axes"].is_null());
}

Result<TensorId> embedding(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId table, l.weight(0));
  if (l.argument(1, "reverse").flag(false)) {  // of ReversibleEmbedding: scores of all words
    const bool is_tied = l.flag("tie_weights", true);
    ORKNN_TRY_ASSIGN(const TensorId words, is_tied ? l.weight(0) : l.weight(1));
    ORKNN_TRY_ASSIGN(TensorId scores, matrix_product(l, x, words, false, is_tied));
    const double most = l.number("logit_soft_cap", 0);
    return most > 0 ? l.mul(l.unary("Tanh", l.div(scores, most)), most) : scores;
  }
  const TensorId words = l.cast(x, DType::Int32);
  const TensorId y = l.gather(table, words, 0);
  if (l.flag("mask_zero", false)) l.build.masks[y.index] = not_equal(l, words, l.scalar_like(words, 0));
  return y;
}

// Products of vectors along one axis of each of two tensors; axes before these are shared.
Result<TensorId> dot(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(a, "to multiply it"));
  ORKNN_TRY_ASSIGN(const int64_t other, l.need_rank(b, "to multiply it"));
  std::vector<int64_t> axes = l.config["axes"].integers(2);
  if (axes.size() != 2 || rank < 2 || rank > 3 || other < 2 || other > 3)
    return unsupported("Dot needs two lists of vectors, or sequences of them, and an axis of each");
  for (const auto& [axis, x, size] : {std::tuple(&axes[0], &a, rank), std::tuple(&axes[1], &b, other)}) {
    ORKNN_TRY_ASSIGN(*axis, normalize_axis(*axis, size));
    if (*axis == 0) return unsupported("the samples themselves cannot be multiplied");
    if (!l.flag("normalize", false)) continue;
    const TensorId sum = l.reduce("ReduceSum", square(l, *x), {*axis}, true);
    *x = l.mul(*x, rsqrt(l, l.binary("Max", sum, l.scalar_like(sum, 1e-12))));
  }
  // Vectors are matrices of one row, or of one column.
  const TensorId rows = rank == 2 ? l.unsqueeze(a, {1}) : a, columns = other == 2 ? l.unsqueeze(b, {2}) : b;
  ORKNN_TRY_ASSIGN(const TensorId y, matrix_product(l, rows, columns, rank == 3 && axes[0] == 1, other == 3 && axes[1] == 2));
  if (rank == 2 && other == 2) return l.squeeze(y, {2});
  return rank == 2 ? l.squeeze(y, {1}) : other == 2 ? l.squeeze(y, {2}) : y;
}

// --- numbers as categories

// As a number, or as a row with a place for each of `count`.
Result<TensorId> encoded(Layer& l, TensorId numbers, int64_t count) {
  const std::string mode = l.text("output_mode", "int");
  if (mode == "int") return numbers;
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(numbers, "to encode it"));
  if (count < 1 || count > kMaxWindow || (mode != "one_hot" && mode != "multi_hot" && mode != "count"))
    return unsupported("this form of its result is not supported").expected("int, one_hot, multi_hot or count").found(mode);
  const TensorId one = l.add_scalar("on", 1), zero = l.add_scalar("off", 0);
  ORKNN_TRY_ASSIGN(const TensorId rows, one_hot(l, l.cast(numbers, DType::Int64), count, -1, one, zero));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(numbers, "to encode it"));
  if (mode == "one_hot") return rank > 1 && dims.back() == 1 ? l.squeeze(rows, {rank - 1}) : rows;
  if (rank < 2) return rows;
  return l.reduce(mode == "count" ? "ReduceSum" : "ReduceMax", rows, {-2}, false);
}
Result<TensorId> category_encoding(Layer& l, TensorId x) { return encoded(l, x, l.integer("num_tokens", 0)); }
Result<TensorId> discretization(Layer& l, TensorId x) {
  std::vector<float> boundaries;
  for (const Json& item : l.config["bin_boundaries"].items) boundaries.push_back(static_cast<float>(item.number(0)));
  if (boundaries.empty()) return unsupported("the layer states no bin_boundaries").hint("adapt it before the model is saved");
  return encoded(l, bucketize(l, l.cast(x, DType::Float32), boundaries), std::ssize(boundaries) + 1);
}
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"Dense", dense},
      {"EinsumDense", einsum_dense},
      {"Embedding|ReversibleEmbedding", embedding},
      {"Dot", dot, {.inputs = {2, 2}}},
      {"CategoryEncoding", category_encoding},
      {"Discretization", discretization},
  };
  return rows;
}

}  // namespace orknn::importer::keras
