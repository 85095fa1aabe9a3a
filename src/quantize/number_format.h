// How the numbers of a quantized model are stored.
#pragma once

#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/graph.h"
#include "quantize/ranges.h"

namespace orknn::quantize {

struct NumberFormat {
  DType activations = DType::Int8;  // Int8, UInt8, Int16; Float16 = only weights are integers
  DType weights = DType::Int8;      // Int8, UInt8, Int16, Int4
  bool power_of_two = false;        // dynamic fixed point: scales are powers of two, zero points are 0
  bool per_tensor = false;          // weights have one scale, whatever quantized_method says

  int bits() const { return activations == DType::Int16 ? 16 : 8; }
};

// By a name of config(quantized_dtype=...), old spellings included. The names are those of platform::Platform::quantized_dtypes.
Result<NumberFormat> number_format(std::string_view name);

// Smallest and largest integer a format uses: dynamic fixed point leaves out the one without a negative.
struct Limits {
  int64_t low = -128, high = 127;
};
Limits limits_of(DType type, bool power_of_two = false);

// Scale and zero point of a range (which is widened to contain 0); a range of nothing but zero still gets a valid scale.
ir::QuantParams parameters_of(Range range, DType type, bool power_of_two = false);

// round_half_even(real / scale) + zero within the limits; NaN gives the zero point.
int64_t rounded(double real, double scale, int64_t zero, Limits limits);
// `values` as a tensor of a type that has at most 16 bits.
ir::TensorData integer_tensor(DType type, ir::Dims dims, const std::vector<int64_t>& values);

}  // namespace orknn::quantize
