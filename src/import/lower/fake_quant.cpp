#include "import/lower/fake_quant.h"

#include <cmath>

namespace orknn::importer {
using namespace ir;

Result<IntegerGrid> nudged_grid(double least, double most, int64_t bits, bool narrow) {
  if (bits < 2 || bits > 16 || !(least <= most) || !std::isfinite(least) || !std::isfinite(most))
    return invalid_model("the range is impossible")
        .expected("min <= max and 2 to 16 bits")
        .found(std::to_string(least) + " to " + std::to_string(most) + ", " + std::to_string(bits) + " bits");
  IntegerGrid g;
  g.low = narrow ? 1 : 0;
  g.high = (int64_t{1} << bits) - 1;
  // In float, as TensorFlow computes it: the zero point may hang on the last bit.
  const auto low = static_cast<float>(g.low), high = static_cast<float>(g.high);
  const float scale = (static_cast<float>(most) - static_cast<float>(least)) / (high - low);
  g.zero_point = g.low;
  if (!(scale > 0)) return g;
  g.scale = static_cast<double>(scale);
  const float zero = low - static_cast<float>(least) / scale;
  g.zero_point = zero < low ? g.low : zero > high ? g.high : static_cast<int64_t>(std::round(zero));
  return g;
}

TensorId fake_quant(Emitter& e, TensorId x, const std::vector<IntegerGrid>& grids, std::optional<int64_t> axis, int64_t bits) {
  const bool is_short = bits <= 8;
  const int64_t shift = is_short ? 128 : 32768, full = is_short ? 255 : 65535;
  const Dims dims = axis ? Dims{static_cast<int64_t>(grids.size())} : Dims{};
  std::vector<float> scales, least, most;
  std::vector<int64_t> zero_points;
  bool is_cut = false;  // to less than the integers hold
  for (const IntegerGrid& g : grids) {
    scales.push_back(static_cast<float>(g.scale));
    zero_points.push_back(g.zero_point - shift);
    least.push_back(static_cast<float>(g.least()));
    most.push_back(static_cast<float>(g.most()));
    is_cut |= g.low != 0 || g.high != full;
  }
  const auto constant = [&](std::string_view role, const std::vector<float>& values, const Dims& shape) {
    return e.add_constant(role, TensorData::from<float>(shape, values));
  };
  if (is_cut) {
    Dims bounds = dims;  // one for each element of the axis, to broadcast over those after it
    if (axis) bounds.resize(static_cast<size_t>(std::max<int64_t>(e.rank_of(x).value_or(0) - *axis, 1)), 1);
    const TensorId low = constant("least", least, bounds), high = constant("most", most, bounds);
    x = axis ? e.binary("Min", e.binary("Max", x, low), high) : e.emit("Clip", {x, low, high});
  }
  const TensorId scale = constant("scale", scales, dims);
  const TensorData zeros = convert(TensorData::from<int64_t>(dims, zero_points).view(), is_short ? DType::Int8 : DType::Int16);
  const TensorId zero_point = e.add_constant("zero_point", zeros);
  Attributes attributes;
  if (axis) attributes.set("axis", *axis);
  const TensorId q = e.emit_kept("QuantizeLinear", {x, scale, zero_point}, attributes);
  return e.emit_kept("DequantizeLinear", {q, scale, zero_point}, attributes);
}

}  // namespace orknn::importer
