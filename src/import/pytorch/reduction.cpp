// Sums, extremes, norms and running values along axes.
#include "import/pytorch/reduction.h"

#include <cmath>
#include <numeric>

#include "import/lower/norms.h"
#include "import/lower/quantile.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// Those of arguments `dim` and `keepdim`; all axes without any.
Result<Along> along(Call& c) {
  ORKNN_TRY_ASSIGN(auto axes, c.axes());
  return Along{std::move(axes), c.flag("keepdim")};
}
Along all_of(Call& c, TensorId x) { return {*Emitter::axes_of({}, c.rank_of(x).value_or(0)), false}; }
TensorId reduced(Call& c, std::string_view op, TensorId x, const Along& a) { return c.reduce(op, x, a.axes, a.keep); }

// Integers are summed as int64, floats in their own type, unless a type is asked for.
Result<TensorId> total_input(Call& c, TensorId x, bool to_float = false) {
  const DType own = c.dtype();
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(is_float(own) ? own : to_float ? DType::Float32 : DType::Int64));
  return c.cast(x, t);
}
template <OpName Op, bool ToFloat = false>
Result<TensorId> total(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  ORKNN_TRY_ASSIGN(x, total_input(c, x, ToFloat));
  return reduced(c, Op.chars, x, a);
}
template <OpName Op>
Result<TensorId> total_of_all(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(x, total_input(c, x));
  return reduced(c, Op.chars, x, all_of(c, x));
}
// Values that are no numbers do not count.
Result<TensorId> sum_of_numbers(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  x = c.as_float(x);
  const TensorId is_nan = c.unary("IsNaN", x);
  const TensorId sum = reduced(c, "ReduceSum", c.where(is_nan, c.scalar_like(x, 0), x), a);
  if (c.op() == "nansum") return sum;
  return c.div(sum, reduced(c, "ReduceSum", c.cast(c.unary("Not", is_nan), c.dtype_of(x)), a));
}
template <OpName Op>
Result<TensorId> float_total(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return reduced(c, Op.chars, c.as_float(x), a);
}

// --- extremes
template <OpName Op>
Result<TensorId> extreme(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return reduced(c, Op.chars, x, a);
}
template <OpName Op>
TensorId extreme_of_all(Call& c, TensorId x) {
  return reduced(c, Op.chars, x, all_of(c, x));
}
TensorId position_of_extreme(Call& c, const std::string& op, TensorId x, int64_t axis, bool keep) {
  if (c.dtype_of(x) == DType::Bool) x = c.cast(x, DType::Int32);
  return c.emit(op, {x}, {{"axis", axis}, {"keepdims", int64_t{keep}}});
}
// (values, indices)
template <OpName Reduce, OpName Arg>
Result<std::vector<TensorId>> extreme_with_index(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0) return std::vector<TensorId>{x, c.int_scalar(0)};
  const bool keep = c.flag("keepdim");
  return std::vector<TensorId>{c.reduce(Reduce.chars, x, {axis}, keep), position_of_extreme(c, Arg.string(), x, axis, keep)};
}
template <OpName Arg>
Result<TensorId> arg_extreme(Call& c, TensorId x) {
  if (c.rank() == 0) return c.int_scalar(0);
  if (c.has("dim")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
    return position_of_extreme(c, Arg.string(), x, axis, c.flag("keepdim"));
  }
  const TensorId flat = position_of_extreme(c, Arg.string(), c.reshape(x, {-1}), 0, false);
  return c.flag("keepdim") ? c.reshape(flat, std::vector<int64_t>(static_cast<size_t>(c.rank()), 1)) : flat;
}
Result<std::vector<TensorId>> aminmax(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return std::vector<TensorId>{reduced(c, "ReduceMin", x, a), reduced(c, "ReduceMax", x, a)};
}
// The lower median, as PyTorch defines it: the value, and along an axis its position too. `nanmedian` counts numbers only.
Output median(Call& c) {
  const bool all = !c.has("dim");
  const TensorId x = all ? c.reshape(c.tensor("self"), {-1}) : c.tensor("self");
  ORKNN_TRY_ASSIGN(const int64_t axis, all ? Result<int64_t>(int64_t{0}) : c.axis());
  const auto dims = c.dims_of(x);
  if (!dims || dims->empty() || (*dims)[axis] == 0) return unsupported("the median of nothing is not defined");
  const int64_t count = (*dims)[axis];
  const bool skips_nan = c.op() == "nanmedian" && is_float(c.dtype_of(x));
  Ranked found = skips_nan ? median_of_numbers(c, x, axis, count) : nth_smallest(c, x, axis, (count - 1) / 2);
  if (all || !c.flag("keepdim")) found = {c.squeeze(found.value, {axis}), c.squeeze(found.place, {axis})};
  return all ? Output(found.value) : std::vector{found.value, found.place};
}

