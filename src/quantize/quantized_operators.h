// Operators of source models that compute in integers themselves.
#pragma once

#include "ir/graph.h"
#include "ir/op_set.h"
#include "quantize/steps.h"

namespace orknn::quantize {

// True when the graph states how activations are quantized (QuantizeLinear, QLinear operators, integer inputs with a scale).
bool states_quantization(const ir::Graph& graph);

// QLinearConv, QLinearMatMul and the QLinear operators of com.microsoft become float operators between DequantizeLinear and
// QuantizeLinear.
Status expand_quantized_operators(ir::Graph& graph, const ir::OpSet& ops, const passes::Options& options = {},
                                  passes::Trace* trace = nullptr);

// An error that names the layers whose weights have a scale per channel: for chips that know one scale per tensor. Takes an
// expanded graph.
Status require_one_scale_per_tensor(const ir::Graph& graph);

}  // namespace orknn::quantize
