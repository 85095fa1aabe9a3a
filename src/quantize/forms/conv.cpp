// Convolutions and transposed convolutions with constant weights.
#include "ops/facts.h"
#include "quantize/forms/product.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_conv(Lowering& l, NodeId id) {
  const Node& n = l.graph().node(id);
  const LayerWeights& weights = l.plan().weights.at(id.index);
  Attributes attributes = n.attributes;
  set_weight_zero_points(attributes, weights.rounded);
  const bool is_transposed = ops::facts_of(n).weights == Weights::InOut;
  return lower_product(l, n, Form::Conv, is_transposed ? "int:ConvTranspose" : "int:Conv", add_weights(l, n, weights),
                       std::move(attributes));
}

}  // namespace orknn::quantize
