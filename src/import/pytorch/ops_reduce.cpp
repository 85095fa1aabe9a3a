// Sums, extremes, norms and running values along axes.
#include <cmath>
#include <limits>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// The axes of `dim`, all without one, and whether they stay.
struct Along {
  std::vector<int64_t> axes;
  bool keep;
  int64_t count;  // elements along the axes
};
Result<Along> along(Call& c) {
  Along a;
  ORKNN_TRY_ASSIGN(a.axes, c.axes("dim", c.rank("self")));
  a.keep = c.flag("keepdim");
  a.count = 1;
  for (int64_t axis : a.axes) a.count *= c.dims("self")[static_cast<size_t>(axis)];
  return a;
}

// Integers are summed as int64, floats in their own type, unless a type is asked for.
Result<TensorId> total_input(Call& c, bool to_float) {
  const DType own = c.dtype("self");
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", is_float(own) ? own : to_float ? DType::Float32 : DType::Int64));
  return c.cast(c.tensor("self"), t);
}
template <OpName Op, bool ToFloat = false>
Result<Value> total(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  ORKNN_TRY_ASSIGN(const TensorId x, total_input(c, ToFloat));
  return c.made(c.reduce(Op.string(), x, a.axes, a.keep));
}
template <OpName Op>
Result<Value> total_of_one_axis(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId x, total_input(c, false));
  if (c.rank("self") == 0) return c.made(x);
  return c.made(c.reduce(Op.string(), x, {static_cast<int64_t>(axis)}, c.flag("keepdim")));
}
template <OpName Op>
Result<Value> total_of_all(Call& c) {
  ORKNN_TRY_ASSIGN(const auto axes, c.axes("axes_", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId x, total_input(c, false));
  return c.made(c.reduce(Op.string(), x, axes, false));
}

// NaN counts as zero, and not at all in the mean.
// Values that are no numbers do not count.
Result<Value> sum_of_numbers(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  const TensorId x = c.as_float("self"), is_nan = c.emit("IsNaN", {x});
  const TensorId sum = c.reduce("ReduceSum", c.where(is_nan, c.scalar(0, c.dtype_of(x)), x), a.axes, a.keep);
  if (c.op() == "nansum") return c.made(sum);
  return c.made(c.div(sum, c.reduce("ReduceSum", c.cast(c.emit("Not", {is_nan}), c.dtype_of(x)), a.axes, a.keep)));
}

template <OpName Op>
Result<Value> logsumexp(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return c.made(c.reduce(Op.string(), c.as_float("self"), a.axes, a.keep));
}

// --- extremes
template <OpName Op>
Result<Value> extreme(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return c.made(c.reduce(Op.string(), c.tensor("self"), a.axes, a.keep));
}
template <OpName Op>
Result<Value> extreme_of_all(Call& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("self"); ++i) axes.push_back(i);
  return c.made(c.reduce(Op.string(), c.tensor("self"), axes, false));
}
TensorId position_of_extreme(Call& c, const std::string& op, TensorId x, int64_t axis, bool keep) {
  if (c.dtype_of(x) == DType::Bool) x = c.cast(x, DType::Int32);
  return c.emit(op, {x}, {{"axis", axis}, {"keepdims", static_cast<int64_t>(keep)}});
}
// (values, indices)
template <OpName Reduce, OpName Arg>
Result<Value> extreme_with_index(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  const int64_t a = static_cast<int64_t>(axis);
  if (c.rank("self") == 0) {
    ORKNN_TRY_ASSIGN(const Value index, c.made(c.int_scalar(0, DType::Int64)));
    return c.tuple({c.value("self"), index});
  }
  ORKNN_TRY_ASSIGN(const Value values, c.made(c.reduce(Reduce.string(), c.tensor("self"), {a}, c.flag("keepdim"))));
  ORKNN_TRY_ASSIGN(const Value indices, c.made(position_of_extreme(c, Arg.string(), c.tensor("self"), a, c.flag("keepdim"))));
  return c.tuple({values, indices});
}
template <OpName Arg>
Result<Value> arg_extreme(Call& c) {
  if (c.rank("self") == 0) return c.made(c.int_scalar(0, DType::Int64));
  if (!c.has("dim")) {
    const TensorId flat = position_of_extreme(c, Arg.string(), c.reshape(c.tensor("self"), {-1}), 0, false);
    return c.made(c.flag("keepdim") ? c.reshape(flat, std::vector<int64_t>(static_cast<size_t>(c.rank("self")), 1)) : flat);
  }
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return c.made(position_of_extreme(c, Arg.string(), c.tensor("self"), static_cast<int64_t>(axis), c.flag("keepdim")));
}
Result<Value> aminmax(Call& c) {
  std::vector<int64_t> axes;
  if (c.has("dim")) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
    if (c.rank("self") > 0) axes = {static_cast<int64_t>(axis)};
  } else {
    for (int64_t i = 0; i < c.rank("self"); ++i) axes.push_back(i);
  }
  ORKNN_TRY_ASSIGN(const Value least, c.made(c.reduce("ReduceMin", c.tensor("self"), axes, c.flag("keepdim"))));
  ORKNN_TRY_ASSIGN(const Value most, c.made(c.reduce("ReduceMax", c.tensor("self"), axes, c.flag("keepdim"))));
  return c.tuple({least, most});
}
// The lower median, as PyTorch defines it.
Result<Value> median(Call& c) {
  const bool all = !c.has("dim");
  const TensorId x = all ? c.reshape(c.tensor("self"), {-1}) : c.tensor("self");
  ORKNN_TRY_ASSIGN(const size_t axis, all ? Result<size_t>(size_t{0}) : c.axis("dim", c.rank("self")));
  const auto dims = c.dims_of(x);
  if (!dims || dims->empty() || (*dims)[axis] == 0) return c.fail("the median of nothing is not defined");
  const int64_t a = static_cast<int64_t>(axis), count = (*dims)[axis], middle = (count - 1) / 2;
  const auto sorted =
      c.emit_all("TopK", {x, c.add_ints("k", {middle + 1})}, {{"axis", a}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}}, 2);
  TensorId value = c.slice(sorted[0], a, middle, middle + 1), index = c.slice(sorted[1], a, middle, middle + 1);
  if (all || !c.flag("keepdim")) {
    value = c.squeeze(value, {a});
    index = c.squeeze(index, {a});
  }
  ORKNN_TRY_ASSIGN(const Value v, c.made(value));
  if (all) return v;
  ORKNN_TRY_ASSIGN(const Value i, c.made(index));
  return c.tuple({v, i});
}

