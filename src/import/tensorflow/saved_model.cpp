#include "import/tensorflow/saved_model.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "import/tensorflow/saved_objects.h"
#include "import/tensorflow/variables.h"
#include "import/wire/writer.h"

namespace orknn::importer::tensorflow {
namespace {
using wire::Writer;

// --- signatures

// The tensors of a side of a signature, in the order of their names.
Result<std::vector<std::string>> tensors_of(Bytes signature, uint32_t side) {
  std::map<std::string, std::string, std::less<>> by_name;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> entries, wire::messages_of(signature, side));
  for (const Bytes entry : entries) {
    ORKNN_TRY_ASSIGN(const wire::MapEntry tensor, wire::map_entry(entry));
    std::string_view name;
    ORKNN_TRY(read_fields(tensor.value, wire::Slot{1, name}));
    if (!name.empty()) by_name.emplace(tensor.key, name);
  }
  std::vector<std::string> tensors;
  for (const auto& [name, tensor] : by_name) tensors.push_back(tensor);
  return tensors;
}

// --- which variable has which value

bool is_variable(const NodeDef& n) { return n.op == "VarHandleOp" || n.op == "VariableV2" || n.op == "Variable"; }

using Nodes = std::unordered_map<std::string_view, const NodeDef*>;
Nodes by_name(const std::vector<NodeDef>& nodes) {
  Nodes found;
  for (const NodeDef& n : nodes) found.emplace(n.name, &n);
  return found;
}

// The texts of a constant node.
Result<std::vector<std::string>> constant_texts(const NodeDef* node) {
  std::vector<std::string> texts;
  if (!node || node->op != "Const") return texts;
  ORKNN_TRY_ASSIGN(const AttributeValue value, attribute_of(*node, "value"));
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> strings, wire::messages_of(value.message, 8));
  for (const Bytes text : strings) texts.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  return texts;
}

// The number of the output that an input names: 3 in "RestoreV2:tensors:3" and in "save/RestoreV2:3".
size_t output_of(std::string_view input) {
  const size_t colon = input.rfind(':');
  size_t number = 0;
  for (size_t i = colon == input.npos ? input.size() : colon + 1; i < input.size(); ++i) {
    if (input[i] < '0' || input[i] > '9' || number > 1 << 24) return 0;
    number = number * 10 + static_cast<size_t>(input[i] - '0');
  }
  return number;
}

// By what is restored: an argument of the function or a variable of the graph that the nodes are in.
Result<ValueNames> restored_by(const std::vector<NodeDef>& nodes) {
  ValueNames restored;
  const Nodes known = by_name(nodes);
  const auto find = [&](std::string_view name) {
    const auto found = known.find(name);
    return found == known.end() ? nullptr : found->second;
  };
  for (const NodeDef& n : nodes) {
    if ((n.op != "AssignVariableOp" && n.op != "Assign") || n.inputs.size() < 2) continue;
    std::string_view from = n.inputs[1];
    const NodeDef* source = find(node_of(from));
    for (int depth = 0; source && source->op == "Identity" && !source->inputs.empty() && depth < 8; ++depth) {
      from = source->inputs[0];
      source = find(node_of(from));
    }
    if (!source || source->op != "RestoreV2" || source->inputs.size() < 2) continue;
    ORKNN_TRY_ASSIGN(const std::vector<std::string> names, constant_texts(find(node_of(source->inputs[1]))));
    if (const size_t i = output_of(from); i < names.size()) restored.emplace(node_of(n.inputs[0]), names[i]);
  }
  return restored;
}

// The same for variables of the graph, whatever restores them.
Result<ValueNames> restored_variables(const GraphDef& graph) {
  ORKNN_TRY_ASSIGN(ValueNames restored, restored_by(graph.nodes));
  std::unordered_map<std::string_view, const FunctionDef*> functions;
  for (const FunctionDef& f : graph.functions) functions.emplace(f.name, &f);
  for (const NodeDef& call : graph.nodes) {
    ORKNN_TRY_ASSIGN(const std::string_view name, called_function(call));
    const auto function = functions.find(name);
    if (function == functions.end()) continue;
    ORKNN_TRY_ASSIGN(const ValueNames inside, restored_by(function->second->nodes));
    const auto& arguments = function->second->inputs;
    for (size_t i = 0; i < std::min(arguments.size(), call.inputs.size()); ++i)
      if (const auto found = inside.find(arguments[i].name); found != inside.end())
        restored.emplace(node_of(call.inputs[i]), found->second);
  }
  return restored;
}

