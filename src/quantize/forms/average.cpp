// AveragePool: one multiplier per number of values a window can hold.
#include "ops/support/requantize.h"
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_average(Lowering& l, const Node& n) {
  constexpr int64_t kMostTaps = 1 << 14;
  const TensorId x = n.input(0), y = n.output();
  int64_t taps = 1;
  for (int64_t k : n.attributes.ints_or("kernel_shape")) taps *= k;
  if (taps < 1 || taps > kMostTaps) return Outcome::stays_float("its window is too large");
  std::vector<int64_t> factors, shifts;
  for (int64_t count = 1; count <= taps; ++count) {
    const auto m = ops::make_multiplier(l.scale(x) / (l.scale(y) * static_cast<double>(count)));
    if (!m) return l.scale_too_small(y);
    factors.push_back(m->factor);
    shifts.push_back(m->shift);
  }
  Attributes attributes = n.attributes;
  attributes.set("x_zero_point", l.zero(x));
  set_stage(attributes, plain_target(l, y), std::move(factors), std::move(shifts), {});
  l.add_layer(n, "int:AveragePool", {l.integer(x)}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
