// Channel equalization: channels that use a small part of their tensor's range are multiplied up, and the layers behind divide by
// the same factors. The float function stays the same; the 8-bit tensor between the layers keeps more of every channel.
#pragma once

#include "quantize/quantize.h"

namespace orknn::quantize {

// Rescales the weights of convolutions and Gemms around every tensor whose readers and writers all follow a factor per channel
// (convolution, Relu, LeakyRelu, PRelu, Clip from 0, pooling, residual additions, concatenation, gates). No tensor's range grows.
// How far channels are raised is decided per group of tensors by the predicted rounding noise of activations and weights behind
// them. `statistics`, of `graph`, follow; histograms have to be taken anew. A Clip may then cut a channel earlier than before,
// but nowhere within what the samples showed. Returns one line per group for logs.
std::vector<std::string> equalize_channels(ir::Graph& graph, TensorStatistics& statistics);

}  // namespace orknn::quantize
