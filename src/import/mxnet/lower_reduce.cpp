// Reductions, products of matrices, sorting and searching. Results that are one number have shape [1]; indices are floats unless
// asked for otherwise.
#include <algorithm>
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// The axes to reduce: stated, all when nothing is, the others with `exclude`.
Result<std::vector<int64_t>> reduced_axes(Layer& l, TensorId x, int64_t& rank) {
  ORKNN_TRY_ASSIGN(rank, l.need_rank(x, "to reduce it"));
  std::vector<int64_t> stated = l.integers(l.has("axes") ? "axes" : "axis");
  std::vector<char> chosen(static_cast<size_t>(rank), stated.empty());
  for (int64_t a : stated) {
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, rank));
    chosen[static_cast<size_t>(a)] = 1;
  }
  const bool exclude = l.flag("exclude", false) && !stated.empty();
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < rank; ++a)
    if ((chosen[static_cast<size_t>(a)] != 0) != exclude) axes.push_back(a);
  return axes;
}

TensorId reduced(Layer& l, std::string_view op, TensorId x, const std::vector<int64_t>& axes, int64_t rank, bool keep) {
  if (axes.empty()) return l.unary("Identity", x);
  const TensorId y = l.reduce(op, x, axes, keep);
  return !keep && static_cast<int64_t>(axes.size()) == rank ? l.reshape(y, {1}) : y;
}

Status reduce(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  int64_t rank = 0;
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x, rank));
  const std::string& op = l.op();
  if (op == "nansum" || op == "nanprod")
    x = l.emit("Where", {l.unary("IsNaN", x), l.add_scalar("instead", op == "nansum" ? 0.0 : 1.0, l.dtype_of(x)), x});
  const std::string_view ours = op == "mean" || op == "_npi_mean"                     ? "ReduceMean"
                                : op == "prod" || op == "nanprod" || op == "_np_prod" ? "ReduceProd"
                                : op == "max" || op == "max_axis" || op == "_np_max"  ? "ReduceMax"
                                : op == "min" || op == "min_axis" || op == "_np_min"  ? "ReduceMin"
                                                                                      : "ReduceSum";
  if (l.has("dtype")) x = l.cast(x, l.dtype("dtype", l.dtype_of(x)));
  l.set_output(reduced(l, ours, x, axes, rank, l.flag("keepdims", false)));
  return {};
}

Status norm(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  int64_t rank = 0;
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x, rank));
  const int64_t order = l.integer("ord", 2);
  if (order != 1 && order != 2) return unsupported("unknown order").expected("1 or 2").found(std::to_string(order));
  l.set_output(reduced(l, order == 1 ? "ReduceL1" : "ReduceL2", x, axes, rank, l.flag("keepdims", false)));
  return {};
}

Status moments(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  int64_t rank = 0;
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(l, x, rank));
  const bool keep = l.flag("keepdims", false);
  const TensorId centred = l.binary("Sub", x, l.reduce("ReduceMean", x, axes, true));
  l.set_output(0, reduced(l, "ReduceMean", x, axes, rank, keep));
  l.set_output(1, reduced(l, "ReduceMean", l.binary("Mul", centred, centred), axes, rank, keep));
  return {};
}

Status cumulative_sum(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  if (!l.has("axis")) x = l.reshape(x, {-1});
  if (l.has("dtype")) x = l.cast(x, l.dtype("dtype", l.dtype_of(x)));
  l.set_output(l.binary("CumSum", x, l.add_int_scalar("axis", l.integer("axis", 0))));
  return {};
}

Status arg_extreme(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  const bool is_least = l.op() == "argmin" || l.op() == "_npi_argmin", is_channel = l.op() == "argmax_channel",
             is_all = !l.has("axis") && !is_channel;
  const bool keep = l.flag("keepdims", false);
  std::vector<int64_t> kept;
  if (is_all) {
    ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to search it"));
    kept.assign(static_cast<size_t>(keep ? rank : 1), 1);
    x = l.reshape(x, {-1});
  }
  TensorId y = l.emit(is_least ? "ArgMin" : "ArgMax", {x},
                      {{"axis", is_channel ? 1 : l.integer("axis", 0)}, {"keepdims", int64_t{keep && !is_all}}});
  if (is_all)
    y = l.reshape(y, kept);
  else if (const auto rank = l.rank_of(y); rank && *rank == 0)
    y = l.reshape(y, {1});
  l.set_output(l.cast(y, l.op().starts_with("_npi") ? DType::Int64 : DType::Float32));
  return {};
}

