#include "compile/assume_types.h"

#include <map>

#include "compile/npu_ops.h"
#include "ops/facts.h"

namespace orknn::compile {
namespace {
using ir::Graph;
using ir::NodeId;
using ir::Tensor;
using ir::TensorData;
using ir::TensorId;

// The same bytes seen as elements of a type that is no larger; good for sizes only.
TensorData reinterpreted(const TensorData& value, DType type) {
  const auto keeper = std::make_shared<const TensorData>(value);
  return TensorData::wrap(type, value.dims(), value.data(), keeper);
}

// What a node computes in.
DType compute_type(const ir::Node& n, const platform::Platform& platform, DType wanted) {
  if (wanted == DType::Float16) return wanted;
  const NpuRow* row = npu_row(ops::facts_of(n).npu.form);
  if (!row) return wanted;  // CPU operators take what comes
  const std::string_view types = row->types[static_cast<size_t>(platform.operator_group - 'A')];
  // A shader divides numbers of any type as they come.
  if (row->form == ir::NpuForm::Division && platform.has_shader) return wanted;
  return types == "f" && platform.conv_int8 ? DType::Float16 : wanted;
}
}  // namespace

void assume_types(Graph& graph, const platform::Platform& platform, AssumedTypes types) {
  const std::vector<NodeId> order = graph.order();
  std::vector<bool> exact(graph.tensor_count(), false);
  for (NodeId id : order) {
    const ir::Node& n = graph.node(id);
    for (size_t i = 0; i < n.own_input_count(); ++i)
      if (n.has_input(i) && ops::facts_of(n).is_exact_input(i)) exact[static_cast<size_t>(n.inputs[i].index)] = true;
  }
  const size_t count = graph.tensor_count();
  for (size_t i = 0; i < count; ++i) {
    const TensorId id{static_cast<int32_t>(i)};
    Tensor& t = graph.tensor(id);
    if ((t.dtype != DType::Float32 && t.dtype != DType::Float16) || exact[i]) continue;
    if (!t.is_constant()) {
      const NodeId maker = graph.producer(id);
      t.dtype = maker ? compute_type(graph.node(maker), platform, types.activations) : types.activations;
    } else if (t.constant.count() > 1 &&
               dtype_bytes(types.weights) <= dtype_bytes(t.dtype)) {  // single values (exponents, bounds) are still looked at
      t.dtype = types.weights;
      t.constant = reinterpreted(t.constant, types.weights);
    }
  }
  if (types.activations == DType::Float16) return;

  std::map<std::pair<TensorId, DType>, TensorId> converted;
  for (NodeId id : order) {
    ir::Node n = graph.node(id);
    const DType type = compute_type(n, platform, types.activations);
    if (ops::facts_of(n).npu.form == ir::NpuForm::None) continue;
    bool changed = false;
    for (TensorId& input : n.inputs) {
      if (!input || graph.is_constant(input)) continue;
      const Tensor& t = graph.tensor(input);
      if (t.dtype == type || (t.dtype != types.activations && t.dtype != DType::Float16)) continue;
      TensorId& copy = converted[{input, type}];
      if (!copy) {
        ir::Attributes attributes;
        attributes.set("to", static_cast<int64_t>(type));
        const std::string name = t.name + "_convert";
        const auto shape = t.shape;
        const NodeId cast = graph.add_node("Cast", name, {input}, std::move(attributes));
        copy = graph.node(cast).output(0);
        graph.tensor(copy).dtype = type;
        graph.tensor(copy).shape = shape;
      }
      input = copy;
      changed = true;
    }
    if (changed) graph.replace_node(id, std::move(n));
  }
}

}  // namespace orknn::compile
