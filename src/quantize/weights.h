// Rounds constants to integers.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace orknn::quantize {

struct QuantizedWeights {
  ir::TensorData values;      // int8, symmetric: -127 to 127
  std::vector<double> scales;  // one, or one per channel
};

// `axis` holds the output channels; nothing = one scale for all. `least_scales`, one per channel, keep scales from becoming so small that
// the bias no longer fits an int32.
QuantizedWeights round_weights(const ir::TensorData& weights, std::optional<int64_t> axis, std::span<const double> least_scales);

// A constant operand as asymmetric int8 with parameters of its own.
struct QuantizedConstant {
  ir::TensorData values;
  ir::QuantParams parameters;
};
QuantizedConstant round_constant(const ir::TensorData& value);

}  // namespace orknn::quantize
