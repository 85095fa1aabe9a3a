// Results whose length depends on the data: positions of non-zero elements, and the slices a condition selects.
#include <algorithm>
#include <cstring>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_non_zero(InferContext& c) {
  const Shape* x = c.shape(0);
  c.set_output(0, DType::Int64, Shape{x ? Dim(std::max<int64_t>(1, static_cast<int64_t>(x->size()))) : Dim(), Dim()});
  return {};
}

Status run_non_zero(RunContext& c) {
  const TensorView x = c.input(0);
  std::vector<int64_t> found;
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    const std::span<const T> values = x.values<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      bool set;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        set = static_cast<float>(values[i]) != 0.0f;
      else
        set = values[i] != T{};
      if (set) found.push_back(static_cast<int64_t>(i));
    }
  });
  // A scalar counts as a vector of one element.
  const Dims dims = x.dims.empty() ? Dims{1} : Dims(x.dims.begin(), x.dims.end());
  const auto rank = static_cast<int64_t>(dims.size()), count = static_cast<int64_t>(found.size());
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int64, Dims{rank, count}));
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = found[static_cast<size_t>(n)];
    for (size_t i = dims.size(); i-- > 0; rest /= dims[i]) y.as<int64_t>()[static_cast<int64_t>(i) * count + n] = rest % dims[i];
  }
  return {};
}

Status infer_compress(InferContext& c) {
  if (c.dtype(1) != DType::Bool) return invalid_model("the condition must be bool").found(std::string(dtype_name(c.dtype(1))));
  if (const Shape* condition = c.shape(1); condition && condition->size() != 1)
    return shape_mismatch("the condition must have one axis").found(to_string(*condition));
  const int64_t* axis = c.find<int64_t>("axis");
  std::optional<Shape> out = axis ? c.input(0).shape : Shape{Dim()};
  if (axis && out) {
    ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(*axis, static_cast<int64_t>(out->size())));
    (*out)[static_cast<size_t>(normalized)] = Dim();
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run_compress(RunContext& c) {
  const TensorView x = c.input(0), condition = c.input(1);
  // Without an axis the tensor counts as flat.
  Dims dims = {x.count()};
  size_t axis = 0;
  if (const int64_t* given = c.find<int64_t>("axis")) {
    ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(*given, x.rank()));
    dims.assign(x.dims.begin(), x.dims.end());
    axis = static_cast<size_t>(normalized);
  }
  const int64_t extent = dims[axis], outer = extent_product(dims, 0, axis), inner = extent_product(dims, axis + 1, dims.size());
  std::vector<int64_t> picks;
  for (int64_t i = 0; i < std::min(extent, condition.count()); ++i)
    if (condition.as<bool>()[i]) picks.push_back(i);
  const auto count = static_cast<int64_t>(picks.size());
  dims[axis] = count;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const size_t bytes = dtype_bytes(x.dtype);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(offset_by(y.data, (o * count + i) * inner, bytes),
                  offset_by(x.data, (o * extent + picks[static_cast<size_t>(i)]) * inner, bytes),
                  static_cast<size_t>(inner) * bytes);
  return {};
}
}  // namespace

std::span<const OpDef> non_zero() {
  static const OpDef defs[] = {
      {.name = "NonZero",
       .summary = "positions of non-zero elements",
       .infer = infer_non_zero,
       .run = run_non_zero,
       .widen_half = false,
       .quant = QuantRule::Integer},
      {.name = "Compress",
       .summary = "slices that a condition selects",
       .inputs = {2, 2},
       .attributes = {attr_int("axis")},
       .infer = infer_compress,
       .run = run_compress,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .pattern = Pattern::Move},
  };
  return defs;
}
}  // namespace orknn::ops