Result<TensorId> quantile(Call& c) {
  const TensorId x = c.as_float(c.tensor("self"));
  Quantile wanted{
      .x = x, .share = c.as("q", c.dtype_of(x)), .keeps_axes = c.flag("keepdim"), .skips_nan = c.op() == "nanquantile"};
  if (c.has("interpolation")) wanted.interpolation = c.text("interpolation");
  if (c.has("dim") && c.rank() > 0) {
    ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
    wanted.axes = {axis};
  } else {
    for (int64_t i = 0; i < c.rank(); ++i) wanted.axes.push_back(i);
  }
  return quantiles(c, wanted);
}

// --- truth values
TensorId truth_of(Call& c, std::string_view op, TensorId x, const Along& a) {
  return c.cast(reduced(c, op, c.cast(c.cast(x, DType::Bool), DType::Int32), a), DType::Bool);
}
template <OpName Op>
TensorId truth(Call& c, TensorId x) {
  return truth_of(c, Op.chars, x, all_of(c, x));
}
template <OpName Op>
Result<TensorId> truth_along(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  return truth_of(c, Op.chars, x, a);
}
Result<TensorId> count_nonzero(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, c.axes());
  return c.reduce("ReduceSum", c.cast(c.cast(x, DType::Bool), DType::Int64), axes, false);
}
Output equal(Call& c) {
  if (c.dims() != c.dims("other")) return Value(false);
  ORKNN_TRY_ASSIGN(const TensorId same_elements, promoted<"Equal">(c));
  return truth_of(c, "ReduceMin", same_elements, all_of(c, same_elements));
}

// --- spread
// Variance and mean; `correction` elements count as not there.
Moments spread(Call& c, TensorId x, const Along& a, double correction) {
  x = c.as_float(x);
  Moments m = moments(c, x, a.axes, a.keep);
  double count = 1;
  for (int64_t axis : a.axes) count *= static_cast<double>(c.dims()[axis]);
  const double divisor = std::max(count - correction, 0.0);
  if (divisor != count) m.variance = c.mul(m.variance, count / divisor);
  return m;
}
template <bool Root>
TensorId rooted(Call& c, TensorId variance) {
  return Root ? c.unary("Sqrt", variance) : variance;
}
// `Unbiased`: the argument of that name tells the correction, otherwise the one named `correction`.
template <bool Unbiased>
Result<Moments> spread_along(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  if constexpr (Unbiased)
    return spread(c, x, a, c.flag("unbiased") ? 1 : 0);
  else
    return spread(c, x, a, c.number_or("correction", 1));
}
template <bool Root, bool Unbiased>
Result<TensorId> deviation(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Moments m, spread_along<Unbiased>(c, x));
  return rooted<Root>(c, m.variance);
}
template <bool Root>
TensorId deviation_of_all(Call& c, TensorId x) {
  return rooted<Root>(c, spread(c, x, all_of(c, x), c.flag("unbiased") ? 1 : 0).variance);
}
template <bool Root>
std::vector<TensorId> deviation_and_mean_of_all(Call& c, TensorId x) {
  const Moments m = spread(c, x, all_of(c, x), c.flag("unbiased") ? 1 : 0);
  return {rooted<Root>(c, m.variance), m.mean};
}
template <bool Root, bool Unbiased>
Result<std::vector<TensorId>> deviation_and_mean(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Moments m, spread_along<Unbiased>(c, x));
  return std::vector<TensorId>{rooted<Root>(c, m.variance), m.mean};
}

