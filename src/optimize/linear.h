// Conv, ConvTranspose, Gemm and MatMul seen as one thing: constant weights, a bias, and channels that can be scaled.
#pragma once

#include <optional>
#include <vector>

#include "ir/patch.h"

namespace orknn::optimize {

struct Linear {
  const ir::Node* node = nullptr;
  const ir::TensorData* weight = nullptr;
  std::vector<double> bias;   // one per output channel; empty = none
  bool can_have_bias = true;  // MatMul of rank above 2 has no place for one
  bool is_padded = false;     // zeros beyond the border take part: the input cannot be shifted
  int64_t group = 1;
  int64_t in_channels = 0, out_channels = 0;
  int64_t channel_axis = 1;  // of the output
  int64_t input_axis = 1;    // of the channels in the input
  int64_t rank = 0;          // of the output
};

// A fused tail lies between the result and what scale_output changes, but after everything that scale_input does.
enum class Tail { Refused, Kept };
// Nothing when weights or bias are not constant floats, weights are shared and large, or the node has a tail that is refused.
std::optional<Linear> linear_of(const ir::Graph& g, const ir::Node& node, Tail tail = Tail::Refused);

// The elements of a constant that broadcasts along `axis` of a tensor of this rank and no other axis, one per channel.
std::optional<std::vector<double>> per_channel(const ir::Graph& g, ir::TensorId constant, int64_t axis, int64_t rank,
                                               int64_t channels);

// A node computing linear(x) * scale + shift per output channel. Constants go into the patch; outputs are those of `outputs`.
ir::Node scale_output(ir::Patch& patch, const ir::Graph& g, const Linear& linear, const std::vector<double>& scale,
                      const std::vector<double>& shift, const ir::Node& outputs);
// A node computing linear(input * scale + shift) per input channel. Not for a padded node with a shift.
ir::Node scale_input(ir::Patch& patch, const ir::Graph& g, const Linear& linear, ir::TensorId input,
                     const std::vector<double>& scale, const std::vector<double>& shift);

}  // namespace orknn::optimize
