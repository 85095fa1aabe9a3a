#include "ops/support/quantization.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

Result<ScaleLayout> ScaleLayout::make(std::span<const int64_t> x, std::span<const int64_t> scale, int64_t axis, int64_t block_size) {
  ScaleLayout layout;
  const auto rank = static_cast<int64_t>(x.size());
  const auto mismatch = [&] { return shape_mismatch("scales do not fit the tensor").expected("scales for " + to_string(x)).found(to_string(scale)); };
  layout.scales_ = element_count(scale);
  layout.inner_ = std::max<int64_t>(1, element_count(x));
  if (block_size < 0) return invalid_model("attribute 'block_size' is negative").found(std::to_string(block_size));
  if (layout.scales_ == 1 && block_size == 0) return layout;
  if (rank == 1 && axis == 1) axis = 0;  // the default axis means nothing on a vector
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank));
  layout.extent_ = x[static_cast<size_t>(axis)];
  layout.inner_ = std::max<int64_t>(1, element_count(x.subspan(static_cast<size_t>(axis) + 1)));
  if (block_size == 0) {
    if (scale.size() != 1 || scale[0] != layout.extent_) return mismatch();
    return layout;
  }
  if (static_cast<int64_t>(scale.size()) != rank) return mismatch();
  layout.block_ = block_size;
  layout.blocks_ = layout.extent_ / block_size + (layout.extent_ % block_size != 0);
  for (int64_t i = 0; i < rank; ++i)
    if (scale[static_cast<size_t>(i)] != (i == axis ? layout.blocks_ : x[static_cast<size_t>(i)])) return mismatch();
  return layout;
}

bool is_quantized_type(DType t) {
  return t == DType::Int8 || t == DType::UInt8 || t == DType::Int16 || t == DType::UInt16 || t == DType::Int4 || t == DType::UInt4;
}

std::vector<float> read_scales(const RunContext& c, size_t input) {
  const std::vector<double> values = to_doubles(c.input(input));
  return std::vector<float>(values.begin(), values.end());
}

std::vector<int32_t> read_zero_points(const RunContext& c, size_t input) {
  if (!c.has_input(input)) return {0};
  const std::vector<int64_t> values = to_ints(c.input(input));
  return std::vector<int32_t>(values.begin(), values.end());
}

Result<TensorScale> read_tensor_scale(const RunContext& c, size_t scale, size_t zero_point) {
  const std::vector<float> scales = read_scales(c, scale);
  const std::vector<int32_t> zeros = read_zero_points(c, zero_point);
  if (scales.size() != 1 || zeros.size() != 1) return shape_mismatch("one scale and one zero point belong to the whole tensor");
  return TensorScale{scales[0], zeros[0]};
}

TensorData dequantize(const TensorView& x, TensorScale s) {
  TensorData y = TensorData::allocate(DType::Float32, Dims(x.dims.begin(), x.dims.end()));
  auto* to = static_cast<float*>(y.mutable_data());
  visit_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < x.count(); ++i) to[i] = static_cast<float>(static_cast<int64_t>(x.as<T>()[i]) - s.zero_point) * s.scale;
  });
  return y;
}

void quantize(const TensorView& x, TensorScale s, const MutableTensorView& y) {
  const auto low = static_cast<int32_t>(dtype_min(y.dtype)), high = static_cast<int32_t>(dtype_max(y.dtype));
  visit_integer(y.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < x.count(); ++i)
      y.as<T>()[i] = static_cast<T>(saturate(static_cast<double>(x.as<float>()[i] / s.scale), s.zero_point, low, high));
  });
}

Status check_scale(const InferContext& c, size_t i, DType dtype) {
  if (!c.has_input(i)) return invalid_model("a scale is missing").expected("input " + std::to_string(i));
  ORKNN_TRY(check_type(c, i, [](DType t) { return is_float(t); }, "floating-point scales"));
  if (c.has_input(i + 1) && c.dtype(i + 1) != dtype)
    return invalid_model("a zero point has the type of its tensor").expected(std::string(dtype_name(dtype))).found(std::string(dtype_name(c.dtype(i + 1))));
  return {};
}

}  // namespace orknn::ops
