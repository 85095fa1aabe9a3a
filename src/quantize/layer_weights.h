// Integer weights of convolutions and matrix products.
#pragma once

#include "quantize/plan.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

// Rounds the constant weights of every layer that `plan` makes an integer sum of products: to the integers the model states, to
// those that adaptive rounding found, or to the nearest.
Status round_layer_weights(passes::Rewriter& rewriter, const Calibration& calibration, const QuantizeOptions& options,
                           Plan& plan);

// Adds to the biases what rounding took from the means of the results.
Status correct_biases(passes::Rewriter& rewriter, Plan& plan);

}  // namespace orknn::quantize
