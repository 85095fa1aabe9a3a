// Removes or inserts axes of extent 1.
#include <algorithm>

#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

// `axes` is nothing when the node gives none: then every axis of extent 1 goes, which needs a static shape.
template <class Extents>
Result<Extents> squeezed(const Extents& x, GivenAxes axes) {
  ScratchDims drop;
  if (axes) {
    ORKNN_TRY_ASSIGN(drop, distinct_axes(*axes, static_cast<int64_t>(x.size())));
  } else {
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] == Dim(1)) drop.push_back(static_cast<int64_t>(i));
  }
  Extents out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::binary_search(drop.begin(), drop.end(), static_cast<int64_t>(i)))
      out.push_back(x[i]);
    else if (const Dim extent = x[i]; extent.is_known() && extent.value() != 1)
      return shape_mismatch("only axes of extent 1 can be removed").found("axis " + std::to_string(i) + " of " + to_string(x));
  }
  return out;
}

template <class Extents>
Result<Extents> unsqueezed(const Extents& x, std::span<const int64_t> axes) {
  const auto rank = static_cast<int64_t>(x.size() + axes.size());
  ORKNN_TRY_ASSIGN(const ScratchDims insert, distinct_axes(axes, rank));
  Extents out;
  size_t from = 0;
  for (int64_t i = 0; i < rank; ++i)
    if (std::binary_search(insert.begin(), insert.end(), i))
      out.emplace_back(1);
    else
      out.push_back(x[from++]);
  return out;
}

Status infer_squeeze(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "axes"));
  const std::optional<std::vector<int64_t>> axes = c.ints(1);
  const Shape* x = c.shape(0);
  if (!x || (c.has_input(1) ? !axes : !is_static(*x))) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(Shape out, squeezed(*x, axes ? GivenAxes(*axes) : std::nullopt));
  c.set_output(0, c.dtype(0), std::move(out));
  if (auto content = small_content(c, 0)) c.set_content(0, std::move(*content));
  return {};
}

Status run_squeeze(RunContext& c) {
  ScratchDims axes;
  if (c.has_input(1)) axes = scratch_ints(c.input(1));
  ORKNN_TRY_ASSIGN(const ScratchDims out,
                   squeezed(scratch_dims(c.input(0).dims), c.has_input(1) ? GivenAxes(axes) : std::nullopt));
  return copy_reshaped(c, out);
}

Status infer_unsqueeze(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "axes"));
  const std::optional<std::vector<int64_t>> axes = c.ints(1);
  const Shape* x = c.shape(0);
  if (!x || !axes) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(Shape out, unsqueezed(*x, *axes));
  c.set_output(0, c.dtype(0), std::move(out));
  if (auto content = small_content(c, 0)) c.set_content(0, std::move(*content));
  return {};
}

Status run_unsqueeze(RunContext& c) {
  ORKNN_TRY_ASSIGN(const ScratchDims out, unsqueezed(scratch_dims(c.input(0).dims), scratch_ints(c.input(1))));
  return copy_reshaped(c, out);
}
}  // namespace

std::span<const OpDef> squeeze() {
  static const OpDef defs[] = {
      {.name = "Squeeze",
       .summary = "removes axes of extent 1",
       .inputs = {1, 2},
       .infer = infer_squeeze,
       .run = run_squeeze,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::View,
       .axes = AxisNames::Input1,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Function, .listed_as = "Reshape"},
       .cpu = {CpuList::AllChips}},
      {.name = "Unsqueeze",
       .summary = "inserts axes of extent 1",
       .inputs = {2, 2},
       .infer = infer_unsqueeze,
       .run = run_unsqueeze,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::View,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Function, .listed_as = "Reshape"},
       .cpu = {CpuList::AllChips}},
  };
  return defs;
}
}  // namespace orknn::ops
