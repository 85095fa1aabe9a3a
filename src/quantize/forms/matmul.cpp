// Matrix products: with constant weights, or of two computed tensors.
#include "quantize/forms/product.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_matmul(Lowering& l, NodeId id) {
  const Node& n = l.graph().node(id);
  Attributes attributes;
  const auto weights = l.plan().weights.find(id.index);
  if (weights == l.plan().weights.end()) {
    const TensorId b = n.input(1);
    attributes.set("w_zero_point", std::vector<int64_t>{l.zero(b)});
    const double scale = l.scale(b);
    return lower_product(l, n, Form::MatMul, "int:MatMul", {l.integer(b), std::span(&scale, 1)}, std::move(attributes));
  }
  set_weight_zero_points(attributes, weights->second.rounded);
  return lower_product(l, n, Form::MatMul, "int:MatMul", add_weights(l, n, weights->second), std::move(attributes));
}

}  // namespace orknn::quantize
