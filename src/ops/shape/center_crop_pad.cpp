// Crops or zero-pads axes to given extents, keeping the middle.
#include <algorithm>
#include <cstring>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Positions of the axes that `target` speaks of.
Result<std::vector<size_t>> target_axes(const NodeReader& c, size_t rank, size_t targets) {
  std::vector<size_t> axes;
  const auto* given = c.find<std::vector<int64_t>>("axes");
  if (given) ORKNN_TRY(distinct_axes(*given, static_cast<int64_t>(rank)).status());
  const size_t count = given ? given->size() : rank;
  if (count != targets)
    return invalid_model("one target extent per axis is needed").expected(std::to_string(count)).found(std::to_string(targets));
  for (size_t i = 0; i < count; ++i)
    axes.push_back(given ? static_cast<size_t>(*normalize_axis((*given)[i], static_cast<int64_t>(rank))) : i);
  return axes;
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "the target shape"));
  const Shape* x = c.shape(0);
  const auto target = c.content(1);
  if (!x || !target) {
    c.set_output(0, c.dtype(0), x ? std::optional(Shape(x->size())) : std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const auto axes, target_axes(c, x->size(), target->size()));
  Shape out = *x;
  for (size_t i = 0; i < axes.size(); ++i) {
    if ((*target)[i].is_known() && (*target)[i].value() < 0)
      return invalid_model("negative target extent").found((*target)[i].to_string());
    out[axes[i]] = (*target)[i];
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const ScratchDims target = scratch_ints(c.input(1));
  ORKNN_TRY_ASSIGN(const auto axes, target_axes(c, x.dims.size(), target.size()));
  ScratchDims dims = scratch_dims(x.dims);
  for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = target[i];
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  std::memset(y.data, 0, y.bytes());
  const ScratchDims from_strides = scratch_strides(x.dims), to_strides = scratch_strides(dims);
  int64_t from = 0, to = 0;
  CopyAxes copy;
  for (size_t i = 0; i < dims.size(); ++i) {
    copy.push_back({std::min(dims[i], x.dims[i]), from_strides[i], to_strides[i]});
    from += std::max<int64_t>(0, x.dims[i] - dims[i]) / 2 * from_strides[i];
    to += std::max<int64_t>(0, dims[i] - x.dims[i]) / 2 * to_strides[i];
  }
  const size_t bytes = dtype_bytes(x.dtype);
  copy_strided(std::move(copy), offset_by(x.data, from, bytes), offset_by(y.data, to, bytes), bytes, c.pool);
  return {};
}
}  // namespace

std::span<const OpDef> center_crop_pad() {
  static const OpDef def{.name = "CenterCropPad",
                         .summary = "crops or pads around the middle",
                         .inputs = {2, 2},
                         .attributes = {axes_of_input(attr_ints("axes"))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move};
  return {&def, 1};
}
}  // namespace orknn::ops