// --- truth values
template <OpName Op>
Result<Value> truth(Call& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("self"); ++i) axes.push_back(i);
  const TensorId bits = c.cast(c.as_bool(c.tensor("self")), DType::Int32);
  return c.made(c.cast(c.reduce(Op.string(), bits, axes, false), DType::Bool));
}
template <OpName Op>
Result<Value> truth_along(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  const TensorId bits = c.cast(c.as_bool(c.tensor("self")), DType::Int32);
  return c.made(c.cast(c.reduce(Op.string(), bits, a.axes, a.keep), DType::Bool));
}
Result<Value> count_nonzero(Call& c) {
  ORKNN_TRY_ASSIGN(const auto axes, c.axes("dim", c.rank("self")));
  return c.made(c.reduce("ReduceSum", c.cast(c.as_bool(c.tensor("self")), DType::Int64), axes, false));
}
Result<Value> equal(Call& c) {
  if (c.dims("self") != c.dims("other")) return Value(false);
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("self"), &c.value("other")}));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("self"); ++i) axes.push_back(i);
  const TensorId same = c.emit("Equal", {c.cast(c.tensor("self"), t), c.cast(c.tensor("other"), t)});
  return c.made(c.cast(c.reduce("ReduceMin", c.cast(same, DType::Int32), axes, false), DType::Bool));
}

