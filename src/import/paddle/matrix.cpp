#include "import/lower/attention.h"
#include "import/lower/gather.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Result<TensorId> matmul(Layer& l, TensorId a, TensorId b) {
  const auto is_vector = [&](TensorId x) { return l.rank_of(x) == std::optional<int64_t>(1); };
  ORKNN_TRY_ASSIGN(const TensorId y, matrix_product(l, a, b, l.flag("transpose_x", false) && !is_vector(a),
                                                    l.flag("transpose_y", false) && !is_vector(b)));
  const double alpha = l.number("alpha", 1);
  return alpha == 1 ? y : l.mul(y, alpha);
}
// Both are matrices of their leading and their other axes; the result has the axes of both.
Result<TensorId> product_of_flattened(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const Dims x, l.need_dims(a, "to see it as a matrix"));
  ORKNN_TRY_ASSIGN(const Dims y, l.need_dims(b, "to see it as a matrix"));
  const int64_t cut_x = l.integer("x_num_col_dims", 1), cut_y = l.integer("y_num_col_dims", 1);
  if (cut_x < 1 || cut_x >= std::ssize(x) || cut_y < 1 || cut_y >= std::ssize(y))
    return invalid_model("the operands cannot be seen as matrices").found(to_string(x) + " and " + to_string(y));
  Dims inner(x.begin() + cut_x, x.end()), shared(y.begin(), y.begin() + cut_y);
  Dims result(x.begin(), x.begin() + cut_x);
  result.insert(result.end(), y.begin() + cut_y, y.end());
  const TensorId rows = l.reshape(a, {-1, element_count(inner)});
  return l.reshape(l.matmul(rows, l.reshape(b, {element_count(shared), -1})), result);
}
TensorId dot(Layer& l, TensorId a, TensorId b) { return l.reduce("ReduceSum", l.mul(a, b), {-1}, false); }
TensorId addmm(Layer& l, TensorId c, TensorId a, TensorId b) {
  return l.add(l.mul(c, l.number("beta", 1)), l.mul(l.matmul(a, b), l.number("alpha", 1)));
}
Result<TensorId> einsum(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> operands, l.list(0));
  return l.emit("Einsum", operands, {{"equation", l.text("equation", "")}});
}
// Queries, keys and values are [batch, length, heads, width].
Result<TensorId> flash_attention(Layer& l, TensorId q, TensorId k, TensorId v) {
  const auto heads_first = [&](TensorId x) { return l.transpose(x, {0, 2, 1, 3}); };
  AttentionOptions options;
  options.mask = l.input(4);
  options.is_causal = l.flag("causal", false);
  ORKNN_TRY_ASSIGN(const TensorId y, attention(l, heads_first(q), heads_first(k), heads_first(v), options));
  return heads_first(y);
}
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"matmul", matmul}, {"mul", product_of_flattened},   {"bmm|mv", same<"MatMul">}, {"dot", dot}, {"addmm", addmm},
      {"einsum", einsum}, {"flash_attn", flash_attention},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
