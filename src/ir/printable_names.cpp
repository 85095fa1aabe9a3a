#include "ir/printable_names.h"

#include "base/printable_line.h"

namespace orknn::ir {
namespace {
// Returns whether anything changed.
bool change(std::string& name) {
  std::string text = printable_line(name);
  if (text == name) return false;
  name = std::move(text);
  return true;
}
}  // namespace

bool make_names_printable(Node& node) {
  bool changed = change(node.name);
  changed |= change(node.op);
  for (std::string& origin : node.origin) changed |= change(origin);
  return changed;
}

void make_names_printable(Graph& graph) {
  change(graph.name);
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId t{static_cast<int32_t>(i)};
    graph.rename_tensor(t, printable_line(graph.tensor(t).name));
  }
  for (const NodeId id : std::vector(graph.order())) {
    Node node = graph.node(id);
    if (make_names_printable(node)) graph.replace_node(id, node);
    for (const auto& [name, value] : node.attributes)
      if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body) {
        auto copy = std::make_shared<Graph>(**body);
        make_names_printable(*copy);
        graph.set_attribute(id, name, std::shared_ptr<const Graph>(std::move(copy)));
      }
  }
}

}  // namespace orknn::ir