// --- the change

// A Const in the place of the variable.
Result<NodeDef> constant_node(const NodeDef& variable, const BundleEntry& value, OwnedMessages& owned) {
  Writer shape;
  for (const int64_t extent : value.dims) shape.message(2, Writer().number(1, static_cast<uint64_t>(extent)));
  Writer tensor;
  tensor.number(1, static_cast<uint64_t>(value.type)).message(2, shape);
  tensor.text(4, {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
  NodeDef node{.name = variable.name, .op = "Const", .inputs = {}, .attributes = {}};
  const auto add = [&](std::string_view name, const Writer& attribute_value) -> Status {
    ORKNN_TRY_ASSIGN(std::vector<std::byte> bytes, attribute_value.to_bytes());
    owned.messages.push_back(std::move(bytes));
    node.attributes.push_back({name, owned.messages.back()});
    return {};
  };
  ORKNN_TRY(add("dtype", Writer().number(6, static_cast<uint64_t>(value.type))));
  ORKNN_TRY(add("value", Writer().message(8, tensor)));
  return node;
}

// Only what the outputs need, data and control: saving and restoring go.
void keep_needed(GraphDef& graph, const std::vector<std::string>& outputs) {
  const Nodes known = by_name(graph.nodes);
  std::unordered_set<std::string_view> needed;
  std::vector<std::string_view> waiting;
  for (const std::string& output : outputs) waiting.push_back(node_of(output));
  while (!waiting.empty()) {
    const std::string_view name = waiting.back();
    waiting.pop_back();
    const auto found = known.find(name);
    if (found == known.end() || !needed.insert(found->first).second) continue;
    for (const std::string_view input : found->second->inputs) waiting.push_back(node_of(input));
  }
  std::erase_if(graph.nodes, [&](const NodeDef& n) { return !needed.contains(n.name); });
}

void read_values_directly(std::vector<NodeDef>& nodes) {
  for (NodeDef& n : nodes)
    if (n.op == "ReadVariableOp") n.op = "Identity";
}
}  // namespace

Result<Signature> signature_of(Bytes saved_model) {
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> graphs, wire::messages_of(saved_model, 2));
  Signature chosen;
  if (graphs.empty()) return chosen;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> signatures, wire::messages_of(graphs.front(), 5));
  for (const Bytes message : signatures) {
    ORKNN_TRY_ASSIGN(const wire::MapEntry entry, wire::map_entry(message));
    Signature signature{.name = std::string(entry.key), .inputs = {}, .outputs = {}};
    ORKNN_TRY_ASSIGN(signature.inputs, tensors_of(entry.value, 1));
    ORKNN_TRY_ASSIGN(signature.outputs, tensors_of(entry.value, 2));
    if (signature.inputs.empty() || signature.outputs.empty()) continue;  // __saved_model_init_op
    if (chosen.outputs.empty() || signature.name == "serving_default") chosen = std::move(signature);
  }
  return chosen;
}

bool has_variables(const GraphDef& graph) { return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_variable); }

Status freeze(GraphDef& graph, Bytes saved_model, const std::vector<std::string>& outputs, const std::string& prefix,
              OwnedMessages& owned) {
  ORKNN_TRY_ASSIGN(const VariableBundle bundle, VariableBundle::open(prefix));
  // Keras 3 restores other variables than those that the model reads; graphs of TensorFlow 1 have no objects.
  ORKNN_TRY_ASSIGN(ValueNames names, names_by_objects(graph, saved_model, bundle.objects()));
  ORKNN_TRY_ASSIGN(ValueNames restored, restored_variables(graph));
  names.merge(restored);
  keep_needed(graph, outputs);
  Status problems;
  for (NodeDef& n : graph.nodes) {
    if (!is_variable(n)) continue;
    const auto key = names.find(n.name);
    const BundleEntry* value = bundle.find(key == names.end() ? n.name : std::string_view(key->second));
    if (!value) {
      problems.also(invalid_model("the files hold no value of the variable").node(std::string(n.name), std::string(n.op)));
      continue;
    }
    ORKNN_TRY_ASSIGN(n, constant_node(n, *value, owned));
  }
  read_values_directly(graph.nodes);
  for (FunctionDef& f : graph.functions) read_values_directly(f.nodes);
  return problems;
}

}  // namespace orknn::importer::tensorflow
