// Drops optional outputs without readers. Nodes without any reader disappear with every patch; those the model brought
// along go here.
//
// Before: %y, %mask = Dropout(%x)     After: %y = Dropout(%x)     Legal: the op may be built without that output.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Status remove_dead_code_pass(Rewriter& r) {
  const Graph& g = r.graph();
  const std::vector<NodeId> order = g.order();
  for (auto it = order.rbegin(); it != order.rend() && r.may_rewrite(); ++it) {
    if (!g.is_alive(*it)) continue;
    const Node& n = g.node(*it);
    const OpDef* def = r.ops().find(n.op);
    if (!def) continue;
    Node trimmed = n;
    const auto unread = [&](TensorId t) { return !t || g.reader_count(t) == 0; };
    size_t used = 0;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!unread(n.outputs[i]))
        used = i + 1;
      else if (static_cast<int>(i) >= def->outputs.min)
        trimmed.outputs[i] = {};
    }
    Patch patch(g);
    if (used == 0) {
      patch.remove_node(*it);
    } else {
      trimmed.outputs.resize(std::max(used, std::min(static_cast<size_t>(def->outputs.min), n.outputs.size())));
      if (trimmed.outputs == n.outputs || def->outputs.max == Arity::kMany) continue;
      patch.remove_node(*it);
      patch.add_node(std::move(trimmed));
    }
    ORKNN_TRY(r.apply(patch).status());
  }
  return {};
}
}  // namespace

Pass remove_dead_code() {
  return {.name = "remove_dead_code",
          .summary = "nodes and optional outputs without readers",
          .min_level = 0,
          .graph_pass = remove_dead_code_pass};
}
}  // namespace orknn::optimize
