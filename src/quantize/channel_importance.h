// How much the layers after a tensor make of an error in each of its channels.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "quantize/statistics.h"

namespace orknn::quantize {

// By tensor name. Each reader counts alike, whatever the size of its weights. Only of tensors between layers that nothing reads
// but Conv, ConvTranspose, Gemm and MatMul with constant weights, directly or through layers that keep channels apart (pools,
// copies, Concat, functions that keep the range): of others it is not known, and a layer before those takes all channels of its
// result to be alike. Convolutions have their channels on axis 1, products on the last.
using ChannelImportance = std::map<std::string, AxisImportance, std::less<>>;
ChannelImportance channel_importance(const ir::Graph& graph);

}  // namespace orknn::quantize
