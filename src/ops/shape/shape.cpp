// The extents of a tensor, and their product, as integers. Both are known as soon as the shape is.
#include <algorithm>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

// [start, end) of the extents, clamped as in ONNX.
std::pair<int64_t, int64_t> range_of(const NodeReader& c, int64_t rank) {
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t* end = c.find<int64_t>("end");
  const int64_t first = clamp(c.get_int("start"));
  return {first, std::max(first, end ? clamp(*end) : rank)};
}

Status infer_shape(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, DType::Int64, Shape{Dim()});
    return {};
  }
  const auto [first, last] = range_of(c, static_cast<int64_t>(x->size()));
  c.set_output(0, DType::Int64, Shape{last - first});
  c.set_content(0, {x->begin() + first, x->begin() + last});
  return {};
}

Status run_shape(RunContext& c) {
  const TensorView x = c.input(0);
  const auto [first, last] = range_of(c, x.rank());
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, ScratchDims{last - first}));
  std::copy(x.dims.begin() + first, x.dims.begin() + last, y.as<int64_t>());
  return {};
}

Status infer_size(InferContext& c) {
  c.set_output(0, DType::Int64, Shape{});
  if (const Shape* x = c.shape(0)) {
    Dim count = 1;
    for (const Dim& d : *x) count = count * d;
    c.set_content(0, {count});
  }
  return {};
}

Status run_size(RunContext& c) {
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, Dims{}));
  *y.as<int64_t>() = c.input(0).count();
  return {};
}
}  // namespace

std::span<const OpDef> shape() {
  static const OpDef defs[] = {
      {.name = "Shape",
       .summary = "extents of a tensor",
       .attributes = {attr_int("start", 0), attr_int("end")},
       .infer = infer_shape,
       .run = run_shape,
       .widen_half = false,
       .quant = QuantRule::Integer},
      {.name = "Size",
       .summary = "number of elements of a tensor",
       .infer = infer_size,
       .run = run_size,
       .widen_half = false,
       .quant = QuantRule::Integer},
  };
  return defs;
}
}  // namespace orknn::ops
