// Elements picked, placed and reversed by index, as TensorFlow and its relatives state it. Indices may be of any integer type.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// The first `batch` axes are shared by values and indices; counted from the end of the indices when negative.
Result<ir::TensorId> gather_along(Emitter& e, ir::TensorId x, ir::TensorId indices, int64_t axis, int64_t batch);
ir::TensorId gather_nd(Emitter& e, ir::TensorId x, ir::TensorId indices);
// Zeros of a shape with values added at indices.
ir::TensorId scatter_nd(Emitter& e, ir::TensorId indices, ir::TensorId updates, ir::TensorId shape);
// A tensor of `fill` with values at indices: one value for all or one each.
Result<ir::TensorId> sparse_to_dense(Emitter& e, ir::TensorId indices, ir::TensorId shape, ir::TensorId values,
                                     ir::TensorId fill);
// The first lengths[i] elements along `time` reversed where the index along `batch` is i.
Result<ir::TensorId> reverse_sequence(Emitter& e, ir::TensorId x, ir::TensorId lengths, int64_t time, int64_t batch);
// Rows of indices of what is not zero: as many as the data says.
ir::TensorId indices_of_nonzero(Emitter& e, ir::TensorId x);
ir::TensorId tile(Emitter& e, ir::TensorId x, ir::TensorId times);
ir::TensorId broadcast_to(Emitter& e, ir::TensorId x, ir::TensorId shape);
// The shape two constant shapes broadcast to.
Result<ir::TensorId> broadcast_shapes(Emitter& e, ir::TensorId a, ir::TensorId b);
// How many boundaries lie at or below each value, int32.
ir::TensorId bucketize(Emitter& e, ir::TensorId x, const std::vector<float>& boundaries);

// --- matrices in the last two axes
Result<ir::TensorId> swap_last_two(Emitter& e, ir::TensorId x);
// a b, with the matrices of either transposed first.
Result<ir::TensorId> matrix_product(Emitter& e, ir::TensorId a, ir::TensorId b, bool transposes_a, bool transposes_b);
// Diagonal matrices with `fill` around; zero when absent.
Result<ir::TensorId> matrix_diagonal(Emitter& e, ir::TensorId diagonal, ir::TensorId fill = {});
Result<ir::TensorId> with_diagonal(Emitter& e, ir::TensorId x, ir::TensorId diagonal);

}  // namespace orknn::importer
