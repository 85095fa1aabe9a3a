// Which copies operators make that only move elements: shared by their reference kernels and by kernels that plan them once.
#pragma once

#include <string_view>

#include "ops/support/movement.h"

namespace orknn::ops {

// Elements of an axis.
struct SliceRange {
  int64_t start = 0, step = 1, count = 0;
};
// The elements start, start + step, ... before end of an axis of `extent`.
SliceRange clamped_range(int64_t start, int64_t end, int64_t step, int64_t extent);

// What ranges of axes make of a tensor: the copy's axes, its result, and where the source starts, in elements.
struct SlicePlan {
  ScratchDims dims;
  CopyAxes axes;
  int64_t offset = 0;
};
Result<SlicePlan> plan_slice(std::span<const int64_t> x, std::span<const int64_t> starts, std::span<const int64_t> ends,
                             std::span<const int64_t> axes, std::span<const int64_t> steps);
Status check_slice_lengths(size_t starts, size_t ends, size_t axes, size_t steps);
// Axes that ranges apply to where the node names none.
ScratchDims first_axes(size_t count);

// Axis i of the result is axis perm[i] of a dense tensor of `dims`.
CopyAxes permuted_axes(std::span<const int64_t> dims, std::span<const int64_t> perm);

// `perm` of a Transpose, reversed axes where it is absent; refuses what names an axis twice or not at all.
Result<ScratchDims> permutation_of(const ir::NodeReader& node, int64_t rank);

// A dense tensor of `x` repeated along axes of extent 1 and along leading axes that it lacks.
CopyAxes broadcast_axes(std::span<const int64_t> x, std::span<const int64_t> out);

// Input 0 seen as `split` dims with those axes permuted.
struct SplitPermutation {
  ir::Dims split;
  std::vector<size_t> perm;
};
// `mode` is DCR or CRD, `x` a picture [N,C,H,W].
SplitPermutation depth_to_space_permutation(std::span<const int64_t> x, int64_t block, std::string_view mode);
SplitPermutation space_to_depth_permutation(std::span<const int64_t> x, int64_t block);
SplitPermutation channel_shuffle_permutation(std::span<const int64_t> x, int64_t group);

}  // namespace orknn::ops
