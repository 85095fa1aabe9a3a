// Keeps the upper or lower triangle of the last two axes, zeros elsewhere.
#include <algorithm>
#include <cstring>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "the diagonal"));
  ORKNN_TRY(require_one_value(c, 1, "the diagonal"));
  if (const Shape* x = c.shape(0); x && x->size() < 2) return shape_mismatch("at least two axes are needed").found(to_string(*x));
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  int64_t diagonal = 0;
  if (c.has_input(1)) {
    const ScratchDims k = scratch_ints(c.input(1));
    if (k.size() != 1) return invalid_argument("the diagonal must be one number").found(std::to_string(k.size()) + " numbers");
    diagonal = k[0];
  }
  if (x.rank() < 2) return shape_mismatch("at least two axes are needed").found(to_string(x.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  const int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  diagonal = std::clamp(diagonal, -rows, columns);
  const bool upper = c.get_int("upper") != 0;
  const size_t bytes = dtype_bytes(x.dtype);
  const int64_t all_rows = columns == 0 ? 0 : x.count() / columns;
  for (int64_t n = 0; n < all_rows; ++n) {
    // The row keeps [edge, columns) above, [0, edge) below.
    const int64_t edge = std::clamp<int64_t>(n % rows + diagonal + (upper ? 0 : 1), 0, columns);
    const auto* from = static_cast<const std::byte*>(offset_by(x.data, n * columns, bytes));
    auto* to = static_cast<std::byte*>(offset_by(y.data, n * columns, bytes));
    const size_t head = static_cast<size_t>(edge) * bytes, all = static_cast<size_t>(columns) * bytes;
    std::memset(upper ? to : to + head, 0, upper ? head : all - head);
    std::memcpy(upper ? to + head : to, upper ? from + head : from, upper ? all - head : head);
  }
  return {};
}
}  // namespace

std::span<const OpDef> trilu() {
  static const OpDef def{.name = "Trilu",
                         .summary = "upper or lower triangle",
                         .inputs = {1, 2},
                         .attributes = {attr_int("upper", 1)},
                         .infer = infer,
                         .run = run,
                         .widen_half = false};
  return {&def, 1};
}
}  // namespace orknn::ops
