#include "ops/support/elementwise.h"

namespace orknn::ops {
using namespace ir;

Status same_as_input(InferContext& c) {
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

namespace {
Status broadcast_all(InferContext& c, DType result) {
  std::optional<Shape> shape = c.input(0).shape;
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!shape || !c.shape(i)) {
      shape.reset();
      break;
    }
    ORKNN_TRY_ASSIGN(shape, broadcast(*shape, *c.shape(i)));
  }
  c.set_output(0, result, std::move(shape));
  return {};
}
}  // namespace

Status broadcast_inputs(InferContext& c) { return broadcast_all(c, c.dtype(0)); }
Status broadcast_to_bool(InferContext& c) { return broadcast_all(c, DType::Bool); }

}  // namespace orknn::ops
