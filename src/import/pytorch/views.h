// Views: tensors of another shape that share their elements with the tensor they were made from.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

// The same elements in another shape. A copy where the strides of `parent` do not allow a view, as in PyTorch's reshape.
Result<Value> view_reshaped(Call& c, TensorValue& parent, ir::Dims dims);
// Extents given with at most one -1 for what is left.
Result<ir::Dims> resolve_shape(std::span<const int64_t> given, int64_t count);
Result<Value> view_permuted(Call& c, TensorValue& parent, std::vector<int64_t> permutation);
// `count` elements of an axis from `start` on, every `step`-th.
Result<Value> view_sliced(Call& c, TensorValue& parent, size_t axis, int64_t start, int64_t count, int64_t step);
// One element of an axis, which goes away.
Result<Value> view_selected(Call& c, TensorValue& parent, size_t axis, int64_t index);
Result<Value> view_expanded(Call& c, TensorValue& parent, ir::Dims dims);
Result<Value> view_unsqueezed(Call& c, TensorValue& parent, size_t axis);
Result<Value> view_squeezed(Call& c, TensorValue& parent, std::span<const int64_t> axes);

// Elements of one axis of a tensor that is first brought into another order of axes and another shape.
struct Picked {
  std::vector<int64_t> permutation;
  ir::Dims shape;            // after the permutation
  int64_t axis;              // of that shape
  ir::TensorData positions;  // int64; the axis is replaced by their axes
};
// Cannot be written where a position occurs twice.
Result<Value> view_picked(Call& c, TensorValue& parent, Picked picked, ir::Dims strides);
// Strides of a hostile file may be anything: these wrap around instead of being undefined.
int64_t stride_times(int64_t stride, int64_t count);
int64_t stride_sum(int64_t a, int64_t b);
std::vector<int64_t> inverse_of(const std::vector<int64_t>& permutation);

// `value` put in place of a slice of `base`.
ir::TensorId replace_slice(Emitter& e, ir::TensorId base, ir::TensorId value, int64_t axis, int64_t start, int64_t count,
                           int64_t step, int64_t extent);

}  // namespace orknn::importer::pytorch
