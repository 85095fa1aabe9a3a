#include "ops/support/quantization.h"

#include <algorithm>

#include "ops/facts.h"

namespace orknn::ops {
using namespace ir;

Result<ScaleLayout> ScaleLayout::make(std::span<const int64_t> x, std::span<const int64_t> scale, int64_t axis,
                                      int64_t block_size) {
  ScaleLayout layout;
  const auto rank = static_cast<int64_t>(x.size());
  const auto mismatch = [&] {
    return shape_mismatch("scales do not fit the tensor").expected("scales for " + to_string(x)).found(to_string(scale));
  };
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
  return t == DType::Int8 || t == DType::UInt8 || t == DType::Int16 || t == DType::UInt16 || t == DType::Int4 ||
         t == DType::UInt4;
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
    for (int64_t i = 0; i < x.count(); ++i)
      to[i] = static_cast<float>(static_cast<int64_t>(x.as<T>()[i]) - s.zero_point) * s.scale;
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

std::optional<QuantParams> stored_grid(const Graph& graph, const Node& n) {
  const TensorData *data = graph.constant(n.input(0)), *scale = graph.constant(n.input(1)), *zero = graph.constant(n.input(2));
  if (facts_of(n).conversion != Conversion::ToReals || !n.tail.empty() || !data || !scale || (n.has_input(2) && !zero))
    return std::nullopt;
  if (!is_quantized_type(data->dtype()) || data->dtype() == DType::UInt16 || n.attributes.int_or("block_size", 0) != 0)
    return std::nullopt;
  QuantParams p;
  for (double s : to_doubles(scale->view())) {
    if (!(s > 0) || !std::isfinite(s)) return std::nullopt;
    p.scale.push_back(static_cast<float>(s));
  }
  const int32_t shift = data->dtype() == DType::UInt8 ? 128 : 0;
  std::vector<int64_t> zeros = zero ? to_ints(zero->view()) : std::vector<int64_t>(1, 0);
  if (p.scale.empty() || (zeros.size() != 1 && zeros.size() != p.scale.size())) return std::nullopt;
  zeros.resize(p.scale.size(), zeros[0]);
  for (int64_t z : zeros) p.zero_point.push_back(static_cast<int32_t>(z) - shift);
  if (p.scale.size() > 1) {
    const auto rank = static_cast<int64_t>(data->dims().size());
    const int64_t stated = n.attributes.int_or("axis", 1);
    const auto axis = normalize_axis(rank == 1 && stated == 1 ? 0 : stated, rank);
    if (!axis || data->dims()[static_cast<size_t>(*axis)] != static_cast<int64_t>(p.scale.size())) return std::nullopt;
    p.axis = static_cast<int32_t>(*axis);
  }
  return p;
}

std::optional<QuantParams> moved_grid(const Graph& graph, const Node& n, std::span<const int64_t> result) {
  const TensorData* data = graph.constant(n.input(0));
  if (!data || !graph.tensor(n.input(0)).quant || !n.tail.empty()) return std::nullopt;
  QuantParams p = *graph.tensor(n.input(0)).quant;
  const bool permutes = n.op == "Transpose";
  if (!permutes && n.op != "Identity" && facts_of(n).pattern != Pattern::View) return std::nullopt;
  if (p.axis < 0) return p;
  const Dims& dims = data->dims();
  if (permutes) {
    const std::vector<int64_t> order = n.attributes.ints_or("perm");
    if (order.empty()) {
      p.axis = static_cast<int32_t>(dims.size()) - 1 - p.axis;
      return p;
    }
    const auto at = std::find(order.begin(), order.end(), p.axis);
    if (at == order.end()) return std::nullopt;
    p.axis = static_cast<int32_t>(at - order.begin());
    return p;
  }
  const auto axis = static_cast<size_t>(p.axis);
  const int64_t outer = element_count(std::span(dims).first(axis));
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] == dims[axis] && element_count(result.first(i)) == outer) {
      p.axis = static_cast<int32_t>(i);
      return p;
    }
  return std::nullopt;
}

Status check_scale_values(const InferContext& c, size_t i) {
  const TensorData* scales = c.constant(i);
  if (!scales) return {};
  for (double scale : to_doubles(scales->view()))
    if (!std::isfinite(scale) || scale < 0)
      return invalid_model("a quantization scale is not usable")
          .expected("finite numbers, not negative")
          .found(std::to_string(scale));
  return {};
}

Status check_scale(const InferContext& c, size_t i, DType dtype) {
  if (!c.has_input(i)) return invalid_model("a scale is missing").expected("input " + std::to_string(i));
  ORKNN_TRY(check_type(
      c, i, [](DType t) { return is_float(t); }, "floating-point scales"));
  ORKNN_TRY(check_scale_values(c, i));
  if (c.has_input(i + 1) && c.dtype(i + 1) != dtype)
    return invalid_model("a zero point has the type of its tensor")
        .expected(std::string(dtype_name(dtype)))
        .found(std::string(dtype_name(c.dtype(i + 1))));
  return {};
}

}  // namespace orknn::ops
