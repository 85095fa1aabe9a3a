#include "quantize/number_format.h"

#include <algorithm>
#include <cmath>

namespace orknn::quantize {
using namespace ir;

Result<NumberFormat> number_format(std::string_view name) {
  if (name == "w8a8" || name == "asymmetric_quantized-8") return NumberFormat{};
  if (name == "asymmetric_quantized-u8" || name == "asymmetric_affine-u8")
    return NumberFormat{.activations = DType::UInt8, .weights = DType::UInt8, .per_tensor = true};
  if (name == "dynamic_fixed_point-8" || name == "dynamic_fixed_point-i8")
    return NumberFormat{.power_of_two = true, .per_tensor = true};
  if (name == "dynamic_fixed_point-16" || name == "dynamic_fixed_point-i16")
    return NumberFormat{.activations = DType::Int16, .weights = DType::Int16, .power_of_two = true, .per_tensor = true};
  if (name == "w16a16i") return NumberFormat{.activations = DType::Int16, .weights = DType::Int16};
  if (name == "w16a16i_dfp") return NumberFormat{.activations = DType::Int16, .weights = DType::Int16, .power_of_two = true};
  if (name == "w8a16") return NumberFormat{.activations = DType::Float16};
  if (name == "w4a16") return NumberFormat{.activations = DType::Float16, .weights = DType::Int4};
  return invalid_argument("Invalid quantized_dtype '" + std::string(name) + "'!");
}

Limits limits_of(DType type, bool power_of_two) {
  Limits l{dtype_min(type), static_cast<int64_t>(dtype_max(type))};
  if (power_of_two) l.low = -l.high;
  return l;
}

QuantParams parameters_of(Range range, DType type, bool power_of_two) {
  // Ranges are stated as float32; the numbers must follow from what is stated.
  range.low = static_cast<float>(std::min(range.low, 0.0));
  range.high = static_cast<float>(std::max(range.high, 0.0));
  const Limits l = limits_of(type, power_of_two);
  QuantParams p;
  p.min = {static_cast<float>(range.low)};
  p.max = {static_cast<float>(range.high)};
  // The smallest normal float would make quotients overflow; nothing that small differs from zero.
  constexpr double kLeast = 1e-30;
  if (power_of_two) {
    const double largest = std::max(-range.low, range.high);
    // A whole power of two is still within the range, one step below its end.
    const int exponent = largest > kLeast ? static_cast<int>(std::ceil(std::log2(largest))) : 0;
    p.scale = {static_cast<float>(std::ldexp(1.0, exponent - (type == DType::Int16 ? 15 : 7)))};
    p.zero_point = {0};
    p.fixed_point = true;
    return p;
  }
  const auto steps = static_cast<double>(l.high - l.low);
  const double step = (range.high - range.low) / steps;
  p.scale = {static_cast<float>(step > kLeast ? step : 1.0 / steps)};
  p.zero_point = {static_cast<int32_t>(std::clamp(static_cast<double>(l.low) - std::nearbyint(range.low / p.scale[0]),
                                                  static_cast<double>(l.low), static_cast<double>(l.high)))};
  return p;
}

int64_t rounded(double real, double scale, int64_t zero, Limits limits) {
  if (std::isnan(real)) return std::clamp(zero, limits.low, limits.high);
  return static_cast<int64_t>(std::clamp(std::nearbyint(real / scale) + static_cast<double>(zero),
                                         static_cast<double>(limits.low), static_cast<double>(limits.high)));
}

TensorData integer_tensor(DType type, Dims dims, const std::vector<int64_t>& values) {
  TensorData result = TensorData::allocate(type, std::move(dims));
  ORKNN_ASSERT(static_cast<size_t>(result.count()) == values.size(), "as many values as the shape says");
  visit_dtype(type, [&]<class T>(TypeTag<T>) {
    auto* to = static_cast<T*>(result.mutable_data());
    if constexpr (std::is_integral_v<T>)
      for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
  });
  return result;
}

}  // namespace orknn::quantize
