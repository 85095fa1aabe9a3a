#include "import/tensorflow/scope.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace orknn::importer::tensorflow {
namespace {
// Output arguments of operators that have several, in order; those that are lists come last or alone and need no entry after
// them.
struct OutputsRow {
  std::string_view op;
  std::vector<std::string_view> names;
};
const std::vector<OutputsRow>& outputs_table() {
  static const std::vector<OutputsRow> table = {
      {"FusedBatchNorm", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
      {"FusedBatchNormV2", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
      {"FusedBatchNormV3", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
      {"_FusedBatchNormEx", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
      {"Switch", {"output_false", "output_true"}},
      {"RefSwitch", {"output_false", "output_true"}},
      {"Merge", {"output", "value_index"}},
      {"RefMerge", {"output", "value_index"}},
      {"TopK", {"values", "indices"}},
      {"TopKV2", {"values", "indices"}},
      {"MaxPoolWithArgmax", {"output", "argmax"}},
      {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
      {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
      {"CombinedNonMaxSuppression", {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"}},
      {"Unique", {"y", "idx"}},
      {"UniqueV2", {"y", "idx"}},
      {"UniqueWithCounts", {"y", "idx", "count"}},
      {"ListDiff", {"out", "idx"}},
      {"BroadcastGradientArgs", {"r0", "r1"}},
      {"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"BlockLSTMV2", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"GRUBlockCell", {"r", "u", "c", "h"}},
      {"TensorArray", {"handle", "flow"}},
      {"TensorArrayV2", {"handle", "flow"}},
      {"TensorArrayV3", {"handle", "flow"}},
      {"TensorArrayConcatV3", {"value", "lengths"}},
      {"TensorListPopBack", {"output_handle", "tensor"}},
      {"TensorListConcat", {"tensor", "lengths"}},
      {"TensorListConcatV2", {"tensor", "lengths"}},
      {"QuantizeV2", {"output", "output_min", "output_max"}},
      {"SoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
      {"SparseSoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
  };
  return table;
}

// Conditionals nested deeper than this are not distinguished, and copies of a predicate not followed further: bounds for hostile
// graphs.
constexpr size_t kMostGuards = 64, kMostCopies = 1000;

bool take_number(std::string_view text, int32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }
}  // namespace

std::string_view control_op(std::string_view op) {
  for (std::string_view name : {"RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration", "RefIdentity"})
    if (op == name) return op.substr(3);
  return op;
}

Reference Scope::resolve(std::string_view text) const {
  Reference result;
  const bool control = text.starts_with('^');
  if (control) text.remove_prefix(1);
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (const auto argument = arguments_.find(name); argument != arguments_.end())
    return {Reference::kArgument, control ? -1 : argument->second};
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return result;
  if (control) return {found->second, -1};
  int32_t offset = 0;
  if (const size_t second = rest.find(':'); second != std::string_view::npos) {
    const std::string_view argument = rest.substr(0, second);
    rest.remove_prefix(second + 1);
    const std::string_view op = node(found->second).op;
    for (const OutputsRow& row : outputs_table())
      if (row.op == op)
        for (size_t i = 0; i < row.names.size(); ++i)
          if (row.names[i] == argument) offset = static_cast<int32_t>(i);
    if (const auto function = functions_->find(op); function != functions_->end())
      for (size_t i = 0; i < function->second->outputs.size(); ++i)
        if (function->second->outputs[i].name == argument) offset = static_cast<int32_t>(i);
  }
  int32_t number = 0;
  if (!rest.empty() && !take_number(rest, number)) return result;
  constexpr int32_t kMostOutputs = 1 << 20;
  if (number > kMostOutputs) return result;
  return {found->second, offset + number};
}

Result<Scope> Scope::of_graph(std::span<const NodeDef> nodes, const FunctionIndex& functions) {
  return make(nodes, nullptr, functions);
}
Result<Scope> Scope::of_function(const FunctionDef& function, const FunctionIndex& functions) {
  return make(function.nodes, &function, functions);
}

Result<Scope> Scope::make(std::span<const NodeDef> nodes, const FunctionDef* function, const FunctionIndex& functions) {
  Scope scope;
  scope.nodes = nodes;
  scope.function_ = function;
  scope.functions_ = &functions;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name.empty()) return invalid_model("a node has no name").found("operator " + quoted(nodes[i].op));
    if (!scope.by_name_.emplace(nodes[i].name, static_cast<int32_t>(i)).second)
      return invalid_model("two nodes are called " + quoted(nodes[i].name));
  }
  if (function)
    for (size_t i = 0; i < function->inputs.size(); ++i) {
      if (function->inputs[i].is_list)
        return unsupported("function " + quoted(function->name) + " has an argument that stands for several tensors")
            .found(std::string(function->inputs[i].name));
      scope.arguments_.emplace(function->inputs[i].name, static_cast<int32_t>(i));
    }
  scope.inputs.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view text : nodes[i].inputs) scope.inputs[i].push_back(scope.resolve(text));
  if (function)
    for (const ArgumentDef& output : function->outputs) {
      std::string_view source;
      for (const auto& [name, text] : function->results)
        if (name == output.name) source = text;
      scope.results.push_back(scope.resolve(source));
      if (scope.results.back().node == Reference::kMissing)
        return invalid_model("function " + quoted(function->name) + " does not say where its result " + quoted(output.name) +
                             " comes from");
    }
  ORKNN_TRY(scope.find_loops());
  return scope;
}

Reference Scope::data_input(int32_t index, size_t n) const {
  for (const Reference& r : inputs_of(index))
    if (!r.is_control() && n-- == 0) return r;
  return {};
}

// --- loops

Status Scope::find_loops() {
  std::unordered_map<std::string_view, size_t> by_frame;
  std::unordered_map<int32_t, std::pair<size_t, size_t>> variable_of_merge;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (control_op(nodes[i].op) != "Merge") continue;
    const auto index = static_cast<int32_t>(i);
    LoopVariable variable{.merge = index, .enter = -1, .next = -1, .exits = {}};
    for (const Reference& r : inputs_of(index)) {
      if (r.is_control() || r.node < 0) continue;
      if (control_op(node(r.node).op) == "NextIteration") variable.next = r.node;
      if (control_op(node(r.node).op) == "Enter") variable.enter = r.node;
    }
    if (variable.next < 0) continue;
    if (variable.enter < 0)
      return invalid_model("a loop variable has no initial value")
          .node(nodes[i].name, nodes[i].op)
          .expected("an Enter node as input");
    std::string_view frame;
    for (const AttributeDef& a : node(variable.enter).attributes)
      if (a.name == "frame_name") {
        ORKNN_TRY_ASSIGN(const AttributeValue value, parse_attribute(a.value));
        frame = value.text;
      }
    const auto [it, fresh] = by_frame.emplace(frame, loops.size());
    if (fresh) loops.emplace_back();
    loop_of_merge_.emplace(index, it->second);
    variable_of_merge.emplace(index, std::pair(it->second, loops[it->second].variables.size()));
    loops[it->second].variables.push_back(std::move(variable));
  }
  if (loops.empty()) return {};
  // A Switch of a loop variable names the condition; what leaves it on the false side are exits.
  const auto variable_of_switch = [&](int32_t index) -> LoopVariable* {
    if (index < 0 || control_op(node(index).op) != "Switch") return nullptr;
    const auto it = variable_of_merge.find(data_input(index, 0).node);
    return it == variable_of_merge.end() ? nullptr : &loops[it->second.first].variables[it->second.second];
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (const LoopVariable* variable = variable_of_switch(index)) {
      const int32_t condition = data_input(index, 1).node;
      if (condition >= 0 && node(condition).op == "LoopCond") loops[loop_of_merge_.at(variable->merge)].condition = condition;
    }
    if (control_op(nodes[i].op) == "Exit")
      if (LoopVariable* variable = variable_of_switch(data_input(index, 0).node)) {
        variable->exits.push_back(index);
        loop_of_exit_.emplace(index, loop_of_merge_.at(variable->merge));
      }
  }
  for (const LoopFrame& loop : loops)
    if (loop.condition < 0)
      return invalid_model("a loop has no condition")
          .node(node(loop.variables[0].merge).name, node(loop.variables[0].merge).op)
          .expected("a LoopCond node");
  return {};
}

const LoopFrame* Scope::loop_of_exit(int32_t index) const {
  const auto it = loop_of_exit_.find(index);
  return it == loop_of_exit_.end() ? nullptr : &loops[it->second];
}

std::vector<size_t> Scope::needed_variables(const LoopFrame& loop) const {
  std::unordered_map<int32_t, size_t> by_merge;
  for (size_t v = 0; v < loop.variables.size(); ++v) by_merge.emplace(loop.variables[v].merge, v);
  std::unordered_set<int32_t> seen;
  std::vector<int32_t> pending{loop.condition};
  std::vector<char> needed(loop.variables.size(), 0);
  const auto need = [&](size_t v) {
    if (needed[v]) return;
    needed[v] = 1;
    pending.push_back(loop.variables[v].next);
  };
  for (size_t v = 0; v < loop.variables.size(); ++v)
    if (!loop.variables[v].exits.empty()) need(v);
  while (!pending.empty()) {
    const int32_t index = pending.back();
    pending.pop_back();
    if (index < 0 || !seen.insert(index).second) continue;
    if (const auto it = by_merge.find(index); it != by_merge.end()) {
      need(it->second);
      continue;
    }
    if (control_op(node(index).op) == "Enter") continue;  // what lies around the loop
    for (const Reference& r : inputs_of(index))
      if (!r.is_control()) pending.push_back(r.node);
  }
  std::vector<size_t> result;
  for (size_t v = 0; v < needed.size(); ++v)
    if (needed[v]) result.push_back(v);
  return result;
}

// --- conditionals

// The same predicate reaches the switches of a conditional through copies and outer switches.
std::pair<Reference, bool> Scope::plain_predicate(Reference predicate) const {
  bool negated = false;
  for (size_t steps = 0; steps < kMostCopies && predicate.node >= 0; ++steps) {
    const std::string_view op = control_op(node(predicate.node).op);
    const bool passes = op == "Identity" || op == "Switch" || op == "Enter" || op == "StopGradient";
    if (op == "LogicalNot")
      negated = !negated;
    else if (!passes)
      break;
    predicate = data_input(predicate.node, 0);
  }
  return {predicate, negated};
}

std::vector<Scope::Guard> Scope::guards_of(const Reference& reference) {
  if (reference.node < 0) return {};
  std::vector<Guard> guards = guards_of(reference.node);
  const NodeDef& n = node(reference.node);
  if (control_op(n.op) == "Switch" && !reference.is_control() && !is_loop_merge(data_input(reference.node, 0).node)) {
    const auto [predicate, negated] = plain_predicate(data_input(reference.node, 1));
    const Guard guard{predicate, negated, reference.output == 1};
    if (std::find(guards.begin(), guards.end(), guard) == guards.end()) guards.push_back(guard);
  }
  return guards;
}

const std::vector<Scope::Guard>& Scope::guards_of(int32_t index) {
  if (const auto it = guards_.find(index); it != guards_.end()) return it->second;
  settle_guards(index);
  return guards_[index];
}

// Depth first without recursion; a node on a cycle that is no loop counts as unguarded.
void Scope::settle_guards(int32_t first) {
  std::unordered_set<int32_t> open;
  std::vector<int32_t> stack{first};
  const auto is_back_edge = [&](const Reference& r) { return r.node < 0 || control_op(node(r.node).op) == "NextIteration"; };
  while (!stack.empty()) {
    const int32_t index = stack.back();
    if (guards_.contains(index)) {
      stack.pop_back();
      continue;
    }
    if (open.insert(index).second) {
      for (const Reference& r : inputs_of(index))
        if (!is_back_edge(r) && !guards_.contains(r.node) && !open.contains(r.node)) stack.push_back(r.node);
      continue;
    }
    // Every input is settled, or open on a cycle: those get an empty entry, so that this lookup cannot recurse.
    std::vector<Guard> guards;
    const bool is_merge = control_op(node(index).op) == "Merge";
    bool is_first = true;
    for (const Reference& r : inputs_of(index)) {
      if (is_back_edge(r)) continue;
      guards_.try_emplace(r.node);
      const std::vector<Guard> more = guards_of(r);
      if (is_merge && !r.is_control() && !is_first) {
        std::erase_if(guards, [&](const Guard& g) { return std::find(more.begin(), more.end(), g) == more.end(); });
      } else {
        for (const Guard& g : more)
          if (std::find(guards.begin(), guards.end(), g) == guards.end()) guards.push_back(g);
      }
      is_first = false;
    }
    if (guards.size() > kMostGuards) guards.erase(guards.begin(), guards.end() - kMostGuards);
    guards_[index] = std::move(guards);
    stack.pop_back();
  }
}

Result<Choice> Scope::choice(int32_t merge) {
  std::vector<std::vector<Guard>> guards;
  for (const Reference& r : inputs_of(merge))
    if (!r.is_control()) guards.push_back(guards_of(r));
  if (guards.size() != 2)
    return unsupported("a Merge of other than two branches is not supported")
        .expected("2 inputs")
        .found(std::to_string(guards.size()))
        .hint("freeze the graph for inference");
  for (const Guard& a : guards[0])
    for (const Guard& b : guards[1])
      if (a.predicate == b.predicate && (a.branch != a.negated) != (b.branch != b.negated)) {
        Choice choice;
        choice.predicate = a.predicate;
        const bool first_when_true = a.branch != a.negated;
        choice.when_true = first_when_true ? 0 : 1;
        choice.when_false = first_when_true ? 1 : 0;
        return choice;
      }
  return unsupported("the predicate that decides this Merge was not found")
      .hint("freeze the graph for inference, or cut the model before the conditional with 'outputs'");
}

}  // namespace orknn::importer::tensorflow
