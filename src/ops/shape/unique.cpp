// The distinct elements, or distinct slices along an axis, with where they come from and how often they occur.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  std::optional<Shape> out;
  if (const int64_t* axis = c.find<int64_t>("axis")) {
    if (const Shape* x = c.shape(0)) {
      ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(*axis, static_cast<int64_t>(x->size())));
      out = *x;
      (*out)[static_cast<size_t>(normalized)] = Dim();
    }
  } else {
    out = Shape{Dim()};
  }
  c.set_output(0, c.dtype(0), std::move(out));
  for (size_t i = 1; i < 4; ++i) c.set_output(i, DType::Int64, Shape{Dim()});
  return {};
}

// The items that are compared: `count` of them, each with `outer` runs of `inner` elements.
struct Items {
  int64_t count = 0, outer = 1, inner = 1;
};

// -1, 0, 1 for items a and b in lexicographic order; NaN is equal to itself and the largest.
template <class T>
int compare_items(const T* x, const Items& items, int64_t a, int64_t b) {
  for (int64_t o = 0; o < items.outer; ++o) {
    const T* first = x + (o * items.count + a) * items.inner;
    const T* second = x + (o * items.count + b) * items.inner;
    for (int64_t i = 0; i < items.inner; ++i) {
      const bool first_nan = first[i] != first[i], second_nan = second[i] != second[i];
      if (first_nan != second_nan) return first_nan ? 1 : -1;
      if (!first_nan && first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
    }
  }
  return 0;
}

Status write_ints(RunContext& c, size_t output, const std::vector<int64_t>& values) {
  if (!c.has_output(output)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(output, DType::Int64, Dims{static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), y.as<int64_t>());
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  Items items{.count = x.count()};
  size_t axis = 0;
  const int64_t* given = c.find<int64_t>("axis");
  if (given) {
    ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(*given, x.rank()));
    axis = static_cast<size_t>(normalized);
    items = {x.dims[axis], extent_product(x.dims, 0, axis), extent_product(x.dims, axis + 1, x.dims.size())};
  }
  std::vector<int64_t> order(static_cast<size_t>(items.count));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<int64_t, std::vector<int64_t>>> groups;  // first occurrence, members
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return compare_items(x.as<T>(), items, a, b) < 0; });
      for (int64_t item : order) {
        if (groups.empty() || compare_items(x.as<T>(), items, groups.back().first, item) != 0) groups.push_back({item, {}});
        groups.back().second.push_back(item);
      }
    }
  });
  if (c.get_int("sorted") == 0)
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  const auto count = static_cast<int64_t>(groups.size());
  Dims dims{count};
  if (given) {
    dims.assign(x.dims.begin(), x.dims.end());
    dims[axis] = count;
  }
  if (c.has_output(0)) {
    ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
    const size_t bytes = dtype_bytes(x.dtype);
    for (int64_t o = 0; o < items.outer; ++o)
      for (int64_t g = 0; g < count; ++g)
        std::memcpy(offset_by(y.data, (o * count + g) * items.inner, bytes),
                    offset_by(x.data, (o * items.count + groups[static_cast<size_t>(g)].first) * items.inner, bytes),
                    static_cast<size_t>(items.inner) * bytes);
  }
  std::vector<int64_t> firsts, inverse(order.size()), counts;
  for (size_t g = 0; g < groups.size(); ++g) {
    firsts.push_back(groups[g].first);
    counts.push_back(static_cast<int64_t>(groups[g].second.size()));
    for (int64_t member : groups[g].second) inverse[static_cast<size_t>(member)] = static_cast<int64_t>(g);
  }
  ORKNN_TRY(write_ints(c, 1, firsts));
  ORKNN_TRY(write_ints(c, 2, inverse));
  return write_ints(c, 3, counts);
}
}  // namespace

std::span<const OpDef> unique() {
  static const OpDef def{.name = "Unique",
                         .summary = "distinct elements or slices",
                         .outputs = {1, 4},
                         .attributes = {attr_int("axis"), attr_int("sorted", 1)},
                         .infer = infer,
                         .run = run};
  return {&def, 1};
}
}  // namespace orknn::ops
