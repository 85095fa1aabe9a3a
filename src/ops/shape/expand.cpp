// Broadcasts a tensor to a shape (both ways, as in ONNX), or repeats it along its axes.
#include "ops/support/copies.h"
#include "ops/support/movement_plans.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_expand(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "the target shape"));
  const std::optional<std::vector<Dim>> target = c.content(1);
  const Shape* x = c.shape(0);
  if (!target || !x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  for (const Dim& d : *target)
    if (d.is_known() && d.value() < 0) return invalid_model("negative extent in the target shape").found(to_string(*target));
  ORKNN_TRY_ASSIGN(const Shape out, broadcast(*x, *target));
  c.set_output(0, c.dtype(0), out);
  const auto content = small_content(c, 0);
  if (content && is_static(out)) c.set_content(0, copy_content(*content, broadcast_axes(*to_dims(*x), *to_dims(out))));
  return {};
}

Status run_expand(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims target = scratch_ints(c.input(1));
  ORKNN_TRY(checked_element_count(target).status());
  ORKNN_TRY_ASSIGN(const ScratchDims dims, scratch_broadcast(x.dims, target));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  copy_strided(broadcast_axes(x.dims, dims), x.data, y.data, dtype_bytes(x.dtype), c.pool);
  return {};
}

// Each axis becomes (repeat, extent), the repeat with a zero stride.
CopyAxes tile_axes(std::span<const int64_t> x, std::span<const int64_t> repeats) {
  const ScratchDims strides = scratch_strides(x);
  ScratchDims out, from;
  for (size_t i = 0; i < x.size(); ++i) {
    out.insert(out.end(), {repeats[i], x[i]});
    from.insert(from.end(), {0, strides[i]});
  }
  return into_dense(out, from);
}

Status infer_tile(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "repeats"));
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  const std::vector<Dim> repeats = c.content(1).value_or(std::vector<Dim>(x->size()));
  if (repeats.size() != x->size())
    return invalid_model("repeats needs one entry per axis")
        .expected(std::to_string(x->size()))
        .found(std::to_string(repeats.size()));
  Shape out;
  for (size_t i = 0; i < x->size(); ++i) {
    if (repeats[i].is_known() && repeats[i].value() < 0)
      return invalid_model("negative repeat count").found(repeats[i].to_string());
    out.push_back((*x)[i] * repeats[i]);
    if (repeats[i].is_known() && (*x)[i].is_known() && !out.back().is_known())  // more than a number can tell
      return invalid_model("illegal repeat count").found(repeats[i].to_string());
  }
  c.set_output(0, c.dtype(0), std::move(out));
  const auto content = small_content(c, 0);
  const auto counts = c.ints(1);
  if (content && counts) c.set_content(0, copy_content(*content, tile_axes(*to_dims(*x), *counts)));
  return {};
}

Status run_tile(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims repeats = scratch_ints(c.input(1));
  if (repeats.size() != x.dims.size())
    return invalid_argument("repeats needs one entry per axis")
        .expected(std::to_string(x.rank()))
        .found(std::to_string(repeats.size()));
  ScratchDims dims;
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t extent;
    if (repeats[i] < 0 || __builtin_mul_overflow(repeats[i], x.dims[i], &extent))
      return invalid_argument("illegal repeat count").found(std::to_string(repeats[i]));
    dims.push_back(extent);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  copy_strided(tile_axes(x.dims, repeats), x.data, y.data, dtype_bytes(x.dtype), c.pool);
  return {};
}
}  // namespace

std::span<const OpDef> expand() {
  static const OpDef defs[] = {
      {.name = "Expand",
       .summary = "broadcasts to a shape",
       .inputs = {2, 2},
       .infer = infer_expand,
       .run = run_expand,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Move,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Expand},
       .cpu = {CpuList::LargeChips}},
      {.name = "Tile",
       .summary = "repeats along each axis",
       .inputs = {2, 2},
       .infer = infer_tile,
       .run = run_tile,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Move,
       .axes = AxisNames::PerAxis,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Repeat},
       .cpu = {CpuList::LargeChips, CpuLimit::OneSample}},
  };
  return defs;
}
}  // namespace orknn::ops
