// Index of the greatest or least element along an axis.
#include <algorithm>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class D>
std::vector<D> result_shape(const std::vector<D>& dims, int64_t axis, bool keep) {
  std::vector<D> out = dims;
  const auto at = out.begin() + axis;
  if (keep) *at = D(1);
  else out.erase(at);
  return out;
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_arithmetic, "a number type of at least 8 bits"));
  const Shape* x = c.shape(0);
  std::optional<Shape> shape;
  if (x) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    shape = result_shape(*x, axis, c.get_int("keepdims") != 0);
  }
  c.set_output(0, DType::Int64, std::move(shape));
  return {};
}

// A NaN counts as extreme; the first one is found, as in NumPy.
template <bool greatest>
Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const Dims dims(x.dims.begin(), x.dims.end());
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, result_shape(dims, axis, c.get_int("keepdims") != 0)));
  const int64_t n = y.count(), stride = strides_of(dims)[static_cast<size_t>(axis)];
  if (n == 0) return {};
  if (extent == 0) return shape_mismatch("an axis without elements has no extreme").found(to_string(dims));
  const bool last = c.get_int("select_last_index") != 0;
  visit_arithmetic(x.dtype, [&]<class T>(TypeTag<T>) {
    const auto replaces = [last](T v, T b) {
      const bool better = (greatest ? v > b : v < b) | (v != v) | (last & (v == b));
      return better & (b == b);
    };
    if (stride == 1) {
      c.pool.parallel_for(n, std::max<int64_t>(1, kElementGrain / extent), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* row = x.as<T>() + i * extent;
          int64_t best = 0;
          for (int64_t k = 1; k < extent; ++k)
            if (replaces(row[k], row[best])) best = k;
          y.as<int64_t>()[i] = best;
        }
      });
      return;
    }
    constexpr int64_t kColumns = 256;  // neighbours that are compared together, so that memory is read in order
    const int64_t parts = (stride + kColumns - 1) / kColumns;
    c.pool.parallel_for(n / stride * parts, std::max<int64_t>(1, kElementGrain / (extent * std::min(stride, kColumns))), [&](int64_t begin, int64_t end) {
      T best[kColumns];
      int64_t at[kColumns];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * kColumns, columns = std::min(kColumns, stride - first);
        const T* row = x.as<T>() + i / parts * extent * stride + first;
        std::copy_n(row, columns, best);
        std::fill_n(at, columns, 0);
        for (int64_t k = 1; k < extent; ++k) {
          row += stride;
          for (int64_t j = 0; j < columns; ++j) {
            const bool takes = replaces(row[j], best[j]);
            best[j] = takes ? row[j] : best[j];
            at[j] = takes ? k : at[j];
          }
        }
        std::copy_n(at, columns, y.as<int64_t>() + i / parts * stride + first);
      }
    });
  });
  return {};
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = inputs.empty() ? 0 : element_count(inputs[0])};
}

OpDef define(std::string_view name, std::string_view summary, RunFn run_fn) {
  return {.name = name, .summary = summary, .attributes = {attr_int("axis", 0), attr_int("keepdims", 1), attr_int("select_last_index", 0)},
          .infer = infer, .run = run_fn, .cost = cost};
}
}  // namespace

std::span<const OpDef> arg_extreme() {
  static const OpDef defs[] = {
      define("ArgMax", "index of the greatest element along an axis", run<true>),
      define("ArgMin", "index of the least element along an axis", run<false>),
  };
  return defs;
}
}  // namespace orknn::ops
