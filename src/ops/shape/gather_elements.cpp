// Picks single elements along one axis, each at its own index.
#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "indices"));
  const Shape *x = c.shape(0), *indices = c.shape(1);
  if (x && indices && x->size() != indices->size())
    return shape_mismatch("data and indices must have the same rank").expected(to_string(*x)).found(to_string(*indices));
  if (x) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    if (indices) ORKNN_TRY(check_other_axes(*x, *indices, static_cast<size_t>(axis)));
    ORKNN_TRY(require_indices(c, 1, "index", (*x)[static_cast<size_t>(axis)]));
  }
  c.set_output(0, c.dtype(0), indices ? std::optional(*indices) : std::nullopt);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1);
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  if (indices.rank() != x.rank())
    return shape_mismatch("data and indices must have the same rank").expected(to_string(x.dims)).found(to_string(indices.dims));
  ORKNN_TRY(check_other_axes(x.dims, indices.dims, axis));
  ScratchDims picks = scratch_ints(indices);
  for (int64_t& pick : picks) {
    ORKNN_TRY_ASSIGN(pick, checked_index(pick, x.dims[axis]));
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, indices.dims));
  const ScratchDims strides = scratch_strides(x.dims);
  visit_element_bytes(x.dtype, [&]<class T>(TypeTag<T>) {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    c.pool.parallel_for(static_cast<int64_t>(picks.size()), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        int64_t rest = n, at = picks[static_cast<size_t>(n)] * strides[axis];
        for (size_t i = indices.dims.size(); i-- > 0; rest /= indices.dims[i])
          if (i != axis) at += rest % indices.dims[i] * strides[i];
        to[n] = from[at];
      }
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> gather_elements() {
  static const OpDef def{.name = "GatherElements",
                         .summary = "picks single elements along an axis",
                         .inputs = {2, 2},
                         .attributes = {axes_of_input(attr_int("axis", 0))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .pattern = Pattern::Move,
                         .cpu = {CpuList::LargeChips},
                         .work = Work::Results};
  return {&def, 1};
}
}  // namespace orknn::ops