// --- norms
Result<TensorId> norm_input(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(is_float(c.dtype()) ? c.dtype() : DType::Float32));
  return c.cast(x, t);
}
Result<TensorId> norm_along(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  ORKNN_TRY_ASSIGN(x, norm_input(c, x));
  return norm(c, x, c.number_or("p", 2), a);
}
Result<TensorId> norm_of_all(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(x, norm_input(c, x));
  return norm(c, x, c.number_or("p", 2), all_of(c, x));
}
// The largest (or for a negative order the smallest) sum of absolute values along one axis.
Result<TensorId> largest_sum(Call& c, TensorId x, double order) {
  ORKNN_TRY_ASSIGN(const auto axes, c.ordered_axes("dim"));
  if (axes.size() != 2 || (std::fabs(order) != 1 && !std::isinf(order)))
    return unsupported("this matrix norm is not supported").found("order " + std::to_string(order));
  const int64_t summed = std::isinf(order) ? axes[1] : axes[0], other = std::isinf(order) ? axes[0] : axes[1];
  const TensorId sums = c.reduce("ReduceL1", c.as_float(x), {summed}, true);
  const TensorId y = c.reduce(order > 0 ? "ReduceMax" : "ReduceMin", sums, {other}, true);
  return c.flag("keepdim") ? y : c.squeeze(y, axes);
}
Status only_frobenius() { return unsupported("only the Frobenius norm of a matrix is supported"); }
bool is_frobenius(Call& c) { return c.value("ord").kind() == Kind::String && c.text("ord") == "fro"; }
Result<TensorId> matrix_norm(Call& c, TensorId x) {
  if (c.value("ord").is_number()) return largest_sum(c, x, c.number("ord"));
  if (c.has("ord") && !is_frobenius(c)) return only_frobenius();
  return float_total<"ReduceL2">(c, x);
}
Result<TensorId> linalg_norm(Call& c, TensorId x) {
  if (c.value("ord").kind() == Kind::String) return is_frobenius(c) ? float_total<"ReduceL2">(c, x) : only_frobenius();
  ORKNN_TRY_ASSIGN(const Along a, along(c));
  if (c.has("ord") && a.axes.size() == 2) return unsupported("this matrix norm is not supported");
  return norm(c, c.as_float(x), c.number_or("ord", 2), a);
}
Result<TensorId> pairwise_distance(Call& c, TensorId a, TensorId b) {
  const TensorId difference = c.add(c.sub(c.cast(a, DType::Float32), c.cast(b, DType::Float32)), c.number("eps"));
  const auto rank = c.rank_of(difference);
  if (!rank || *rank == 0) return unsupported("the operands have no axis");
  return norm(c, difference, c.number("p"), {{*rank - 1}, c.flag("keepdim")});
}
TensorId dist(Call& c, TensorId a, TensorId b) {
  const TensorId difference = c.sub(c.as_float(a), c.as_float(b));
  return norm(c, difference, c.number("p"), all_of(c, difference));
}
// All pairs of rows: distances between [.., P, M] and [.., R, M].
Result<TensorId> cdist(Call& c, TensorId a, TensorId b) {
  if (c.rank("x1") < 2 || c.rank("x2") < 2) return unsupported("cdist needs matrices");
  const TensorId difference = c.sub(c.unsqueeze(c.as_float(a), {-2}), c.unsqueeze(c.as_float(b), {-3}));
  return norm(c, difference, c.number("p"), {{c.rank_of(difference).value_or(3) - 1}, false});
}
Result<TensorId> cosine_similarity(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  const TensorId product = c.mul(x[0], x[1]);
  const auto dims = c.dims_of(product);
  if (!dims || dims->empty()) return unsupported("the operands have no axis");
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), static_cast<int64_t>(dims->size())));
  const auto length = [&](TensorId v) {
    return c.clip(c.reduce("ReduceL2", c.expand(v, *dims), {axis}, false), c.number("eps"), std::nullopt);
  };
  return c.div(c.reduce("ReduceSum", product, {axis}, false), c.mul(length(x[0]), length(x[1])));
}
// Each slice along an axis is scaled down to at most `maxnorm`.
Result<TensorId> renorm(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  Along a = all_of(c, x);
  std::erase(a.axes, axis);
  a.keep = true;
  x = c.as_float(x);
  const TensorId size = norm(c, x, c.number("p"), a), limit = c.scalar_like(x, c.number("maxnorm"));
  return c.mul(x, c.where(c.binary("Greater", size, limit), c.div(limit, c.add(size, 1e-7)), c.scalar_like(x, 1)));
}

