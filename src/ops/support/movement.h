// Loops and shape-rule pieces shared by operators that only move elements.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "ops/support/scratch_dims.h"

namespace orknn::ops {

// One axis of a strided copy; strides count elements and may be zero or negative on the source side.
struct CopyAxis {
  int64_t extent = 1, from_stride = 0, to_stride = 0;
};
using CopyAxes = Scratch<CopyAxis>;

// Copies `axes` from one strided place to another. Adjacent axes are joined, contiguous runs move as blocks, and
// transpositions go tile by tile. The result does not depend on the number of threads.
void copy_strided(CopyAxes axes, const void* from, void* to, size_t element_bytes, ThreadPool& pool);

// The axes of a copy into a dense tensor of `dims`.
CopyAxes into_dense(std::span<const int64_t> dims, std::span<const int64_t> from_strides);

// Writes `count` copies of one element.
void fill_elements(void* to, int64_t count, const void* element, size_t element_bytes);

// Pointer arithmetic in elements of `element_bytes`.
inline const void* offset_by(const void* p, int64_t elements, size_t element_bytes) {
  return static_cast<const std::byte*>(p) + elements * static_cast<int64_t>(element_bytes);
}
inline void* offset_by(void* p, int64_t elements, size_t element_bytes) {
  return static_cast<std::byte*>(p) + elements * static_cast<int64_t>(element_bytes);
}

// Output 0 is input 0's bytes under another shape.
Status copy_reshaped(ir::RunContext& c, std::span<const int64_t> dims);

// Output 0 (of `out` dims) is input 0 seen as `split` dims with those axes permuted. The element counts must agree.
Status copy_permuted(ir::RunContext& c, std::span<const int64_t> split, std::span<const size_t> perm,
                     std::span<const int64_t> out);

// Elements of integer input i for propagation through a shape rule: only when they are few and agree with its shape.
std::optional<std::vector<ir::Dim>> small_content(const ir::InferContext& c, size_t i);
// The content that copy_strided would make of `content`.
std::vector<ir::Dim> copy_content(const std::vector<ir::Dim>& content, std::span<const CopyAxis> axes, int64_t from_offset = 0);

// Checks that an input (if present) holds integers; `what` names it in the error.
Status require_integer(const ir::InferContext& c, size_t i, std::string_view what);
// Sorted, normalized and distinct axes.
Result<ScratchDims> distinct_axes(std::span<const int64_t> axes, int64_t rank);
// Axes that a node names; nothing where it names none.
using GivenAxes = std::optional<std::span<const int64_t>>;
// Indices along `axis` cover no more of the other axes than there is; unknown extents pass. The ranks must agree.
template <class Extents>
Status check_other_axes(const Extents& x, const Extents& indices, size_t axis) {
  const auto reaches_beyond = [](const ir::Dim& index, const ir::Dim& extent) {
    return index.is_known() && extent.is_known() && index.value() > extent.value();
  };
  for (size_t i = 0; i < x.size(); ++i)
    if (i != axis && reaches_beyond(indices[i], x[i]))
      return shape_mismatch("indices reach beyond the data outside of the axis")
          .expected(ir::to_string(x))
          .found(ir::to_string(indices));
  return {};
}
// Index in [-extent, extent) to [0, extent); an error otherwise.
Result<int64_t> checked_index(int64_t index, int64_t extent);
// Tells a caller's index problem in one place, so that inner loops stay small.
Status index_error(int64_t index, int64_t extent);

// Product of extents [from, to) of dims, which hold a real tensor's shape and cannot overflow.
inline int64_t extent_product(std::span<const int64_t> dims, size_t from, size_t to) {
  return ir::element_count(dims.subspan(from, to - from));
}

}  // namespace orknn::ops
