#include "toolkit/shape_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "ir/infer.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

bool same_value(const TensorData& a, const TensorData& b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() &&
         (a.bytes() == 0 || a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && equal(x.second, y.second);
         });
}

Status differs(const Graph& g, const Node& n) {
  return unsupported("the layers differ between the shapes of dynamic_input")
      .node(n.name, n.op)
      .found(fmt::format("'{}'", n.output() ? g.tensor(n.output()).name : n.name))
      .hint("build one model per shape, or leave quantization off");
}
}  // namespace

size_t largest_set(const ShapeSets& sets) {
  size_t largest = 0;
  double most = -1;
  for (size_t i = 0; i < sets.size(); ++i) {
    double elements = 0;  // a sum that cannot overflow
    for (const Dims& shape : sets[i]) {
      double count = 1;
      for (int64_t d : shape) count *= static_cast<double>(d);
      elements += count;
    }
    if (elements > most) most = elements, largest = i;
  }
  return largest;
}

std::string to_text(const std::vector<Dims>& set) {
  std::string text = "[";
  for (const Dims& shape : set) text += fmt::format("{}[{}]", text.size() > 1 ? "," : "", fmt::join(shape, ","));
  return text + "]";
}

Result<Graph> with_shapes_of(const Graph& changed, const Graph& from, const Graph& to, const OpSet& ops) {
  const std::vector<NodeId>&a = from.order(), &b = to.order();
  Graph result = changed;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size()) return differs(i < a.size() ? from : to, i < a.size() ? from.node(a[i]) : to.node(b[i]));
    const Node &x = from.node(a[i]), &y = to.node(b[i]);
    if (x.op != y.op || x.inputs.size() != y.inputs.size() || x.outputs.size() != y.outputs.size() ||
        x.tail.size() != y.tail.size())
      return differs(from, x);
    const TensorId place = x.output() ? result.find_tensor(from.tensor(x.output()).name) : TensorId{};
    const Node* counterpart = place ? result.producer_node(place) : nullptr;
    for (size_t k = 0; k < x.inputs.size(); ++k) {
      const TensorData *before = from.constant(x.input(k)), *after = to.constant(y.input(k));
      if ((before != nullptr) != (after != nullptr)) return differs(from, x);
      if (!before || same_value(*before, *after)) continue;
      const TensorId held = counterpart ? counterpart->input(k) : TensorId{};
      if (!result.is_constant(held) || !same_value(*result.constant(held), *before)) return differs(from, x);
      Node n = *counterpart;
      n.inputs[k] = result.add_constant(result.tensor(held).name, *after);
      result.replace_node(result.producer(place), std::move(n));
      counterpart = result.producer_node(place);
    }
    if (same_attributes(x.attributes, y.attributes)) continue;
    if (!counterpart || counterpart->op != x.op || !same_attributes(counterpart->attributes, x.attributes))
      return differs(from, x);
    Node n = *counterpart;
    n.attributes = y.attributes;
    result.replace_node(result.producer(place), std::move(n));
  }
  if (result.inputs().size() != to.inputs().size()) return internal_error("two sets of shapes have different inputs");
  for (size_t i = 0; i < to.inputs().size(); ++i) result.tensor(result.inputs()[i]).shape = to.tensor(to.inputs()[i]).shape;
  ORKNN_TRY(infer_shapes(result, ops));
  return result;
}

}  // namespace orknn::toolkit
