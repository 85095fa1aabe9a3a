// The K largest or smallest elements along an axis, best first; of equal ones the lower index wins, NaN counts as largest.
#include <algorithm>
#include <numeric>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "K"));
  std::optional<Shape> out;
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    const auto content = c.content(1);
    if (content && content->size() != 1)
      return invalid_model("K must be one number").found(std::to_string(content->size()) + " numbers");
    const Dim k = content ? content->front() : Dim();
    const Dim& extent = (*x)[static_cast<size_t>(axis)];
    if (k.is_known() && (k.value() < 0 || (extent.is_known() && k.value() > extent.value())))
      return invalid_model("K is out of range").expected("0 to " + extent.to_string()).found(k.to_string());
    out = *x;
    (*out)[static_cast<size_t>(axis)] = k;
  }
  c.set_output(0, c.dtype(0), out);
  c.set_output(1, DType::Int64, std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  const ScratchDims wanted = scratch_ints(c.input(1));
  const int64_t extent = x.dims[axis];
  if (wanted.size() != 1 || wanted[0] < 0 || wanted[0] > extent)
    return invalid_argument("K is out of range")
        .expected("0 to " + std::to_string(extent))
        .found(wanted.empty() ? "nothing" : std::to_string(wanted[0]));
  const int64_t k = wanted[0];
  ScratchDims dims = scratch_dims(x.dims);
  dims[axis] = k;
  MutableTensorView values, indices;
  if (c.has_output(0)) {
    ORKNN_TRY_ASSIGN(values, c.output(0, x.dtype, dims));
  }
  if (c.has_output(1)) {
    ORKNN_TRY_ASSIGN(indices, c.output(1, DType::Int64, dims));
  }
  const bool largest = c.get_int("largest") != 0;
  const int64_t outer = extent_product(x.dims, 0, axis), inner = extent_product(x.dims, axis + 1, x.dims.size());
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      c.pool.parallel_for(outer * inner, std::max<int64_t>(1, (1 << 12) / std::max<int64_t>(extent, 1)),
                          [&](int64_t begin, int64_t end) {
                            ScratchDims order(static_cast<size_t>(extent));
                            for (int64_t n = begin; n < end; ++n) {
                              const T* from = x.as<T>() + n / inner * extent * inner + n % inner;
                              const auto before = [&](int64_t a, int64_t b) {
                                const T u = from[a * inner], v = from[b * inner];
                                const bool u_nan = u != u, v_nan = v != v;
                                if (u_nan != v_nan) return u_nan == largest;
                                if (!u_nan && u != v) return largest ? v < u : u < v;
                                return a < b;
                              };
                              std::iota(order.begin(), order.end(), 0);
                              std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
                              const int64_t to = n / inner * k * inner + n % inner;
                              for (int64_t i = 0; i < k; ++i) {
                                const int64_t pick = order[static_cast<size_t>(i)];
                                if (values.data) values.as<T>()[to + i * inner] = from[pick * inner];
                                if (indices.data) indices.as<int64_t>()[to + i * inner] = pick;
                              }
                            }
                          });
    }
  });
  return {};
}
}  // namespace

std::span<const OpDef> top_k() {
  static const OpDef def{.name = "TopK",
                         .summary = "largest or smallest elements along an axis",
                         .inputs = {2, 2},
                         .outputs = {2, 2},
                         .attributes = {axes_of_input(attr_int("axis", -1)), attr_int("largest", 1), attr_int("sorted", 1)},
                         .infer = infer,
                         .run = run,
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
