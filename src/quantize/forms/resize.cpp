// Linear Resize of rows and columns: where each result lies is stored as a position and a share of its neighbour.
#include <cmath>

#include "ops/eval.h"
#include "ops/support/requantize.h"
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Where the results of one axis lie: the operator itself says it when it interpolates the positions.
Result<std::vector<double>> positions_of(const Lowering& l, const Node& n, const AxisResize& axis) {
  std::vector<double> indices(static_cast<size_t>(axis.from));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<double>(i);
  Attributes attributes = n.attributes;
  attributes.set("axes", std::vector<int64_t>{0});
  Node plain = free_node("Resize", std::move(attributes), 4);
  plain.inputs[1] = TensorId{};
  plain.inputs[axis.scale != 0 ? 3 : 2] = TensorId{};
  std::vector<TensorData> inputs(4);
  inputs[0] = TensorData::from<double>({axis.from}, indices);
  if (axis.scale != 0)
    inputs[2] = TensorData::from<float>({1}, std::vector<float>{static_cast<float>(axis.scale)});
  else
    inputs[3] = TensorData::vector(std::vector<int64_t>{axis.to});
  ORKNN_TRY_ASSIGN(const auto results, ops::eval_node(plain, l.ops(), inputs));
  return to_doubles(results[0].view());
}

// Pairs of a position and the share of the next one, in units of 1 / `one`.
Result<TensorData> places(const Lowering& l, const Node& n, const AxisResize& axis, int64_t one) {
  ORKNN_TRY_ASSIGN(const std::vector<double> positions, positions_of(l, n, axis));
  std::vector<int32_t> pairs;
  for (double v : positions) {
    auto position = static_cast<int32_t>(std::floor(v));
    auto share = static_cast<int32_t>(std::nearbyint((v - position) * static_cast<double>(one)));
    if (share == one) {
      ++position;
      share = 0;
    }
    pairs.insert(pairs.end(), {position, share});
  }
  return TensorData::from<int32_t>({static_cast<int64_t>(positions.size()), 2}, pairs);
}
}  // namespace

Result<Outcome> lower_resize(Lowering& l, const Node& n) {
  const TensorId x = n.input(0), y = n.output();
  const auto axes = linear_resize(l.graph(), n);
  const int64_t bits = ops::resize_bits(l.type(x));
  const auto m = ops::make_multiplier(l.scale(x) / (l.scale(y) * std::ldexp(1.0, static_cast<int>(2 * bits))));
  if (!m) return l.scale_too_small(y);
  ORKNN_TRY_ASSIGN(TensorData rows, places(l, n, (*axes)[axes->size() - 2], int64_t{1} << bits));
  ORKNN_TRY_ASSIGN(TensorData columns, places(l, n, axes->back(), int64_t{1} << bits));
  Attributes attributes;
  attributes.set("x_zero_point", l.zero(x));
  set_stage(attributes, plain_target(l, y), *m, {});
  const TensorId data = l.integer(x);
  l.add_layer(n, "int:Resize",
              {data, l.constant(n.name + "/rows", std::move(rows)), l.constant(n.name + "/columns", std::move(columns))},
              std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