// Data to sort along `axis`: flattened when no axis is stated.
Result<TensorId> sorted_data(Layer& l, int64_t& axis, int64_t& extent) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  const std::string* text = l.node().find("axis");
  if (text && !l.has("axis")) x = l.reshape(x, {-1});  // axis = None
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort it"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(l.integer("axis", -1), static_cast<int64_t>(dims.size())));
  extent = dims[static_cast<size_t>(axis)];
  return x;
}

Status top_k(Layer& l) {
  int64_t axis = 0, extent = 0;
  ORKNN_TRY_ASSIGN(const TensorId x, sorted_data(l, axis, extent));
  const std::string kind = l.text("ret_typ", "indices");
  const int64_t asked = l.integer("k", 1), k = asked < 1 ? extent : std::min(asked, extent);
  const auto found =
      l.emit_all("TopK", {x, l.add_ints("k", {k})}, {{"axis", axis}, {"largest", int64_t{!l.flag("is_ascend", false)}}}, 2);
  const DType index_type = l.dtype("dtype", DType::Float32);
  if (kind == "mask") {
    const DType dtype = l.dtype_of(x);
    const TensorId zeros = l.emit("Expand", {l.add_scalar("zero", 0.0, dtype), l.unary("Shape", x)}),
                   ones = l.emit("Expand", {l.add_scalar("one", 1.0, dtype), l.unary("Shape", found[1])});
    l.set_output(l.emit("ScatterElements", {zeros, found[1], ones}, {{"axis", axis}}));
  } else if (kind == "indices") {
    l.set_output(l.cast(found[1], index_type));
  } else if (kind == "value" || kind == "both") {
    l.set_output(0, found[0]);
    l.set_output(1, l.cast(found[1], index_type));
  } else {
    return unsupported("unknown ret_typ").expected("value, indices, mask or both").found(kind);
  }
  return {};
}

Status sort(Layer& l) {
  int64_t axis = 0, extent = 0;
  ORKNN_TRY_ASSIGN(const TensorId x, sorted_data(l, axis, extent));
  const auto found =
      l.emit_all("TopK", {x, l.add_ints("k", {extent})}, {{"axis", axis}, {"largest", int64_t{!l.flag("is_ascend", true)}}}, 2);
  l.set_output(l.op() == "sort" ? found[0] : l.cast(found[1], l.dtype("dtype", DType::Float32)));
  return {};
}

// --- products

TensorId swap_last(Layer& l, TensorId x, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(rank) - 1], order[static_cast<size_t>(rank) - 2]);
  return l.transpose(x, order);
}

// The last axis of one against the first of the other, whatever their ranks; a transposed operand has its axes reversed.
Status dot(Layer& l) {
  TensorId operands[2];
  Dims dims[2];
  const bool flip[2] = {l.flag("transpose_a", false), l.flag("transpose_b", false)};
  for (size_t i = 0; i < 2; ++i) {
    ORKNN_TRY_ASSIGN(operands[i], l.need(i));
    ORKNN_TRY_ASSIGN(dims[i], l.need_dims(operands[i], "to multiply it"));
    if (dims[i].empty()) dims[i] = {1};
    if (flip[i] && dims[i].size() > 1) {
      // Only the contracted axis moves: to the end of the left operand, to the front of the right one.
      std::vector<int64_t> order(dims[i].size());
      std::iota(order.begin(), order.end(), int64_t{0});
      if (i == 0)
        std::rotate(order.begin(), order.begin() + 1, order.end());
      else
        std::rotate(order.begin(), order.end() - 1, order.end());
      operands[i] = l.transpose(operands[i], order);
      Dims moved;
      for (int64_t a : order) moved.push_back(dims[i][static_cast<size_t>(a)]);
      dims[i] = moved;
    }
  }
  if (dims[0].back() != dims[1].front())
    return shape_mismatch("the operands do not fit").expected(to_string(dims[0])).found(to_string(dims[1]));
  Dims result(dims[0].begin(), dims[0].end() - 1);
  result.insert(result.end(), dims[1].begin() + 1, dims[1].end());
  if (result.empty()) result = {1};
  const TensorId a = dims[0].size() == 2 ? operands[0] : l.reshape(operands[0], {-1, dims[0].back()});
  const TensorId b = dims[1].size() == 2 ? operands[1] : l.reshape(operands[1], {dims[1].front(), -1});
  const TensorId y = l.binary("MatMul", a, b);
  l.set_output(dims[0].size() == 2 && dims[1].size() == 2 ? y : l.reshape(y, result));
  return {};
}

