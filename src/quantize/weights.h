// Rounds constants to integers.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace orknn::quantize {

struct QuantizedWeights {
  ir::TensorData values;
  std::vector<double> scales;        // one, or one per channel
  std::vector<int64_t> zero_points;  // as many, or none when all are zero
};

// Brings the scales of channels to multiples of one unit, the next larger ones, so that the chip's 16-bit factors of channels
// (ops/support/requantize.h) state them exactly. Channels without any weight, whose scale is 0, get the largest one.
void set_channel_scales(std::span<double> scales);

// `axis` holds the output channels; nothing = one scale for all. `least_scales`, one per channel, keep scales from becoming so
// small that the bias no longer fits an int32. int8 and int16 are symmetric (-127 to 127), uint8 has zero points.
QuantizedWeights round_weights(const ir::TensorData& weights, std::optional<int64_t> axis, std::span<const double> least_scales,
                               DType type = DType::Int8, bool power_of_two = false);

// The integers that `weights` were made from, when they lie on the int8 grid `stated` for them.
std::optional<QuantizedWeights> stored_weights(const ir::TensorData& weights, const ir::QuantParams& stated);

// A constant operand with parameters of its own.
struct QuantizedConstant {
  ir::TensorData values;
  ir::QuantParams parameters;
};
QuantizedConstant round_constant(const ir::TensorData& value, DType type = DType::Int8, bool power_of_two = false);

}  // namespace orknn::quantize
