// PRelu as a layer of its own: a factor for values below zero.
#include "ops/support/requantize.h"
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_prelu(Lowering& l, const Node& n) {
  const TensorId x = n.input(0), y = n.output();
  const auto slopes = slopes_of(l.graph(), x, n.input(1));
  const auto m = ops::make_multiplier(l.scale(x) / l.scale(y));
  Attributes attributes;
  if (!m || !set_slopes(attributes, slopes->values)) return l.scale_too_small(y);
  attributes.set("x_zero_point", l.zero(x));
  attributes.set("axis", slopes->axis);
  set_stage(attributes, plain_target(l, y), *m, {});
  l.add_layer(n, "int:PRelu", {l.integer(x)}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
