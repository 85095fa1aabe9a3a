// How much of a node's fused tail its integer form computes together with the layer.
#pragma once

#include "quantize/layer_forms.h"

namespace orknn::quantize {

// What an integer form computes of its node's tail itself, in this order: a constant bias (matrix products), an addition of a
// tensor (sums of products) or slopes below zero (convolutions), functions of one value.
struct TailParts {
  const ir::TensorData* bias = nullptr;
  ir::TensorId addend;
  std::vector<double> slopes;     // of LeakyRelu or PRelu: one, or one per channel
  size_t functions = 0, end = 0;  // steps [functions, end)
};
TailParts tail_parts(const ir::Graph& graph, const ir::Node& node, Form form);
// How many steps that are.
size_t tail_steps_taken(const ir::Graph& graph, const ir::Node& node, Form form);
// Whether the form of a node, which need not be part of the graph yet, computes its whole tail. An optimizer whose results become
// integer layers fuses nothing else (passes::Options::allows).
bool computes_tail(const ir::Graph& graph, const ir::Node& node);

}  // namespace orknn::quantize
