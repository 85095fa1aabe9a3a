// Control flow and variables. Bodies run inside of the graph: a choice that is known takes one of them, a loop whose end is known
// is unrolled.
#include "import/tflite/graph_builder.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
constexpr int64_t kMaxTurns = 4096;

Result<std::vector<Value>> arguments(Layer& l, size_t first) {
  std::vector<Value> values;
  for (size_t i = first; i < l.input_count(); ++i) {
    if (!l.has_input(i)) return invalid_model("input " + std::to_string(i) + " is missing");
    ORKNN_TRY_ASSIGN(const Value* v, l.builder().value(l.scope(), l.input_index(i)));
    values.push_back(*v);
  }
  return values;
}

Status set_all(Layer& l, const std::vector<Value>& values) {
  if (values.size() < l.output_count())
    return invalid_model("the subgraph has too few outputs")
        .expected(std::to_string(l.output_count()))
        .found(std::to_string(values.size()));
  for (size_t i = 0; i < l.output_count(); ++i) {
    if (!l.has_output(i)) continue;
    if (values[i].stored)
      ORKNN_TRY(l.set_stored(i, values[i].stored));
    else
      l.scope().values[static_cast<size_t>(l.op().outputs[i])] = values[i];
  }
  return {};
}

// The value of a condition, nothing when it depends on the inputs.
Result<std::optional<bool>> known_condition(Layer& l, TensorId condition) {
  const TensorData* value = l.constant_of(condition);
  if (!value) return std::optional<bool>();
  const std::vector<double> numbers = to_doubles(value->view());
  if (numbers.size() != 1) return invalid_model("the condition must be one value").found(std::to_string(numbers.size()));
  return std::optional<bool>(numbers[0] != 0);
}

Status if_op(Layer& l) {
  const int64_t then_graph = l.options().number<int32_t>(0), else_graph = l.options().number<int32_t>(1);
  ORKNN_TRY_ASSIGN(const TensorId condition, l.stored(0));
  ORKNN_TRY_ASSIGN(const std::vector<Value> inputs, arguments(l, 1));
  ORKNN_TRY_ASSIGN(const std::optional<bool> known, known_condition(l, condition));
  if (known) {
    ORKNN_TRY_ASSIGN(
        const std::vector<Value> results,
        l.builder().run_subgraph(*known ? then_graph : else_graph, inputs, l.scope(), l.layer() + (*known ? "/then" : "/else")));
    return set_all(l, results);
  }
  // Both are computed and the condition picks: the NPU has no branches.
  const std::map<std::string, Value> before = l.builder().variables();
  ORKNN_TRY_ASSIGN(std::vector<Value> yes, l.builder().run_subgraph(then_graph, inputs, l.scope(), l.layer() + "/then"));
  std::map<std::string, Value> after = l.builder().variables();
  l.builder().variables() = before;
  ORKNN_TRY_ASSIGN(const std::vector<Value> no, l.builder().run_subgraph(else_graph, inputs, l.scope(), l.layer() + "/else"));
  const auto pick = [&](const Value& a, const Value& b) -> Result<Value> {
    if (!a.stored || !b.stored) return a;
    const auto da = l.dims_of(a.stored), db = l.dims_of(b.stored);
    if (!da || !db || *da != *db)
      return unsupported("both branches must give the same shapes when the condition depends on the inputs");
    const TensorId c = l.reshape(l.cast(condition, DType::Bool), {});
    return Value{l.emit("Where", {c, a.stored, b.stored}), {}, {}, false};
  };
  if (yes.size() != no.size())
    return invalid_model("both branches must have the same outputs")
        .expected(std::to_string(yes.size()))
        .found(std::to_string(no.size()));
  for (size_t i = 0; i < yes.size(); ++i) {
    ORKNN_TRY_ASSIGN(yes[i], pick(yes[i], no[i]));
  }
  for (auto& [name, value] : l.builder().variables()) {
    const auto other = after.find(name);
    if (other == after.end() || other->second.stored == value.stored) continue;
    ORKNN_TRY_ASSIGN(value, pick(other->second, value));
  }
  return set_all(l, yes);
}

