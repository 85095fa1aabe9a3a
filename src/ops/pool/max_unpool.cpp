// MaxUnpool: puts values back at the positions a MaxPool took them from; everything else is zero.
#include <algorithm>

#include "ops/support/floating.h"
#include "ops/support/operands.h"
#include "ops/support/window.h"

namespace orknn::ops {
namespace {
using namespace ir;

// The shape that the pool's geometry gives; indices refer to it even where output_shape asks for more.
Result<Shape> unpooled_shape(const NodeReader& node, const Shape& x) {
  if (x.size() < 3) return shape_mismatch("input 0 has the wrong rank").expected("3 or more").found(to_string(x));
  ORKNN_TRY_ASSIGN(const Window w, read_window(node, x.size() - 2));
  ORKNN_TRY(check_spread(w));
  Shape out = x;
  for (size_t i = 2; i < x.size(); ++i) {
    out[i] = (x[i] + Dim(-1)) * Dim(w.strides[i - 2]) + Dim(w.kernel[i - 2] - w.pads_begin[i - 2] - w.pads_end[i - 2]);
    if (out[i].is_known() && out[i].value() < 0)
      return shape_mismatch("padding takes the whole output away").found(to_string(out));
  }
  return out;
}

// Indices number the positions of the whole unpooled tensor.
Status check_indices(const InferContext& c, const Shape& unpooled) {
  Dim last(1);
  for (const Dim& extent : unpooled) last = last * extent;
  return require_values(c, 1, "index", 0, last + Dim(-1));
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_type(c, 1, DType::Int64));
  ORKNN_TRY(require_type(c, 2, DType::Int64));
  if (c.shape(0)) {
    ORKNN_TRY(require_shape(c, 1, "indices", *c.shape(0)));
    ORKNN_TRY(require_shape(c, 2, "output_shape", {static_cast<int64_t>(c.shape(0)->size())}));
  }
  std::optional<Shape> shape;
  if (c.shape(0)) {
    ORKNN_TRY_ASSIGN(shape, unpooled_shape(c, *c.shape(0)));
    ORKNN_TRY(check_indices(c, *shape));
  }
  if (c.has_input(2)) {
    const auto extents = c.content(2);
    for (size_t i = 0; shape && extents && i < shape->size(); ++i)
      if ((*shape)[i].is_known() && (*extents)[i].is_known() && (*extents)[i].value() < (*shape)[i].value())
        return shape_mismatch("output_shape has the wrong shape")
            .expected("at least " + to_string(*shape))
            .found(to_string(Shape(extents->begin(), extents->end())));
    shape = extents ? std::optional<Shape>(Shape(extents->begin(), extents->end())) : std::nullopt;
  }
  c.set_output(0, c.dtype(0), std::move(shape));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1);
  if (!std::equal(x.dims.begin(), x.dims.end(), indices.dims.begin(), indices.dims.end()))
    return wrong_shape("indices", to_string(x.dims), indices.dims);
  ORKNN_TRY_ASSIGN(const Shape shape, unpooled_shape(c, to_shape(x.dims)));
  const std::optional<Dims> unpooled = to_dims(shape);
  if (!unpooled) return shape_mismatch("the output is too big").found(to_string(shape));
  ORKNN_TRY_ASSIGN(const int64_t positions, checked_element_count(*unpooled));
  const Dims dims = c.has_input(2) ? to_ints(c.input(2)) : *unpooled;
  if (dims.size() != unpooled->size()) return wrong_shape("output_shape", std::to_string(unpooled->size()) + " extents", dims);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < (*unpooled)[i]) return wrong_shape("output_shape", "at least " + to_string(*unpooled), dims);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const Dims from_strides = strides_of(*unpooled), to_strides = strides_of(dims);
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) -> Status {
    std::fill_n(y.as<T>(), y.count(), T{});
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t index = indices.as<int64_t>()[i];
      if (index < 0 || index >= positions)
        return invalid_argument("index out of range")
            .expected("0 to " + std::to_string(positions - 1))
            .found(std::to_string(index));
      int64_t position = 0;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        position += index / from_strides[axis] % (*unpooled)[axis] * to_strides[axis];
      y.as<T>()[position] = x.as<T>()[i];
    }
    return {};
  });
}
}  // namespace

std::span<const OpDef> max_unpool() {
  static const OpDef def{.name = "MaxUnpool",
                         .summary = "puts pooled values back at their positions",
                         .inputs = {2, 3},
                         .attributes = {required(attr_ints("kernel_shape")), attr_ints("pads"), attr_ints("strides")},
                         .infer = infer,
                         .run = run,
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