// --- spread
TensorId variance(Call& c, TensorId x, const Along& a, double correction, TensorId* mean_out = nullptr) {
  const DType t = c.dtype_of(x);
  const TensorId mean = c.reduce("ReduceMean", x, a.axes, true);
  const TensorId deviation = c.sub(x, mean);
  const double count = static_cast<double>(a.count);
  TensorId var = c.reduce("ReduceMean", c.mul(deviation, deviation), a.axes, a.keep);
  const double divisor = std::max(count - correction, 0.0);
  if (divisor != count) var = c.mul(var, c.scalar(count / divisor, t));
  if (mean_out) *mean_out = a.keep || a.axes.empty() ? mean : c.squeeze(mean, a.axes);
  return var;
}
double correction_of(Call& c, bool has_unbiased) {
  if (has_unbiased) return c.flag("unbiased") ? 1 : 0;
  return c.has("correction") ? c.number("correction") : 1;
}
template <bool Root, bool Unbiased>
Result<Value> spread(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  const TensorId var = variance(c, c.as_float("self"), a, correction_of(c, Unbiased));
  return c.made(Root ? c.emit("Sqrt", {var}) : var);
}
template <bool Root>
Result<Value> spread_of_all(Call& c) {
  Along a{{}, false, ir::element_count(c.dims("self"))};
  for (int64_t i = 0; i < c.rank("self"); ++i) a.axes.push_back(i);
  const TensorId var = variance(c, c.as_float("self"), a, c.flag("unbiased") ? 1 : 0);
  return c.made(Root ? c.emit("Sqrt", {var}) : var);
}
template <bool Root, bool Unbiased>
Result<Value> spread_and_mean(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  TensorId mean;
  const TensorId var = variance(c, c.as_float("self"), a, correction_of(c, Unbiased), &mean);
  ORKNN_TRY_ASSIGN(const Value first, c.made(Root ? c.emit("Sqrt", {var}) : var));
  ORKNN_TRY_ASSIGN(const Value second, c.made(mean));
  return c.tuple({first, second});
}