Result<TensorId> product(Layer& l, TensorId a, TensorId b, bool flip_a, bool flip_b) {
  ORKNN_TRY_ASSIGN(const int64_t rank_a, l.need_rank(a, "to multiply it"));
  ORKNN_TRY_ASSIGN(const int64_t rank_b, l.need_rank(b, "to multiply it"));
  if (rank_a < 2 || rank_b < 2)
    return shape_mismatch("the operands must be matrices")
        .found("ranks " + std::to_string(rank_a) + " and " + std::to_string(rank_b));
  return l.binary("MatMul", flip_a ? swap_last(l, a, rank_a) : a, flip_b ? swap_last(l, b, rank_b) : b);
}

Status batch_dot(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.need(1));
  ORKNN_TRY_ASSIGN(const TensorId y, product(l, a, b, l.flag("transpose_a", false), l.flag("transpose_b", false)));
  l.set_output(y);
  return {};
}

Status linalg_gemm(Layer& l) {
  if (l.integer("axis", -2) != -2)
    return unsupported("a product along other axes than the last two").found("axis " + l.text("axis", ""));
  ORKNN_TRY_ASSIGN(const TensorId a, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.need(1));
  ORKNN_TRY_ASSIGN(TensorId y, product(l, a, b, l.flag("transpose_a", false), l.flag("transpose_b", false)));
  if (const double alpha = l.number("alpha", 1.0); alpha != 1.0) y = l.with_scalar("Mul", y, alpha);
  if (l.op() == "_linalg_gemm") {
    ORKNN_TRY_ASSIGN(TensorId c, l.need(2));
    if (const double beta = l.number("beta", 1.0); beta != 1.0) c = l.with_scalar("Mul", c, beta);
    y = l.binary("Add", y, c);
  }
  l.set_output(y);
  return {};
}

Status linalg_syrk(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.need(0));
  const bool flip = l.flag("transpose", false);
  ORKNN_TRY_ASSIGN(TensorId y, product(l, a, a, flip, !flip));
  if (const double alpha = l.number("alpha", 1.0); alpha != 1.0) y = l.with_scalar("Mul", y, alpha);
  l.set_output(y);
  return {};
}
}  // namespace

std::span<const Row> reduce_rows() {
  static const Row rows[] = {
      {"sum", reduce},
      {"sum_axis", reduce},
      {"_np_sum", reduce},
      {"mean", reduce},
      {"_npi_mean", reduce},
      {"prod", reduce},
      {"_np_prod", reduce},
      {"nansum", reduce},
      {"nanprod", reduce},
      {"max", reduce},
      {"max_axis", reduce},
      {"_np_max", reduce},
      {"min", reduce},
      {"min_axis", reduce},
      {"_np_min", reduce},
      {"norm", norm},
      {"moments", moments},
      {"cumsum", cumulative_sum},
      {"_np_cumsum", cumulative_sum},
      {"argmax", arg_extreme},
      {"argmin", arg_extreme},
      {"argmax_channel", arg_extreme},
      {"_npi_argmax", arg_extreme},
      {"_npi_argmin", arg_extreme},
      {"topk", top_k},
      {"sort", sort},
      {"argsort", sort},
      {"dot", dot},
      {"_np_dot", dot},
      {"batch_dot", batch_dot},
      {"_linalg_gemm", linalg_gemm},
      {"_linalg_gemm2", linalg_gemm},
      {"_linalg_syrk", linalg_syrk},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
