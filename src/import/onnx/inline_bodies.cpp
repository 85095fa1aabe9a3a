// Bodies that sequences go into or come out of. Such a body becomes part of the graph around it: of If the branch taken, of Loop
// a copy for every iteration, of SequenceMap one for every place of the sequence. How many there are must be known while
// importing.
#include <algorithm>

#include "import/onnx/graph_builder.h"

namespace orknn::importer::onnx {
using namespace ir;

namespace {
constexpr int64_t kMaxIterations = 4096;
constexpr int64_t kEndless = INT64_MAX;  // what exporters write for a loop that only its condition ends
constexpr size_t kElementsPerNode = 64;  // names and numbers of a node that cost as much as a node

// What a copy of a body costs, in nodes. The bodies inside of it are built anew with every copy.
size_t copy_cost(const GraphProto& body) {
  size_t cost = body.inputs.size() + body.outputs.size() + body.initializers.size() + body.nodes.size();
  for (const NodeProto& n : body.nodes) {
    size_t elements = n.inputs.size() + n.outputs.size();
    for (const AttributeProto& a : n.attributes) {
      elements += a.ints.size() + a.floats.size() + a.s.size();
      if (a.graph) cost += copy_cost(*a.graph);
    }
    cost += elements / kElementsPerNode;
  }
  return cost;
}

Result<int64_t> need_number(Emitter& emitter, TensorId id, std::string_view reason) {
  emitter.settle(id);
  return emitter.need_integer(id, reason);
}

Status wrong_count(const char* what, size_t expected, size_t found) {
  return invalid_model(what).expected(std::to_string(expected)).found(std::to_string(found));
}

Status too_many_iterations(const std::string& found) {
  return unsupported("a loop that passes sequences on has too many iterations to unroll")
      .expected("at most " + std::to_string(kMaxIterations) + " iterations")
      .found(found);
}
}  // namespace

Result<GraphBuilder::InlinedBody> GraphBuilder::open_body(Scope& scope, const Node& node,
                                                          const std::vector<AttributeProto>& attributes,
                                                          std::string_view attribute, size_t arguments) {
  const auto given = std::ranges::find_if(attributes, [&](const AttributeProto& a) { return a.name == attribute && a.graph; });
  if (given == attributes.end()) return invalid_model("attribute '" + std::string(attribute) + "' is missing");
  const GraphProto& proto = *given->graph;
  ORKNN_TRY_ASSIGN(Scope shared, body_scope(scope, scope.graph));
  shared.prefix = node.name + "/";
  InlinedBody body{.inputs = {}, .outputs = {}, .steps = {}, .shared = std::move(shared), .cost = copy_cost(proto)};
  ORKNN_TRY_ASSIGN(const std::vector<const ValueInfoProto*> inputs, body_inputs(proto));
  if (inputs.size() != arguments) return wrong_count("wrong number of body inputs", arguments, inputs.size());
  for (const ValueInfoProto* v : inputs) body.inputs.push_back(v->name);
  for (const ValueInfoProto& v : proto.outputs) body.outputs.push_back(v.name);
  add_initializers(body.shared, proto);
  ORKNN_TRY_ASSIGN(body.steps, plan(proto.nodes, body.outputs, Names(body.inputs.begin(), body.inputs.end())));
  std::vector<const NodeProto*>& nodes = body.steps.nodes;
  const auto constants =
      std::stable_partition(nodes.begin(), nodes.end(), [](const NodeProto* n) { return !is_constant_node(*n); });
  ORKNN_TRY(build_nodes(body.shared, {.nodes = {constants, nodes.end()}, .read = body.steps.read}));
  nodes.erase(constants, nodes.end());
  return body;
}

Result<std::vector<TensorId>> GraphBuilder::write_body(InlinedBody& body, const std::vector<TensorId>& arguments) {
  ORKNN_TRY(count_inlined(body.cost));
  Scope scope{.graph = body.shared.graph,
              .op_sets = body.shared.op_sets,
              .outer = &body.shared,
              .arguments = body.shared.arguments,
              .prefix = body.shared.prefix + std::to_string(body.copies++) + "/",
              .function_depth = body.shared.function_depth,
              .body_depth = body.shared.body_depth};
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    scope.defined.insert(body.inputs[i]);
    scope.values.emplace(body.inputs[i], arguments[i]);
  }
  ORKNN_TRY(build_nodes(scope, body.steps));
  std::vector<TensorId> results;
  for (std::string_view name : body.outputs) {
    ORKNN_TRY_ASSIGN(const TensorId id, lookup(scope, name));
    if (!id) return invalid_model("body output '" + std::string(name) + "' is absent");
    results.push_back(id);
  }
  return results;
}

Status GraphBuilder::inline_bodies(Scope& scope, const Node& node, const std::vector<AttributeProto>& attributes) {
  if (node.op == "If") return inline_branch(scope, node, attributes);
  return node.op == "Loop" ? unroll_loop(scope, node, attributes) : map_sequence(scope, node, attributes);
}

