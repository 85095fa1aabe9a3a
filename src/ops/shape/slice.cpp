// Cuts a range with a step out of each axis; bounds are clamped as in ONNX.
#include <algorithm>

#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

struct Range {
  int64_t start = 0, step = 1, count = 0;
};

// The elements start, start + step, ... before end of an axis of `extent`.
Range clamped_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto wrap = [&](int64_t at) { return at < 0 ? at + extent : at; };
  // A step so large that it leaves the axis at once counts as one that just does; avoids overflow below.
  step = std::clamp(step, -extent - 1, extent + 1);
  Range r{.step = step};
  if (extent == 0) return r;
  if (step > 0) {
    r.start = std::clamp<int64_t>(wrap(start), 0, extent);
    const int64_t stop = std::clamp<int64_t>(wrap(end), 0, extent);
    r.count = stop > r.start ? (stop - r.start + step - 1) / step : 0;
  } else {
    r.start = std::clamp<int64_t>(wrap(start), 0, extent - 1);
    const int64_t stop = std::clamp<int64_t>(wrap(end), -1, extent - 1);
    r.count = r.start > stop ? (r.start - stop - step - 1) / -step : 0;
  }
  return r;
}

Status check_lengths(size_t starts, size_t ends, size_t axes, size_t steps) {
  if (starts == ends && starts == axes && starts == steps) return {};
  return invalid_model("starts, ends, axes and steps must have the same length");
}

std::vector<int64_t> default_axes(size_t count) {
  std::vector<int64_t> axes(count);
  for (size_t i = 0; i < count; ++i) axes[i] = static_cast<int64_t>(i);
  return axes;
}

// What the ranges make of a tensor: the copy's axes and where the source starts.
struct Plan {
  Dims dims;
  std::vector<CopyAxis> axes;
  int64_t offset = 0;
};

Result<Plan> plan_slice(std::span<const int64_t> x, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                        const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  ORKNN_TRY(check_lengths(starts.size(), ends.size(), axes.size(), steps.size()));
  ORKNN_TRY(distinct_axes(axes, static_cast<int64_t>(x.size())).status());
  Plan plan{.dims = Dims(x.begin(), x.end())};
  Dims strides = strides_of(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(*normalize_axis(axes[i], static_cast<int64_t>(x.size())));
    if (steps[i] == 0) return invalid_model("a step must not be 0");
    const Range r = clamped_range(starts[i], ends[i], steps[i], x[axis]);
    plan.dims[axis] = r.count;
    if (r.count > 0) plan.offset += r.start * strides[axis];
    strides[axis] *= r.step;
  }
  plan.axes = into_dense(plan.dims, strides);
  return plan;
}

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
  if (starts && !c.has_input(3)) axes = default_axes(starts->size());
  if (starts && !c.has_input(4)) steps = std::vector<Dim>(starts->size(), Dim(1));
  if (!starts || !ends || !steps || !axes) {
    c.set_output(0, c.dtype(0), Shape(x->size()));
    return {};
  }
  ORKNN_TRY(check_lengths(starts->size(), ends->size(), axes->size(), steps->size()));
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
    ORKNN_TRY_ASSIGN(const Plan plan, plan_slice(*to_dims(*x), *known_starts, *known_ends, *axes, *known_steps));
    c.set_content(0, copy_content(*content, plan.axes, plan.offset));
  }
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const std::vector<int64_t> starts = to_ints(c.input(1)), ends = to_ints(c.input(2));
  const std::vector<int64_t> axes = c.has_input(3) ? to_ints(c.input(3)) : default_axes(starts.size());
  const std::vector<int64_t> steps = c.has_input(4) ? to_ints(c.input(4)) : std::vector<int64_t>(starts.size(), 1);
  ORKNN_TRY_ASSIGN(Plan plan, plan_slice(x.dims, starts, ends, axes, steps));
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