// --- norms
Result<TensorId> norm(Call& c, TensorId x, double p, const Along& a) {
  const DType t = c.dtype_of(x);
  if (a.axes.empty()) return c.emit("Abs", {x});
  if (p == 2) return c.reduce("ReduceL2", x, a.axes, a.keep);
  if (p == 1) return c.reduce("ReduceL1", x, a.axes, a.keep);
  const TensorId size = c.emit("Abs", {x});
  if (std::isinf(p)) return c.reduce(p > 0 ? "ReduceMax" : "ReduceMin", size, a.axes, a.keep);
  if (p == 0) return c.reduce("ReduceSum", c.cast(c.as_bool(x), t), a.axes, a.keep);
  return c.emit("Pow", {c.reduce("ReduceSum", c.emit("Pow", {size, c.scalar(p, t)}), a.axes, a.keep), c.scalar(1 / p, t)});
}
Result<Value> norm_along(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", is_float(c.dtype("self")) ? c.dtype("self") : DType::Float32));
  ORKNN_TRY_ASSIGN(const TensorId y, norm(c, c.cast(c.tensor("self"), t), c.has("p") ? c.number("p") : 2, a));
  return c.made(y);
}
Result<Value> norm_of_all(Call& c) {
  Along a{{}, false, 0};
  for (int64_t i = 0; i < c.rank("self"); ++i) a.axes.push_back(i);
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", is_float(c.dtype("self")) ? c.dtype("self") : DType::Float32));
  ORKNN_TRY_ASSIGN(const TensorId y, norm(c, c.cast(c.tensor("self"), t), c.has("p") ? c.number("p") : 2, a));
  return c.made(y);
}
Result<Value> frobenius(Call& c) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return c.made(c.reduce("ReduceL2", c.as_float("self"), a.axes, a.keep));
}
// The largest (or for a negative order the smallest) sum of absolute values along one axis.
Result<Value> largest_sum(Call& c, double order) {
  std::vector<int64_t> axes = c.ints("dim");
  const int64_t rank = c.rank("self");
  if (axes.size() != 2 || (std::fabs(order) != 1 && !std::isinf(order)))
    return c.fail("this matrix norm is not supported").found("order " + std::to_string(order));
  for (int64_t& a : axes) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(a, rank));
    a = static_cast<int64_t>(axis);
  }
  const int64_t summed = std::isinf(order) ? axes[1] : axes[0], other = std::isinf(order) ? axes[0] : axes[1];
  const TensorId sums = c.reduce("ReduceL1", c.as_float("self"), {summed}, true);
  const TensorId y = c.reduce(order > 0 ? "ReduceMax" : "ReduceMin", sums, {other}, true);
  return c.made(c.flag("keepdim") ? y : c.squeeze(y, axes));
}
Result<Value> matrix_norm(Call& c) {
  if (c.has("ord") && c.value("ord").is_number()) return largest_sum(c, c.number("ord"));
  if (c.has("ord") && !(c.value("ord").kind() == Kind::String && c.text("ord") == "fro"))
    return c.fail("only the Frobenius norm of a matrix is supported");
  return frobenius(c);
}
Result<Value> linalg_norm(Call& c) {
  if (c.has("ord") && c.value("ord").kind() == Kind::String) {
    if (c.text("ord") != "fro") return c.fail("only the Frobenius norm of a matrix is supported");
    return frobenius(c);
  }
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  if (c.has("ord") && a.axes.size() == 2) return c.fail("this matrix norm is not supported");
  const TensorId x = c.as_float("self");
  ORKNN_TRY_ASSIGN(const TensorId y, norm(c, x, c.has("ord") ? c.number("ord") : 2, a));
  return c.made(y);
}
Result<Value> distance(Call& c) {
  const DType t = DType::Float32;
  const TensorId difference = c.add(c.sub(c.cast(c.tensor("x1"), t), c.cast(c.tensor("x2"), t)), c.scalar(c.number("eps"), t));
  const auto rank = c.rank_of(difference);
  if (!rank || *rank == 0) return c.fail("the operands have no axis");
  ORKNN_TRY_ASSIGN(const TensorId y, norm(c, difference, c.number("p"), Along{{*rank - 1}, c.flag("keepdim"), 0}));
  return c.made(y);
}
Result<Value> dist(Call& c) {
  const TensorId difference = c.sub(c.as_float("self"), c.as_float("other"));
  Along a{{}, false, 0};
  for (int64_t i = 0; i < c.rank_of(difference).value_or(0); ++i) a.axes.push_back(i);
  ORKNN_TRY_ASSIGN(const TensorId y, norm(c, difference, c.number("p"), a));
  return c.made(y);
}
// All pairs of rows: distances between [.., P, M] and [.., R, M].
Result<Value> cdist(Call& c) {
  const int64_t rank = c.rank("x1");
  if (rank < 2 || c.rank("x2") < 2) return c.fail("cdist needs matrices");
  const TensorId a = c.unsqueeze(c.as_float("x1"), {-2}), b = c.unsqueeze(c.as_float("x2"), {-3});
  const TensorId difference = c.sub(a, b);
  ORKNN_TRY_ASSIGN(const TensorId y,
                   norm(c, difference, c.number("p"), Along{{c.rank_of(difference).value_or(3) - 1}, false, 0}));
  return c.made(y);
}
Result<Value> cosine_similarity(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value("x1"), &c.value("x2")}));
  const TensorId a = c.as(c.value("x1"), t), b = c.as(c.value("x2"), t);
  const TensorId product = c.mul(a, b);
  const auto rank = c.rank_of(product);
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", rank.value_or(1)));
  const std::vector<int64_t> axes{static_cast<int64_t>(axis)};
  const auto dims = c.dims_of(product);
  if (!dims || dims->empty()) return c.fail("the operands have no axis");
  const TensorId wide_a = c.expand(a, *dims), wide_b = c.expand(b, *dims);
  const TensorId na = c.clip(c.reduce("ReduceL2", wide_a, axes, false), c.number("eps"), std::nullopt);
  const TensorId nb = c.clip(c.reduce("ReduceL2", wide_b, axes, false), c.number("eps"), std::nullopt);
  return c.made(c.div(c.reduce("ReduceSum", product, axes, false), c.mul(na, nb)));
}
// Each slice along an axis is scaled down to at most `maxnorm`.
Result<Value> renorm(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  Along a{{}, true, 0};
  for (int64_t i = 0; i < c.rank("self"); ++i)
    if (i != static_cast<int64_t>(axis)) a.axes.push_back(i);
  const TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  ORKNN_TRY_ASSIGN(const TensorId size, norm(c, x, c.number("p"), a));
  const TensorId limit = c.scalar(c.number("maxnorm"), t);
  const TensorId factor = c.where(c.emit("Greater", {size, limit}), c.div(limit, c.add(size, c.scalar(1e-7, t))), c.scalar(1, t));
  return c.made(c.mul(x, factor));
}

