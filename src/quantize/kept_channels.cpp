#include "quantize/kept_channels.h"

#include "ir/known_dims.h"
#include "ops/facts.h"

namespace orknn::quantize {
using namespace ir;

bool keeps_channels(const Graph& graph, const Node& n) {
  const OpDef& facts = ops::facts_of(n);
  if ((facts.pattern == Pattern::Window && facts.weights == Weights::None) || facts.pattern == Pattern::GlobalWindow)
    return n.outputs.size() == 1;
  const auto x = dims_of(graph, n.input(0)), y = dims_of(graph, n.output());
  if (!x || !y || x->size() < 2 || y->size() < 2 || (*x)[0] != (*y)[0] || (*x)[1] != (*y)[1]) return false;
  if (facts.quant == QuantRule::Resample)
    return n.attributes.string_or("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
  if (facts.quant == QuantRule::Padding) {
    const TensorData* value = graph.constant(n.input(2));
    return !n.has_input(2) || (value && value->count() == 1 && to_doubles(value->view())[0] == 0);
  }
  // With batch and channels kept, the rest is only arranged differently.
  if (facts.pattern == Pattern::View) return true;
  if (n.op == "Transpose") {
    const std::vector<int64_t> perm = n.attributes.ints_or("perm");
    return perm.size() >= 2 && perm[0] == 0 && perm[1] == 1;
  }
  if (facts.total == Total::Mean || facts.total == Total::Sum || facts.total == Total::Max) {
    const TensorData* axes = graph.constant(n.input(1));
    if (!axes) return false;
    for (int64_t a : to_ints(axes->view()))
      if (a < 2 && (a >= 0 || a + static_cast<int64_t>(x->size()) < 2)) return false;
    return axes->count() > 0;
  }
  return false;
}

}  // namespace orknn::quantize
