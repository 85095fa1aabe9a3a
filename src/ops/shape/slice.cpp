// Cuts a range with a step out of each axis; bounds are clamped as in ONNX.
#include <algorithm>

#include "ops/support/copies.h"
#include "ops/support/movement_plans.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Extent of a range where something is unknown: only what is certain.
Dim symbolic_extent(const Dim& extent, const Dim& start, const Dim& end, const Dim& step) {
  if (step != Dim(1) || start != Dim(0)) return {};
  if (end == extent) return extent;
  if (end.is_known() && end.value() >= INT32_MAX && !extent.is_known()) return extent;
  return {};
}

Status infer(InferContext& c) {
  for (size_t i = 1; i < 5; ++i) ORKNN_TRY(require_integer(c, i, "starts, ends, axes and steps"));
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  const std::optional<std::vector<Dim>> starts = c.content(1), ends = c.content(2);
  std::optional<std::vector<Dim>> steps = c.content(4);
  std::optional<std::vector<int64_t>> axes = c.ints(3);
  if (starts && !c.has_input(3)) {
    const ScratchDims all = first_axes(starts->size());
    axes.emplace(all.begin(), all.end());
  }
  if (starts && !c.has_input(4)) steps = std::vector<Dim>(starts->size(), Dim(1));
  if (!starts || !ends || !steps || !axes) {
    c.set_output(0, c.dtype(0), Shape(x->size()));
    return {};
  }
  ORKNN_TRY(check_slice_lengths(starts->size(), ends->size(), axes->size(), steps->size()));
  ORKNN_TRY(distinct_axes(*axes, static_cast<int64_t>(x->size())).status());
  Shape out = *x;
  for (size_t i = 0; i < axes->size(); ++i) {
    Dim& d = out[static_cast<size_t>(*normalize_axis((*axes)[i], static_cast<int64_t>(x->size())))];
    const Dim &start = (*starts)[i], &end = (*ends)[i], &step = (*steps)[i];
    if (step == Dim(0)) return invalid_model("a step must not be 0");
    if (d.is_known() && start.is_known() && end.is_known() && step.is_known())
      d = clamped_range(start.value(), end.value(), step.value(), d.value()).count;
    else
      d = symbolic_extent(d, start, end, step);
  }
  c.set_output(0, c.dtype(0), out);
  const auto content = small_content(c, 0);
  const auto known_starts = to_dims(*starts), known_ends = to_dims(*ends), known_steps = to_dims(*steps);
  if (content && known_starts && known_ends && known_steps) {
    ORKNN_TRY_ASSIGN(const SlicePlan plan, plan_slice(*to_dims(*x), *known_starts, *known_ends, *axes, *known_steps));
    c.set_content(0, copy_content(*content, plan.axes, plan.offset));
  }
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims starts = scratch_ints(c.input(1)), ends = scratch_ints(c.input(2));
  const ScratchDims axes = c.has_input(3) ? scratch_ints(c.input(3)) : first_axes(starts.size());
  const ScratchDims steps = c.has_input(4) ? scratch_ints(c.input(4)) : ScratchDims(starts.size(), 1);
  ORKNN_TRY_ASSIGN(SlicePlan plan, plan_slice(x.dims, starts, ends, axes, steps));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, plan.dims));
  const size_t bytes = dtype_bytes(x.dtype);
  copy_strided(std::move(plan.axes), offset_by(x.data, plan.offset, bytes), y.data, bytes, c.pool);
  return {};
}

// All elements, forwards.
int copied(const InferContext& c) {
  if (!keeps_shape(c, 0)) return kNoCopy;
  if (!c.node().has_input(4)) return 0;
  const TensorData* steps = c.constant(4);
  if (!steps || !is_integer(steps->dtype())) return kNoCopy;
  const std::vector<int64_t> values = to_ints(steps->view());
  return std::all_of(values.begin(), values.end(), [](int64_t s) { return s > 0; }) ? 0 : kNoCopy;
}
}  // namespace

std::span<const OpDef> slice() {
  static const OpDef def{.name = "Slice",
                         .summary = "cuts ranges out of axes",
                         .inputs = {3, 5},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .axes = AxisNames::Input3,
                         .copied_input = copied,
                         .npu = {.form = NpuForm::Slice},
                         .cpu = {CpuList::LargeChips, CpuLimit::OneSample},
                         .work = Work::Results};
  return {&def, 1};
}
}  // namespace orknn::ops
