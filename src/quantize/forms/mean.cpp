// Means over neighbouring axes: ReduceMean, GlobalAveragePool.
#include "ops/facts.h"
#include "ops/support/requantize.h"
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// The mean keeps its axes; a Squeeze takes them away.
void add_squeezed(Lowering& l, const Node& n, const AxisRange& axes, TensorId data, Attributes attributes) {
  const TensorId x = n.input(0), y = n.output();
  Node mean;
  mean.op = "int:ReduceMean";
  mean.name = n.name + "/mean";
  mean.inputs = {data};
  mean.attributes = std::move(attributes);
  mean.origin = n.origin;
  Shape kept = *l.graph().tensor(x).shape;
  std::vector<int64_t> removed;
  for (int64_t i = axes.first; i < axes.end; ++i) {
    kept[static_cast<size_t>(i)] = Dim(1);
    removed.push_back(i);
  }
  const TensorId middle = l.out().add_tensor(mean.name, l.type(y), kept);
  l.out().tensor(middle).quant = l.parameters(y);
  mean.outputs = {middle};
  l.out().add_node(std::move(mean));
  l.add_layer(n, "Squeeze", {middle, l.constant(n.name + "/axes", TensorData::vector(removed))}, {});
}
}  // namespace

Result<Outcome> lower_mean(Lowering& l, const Node& n) {
  const TensorId x = n.input(0), y = n.output();
  const auto axes = mean_axes(l.graph(), n);
  const auto dims = to_dims(*l.graph().tensor(x).shape);
  int64_t count = 1;
  for (int64_t i = axes->first; i < axes->end; ++i) count *= (*dims)[static_cast<size_t>(i)];
  const auto m = ops::make_multiplier(l.scale(x) / (l.scale(y) * static_cast<double>(count)));
  if (!m) return l.scale_too_small(y);
  Attributes attributes;
  attributes.set("x_zero_point", l.zero(x));
  attributes.set("first_axis", axes->first);
  attributes.set("end_axis", axes->end);
  set_stage(attributes, plain_target(l, y), *m, {n.op});
  const TensorId data = l.integer(x);
  if (ops::facts_of(n).pattern == Pattern::GlobalWindow || n.attributes.int_or("keepdims", 1) != 0)
    l.add_layer(n, "int:ReduceMean", {data}, std::move(attributes));
  else
    add_squeezed(l, n, *axes, data, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
