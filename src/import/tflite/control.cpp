// Control flow and variables. Bodies run inside of the graph: a choice that is known takes one of them, a loop whose end is known
// is unrolled.
#include "import/tflite/graph_builder.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
constexpr int64_t kMaxIterations = 4096;
using Values = std::vector<Value>;

Result<Values> arguments(Layer& l, size_t first) {
  Values values;
  for (size_t i = first; i < l.operand_count(); ++i) {
    if (!l.has_input(i)) return missing_input(i, l.operand_count());
    ORKNN_TRY_ASSIGN(const Value* v, l.builder().value(l.scope(), l.input_index(i)));
    values.push_back(*v);
  }
  return values;
}

// The operator's outputs among the results of a subgraph.
Result<Values> outputs_of(const Layer& l, Values results) {
  if (results.size() < l.output_count())
    return invalid_model("the subgraph has too few outputs")
        .expected(std::to_string(l.output_count()))
        .found(std::to_string(results.size()));
  return results;
}

// The value of a condition, nothing when it depends on the inputs.
Result<std::optional<bool>> known_condition(Layer& l, TensorId condition) {
  const TensorData* value = l.constant_of(condition);
  if (!value) return std::optional<bool>();
  const std::vector<double> numbers = to_doubles(value->view());
  if (numbers.size() != 1) return invalid_model("the condition must be one value").found(std::to_string(numbers.size()));
  return std::optional<bool>(numbers[0] != 0);
}

// Both branches are computed and the condition picks: the NPU has no branches.
Result<Values> both_branches(Layer& l, TensorId condition, const Values& inputs, int64_t then_graph, int64_t else_graph) {
  auto& variables = l.builder().variables();
  const std::map<std::string, Value> before = variables;
  ORKNN_TRY_ASSIGN(Values yes, l.builder().run_subgraph(then_graph, inputs, l.scope(), l.layer() + "/then"));
  const std::map<std::string, Value> after = variables;
  variables = before;
  ORKNN_TRY_ASSIGN(const Values no, l.builder().run_subgraph(else_graph, inputs, l.scope(), l.layer() + "/else"));
  const auto pick = [&](const Value& a, const Value& b) -> Result<Value> {
    if (!a.stored || !b.stored) return a;
    const auto da = l.dims_of(a.stored), db = l.dims_of(b.stored);
    if (!da || !db || *da != *db)
      return unsupported("both branches must give the same shapes when the condition depends on the inputs");
    return Value::of_stored(l.where(l.reshape(l.cast(condition, DType::Bool), {}), a.stored, b.stored));
  };
  if (yes.size() != no.size())
    return invalid_model("both branches must have the same outputs")
        .expected(std::to_string(yes.size()))
        .found(std::to_string(no.size()));
  for (size_t i = 0; i < yes.size(); ++i) {
    ORKNN_TRY_ASSIGN(yes[i], pick(yes[i], no[i]));
  }
  for (auto& [name, value] : variables) {
    const auto other = after.find(name);
    if (other == after.end() || other->second.stored == value.stored) continue;
    ORKNN_TRY_ASSIGN(value, pick(other->second, value));
  }
  return yes;
}

Result<Values> if_op(Layer& l) {
  const int64_t then_graph = l.options().number<int32_t>(0), else_graph = l.options().number<int32_t>(1);
  ORKNN_TRY_ASSIGN(const TensorId condition, l.stored(0));
  ORKNN_TRY_ASSIGN(const Values inputs, arguments(l, 1));
  ORKNN_TRY_ASSIGN(const std::optional<bool> known, known_condition(l, condition));
  ORKNN_TRY_ASSIGN(Values results, !known ? both_branches(l, condition, inputs, then_graph, else_graph)
                                          : l.builder().run_subgraph(*known ? then_graph : else_graph, inputs, l.scope(),
                                                                     l.layer() + (*known ? "/then" : "/else")));
  return outputs_of(l, std::move(results));
}

Result<Values> while_op(Layer& l) {
  const int64_t condition_graph = l.options().number<int32_t>(0), body_graph = l.options().number<int32_t>(1);
  ORKNN_TRY_ASSIGN(Values state, arguments(l, 0));
  for (int64_t iteration = 0;; ++iteration) {
    const std::string label = l.layer() + "/" + std::to_string(iteration);
    ORKNN_TRY_ASSIGN(const Values goes_on, l.builder().run_subgraph(condition_graph, state, l.scope(), label + "/condition"));
    if (goes_on.size() != 1 || !goes_on[0].stored)
      return invalid_model("the condition of the loop must have one output").found(std::to_string(goes_on.size()));
    ORKNN_TRY_ASSIGN(const std::optional<bool> known, known_condition(l, goes_on[0].stored));
    if (!known)
      return unsupported("the number of iterations of the loop must be known")
          .expected("a condition that follows from constants and shapes")
          .hint("export the model with a fixed number of steps, or unroll the loop");
    if (!*known) break;
    if (iteration == kMaxIterations)
      return unsupported("the loop has too many iterations to be unrolled").expected("at most " + std::to_string(kMaxIterations));
    ORKNN_TRY_ASSIGN(state, l.builder().run_subgraph(body_graph, state, l.scope(), label));
  }
  return outputs_of(l, std::move(state));
}

Result<Values> call_subgraph(Layer& l, int64_t index) {
  ORKNN_TRY_ASSIGN(const Values inputs, arguments(l, 0));
  ORKNN_TRY_ASSIGN(Values results, l.builder().run_subgraph(index, inputs, l.scope(), l.layer()));
  return outputs_of(l, std::move(results));
}
Result<Values> call(Layer& l) { return call_subgraph(l, l.options().number<uint32_t>(0)); }
Result<Values> composite(Layer& l) { return call_subgraph(l, l.options().number<int32_t>(1)); }  // its name comes first

// Gives variables their first values.
Status call_once(Layer& l) { return l.builder().run_subgraph(l.options().number<int32_t>(0), {}, l.scope(), l.layer()).status(); }

Value var_handle(Layer& l) {
  Value handle;
  handle.resource = std::string(l.options().text(0)) + "/" + std::string(l.options().text(1));
  return handle;
}

Result<std::string> variable_name(Layer& l) {
  if (!l.has_input(0)) return missing_input(0, l.operand_count());
  ORKNN_TRY_ASSIGN(const Value* v, l.builder().value(l.scope(), l.input_index(0)));
  if (v->resource.empty()) return invalid_model("input 0 must be the handle of a variable");
  return v->resource;
}

Result<Value> read_variable(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::string name, variable_name(l));
  const auto found = l.builder().variables().find(name);
  if (found == l.builder().variables().end())
    return invalid_model("variable '" + name + "' is read before it has a value")
        .hint("convert the model with its initializers (CALL_ONCE)");
  l.builder().warn_once("the model keeps state between calls (variable '" + name.substr(name.find('/') + 1) +
                        "'): every call here starts from its initial value");
  return Value::of_stored(found->second.stored);
}

Status assign_variable(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::string name, variable_name(l));
  ORKNN_TRY_ASSIGN(const TensorId value, l.stored(1));
  l.builder().variables()[name] = Value::of_stored(value);
  return {};
}
}  // namespace

std::span<const Row> control_rows() {
  static const Row rows[] = {
      {"IF", if_op},
      {"WHILE|STABLEHLO_WHILE", while_op},
      {"CALL", call},
      {"STABLEHLO_COMPOSITE", composite},
      {"CALL_ONCE", call_once},
      {"VAR_HANDLE", var_handle},
      {"READ_VARIABLE", read_variable},
      {"ASSIGN_VARIABLE", assign_variable},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