// --- running values
template <OpName Op>
Result<TensorId> running(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(x, total_input(c, x));
  return c.rank() == 0 ? x : c.binary(Op.chars, x, c.int_scalar(axis));
}
Result<TensorId> logcumsumexp(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  x = c.as_float(x);
  return c.rank() == 0 ? x : c.binary("LogCumSumExp", x, c.int_scalar(axis));
}
// By doubling: after step k each element knows the extreme of the 2^k elements up to it.
TensorId extreme_so_far(Call& c, const char* op, TensorId x, int64_t axis, int64_t count) {
  for (int64_t step = 1; step < count; step *= 2) {
    const TensorId merged = c.binary(op, c.slice(x, axis, step, count), c.slice(x, axis, 0, count - step));
    x = c.concat({c.slice(x, axis, 0, step), merged}, axis);
  }
  return x;
}
// Values, and positions of the latest element that equals the running extreme.
template <OpName Op>
Result<std::vector<TensorId>> running_extreme(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0) return std::vector<TensorId>{x, c.int_scalar(0)};
  const int64_t count = c.dims()[axis];
  const TensorId values = extreme_so_far(c, Op.chars, x, axis, count);
  std::vector<int64_t> shape(static_cast<size_t>(c.rank()), 1), numbers(static_cast<size_t>(count));
  shape[axis] = count;
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const TensorId own = c.where(c.binary("Equal", values, x), c.reshape(c.add_ints("positions", numbers), shape), c.int_scalar(0));
  return std::vector<TensorId>{values, extreme_so_far(c, "Max", own, axis, count)};
}
Result<TensorId> diff(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0) return unsupported("diff needs an axis");
  if (c.has("prepend")) x = c.concat({c.tensor("prepend"), x}, axis);
  if (c.has("append")) x = c.concat({x, c.tensor("append")}, axis);
  const auto dims = c.dims_of(x);
  if (!dims) return unsupported("the shape is not known");
  int64_t count = (*dims)[axis];
  for (int64_t n = c.integer("n"); n > 0 && count > 0; --n, --count)
    x = c.sub(c.slice(x, axis, 1, count), c.slice(x, axis, 0, count - 1));
  return x;
}

