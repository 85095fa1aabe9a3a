// Index of the greatest or least element along an axis.
#include <algorithm>
#include <cstdint>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class Extents>
Extents result_shape(const Extents& dims, int64_t axis, bool keep) {
  Extents out = dims;
  const auto at = out.begin() + axis;
  if (keep)
    *at = 1;
  else
    out.erase(at);
  return out;
}

// An axis without elements has a result only where there are no results at all; unknown extents pass.
Status check_extent(const Shape& x, int64_t axis) {
  const bool has_results =
      std::ranges::all_of(result_shape(x, axis, false), [](const Dim& d) { return d.is_known() && d.value() > 0; });
  if (x[static_cast<size_t>(axis)] != Dim(0) || !has_results) return {};
  return shape_mismatch("an axis without elements has no largest or smallest value").found(to_string(x));
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_arithmetic, "a number type of at least 8 bits"));
  const Shape* x = c.shape(0);
  std::optional<Shape> shape;
  if (x) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    ORKNN_TRY(check_extent(*x, axis));
    shape = result_shape(*x, axis, c.get_int("keepdims") != 0);
  }
  c.set_output(0, DType::Int64, std::move(shape));
  return {};
}

constexpr int64_t kColumns = 256;  // neighbours that are compared together, so that memory is read in order

// Whether v takes the place of b, which came before it. A NaN counts as extreme; the first one is found, as in NumPy.
template <bool greatest, bool last, class T>
bool replaces(T v, T b) {
  const bool better = greatest ? (last ? !(v < b) : !(v <= b)) : (last ? !(v > b) : !(v >= b));
  return better & (b == b);
}

// Row k of neighbours against the best so far, without a jump: the compiler makes vectors of it.
template <bool greatest, bool last, class T>
void take_better(const T* row, int32_t k, int64_t columns, T* best, int32_t* at) {
  for (int64_t j = 0; j < columns; ++j) {
    const T v = row[j], b = best[j];
    const bool takes = replaces<greatest, last>(v, b);
    best[j] = takes ? v : b;
    at[j] = takes ? k : at[j];
  }
}

template <bool greatest>
Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims dims = scratch_dims(x.dims);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, result_shape(dims, axis, c.get_int("keepdims") != 0)));
  const int64_t n = y.count(), stride = scratch_strides(dims)[static_cast<size_t>(axis)];
  if (n == 0) return {};
  if (extent == 0) return check_extent(to_shape(x.dims), axis);
  const bool last = c.get_int("select_last_index") != 0;
  visit_arithmetic(x.dtype, [&]<class T>(TypeTag<T>) {
    if (stride == 1 || extent > INT32_MAX) {
      c.pool.parallel_for(n, std::max<int64_t>(1, kElementGrain / extent), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* row = x.as<T>() + i / stride * stride * extent + i % stride;
          int64_t best = 0;
          for (int64_t k = 1; k < extent; ++k)
            if (last ? replaces<greatest, true>(row[k * stride], row[best * stride])
                     : replaces<greatest, false>(row[k * stride], row[best * stride]))
              best = k;
          y.as<int64_t>()[i] = best;
        }
      });
      return;
    }
    const int64_t parts = (stride + kColumns - 1) / kColumns;
    c.pool.parallel_for(n / stride * parts, std::max<int64_t>(1, kElementGrain / (extent * std::min(stride, kColumns))),
                        [&](int64_t begin, int64_t end) {
                          T best[kColumns];
                          int32_t at[kColumns];
                          for (int64_t i = begin; i < end; ++i) {
                            const int64_t first = i % parts * kColumns, columns = std::min(kColumns, stride - first);
                            const T* row = x.as<T>() + i / parts * extent * stride + first;
                            std::copy_n(row, columns, best);
                            std::fill_n(at, columns, 0);
                            for (int32_t k = 1; k < extent; ++k) {
                              row += stride;
                              if (last)
                                take_better<greatest, true>(row, k, columns, best, at);
                              else
                                take_better<greatest, false>(row, k, columns, best, at);
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
  return {.name = name,
          .summary = summary,
          .attributes = {axes_of_input(attr_int("axis", 0)), attr_int("keepdims", 1), attr_int("select_last_index", 0)},
          .infer = infer,
          .run = run_fn,
          .cost = cost,
          .pattern = Pattern::Reduce,
          .axes = AxisNames::Attribute,
          .cpu = {CpuList::LargeChips}};
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
