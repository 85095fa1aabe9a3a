// Turns a planned float graph into one of integer layers.
#pragma once

#include "quantize/plan.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

// The last step: the rewriter's graph becomes one of integer layers with the same inputs and outputs. Layers whose numbers do not
// fit the output converter are left in float; `plan` is updated to say so. `decisions` says what became of each layer, in
// execution order.
Status lower_to_integers(passes::Rewriter& rewriter, Plan& plan, std::vector<LayerDecision>& decisions);

}  // namespace orknn::quantize
