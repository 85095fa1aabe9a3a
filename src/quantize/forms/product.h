// What convolutions and matrix products have in common: integer weights, a bias, an addend, the converter.
#pragma once

#include "quantize/forms/converter.h"

namespace orknn::quantize {

// The second operand of a product and what its integers mean.
struct ProductWeights {
  ir::TensorId tensor;                // of the integer graph
  std::span<const double> scales;     // one, or one per output channel
  std::span<const double> bias = {};  // in real numbers; empty = none
};

// Adds the constant weights of a layer to the integer graph.
ProductWeights add_weights(Lowering& l, const ir::Node& n, const LayerWeights& weights);
// Zero points of weights that are not symmetric.
void set_weight_zero_points(ir::Attributes& attributes, const QuantizedWeights& weights);

// The integer layer `op` made from `n`.
Result<Outcome> lower_product(Lowering& l, const ir::Node& n, Form form, const std::string& op, const ProductWeights& weights,
                              ir::Attributes attributes);

}  // namespace orknn::quantize
