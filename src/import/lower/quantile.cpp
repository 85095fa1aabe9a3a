#include "import/lower/quantile.h"

#include <algorithm>
#include <array>
#include <limits>

namespace orknn::importer {
using ir::TensorId;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// The `count` smallest elements in ascending order.
Ranked smallest(Emitter& e, TensorId x, int64_t axis, int64_t count) {
  const auto sorted =
      e.emit_all("TopK", {x, e.add_ints("k", {count})}, {{"axis", axis}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}}, 2);
  return {sorted[0], sorted[1]};
}

// Elements along one axis, which keeps one place per share.
TensorId along_axis(Emitter& e, const Quantile& wanted, TensorId elements, int64_t axis, const ir::Dims& dims) {
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const DType type = e.dtype_of(elements);
  const std::vector<int64_t> along{axis};
  const TensorId is_nan = e.unary("IsNaN", elements);
  const TensorId nan_count = e.reduce("ReduceSum", e.cast(is_nan, type), along, true);
  const TensorId x = wanted.skips_nan ? e.where(is_nan, e.add_scalar("infinity", kInfinity, type), elements) : elements;
  const TensorId count = wanted.skips_nan ? e.sub(e.full_like(nan_count, static_cast<double>(extent)), nan_count)
                                          : e.full_like(nan_count, static_cast<double>(extent));
  const TensorId sorted = smallest(e, x, axis, extent).value;

  std::vector<int64_t> one_axis(dims.size(), 1);
  one_axis[static_cast<size_t>(axis)] = -1;
  const TensorId last = e.with_scalar("Max", e.sub(count, 1.0), 0);
  const TensorId place = e.mul(e.reshape(e.cast(wanted.share, type), one_axis), last);
  const auto at_place = [&](TensorId number) { return e.gather_elements(sorted, e.cast(number, DType::Int64), axis); };
  const TensorId below = e.unary("Floor", place), above = e.unary("Ceil", place);
  TensorId result;
  if (wanted.interpolation == "nearest")
    result = at_place(e.unary("Round", place));
  else if (wanted.interpolation == "lower")
    result = at_place(below);
  else if (wanted.interpolation == "higher")
    result = at_place(above);
  else if (wanted.interpolation == "midpoint")
    result = e.mul(e.add(at_place(below), at_place(above)), 0.5);
  else  // whole places: their value, also beside an infinity
    result = e.where(e.binary("Equal", below, above), at_place(below),
                     e.add(at_place(below), e.mul(e.sub(at_place(above), at_place(below)), e.sub(place, below))));
  const TensorId is_none = wanted.skips_nan ? e.with_scalar("Equal", count, 0) : e.with_scalar("Greater", nan_count, 0);
  return e.where(is_none, e.add_scalar("nan", kNan, type), result);
}
}  // namespace

Ranked nth_smallest(Emitter& e, TensorId x, int64_t axis, int64_t n) {
  const Ranked sorted = smallest(e, x, axis, n + 1);
  return {e.slice(sorted.value, axis, n, n + 1), e.slice(sorted.place, axis, n, n + 1)};
}

Ranked median_of_numbers(Emitter& e, TensorId x, int64_t axis, int64_t count) {
  const TensorId is_nan = e.unary("IsNaN", x), missing = e.reduce("ReduceSum", e.cast(is_nan, DType::Int64), {axis}, true);
  const Ranked sorted = smallest(e, e.where(is_nan, e.scalar_like(x, kInfinity), x), axis, count);
  const TensorId found = e.sub(e.full_like(missing, static_cast<double>(count)), missing);
  const TensorId middle = e.div(e.sub(found, 1.0), 2.0);  // of integers: 0 where nothing is found
  const TensorId value = e.gather_elements(sorted.value, middle, axis);
  return {e.where(e.with_scalar("Equal", found, 0), e.scalar_like(x, kNan), value),
          e.gather_elements(sorted.place, middle, axis)};
}

Result<TensorId> quantiles(Emitter& e, const Quantile& wanted) {
  static constexpr std::array<std::string_view, 5> kWays{"linear", "lower", "higher", "midpoint", "nearest"};
  if (std::ranges::find(kWays, wanted.interpolation) == kWays.end())
    return unsupported("unknown interpolation")
        .expected("linear, lower, higher, midpoint or nearest")
        .found(wanted.interpolation);
  const auto stated = e.dims_of(wanted.x), shares = e.dims_of(wanted.share);
  if (!stated || !shares || shares->size() > 1)
    return unsupported("quantiles need elements of a known number, and shares that are a number or a list");
  ir::Dims dims, result;
  std::vector<int64_t> order;
  int64_t count = 1;
  if (shares->size() == 1) result.push_back((*shares)[0]);
  for (int64_t i = 0; i < std::ssize(*stated); ++i) {
    const int64_t extent = (*stated)[static_cast<size_t>(i)];
    const bool is_reduced = std::ranges::find(wanted.axes, i) != wanted.axes.end();
    if (is_reduced) {
      count *= extent;
    } else {
      dims.push_back(extent);
      order.push_back(i);
    }
    if (!is_reduced || wanted.keeps_axes) result.push_back(is_reduced ? 1 : extent);
  }
  if (count == 0) return unsupported("quantiles of nothing are not defined");

  TensorId x = wanted.x;
  int64_t axis = std::ssize(dims);
  if (wanted.axes.size() == 1) {
    axis = wanted.axes[0];
    dims = *stated;
  } else {  // they become the last one
    order.insert(order.end(), wanted.axes.begin(), wanted.axes.end());
    dims.push_back(count);
    x = e.reshape(e.transpose(x, order), dims);
  }
  TensorId y = along_axis(e, wanted, x, axis, dims);
  if (shares->size() == 1) {
    std::vector<int64_t> shares_first{axis};
    for (int64_t i = 0; i < std::ssize(dims); ++i)
      if (i != axis) shares_first.push_back(i);
    y = e.transpose(y, shares_first);
  }
  return e.reshape(y, result);
}

}  // namespace orknn::importer
