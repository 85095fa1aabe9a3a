#include "import/paddle/control_flow.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace orknn::importer::paddle {
using namespace ir;

namespace {
void collect_captured(const Body& body, std::vector<std::string_view>& all);

void collect_read(const Operator& op, std::vector<std::string_view>& all) {
  for (const Operand& operand : op.inputs) all.insert(all.end(), operand.values.begin(), operand.values.end());
  for (const Body& body : op.bodies) collect_captured(body, all);
}

void collect_captured(const Body& body, std::vector<std::string_view>& all) {
  std::unordered_set<std::string_view> own(body.inputs.begin(), body.inputs.end());
  const auto add_foreign = [&](const std::vector<std::string_view>& read) {
    for (std::string_view name : read)
      if (!own.contains(name)) all.push_back(name);
  };
  for (const Operator& op : body.operators) {
    std::vector<std::string_view> read;
    collect_read(op, read);
    add_foreign(read);
    for (const auto& list : op.outputs) own.insert(list.begin(), list.end());
  }
  add_foreign({body.outputs.begin(), body.outputs.end()});
}

// The values of the network that a block reads: constants stay constants there, others are handed to it.
struct Captures {
  std::vector<std::string_view> names;
  std::vector<TensorId> handed;  // of the network
};
Result<Captures> captures_of(const Network& network, const Operator& op) {
  Captures captures{.names = captured_names(op), .handed = {}};
  for (std::string_view name : captures.names) {
    ORKNN_TRY_ASSIGN(const TensorId id, network.need(name));
    if (!network.graph.is_constant(id)) captures.handed.push_back(id);
  }
  return captures;
}

Port port_of(const Graph& graph, TensorId id, std::string_view name) {
  const Tensor& t = graph.tensor(id);
  Port port{.name = std::string(name), .dtype = t.dtype, .shape = t.shape};
  if (const TensorData* value = graph.constant(id)) port.value = *value;
  return port;
}

// The block as a graph: first its own inputs, then what is handed to it.
Result<Graph> graph_of(const Network& network, const Body& body, std::span<const Port> own, const Captures& captures,
                       const LowerOperator& lower) {
  Network inner(network.ops);
  for (const Port& port : own) inner.add_input(port);
  for (std::string_view name : captures.names) inner.add_input(port_of(network.graph, network.find(name), name));
  for (const Operator& op : body.operators)
    if (const Status s = lower(inner, op); !s) return Status(s).node(op.name, op.type);
  return inner.finish(body.outputs);
}

Result<TensorId> condition_of(Network& network, const Operator& op) {
  if (op.inputs.empty() || op.inputs[0].values.size() != 1) return invalid_model("the condition is missing");
  ORKNN_TRY_ASSIGN(const TensorId condition, network.need(op.inputs[0].values[0]));
  Emitter e(network.graph, network.ops, op.name, {op.name});
  return e.reshape(e.cast(condition, DType::Bool), {1});
}

Result<std::vector<TensorId>> lower_if(Network& network, const Operator& op, const LowerOperator& lower) {
  if (op.bodies.size() != 2)
    return invalid_model("a condition chooses between two blocks").found(std::to_string(op.bodies.size()));
  for (const Body& body : op.bodies)
    if (body.outputs.size() != op.outputs.size())
      return invalid_model("a block makes another number of values than its operator")
          .expected(std::to_string(op.outputs.size()))
          .found(std::to_string(body.outputs.size()));
  ORKNN_TRY_ASSIGN(const TensorId condition, condition_of(network, op));
  ORKNN_TRY_ASSIGN(const Captures captures, captures_of(network, op));
  Attributes attributes;
  for (const auto& [key, body] : {std::pair("then_branch", &op.bodies[0]), std::pair("else_branch", &op.bodies[1])}) {
    ORKNN_TRY_ASSIGN(Graph graph, graph_of(network, *body, {}, captures, lower));
    attributes.set(key, std::make_shared<const Graph>(std::move(graph)));
  }
  std::vector<TensorId> inputs{condition};
  inputs.insert(inputs.end(), captures.handed.begin(), captures.handed.end());
  return Emitter(network.graph, network.ops, op.name, {op.name}).emit_all("If", inputs, attributes, op.outputs.size());
}

// --- loops

// Extents that change while the loop goes round are open.
bool relax(std::optional<Shape>& before, const std::optional<Shape>& after) {
  if (!before) return false;
  if (!after || after->size() != before->size()) {
    before.reset();
    return true;
  }
  bool changed = false;
  for (size_t i = 0; i < before->size(); ++i) {
    Dim& d = (*before)[i];
    const Dim& now = (*after)[i];
    if (!d.is_known() || (now.is_known() && now.value() == d.value())) continue;
    d = Dim();
    changed = true;
  }
  return changed;
}

Result<Graph> loop_body(const Network& network, const Body& body, std::vector<Port> carried, const Captures& captures,
                        const LowerOperator& lower) {
  const Shape one{1};
  std::vector<Port> own{{.name = "iteration", .dtype = DType::Int64, .shape = Shape{}},
                        {.name = "goes on", .dtype = DType::Bool, .shape = one}};
  own.insert(own.end(), carried.begin(), carried.end());
  return graph_of(network, body, own, captures, lower);
}

Result<std::vector<TensorId>> lower_while(Network& network, const Operator& op, const LowerOperator& lower) {
  if (op.bodies.size() != 1) return invalid_model("a loop has one block").found(std::to_string(op.bodies.size()));
  Body body = op.bodies[0];
  const size_t count = body.inputs.size();
  if (op.inputs.size() != count + 1 || op.outputs.size() != count || body.outputs.size() != count + 1)
    return invalid_model("the values that go round a loop differ in number").expected(std::to_string(count));
  ORKNN_TRY_ASSIGN(const TensorId condition, condition_of(network, op));
  std::vector<TensorId> inputs{TensorId{}, condition};
  std::vector<Port> carried;
  for (size_t i = 0; i < count; ++i) {
    const Operand& start = op.inputs[i + 1];
    if (start.values.size() != 1) return invalid_model("a value that goes round a loop has no start");
    ORKNN_TRY_ASSIGN(const TensorId id, network.need(start.values[0]));
    inputs.push_back(id);
    carried.push_back(port_of(network.graph, id, body.inputs[i]));
    carried.back().value = {};
  }
  ORKNN_TRY_ASSIGN(const Captures captures, captures_of(network, op));
  // The condition is one truth value, whatever shape the block gives it.
  const std::string asked = std::exchange(body.outputs[0], "go on");
  Operator shaped;
  shaped.type = "reshape";
  shaped.name = "go on";
  shaped.inputs = {{{asked}, {}}, {{}, Attribute{.integers = {1}, .numbers = {1}, .texts = {}}}};
  shaped.outputs = {{"go on"}};
  body.operators.push_back(std::move(shaped));
  constexpr int kMostTries = 3;
  for (int tries = 0; tries < kMostTries; ++tries) {
    ORKNN_TRY_ASSIGN(Graph graph, loop_body(network, body, carried, captures, lower));
    bool changed = false;
    for (size_t i = 0; i < count; ++i) changed |= relax(carried[i].shape, graph.tensor(graph.outputs()[i + 1]).shape);
    if (changed) continue;
    Attributes attributes;
    attributes.set("body", std::make_shared<const Graph>(std::move(graph)));
    attributes.set("captures", static_cast<int64_t>(captures.handed.size()));
    inputs.insert(inputs.end(), captures.handed.begin(), captures.handed.end());
    return Emitter(network.graph, network.ops, op.name, {op.name}).emit_all("Loop", inputs, attributes, count);
  }
  return unsupported("the shapes of a loop do not settle");
}
}  // namespace

bool has_blocks(const Operator& op) { return !op.bodies.empty() || op.type == "if" || op.type == "while"; }

std::vector<std::string_view> captured_names(const Operator& op) {
  std::vector<std::string_view> all, once;
  for (const Body& body : op.bodies) collect_captured(body, all);
  std::unordered_set<std::string_view> seen;
  for (std::string_view name : all)
    if (seen.insert(name).second) once.push_back(name);
  return once;
}

Result<std::vector<TensorId>> lower_blocks(Network& network, const Operator& op, const LowerOperator& lower) {
  if (op.type == "if") return lower_if(network, op, lower);
  if (op.type == "while") return lower_while(network, op, lower);
  return unsupported("operator '" + op.type + "' of PaddlePaddle has blocks of its own").expected("if or while");
}

}  // namespace orknn::importer::paddle
