// Softmax: a table of the exponentials of all differences to the largest value.
#include <cmath>

#include "ops/support/requantize.h"
#include "quantize/forms/lowering.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_softmax(Lowering& l, const Node& n) {
  const TensorId x = n.input(0), y = n.output();
  if (l.type(y) != l.type(x)) return Outcome::stays_float("its result has another type than its data");
  if (const auto& shape = l.graph().tensor(x).shape; shape && shape->empty())
    return Outcome::stays_float("a single number has no axis along which it could be summed");
  const double factor = std::nearbyint(256 / l.scale(y));
  if (!(factor >= 1 && factor <= ops::kMaxSoftmaxFactor))
    return Outcome::stays_float("the scale of '" + l.graph().tensor(y).name + "' is out of range");
  const int64_t entries = ops::softmax_entries(l.type(x));
  TensorData table = TensorData::allocate(DType::Int32, {entries});
  auto* to = static_cast<int32_t*>(table.mutable_data());
  for (int64_t i = 0; i < entries; ++i)
    to[i] = static_cast<int32_t>(std::nearbyint(std::exp(-static_cast<double>(i) * l.scale(x)) * 16777216.0));
  Attributes attributes;
  attributes.set("axis", n.attributes.int_or("axis", -1));
  attributes.set("y_zero_point", l.zero(y));
  attributes.set("y_factor", static_cast<int64_t>(factor));
  const TensorId data = l.integer(x);
  l.add_layer(n, "int:Softmax", {data, l.constant(n.name + "/powers", std::move(table))}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
