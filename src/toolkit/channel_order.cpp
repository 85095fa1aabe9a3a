#include "toolkit/channel_order.h"

#include <fmt/format.h>

#include "toolkit/normalization.h"

namespace orknn::toolkit {
using namespace ir;

Status swap_input_channels(Graph& graph, const std::vector<bool>& swapped) {
  if (swapped.size() > graph.inputs().size())
    return invalid_argument(fmt::format("The len of reorder_channel ({}) is wrong, expect one order per input ({})!",
                                        swapped.size(), graph.inputs().size()));
  for (size_t i = 0; i < swapped.size(); ++i) {
    if (!swapped[i]) continue;
    const TensorId input = graph.inputs()[i];
    const Tensor& tensor = graph.tensor(input);
    const size_t axis = channel_axis(tensor);
    if (!tensor.shape || axis == 0 || !(*tensor.shape)[axis].is_known() || (*tensor.shape)[axis].value() != 3)
      return invalid_argument(fmt::format("The reorder_channel '2 1 0' for input {} is wrong, expect an input of 3 channels!", i))
          .found(fmt::format("'{}' of shape {}", tensor.name, tensor.shape ? to_string(*tensor.shape) : "unknown"));
    const std::string name = tensor.name;
    const int64_t order[] = {2, 1, 0};
    Attributes attributes;
    attributes.set("axis", static_cast<int64_t>(axis));
    const NodeId gather =
        graph.add_node("Gather", name + "_reordered", {input, graph.add_constant(name + "_order", TensorData::vector(order))},
                       std::move(attributes));
    Node node = graph.node(gather);
    graph.replace_node_uses(input, node.output());
    graph.replace_node(gather, node);  // itself reads the input
  }
  return {};
}

}  // namespace orknn::toolkit
