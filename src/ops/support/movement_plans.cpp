#include "ops/support/movement_plans.h"

#include <algorithm>
#include <numeric>

namespace orknn::ops {
using namespace ir;

SliceRange clamped_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto wrap = [&](int64_t at) { return at < 0 ? at + extent : at; };
  // A step so large that it leaves the axis at once counts as one that just does; avoids overflow below.
  step = std::clamp(step, -extent - 1, extent + 1);
  SliceRange r{.step = step};
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

Status check_slice_lengths(size_t starts, size_t ends, size_t axes, size_t steps) {
  if (starts == ends && starts == axes && starts == steps) return {};
  return invalid_model("starts, ends, axes and steps must have the same length");
}

Result<SlicePlan> plan_slice(std::span<const int64_t> x, std::span<const int64_t> starts, std::span<const int64_t> ends,
                             std::span<const int64_t> axes, std::span<const int64_t> steps) {
  ORKNN_TRY(check_slice_lengths(starts.size(), ends.size(), axes.size(), steps.size()));
  ORKNN_TRY(distinct_axes(axes, static_cast<int64_t>(x.size())).status());
  SlicePlan plan{.dims = scratch_dims(x)};
  ScratchDims strides = scratch_strides(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(*normalize_axis(axes[i], static_cast<int64_t>(x.size())));
    if (steps[i] == 0) return invalid_model("a step must not be 0");
    const SliceRange r = clamped_range(starts[i], ends[i], steps[i], x[axis]);
    plan.dims[axis] = r.count;
    if (r.count > 0) plan.offset += r.start * strides[axis];
    strides[axis] *= r.step;
  }
  plan.axes = into_dense(plan.dims, strides);
  return plan;
}

ScratchDims first_axes(size_t count) {
  ScratchDims axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

CopyAxes permuted_axes(std::span<const int64_t> dims, std::span<const int64_t> perm) {
  const ScratchDims strides = scratch_strides(dims);
  ScratchDims out, from;
  for (const int64_t axis : perm) {
    out.push_back(dims[static_cast<size_t>(axis)]);
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  return into_dense(out, from);
}

Result<ScratchDims> permutation_of(const NodeReader& node, int64_t rank) {
  ScratchDims perm(static_cast<size_t>(rank));
  const auto* given = node.find<std::vector<int64_t>>("perm");
  if (!given) {
    std::iota(perm.rbegin(), perm.rend(), 0);
    return perm;
  }
  if (given->size() != perm.size())
    return invalid_model("perm must name every axis once").expected(std::to_string(rank) + " axes").found(to_string(*given));
  Scratch<char> seen(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    ORKNN_TRY_ASSIGN(perm[i], normalize_axis((*given)[i], rank));
    if (seen[static_cast<size_t>(perm[i])]) return invalid_model("perm must name every axis once").found(to_string(*given));
    seen[static_cast<size_t>(perm[i])] = true;
  }
  return perm;
}

CopyAxes broadcast_axes(std::span<const int64_t> x, std::span<const int64_t> out) {
  const ScratchDims strides = scratch_strides(x);
  ScratchDims from(out.size(), 0);
  const size_t shift = out.size() - x.size();
  for (size_t i = 0; i < x.size(); ++i) from[shift + i] = x[i] == 1 ? 0 : strides[i];
  return into_dense(out, from);
}

SplitPermutation depth_to_space_permutation(std::span<const int64_t> x, int64_t block, std::string_view mode) {
  const int64_t channels = x[1] / (block * block);
  if (mode == "DCR") return {{x[0], block, block, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2}};
  return {{x[0], channels, block, block, x[2], x[3]}, {0, 1, 4, 2, 5, 3}};
}

SplitPermutation space_to_depth_permutation(std::span<const int64_t> x, int64_t block) {
  return {{x[0], x[1], x[2] / block, block, x[3] / block, block}, {0, 3, 5, 1, 2, 4}};
}

SplitPermutation channel_shuffle_permutation(std::span<const int64_t> x, int64_t group) {
  return {{x[0], group, x[1] / group, extent_product(x, 2, x.size())}, {0, 2, 1, 3}};
}

}  // namespace orknn::ops
