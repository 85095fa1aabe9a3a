// Convolutions and transposed convolutions with constant weights.
#include "quantize/forms/product.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_conv(Lowering& l, NodeId id) {
  const Node& n = l.graph().node(id);
  const LayerWeights& weights = l.plan().weights.at(id.index);
  Attributes attributes = n.attributes;
  set_weight_zero_points(attributes, weights.rounded);
  return lower_product(l, n, Form::Conv, n.op == "ConvTranspose" ? "int:ConvTranspose" : "int:Conv", add_weights(l, n, weights),
                       std::move(attributes));
}

}  // namespace orknn::quantize