// --- statistics
// The covariance of the rows of a matrix, whose columns are observations.
Result<TensorId> covariance(Call& c, TensorId x, double correction) {
  if (c.rank() > 2) return unsupported("the covariance needs a matrix").found(ir::to_string(c.dims()));
  x = c.reshape(c.as_float(x), {c.rank() == 2 ? c.dims()[0] : 1, c.rank() == 0 ? 1 : c.dims().back()});
  const double count = static_cast<double>(c.rank() == 0 ? 1 : c.dims().back());
  const TensorId centred = c.sub(x, c.reduce("ReduceMean", x, {1}, true));
  const TensorId products = c.div(c.matmul(centred, c.transpose(centred, {1, 0})), std::max(count - correction, 0.));
  return c.rank() == 2 ? products : c.reshape(products, {});
}
Result<TensorId> cov(Call& c, TensorId x) {
  if (c.has("fweights") || c.has("aweights")) return unsupported("weights of observations are not supported");
  return covariance(c, x, static_cast<double>(c.integer("correction")));
}
Result<TensorId> corrcoef(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId products, covariance(c, x, 1));
  if (c.rank() < 2) return c.div(products, products);
  const int64_t rows = c.dims()[0];
  ORKNN_TRY_ASSIGN(const auto diagonal, diagonal_positions(rows, rows, 0));
  const TensorId deviation = c.unary("Sqrt", c.gather(c.reshape(products, {-1}), c.add_ints("diagonal", diagonal), 0));
  const TensorId quotient = c.div(c.div(products, c.unsqueeze(deviation, {1})), c.unsqueeze(deviation, {0}));
  return c.clip(quotient, -1, 1);
}
// Areas between neighbouring values; `x` states where they lie, otherwise they are `dx` apart.
Result<TensorId> trapezoids(Call& c, TensorId y) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("cannot be integrated"));
  y = c.as_float(y);
  const int64_t count = c.dims()[axis];
  const TensorId sums = c.add(c.slice(y, axis, 1, count), c.slice(y, axis, 0, count - 1));
  if (!c.has("x")) return c.mul(sums, c.number_or("dx", 1) / 2);
  TensorId x = c.as_float(c.tensor("x"));
  const int64_t along = c.rank("x") == 1 ? 0 : c.rank("x") - c.rank() + axis;
  if (along < 0 || c.dims("x")[along] != count) return unsupported("the places do not fit the values");
  x = c.sub(c.slice(x, along, 1, count), c.slice(x, along, 0, count - 1));
  if (c.rank("x") == 1 && c.rank() > 1) {
    ir::Dims wide(static_cast<size_t>(c.rank()), 1);
    wide[static_cast<size_t>(axis)] = count - 1;
    x = c.reshape(x, wide);
  }
  return c.mul(c.mul(sums, x), 0.5);
}
Result<TensorId> trapezoid(Call& c, TensorId y) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId areas, trapezoids(c, y));
  return c.reduce("ReduceSum", areas, {axis}, false);
}
Result<TensorId> cumulative_trapezoid(Call& c, TensorId y) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  ORKNN_TRY_ASSIGN(const TensorId areas, trapezoids(c, y));
  return c.binary("CumSum", areas, c.add_int_scalar("axis", axis));
}
// How many values lie in each of `bins` ranges between `min` and `max`, or those of the values where both are the same.
Result<TensorId> histc(Call& c, TensorId x) {
  const int64_t bins = c.integer("bins");
  if (bins < 1 || bins > (int64_t{1} << 24))
    return unsupported("this number of bins is not supported").found(std::to_string(bins));
  x = c.reshape(c.as_float(x), {-1});
  const double least = c.number("min"), most = c.number("max");
  TensorId low = c.scalar_like(x, least), high = c.scalar_like(x, most);
  if (least == most) {
    low = c.reduce("ReduceMin", x, {0}, false), high = c.reduce("ReduceMax", x, {0}, false);
    const TensorId is_flat = c.binary("Equal", low, high);
    low = c.where(is_flat, c.sub(low, 1), low), high = c.where(is_flat, c.add(high, 1), high);
  }
  const TensorId place = c.div(c.mul(c.sub(x, low), static_cast<double>(bins)), c.sub(high, low));
  const TensorId within = c.binary("And", c.binary("GreaterOrEqual", x, low), c.binary("LessOrEqual", x, high));
  // The last bin holds its upper end too; values outside fall into one more that is left out.
  const TensorId bin = c.cast(c.clip(c.unary("Floor", place), 0, static_cast<double>(bins - 1)), DType::Int64);
  const TensorId index = c.where(within, bin, c.int_scalar(bins));
  const TensorId counts = c.emit("ScatterElements", {c.full(ir::Dims{bins + 1}, 0, c.dtype_of(x)), index, c.full_like(x, 1)},
                                 {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  return c.slice(counts, 0, 0, bins);
}
// Distances between each pair of rows, the first with the second, the first with the third and so on.
Result<TensorId> pdist(Call& c, TensorId x) {
  if (c.rank() != 2) return invalid_model("pdist needs a matrix").found(ir::to_string(c.dims()));
  const int64_t rows = c.dims()[0];
  if (rows > 4096) return unsupported("pdist of more than 4096 rows is not supported").found(std::to_string(rows));
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = i + 1; k < rows; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  x = c.as_float(x);
  const TensorId difference = c.sub(c.gather(x, c.add_ints("first", first), 0), c.gather(x, c.add_ints("second", second), 0));
  return norm(c, difference, c.number("p"), {{1}, false});
}
// Summed over the axes that a broadcast from `size` would repeat.
Result<TensorId> sum_to_size(Call& c, TensorId x) {
  const ir::Dims size = c.ints("size");
  const int64_t more = c.rank() - static_cast<int64_t>(size.size());
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank(); ++i)
    if (i < more || (size[i - more] == 1 && c.dims()[i] != 1)) axes.push_back(i);
  if (more < 0) return invalid_model("a sum has no more axes than its operand").found(ir::to_string(size));
  return c.reshape(c.reduce("ReduceSum", x, axes, true), size);
}

#define ORKNN_CORRECTED "(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)"
#define ORKNN_UNBIASED "(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)"
}  // namespace