Status GraphBuilder::inline_branch(Scope& scope, const Node& node, const std::vector<AttributeProto>& attributes) {
  Emitter emitter(scope.graph, ops_, node.name, node.origin);
  ORKNN_TRY_ASSIGN(const int64_t condition, need_number(emitter, node.input(0), "to choose a branch that has sequences"));
  ORKNN_TRY_ASSIGN(InlinedBody body, open_body(scope, node, attributes, condition ? "then_branch" : "else_branch", 0));
  if (body.outputs.size() < node.outputs.size())
    return wrong_count("wrong number of branch outputs", node.outputs.size(), body.outputs.size());
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> results, write_body(body, {}));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i])
      copy(scope.graph, results[i], node.outputs[i], body.shared.prefix + std::string(body.outputs[i]), node.origin);
  return {};
}

Status GraphBuilder::unroll_loop(Scope& scope, const Node& node, const std::vector<AttributeProto>& attributes) {
  Emitter emitter(scope.graph, ops_, node.name, node.origin);
  int64_t iterations = kEndless;
  if (node.input(0)) {
    ORKNN_TRY_ASSIGN(iterations, need_number(emitter, node.input(0), "to write out the iterations of a loop that has sequences"));
  }
  if (iterations > kMaxIterations && iterations != kEndless) return too_many_iterations(std::to_string(iterations));
  std::vector<TensorId> state;
  for (size_t i = 2; i < node.inputs.size(); ++i) state.push_back(node.inputs[i]);
  ORKNN_TRY_ASSIGN(InlinedBody body, open_body(scope, node, attributes, "body", 2 + state.size()));
  if (body.outputs.size() < 1 + state.size() || node.outputs.size() > body.outputs.size() - 1)
    return wrong_count("wrong number of body outputs", 1 + std::max(state.size(), node.outputs.size()), body.outputs.size());

  std::vector<std::vector<TensorId>> scans(body.outputs.size() - 1 - state.size());
  TensorId condition = node.input(1);
  if (!condition) condition = emitter.add_constant("condition", TensorData::scalar<bool>(true));
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    ORKNN_TRY_ASSIGN(const int64_t goes_on, need_number(emitter, condition, "to end a loop that has sequences"));
    if (!goes_on) break;
    if (iteration == kMaxIterations) return too_many_iterations("a condition that stays true");
    std::vector<TensorId> arguments{emitter.add_int_scalar("iteration", iteration), condition};
    arguments.insert(arguments.end(), state.begin(), state.end());
    ORKNN_TRY_ASSIGN(const std::vector<TensorId> results, write_body(body, arguments));
    if (!problems_.is_empty()) return {};  // the other iterations have the same
    condition = results[0];
    for (size_t i = 0; i < state.size(); ++i) state[i] = results[1 + i];
    for (size_t i = 0; i < scans.size(); ++i) {
      if (sequences_.contains(scope.graph, results[1 + state.size() + i])) return invalid_model("a loop cannot stack sequences");
      scans[i].push_back(emitter.emit_kept("Unsqueeze", {results[1 + state.size() + i], emitter.add_ints("axes", {0})}));
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    if (i >= state.size() && body.copies == 0) return unsupported("a loop without iterations has nothing to stack");
    const TensorId result =
        i < state.size() ? state[i] : emitter.emit_kept("Concat", scans[i - state.size()], {{"axis", int64_t{0}}});
    copy(scope.graph, result, node.outputs[i], body.shared.prefix + std::string(body.outputs[1 + i]), node.origin);
  }
  return {};
}

Status GraphBuilder::map_sequence(Scope& scope, const Node& node, const std::vector<AttributeProto>& attributes) {
  ORKNN_TRY_ASSIGN(const Sequences::Tensors first, sequences_.need(scope.graph, node.input(0)));
  const size_t length = first.size();
  std::vector<const Sequences::Tensors*> sequences;  // nullptr: a tensor, which every copy reads
  for (TensorId id : node.inputs) sequences.push_back(sequences_.find(scope.graph, id));
  for (const Sequences::Tensors* s : sequences)
    if (s && s->size() != length) return wrong_count("the sequences differ in length", length, s->size());
  ORKNN_TRY_ASSIGN(InlinedBody body, open_body(scope, node, attributes, "body", node.inputs.size()));
  if (body.outputs.size() < node.outputs.size())
    return wrong_count("wrong number of body outputs", node.outputs.size(), body.outputs.size());
  std::vector<Sequences::Tensors> mapped(body.outputs.size());
  for (size_t place = 0; place < length && problems_.is_empty(); ++place) {
    std::vector<TensorId> arguments;
    for (size_t i = 0; i < sequences.size(); ++i) arguments.push_back(sequences[i] ? (*sequences[i])[place] : node.inputs[i]);
    ORKNN_TRY_ASSIGN(const std::vector<TensorId> results, write_body(body, arguments));
    for (size_t i = 0; i < results.size(); ++i) mapped[i].push_back(results[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i]) sequences_.set(scope.graph, node.outputs[i], std::move(mapped[i]));
  return {};
}

}  // namespace orknn::importer::onnx
