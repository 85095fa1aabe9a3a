// Channel equalization: channels that use a small part of their tensor's range are multiplied up, and the layers after it divide
// by the same factors. The float function stays the same; the 8-bit tensor between the layers keeps more of every channel.
#pragma once

#include "ir/patch.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

struct Equalization {
  ir::Patch patch;
  std::vector<std::string> remarks;  // one line per group of tensors that was changed
};

// Rescales the weights of convolutions and Gemms around every tensor whose readers and writers all follow a factor per channel
// (convolution, Relu, LeakyRelu, PRelu, Clip from 0, pooling, residual additions, concatenation, gates). No tensor's range grows.
// How far channels are raised is decided per group of tensors by the predicted rounding noise of activations and weights after
// them. `statistics`, of `graph`, are those of the patched graph afterwards; histograms have to be taken anew. A Clip may then
// cut a channel earlier than before, but nowhere within what the samples showed.
Equalization equalize_channels(const ir::Graph& graph, TensorStatistics& statistics);

}  // namespace orknn::quantize