// --- running values
template <OpName Op>
Result<Value> running(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const TensorId x, total_input(c, false));
  if (c.rank("self") == 0) return c.made(x);
  return c.made(c.emit(Op.string(), {x, c.int_scalar(static_cast<int64_t>(axis), DType::Int64)}));
}
Result<Value> logcumsumexp(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  const TensorId x = c.as_float("self");
  if (c.rank("self") == 0) return c.made(x);
  const TensorId largest = c.reduce("ReduceMax", x, {static_cast<int64_t>(axis)}, true);
  const TensorId sums =
      c.emit("CumSum", {c.emit("Exp", {c.sub(x, largest)}), c.int_scalar(static_cast<int64_t>(axis), DType::Int64)});
  return c.made(c.add(c.emit("Log", {sums}), largest));
}
// Running extremes by doubling: after step k each element knows the extreme of the 2^k elements up to it.
template <OpName Op>
Result<Value> running_extreme(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  TensorId x = c.tensor("self");
  const int64_t count = c.rank("self") == 0 ? 1 : c.dims("self")[axis], a = static_cast<int64_t>(axis);
  for (int64_t step = 1; step < count; step *= 2) {
    const TensorId merged = c.emit(Op.string(), {c.slice(x, a, step, count), c.slice(x, a, 0, count - step)});
    x = c.concat({c.slice(x, a, 0, step), merged}, a);
  }
  ORKNN_TRY_ASSIGN(const Value values, c.made(x));
  // Positions of the latest element that equals the running extreme.
  if (c.rank("self") == 0) {
    ORKNN_TRY_ASSIGN(const Value zero, c.made(c.int_scalar(0, DType::Int64)));
    return c.tuple({values, zero});
  }
  std::vector<int64_t> shape(static_cast<size_t>(c.rank("self")), 1);
  shape[axis] = count;
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  TensorId position = c.where(c.emit("Equal", {x, c.tensor("self")}), c.reshape(c.add_ints("positions", numbers), shape),
                              c.int_scalar(0, DType::Int64));
  for (int64_t step = 1; step < count; step *= 2)
    position = c.concat({c.slice(position, a, 0, step),
                         c.emit("Max", {c.slice(position, a, step, count), c.slice(position, a, 0, count - step)})},
                        a);
  ORKNN_TRY_ASSIGN(const Value indices, c.made(position));
  return c.tuple({values, indices});
}
Result<Value> diff(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0) return c.fail("diff needs an axis");
  const int64_t a = static_cast<int64_t>(axis);
  TensorId x = c.tensor("self");
  if (c.has("prepend")) x = c.concat({c.tensor("prepend"), x}, a);
  if (c.has("append")) x = c.concat({x, c.tensor("append")}, a);
  const auto dims = c.dims_of(x);
  if (!dims) return c.fail("the shape is not known");
  int64_t count = (*dims)[axis];
  for (int64_t n = c.integer("n"); n > 0 && count > 0; --n, --count)
    x = c.sub(c.slice(x, a, 1, count), c.slice(x, a, 0, count - 1));
  return c.made(x);
}
}  // namespace

