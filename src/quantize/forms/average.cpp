// AveragePool: by the pooling unit where data and result have the same parameters, else by the output converter, with a
// multiplier for each number of values that a window can hold.
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// The unit divides by the whole window, in which padding counts.
bool counts_whole_windows(const Node& n) {
  const bool pads = std::ranges::any_of(n.attributes.ints_or("pads"), [](int64_t p) { return p != 0; });
  return n.attributes.int_or("ceil_mode", 0) == 0 && (!pads || n.attributes.int_or("count_include_pad", 0) != 0);
}
}  // namespace

Result<Outcome> lower_average(Lowering& l, const Node& n) {
  constexpr int64_t kMostTaps = 1 << 14;
  const TensorId x = n.input(0), y = n.output();
  int64_t taps = 1;
  for (int64_t k : n.attributes.ints_or("kernel_shape")) taps *= k;
  if (taps < 1 || taps > kMostTaps) return Outcome::stays_float("its window is too large");
  Attributes attributes = n.attributes;
  attributes.set("x_zero_point", l.zero(x));
  if (l.scale(x) == l.scale(y) && l.zero(x) == l.zero(y) && l.type(x) == l.type(y) && counts_whole_windows(n)) {
    attributes.set("same_scale", 1);
    if (l.type(y) != DType::Int8) attributes.set("y_type", static_cast<int64_t>(l.type(y)));
    l.add_layer(n, "int:AveragePool", {l.integer(x)}, std::move(attributes));
    return Outcome::lowered();
  }
  std::vector<int64_t> factors, shifts;
  for (int64_t count = 1; count <= taps; ++count) {
    const auto m = ops::make_multiplier(l.scale(x) / (l.scale(y) * static_cast<double>(count)));
    if (!m) return l.scale_too_small(y);
    factors.push_back(m->factor);
    shifts.push_back(m->shift);
  }
  set_stage(attributes, plain_target(l, y), {}, {});
  attributes.set("multiplier", std::move(factors));
  attributes.set("shift", std::move(shifts));
  l.add_layer(n, "int:AveragePool", {l.integer(x)}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
