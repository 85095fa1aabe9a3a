// Cuts and paddings as TensorFlow and its relatives state them.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// Bits of x[a:b:c, ..., newaxis, i], one per entry: what an entry of begin, end and strides stands for.
struct SliceMasks {
  uint64_t begin = 0, end = 0;  // open: from the first, to the last
  uint64_t ellipsis = 0;        // as many whole axes as are left
  uint64_t new_axis = 0;
  uint64_t shrink = 0;         // one element, whose axis is dropped
  bool end_is_offset = false;  // the end counts from the begin
};
// `begin` and `end` may depend on the data; a moving end is no offset then.
Result<ir::TensorId> strided_slice(Emitter& e, ir::TensorId x, ir::TensorId begin, ir::TensorId end,
                                   const std::vector<int64_t>& strides, const SliceMasks& masks);
// `size` elements from `begin` on along every axis; -1 takes all that follow a constant begin.
Result<ir::TensorId> slice_of_size(Emitter& e, ir::TensorId x, ir::TensorId begin, ir::TensorId size);

// Parts along an axis: of these sizes, of which one of -1 takes what is left, or as many equal ones.
Result<std::vector<ir::TensorId>> split_to_sizes(Emitter& e, ir::TensorId x, int64_t axis, std::vector<int64_t> sizes);
Result<std::vector<ir::TensorId>> split_equally(Emitter& e, ir::TensorId x, int64_t axis, int64_t count);
// One tensor per element of an axis, without it.
std::vector<ir::TensorId> unstack(Emitter& e, ir::TensorId x, int64_t axis, int64_t count);

// Elements moved by `shifts` along `axes`, one shift each; what leaves at one end enters at the other. Without axes the one shift
// moves all elements in their order.
Result<ir::TensorId> roll(Emitter& e, ir::TensorId x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes);

// Rows of (before, after) as our list of all befores, then all afters.
Result<std::vector<int64_t>> pads_of_rows(const std::vector<int64_t>& rows);
// Constant padding by `value`, zero when absent.
ir::TensorId pad(Emitter& e, ir::TensorId x, const std::vector<int64_t>& pads, ir::TensorId value = {});
// Mirrors at the edge element; `repeats_edge` repeats that element too.
Result<ir::TensorId> mirror_pad(Emitter& e, ir::TensorId x, const std::vector<int64_t>& pads, bool repeats_edge);

}  // namespace orknn::importer