std::span<const Row> reduce_rows() {
  static constexpr Row kRows[] = {
      {"sum(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceSum">},
      {"sum(Tensor self, int[]? dim, bool keepdim=False, *, int? dtype=None)", total<"ReduceSum">},
      {"nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", sum_of_numbers},
      {"nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", sum_of_numbers},
      {"mean(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceMean">},
      {"mean(Tensor self, int[]? dim, bool keepdim=False, *, int? dtype=None)", total<"ReduceMean", true>},
      {"prod(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceProd">},
      {"prod(Tensor self, int dim, bool keepdim=False, *, int? dtype=None)", total_of_one_axis<"ReduceProd">},
      {"logsumexp(Tensor self, int[] dim, bool keepdim=False)", logsumexp<"ReduceLogSumExp">},
      {"special_logsumexp(Tensor self, int[] dim, bool keepdim=False)", logsumexp<"ReduceLogSumExp">},
      {"amax(Tensor self, int[] dim=[], bool keepdim=False)", extreme<"ReduceMax">},
      {"amin(Tensor self, int[] dim=[], bool keepdim=False)", extreme<"ReduceMin">},
      {"max(Tensor self)", extreme_of_all<"ReduceMax">},
      {"min(Tensor self)", extreme_of_all<"ReduceMin">},
      {"max(Tensor self, int dim, bool keepdim=False)", extreme_with_index<"ReduceMax", "ArgMax">},
      {"min(Tensor self, int dim, bool keepdim=False)", extreme_with_index<"ReduceMin", "ArgMin">},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False)", arg_extreme<"ArgMax">},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False)", arg_extreme<"ArgMin">},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False)", aminmax},
      {"median(Tensor self, int? dim=None, bool keepdim=False)", median},
      {"any(Tensor self)", truth<"ReduceMax">},
      {"all(Tensor self)", truth<"ReduceMin">},
      {"any(Tensor self, int[] dim, bool keepdim=False)", truth_along<"ReduceMax">},
      {"all(Tensor self, int[] dim, bool keepdim=False)", truth_along<"ReduceMin">},
      {"any(Tensor self, int dim, bool keepdim=False)", truth_along<"ReduceMax">},
      {"all(Tensor self, int dim, bool keepdim=False)", truth_along<"ReduceMin">},
      {"count_nonzero(Tensor self, int[]? dim=None)", count_nonzero},
      {"equal(Tensor self, Tensor other)", equal},
      {"var(Tensor self, bool unbiased=True)", spread_of_all<false>},
      {"std(Tensor self, bool unbiased=True)", spread_of_all<true>},
      {"var(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", spread<false, true>},
      {"std(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", spread<true, true>},
      {"var(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", spread<false, false>},
      {"std(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", spread<true, false>},
      {"var_mean(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", spread_and_mean<false, true>},
      {"std_mean(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", spread_and_mean<true, true>},
      {"var_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", spread_and_mean<false, false>},
      {"std_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", spread_and_mean<true, false>},
      {"norm(Tensor self, Scalar? p=2, *, int? dtype=None)", norm_of_all},
      {"norm(Tensor self, Scalar? p, int[] dim, bool keepdim=False, *, int? dtype=None)", norm_along},
      {"linalg_vector_norm(Tensor self, Scalar p=2, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", norm_along},
      {"frobenius_norm(Tensor self, int[]? dim=None, bool keepdim=False)", frobenius},
      {"linalg_matrix_norm(Tensor self, any ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, int? dtype=None)",
       matrix_norm},
      {"linalg_norm(Tensor self, any ord=None, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", linalg_norm},
      {"pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)", distance},
      {"dist(Tensor self, Tensor other, Scalar p=2)", dist},
      {"cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None)", cdist},
      {"_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode)", cdist},
      {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)", cosine_similarity},
      {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)", renorm},
      {"cumsum(Tensor self, int dim, *, int? dtype=None)", running<"CumSum">},
      {"cumprod(Tensor self, int dim, *, int? dtype=None)", running<"CumProd">},
      {"logcumsumexp(Tensor self, int dim)", logcumsumexp},
      {"cummax(Tensor self, int dim)", running_extreme<"Max">},
      {"cummin(Tensor self, int dim)", running_extreme<"Min">},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", diff},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
