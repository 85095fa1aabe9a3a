#include "optimize/inline_body.h"

#include <algorithm>

#include "optimize/match.h"

namespace orknn::optimize {
using namespace ir;

std::vector<TensorId> inline_body(Patch& patch, const Graph& body, std::span<const TensorId> arguments, const std::string& prefix,
                                  const Node& owner) {
  std::vector<TensorId> moved(body.tensor_count());
  for (size_t i = 0; i < body.inputs().size() && i < arguments.size(); ++i)
    moved[static_cast<size_t>(body.inputs()[i].index)] = arguments[i];
  const auto outside = [&](TensorId id) -> TensorId {
    if (!id) return {};
    TensorId& target = moved[static_cast<size_t>(id.index)];
    if (target) return target;
    const std::string name = prefix + body.tensor(id).name;
    target = body.is_constant(id) ? patch.add_constant(name, body.tensor(id).constant) : patch.add_tensor(name);
    return target;
  };
  for (NodeId id : body.order()) {
    const Node& inner = body.node(id);
    Node n = inner;
    n.name = prefix + n.name;
    n.origin = join_origins({&inner, &owner});
    for (TensorId& t : n.inputs) t = outside(t);
    for (TensorId& t : n.outputs) t = outside(t);
    patch.add_node(std::move(n));
  }
  std::vector<TensorId> results;
  for (TensorId id : body.outputs()) results.push_back(outside(id));
  return results;
}

void replace_outputs(Patch& patch, const Graph& g, const Node& owner, std::span<const TensorId> results) {
  for (size_t i = 0; i < owner.outputs.size() && i < results.size(); ++i) {
    const TensorId out = owner.outputs[i];
    if (!out || g.reader_count(out) == 0) continue;
    TensorId result = results[i];
    const bool taken = std::count(results.begin(), results.end(), result) > 1;
    if (g.is_output(out) && (taken || (!patch.is_new(result) && !can_replace(g, out, result))))
      result = patch.add_node("Identity", owner.name, {result}, {}, owner.origin);
    patch.replace_tensor(out, result);
  }
}

}  // namespace orknn::optimize
