// Layers that copy values: the same operator on integers.
#include <algorithm>

#include "ops/facts.h"
#include "quantize/forms/lowering.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_move(Lowering& l, const Node& n) {
  const TensorId x = n.input(0);
  if (n.op == "Identity" && !l.parameters(x)) {
    l.quantize_as(x, n.output());
    return Outcome::lowered();
  }
  std::vector<TensorId> inputs{l.integer(x)};
  for (size_t i = 1; i < n.own_input_count(); ++i) inputs.push_back(l.real(n.inputs[i]));
  if (ops::facts_of(n).quant == QuantRule::Padding && n.attributes.string_or("mode", "constant") == "constant") {
    inputs.resize(std::max<size_t>(inputs.size(), 3));
    const int64_t fill = pads_below_all(l.graph(), n) ? l.limits(x).low : l.zero(x);
    inputs[2] = l.constant(n.name + "/fill", integer_tensor(l.type(x), {}, {fill}));
  }
  l.add_layer(n, n.op, std::move(inputs), n.attributes);
  return Outcome::lowered();
}

}  // namespace orknn::quantize