Status while_op(Layer& l) {
  const int64_t condition_graph = l.options().number<int32_t>(0), body_graph = l.options().number<int32_t>(1);
  ORKNN_TRY_ASSIGN(std::vector<Value> state, arguments(l, 0));
  for (int64_t turn = 0;; ++turn) {
    const std::string label = l.layer() + "/" + std::to_string(turn);
    ORKNN_TRY_ASSIGN(const std::vector<Value> answer,
                     l.builder().run_subgraph(condition_graph, state, l.scope(), label + "/condition"));
    if (answer.size() != 1 || !answer[0].stored)
      return invalid_model("the condition of the loop must have one output").found(std::to_string(answer.size()));
    ORKNN_TRY_ASSIGN(const std::optional<bool> known, known_condition(l, answer[0].stored));
    if (!known)
      return unsupported("how often the loop turns must be known")
          .expected("a condition that follows from constants and shapes")
          .hint("export the model with a fixed number of steps, or unroll the loop");
    if (!*known) break;
    if (turn == kMaxTurns)
      return unsupported("the loop turns too often to be unrolled").expected("at most " + std::to_string(kMaxTurns) + " times");
    ORKNN_TRY_ASSIGN(state, l.builder().run_subgraph(body_graph, state, l.scope(), label));
  }
  return set_all(l, state);
}

Status call(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<Value> inputs, arguments(l, 0));
  const int64_t index = l.op().name == "CALL" ? int64_t{l.options().number<uint32_t>(0)}
                                              : int64_t{l.options().number<int32_t>(1)};  // a composite has its name first
  ORKNN_TRY_ASSIGN(const std::vector<Value> results, l.builder().run_subgraph(index, inputs, l.scope(), l.layer()));
  return set_all(l, results);
}

// Gives variables their first values.
Status call_once(Layer& l) { return l.builder().run_subgraph(l.options().number<int32_t>(0), {}, l.scope(), l.layer()).status(); }

Status var_handle(Layer& l) {
  if (!l.has_output(0)) return {};
  std::string name = std::string(l.options().text(0)) + "/" + std::string(l.options().text(1));
  l.scope().values[static_cast<size_t>(l.op().outputs[0])].resource = std::move(name);
  return {};
}

Result<std::string> variable_name(Layer& l) {
  if (!l.has_input(0)) return invalid_model("input 0 is missing");
  ORKNN_TRY_ASSIGN(const Value* v, l.builder().value(l.scope(), l.input_index(0)));
  if (v->resource.empty()) return invalid_model("input 0 must be the handle of a variable");
  return v->resource;
}

Status read_variable(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::string name, variable_name(l));
  const auto found = l.builder().variables().find(name);
  if (found != l.builder().variables().end()) {
    l.builder().warn_once("the model keeps state between calls (variable '" + name.substr(name.find('/') + 1) +
                          "'): every call here starts from its initial value");
    return l.set_stored(0, found->second.stored);
  }
  return invalid_model("variable '" + name + "' is read before it has a value")
      .hint("convert the model with its initializers (CALL_ONCE)");
}

Status assign_variable(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::string name, variable_name(l));
  ORKNN_TRY_ASSIGN(const TensorId value, l.stored(1));
  l.builder().variables()[name] = {value, {}, {}, false};
  return {};
}
}  // namespace

std::span<const Row> control_rows() {
  static constexpr Row rows[] = {
      {"IF", if_op},
      {"WHILE", while_op},
      {"STABLEHLO_WHILE", while_op},
      {"CALL", call},
      {"STABLEHLO_COMPOSITE", call},
      {"CALL_ONCE", call_once},
      {"VAR_HANDLE", var_handle},
      {"READ_VARIABLE", read_variable},
      {"ASSIGN_VARIABLE", assign_variable},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