TensorId norm(Call& c, TensorId x, double p, const Along& a) {
  if (a.axes.empty()) return c.unary("Abs", x);
  if (p == 2) return reduced(c, "ReduceL2", x, a);
  if (p == 1) return reduced(c, "ReduceL1", x, a);
  const TensorId size = c.unary("Abs", x);
  if (std::isinf(p)) return reduced(c, p > 0 ? "ReduceMax" : "ReduceMin", size, a);
  if (p == 0) return reduced(c, "ReduceSum", c.cast(c.cast(x, DType::Bool), c.dtype_of(x)), a);
  return c.with_scalar("Pow", reduced(c, "ReduceSum", c.with_scalar("Pow", size, p), a), 1 / p);
}

std::span<const Row> reduction_rows() {
  static const Row rows[] = {
      {"sum(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceSum">},
      {"sum(Tensor self, int[]? dim, bool keepdim=False, *, int? dtype=None)", total<"ReduceSum">},
      {"nansum|nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", sum_of_numbers},
      {"mean(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceMean">},
      {"mean(Tensor self, int[]? dim, bool keepdim=False, *, int? dtype=None)", total<"ReduceMean", true>},
      {"prod(Tensor self, *, int? dtype=None, any axes_=None)", total_of_all<"ReduceProd">},
      {"prod(Tensor self, int dim, bool keepdim=False, *, int? dtype=None)", total<"ReduceProd">},
      {"logsumexp|special_logsumexp(Tensor self, int[] dim, bool keepdim=False)", float_total<"ReduceLogSumExp">},
      {"amax(Tensor self, int[] dim=[], bool keepdim=False)", extreme<"ReduceMax">},
      {"amin(Tensor self, int[] dim=[], bool keepdim=False)", extreme<"ReduceMin">},
      {"max(Tensor self)", extreme_of_all<"ReduceMax">},
      {"min(Tensor self)", extreme_of_all<"ReduceMin">},
      {"max(Tensor self, int dim, bool keepdim=False)", extreme_with_index<"ReduceMax", "ArgMax">},
      {"min(Tensor self, int dim, bool keepdim=False)", extreme_with_index<"ReduceMin", "ArgMin">},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False)", arg_extreme<"ArgMax">},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False)", arg_extreme<"ArgMin">},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False)", aminmax},
      {"median|nanmedian(Tensor self, int? dim=None, bool keepdim=False)", median},
      {"quantile|nanquantile(Tensor self, operand q, int? dim=None, bool keepdim=False, *, str interpolation='linear')",
       quantile},
      {"any(Tensor self)", truth<"ReduceMax">},
      {"all(Tensor self)", truth<"ReduceMin">},
      {"any(Tensor self, int[] dim, bool keepdim=False)", truth_along<"ReduceMax">},
      {"all(Tensor self, int[] dim, bool keepdim=False)", truth_along<"ReduceMin">},
      {"any(Tensor self, int dim, bool keepdim=False)", truth_along<"ReduceMax">},
      {"all(Tensor self, int dim, bool keepdim=False)", truth_along<"ReduceMin">},
      {"count_nonzero(Tensor self, int[]? dim=None)", count_nonzero},
      {"equal(Tensor self, Tensor other)", equal},
      {"var(Tensor self, bool unbiased=True)", deviation_of_all<false>},
      {"std(Tensor self, bool unbiased=True)", deviation_of_all<true>},
      {"var" ORKNN_UNBIASED, deviation<false, true>},
      {"std" ORKNN_UNBIASED, deviation<true, true>},
      {"var" ORKNN_CORRECTED, deviation<false, false>},
      {"std" ORKNN_CORRECTED, deviation<true, false>},
      {"var_mean(Tensor self, bool unbiased=True)", deviation_and_mean_of_all<false>},
      {"std_mean(Tensor self, bool unbiased=True)", deviation_and_mean_of_all<true>},
      {"var_mean" ORKNN_UNBIASED, deviation_and_mean<false, true>},
      {"std_mean" ORKNN_UNBIASED, deviation_and_mean<true, true>},
      {"var_mean" ORKNN_CORRECTED, deviation_and_mean<false, false>},
      {"std_mean" ORKNN_CORRECTED, deviation_and_mean<true, false>},
      {"norm(Tensor self, Scalar? p=2, *, int? dtype=None)", norm_of_all},
      {"norm(Tensor self, Scalar? p, int[] dim, bool keepdim=False, *, int? dtype=None)", norm_along},
      {"linalg_vector_norm(Tensor self, Scalar p=2, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", norm_along},
      {"frobenius_norm(Tensor self, int[]? dim=None, bool keepdim=False)", float_total<"ReduceL2">},
      {"linalg_matrix_norm(Tensor self, any ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, int? dtype=None)",
       matrix_norm},
      {"linalg_norm(Tensor self, any ord=None, int[]? dim=None, bool keepdim=False, *, int? dtype=None)", linalg_norm},
      {"pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)", pairwise_distance},
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
      {"cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)", cov},
      {"corrcoef(Tensor self)", corrcoef},
      {"trapezoid|trapz(Tensor self, Tensor x, *, int dim=-1, any dx=None)", trapezoid},
      {"trapezoid|trapz(Tensor self, *, Scalar dx=1, int dim=-1, any x=None)", trapezoid},
      {"cumulative_trapezoid(Tensor self, Tensor x, *, int dim=-1, any dx=None)", cumulative_trapezoid},
      {"cumulative_trapezoid(Tensor self, *, Scalar dx=1, int dim=-1, any x=None)", cumulative_trapezoid},
      {"histc(Tensor self, int bins=100, *, Scalar min=0, Scalar max=0)", histc},
      {"pdist(Tensor self, float p=2.)", pdist},
      {"sum_to_size(Tensor self, int[] size)", sum_to_size},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", diff},
  };
  return rows;
}
#undef ORKNN_CORRECTED
#undef ORKNN_UNBIASED

}  // namespace orknn::importer::pytorch
