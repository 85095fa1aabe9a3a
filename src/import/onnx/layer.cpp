#include "import/onnx/layer.h"

#include "ir/custom_op.h"

namespace orknn::importer::onnx {
using namespace ir;

namespace {
template <class T>
std::optional<T> take(Attributes& attributes, const std::string& name) {
  const T* value = attributes.get<T>(name);
  if (!value) return std::nullopt;
  std::optional<T> out = *value;
  attributes.erase(name);
  return out;
}
}  // namespace

Result<TensorId> Layer::operand(size_t i) const {
  if (!has_input(i)) return missing_input(i, operand_count());
  return input(i);
}
Status Layer::need_inputs(std::initializer_list<size_t> slots) const {
  for (size_t i : slots) ORKNN_TRY(operand(i).status());
  return {};
}

std::optional<int64_t> Layer::take_int(const std::string& name) { return take<int64_t>(node.attributes, name); }
std::optional<double> Layer::take_float(const std::string& name) {
  if (const auto whole = take_int(name)) return static_cast<double>(*whole);
  return take<double>(node.attributes, name);
}
std::optional<std::string> Layer::take_string(const std::string& name) { return take<std::string>(node.attributes, name); }
std::optional<std::vector<int64_t>> Layer::take_ints(const std::string& name) {
  if (const auto single = take_int(name)) return std::vector<int64_t>{*single};
  return take<std::vector<int64_t>>(node.attributes, name);
}
std::optional<std::vector<double>> Layer::take_floats(const std::string& name) {
  return take<std::vector<double>>(node.attributes, name);
}

void Layer::rename(const std::string& from, const std::string& to) {
  for (const auto& [name, value] : node.attributes) {
    if (name != from) continue;
    Attribute moved = value;
    node.attributes.erase(from);
    node.attributes.set(to, std::move(moved));
    return;
  }
}
void Layer::set_default(const std::string& name, Attribute value) {
  if (!node.attributes.has(name)) node.attributes.set(name, std::move(value));
}

void Layer::set_input(size_t i, TensorId tensor) {
  if (node.inputs.size() <= i) node.inputs.resize(i + 1);
  node.inputs[i] = tensor;
}

Status Layer::only_first_output() {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i])
      return unsupported("output " + std::to_string(i) + " ('" + graph_.tensor(node.outputs[i]).name +
                         "') exists only in training");
  if (node.outputs.size() > 1) node.outputs.resize(1);
  return {};
}

void Layer::add_node(std::string op, std::string name, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
                     Attributes attributes) {
  Node added;
  added.op = std::move(op);
  added.name = std::move(name);
  added.origin = node.origin;
  added.inputs = std::move(inputs);
  added.outputs = std::move(outputs);
  added.attributes = std::move(attributes);
  infer_added_node(graph_, ops_, graph_.add_node(std::move(added)));
}

void Layer::replace_by(const Outputs& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorId from = results[i], to = node.output(i);
    if (!to || !from) continue;
    const NodeId producer = from.index >= first_new_tensor_ ? graph_.producer(from) : NodeId{};
    if (!producer || graph_.node(producer).outputs.size() != 1 || graph_.reader_count(from) > 0) {
      add_node("Identity", node.name, {from}, {to});
      continue;
    }
    Node last = graph_.node(producer);
    last.name = node.name;
    last.outputs = {to};
    graph_.replace_node(producer, std::move(last));
    infer_added_node(graph_, ops_, producer);
  }
}

Status add(Layer& layer) {
  static const RowTable<Layer> rows{version_rows(), microsoft_rows(), microsoft_attention_rows(), microsoft_few_bits_rows(),
                                    linear_attention_rows()};
  const std::string source_op = layer.node.op;
  const bool stays_custom = layer.ops().find(custom_name(source_op)) != nullptr;
  const auto cannot_stay = [&] {
    return unsupported("opset " + std::to_string(layer.opset) +
                       " of this operator is computed by others, so it cannot be a custom one")
        .hint("give the class of the custom operator the methods shape_infer and compute");
  };
  if (const Row* row = rows.find(layer.node.op, layer.opset)) {
    ORKNN_TRY_ASSIGN(const Layer::Outputs results, (*row)(layer));
    if (!results.empty() && stays_custom) return cannot_stay();
    if (!results.empty()) {
      layer.replace_by(results);
      return {};
    }
  }
  if (!layer.ops().find(layer.node.op))
    return unsupported("operator is not supported")
        .hint("cut the model before it with 'outputs', or declare it with reg_custom_op");
  if (stays_custom && layer.node.op != source_op) return cannot_stay();
  if (stays_custom) layer.node.op = custom_name(source_op);
  infer_added_node(layer.graph(), layer.ops(), layer.graph().add_node(std::move(layer.node)));
  return {};
}

}  // namespace orknn::importer::onnx
