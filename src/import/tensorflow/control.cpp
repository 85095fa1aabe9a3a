// Calls, conditionals and loops of a TensorFlow graph, old style and new, while it is lowered.
#include "import/tensorflow/lowering.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
constexpr int kMaxDepth = 64;            // functions that call themselves end here
constexpr size_t kMaxIterations = 4096;  // and loops that never do

Status endless() {
  return unsupported("the number of iterations of this loop is not known while importing")
      .hint("give the input shapes with input_size_list; a loop that depends on the data cannot be unrolled");
}
}  // namespace

std::optional<bool> Lowering::constant_truth(const Value& value) const {
  const TensorData* data = value.tensor ? network_.graph.constant(value.tensor) : nullptr;
  if (!data || data->count() != 1) return std::nullopt;
  return to_doubles(data->view())[0] != 0;
}

// What both branches computed, chosen element by element: a predicate known only when the model runs is one number.
Result<std::vector<Value>> Lowering::select(Emitter& emitter, TensorId predicate, const std::vector<Value>& when_true,
                                            const std::vector<Value>& when_false) {
  if (when_true.size() != when_false.size())
    return invalid_model("the branches of a conditional have different numbers of results")
        .found(std::to_string(when_true.size()) + " and " + std::to_string(when_false.size()));
  if (emitter.dtype_of(predicate) != DType::Bool) predicate = emitter.cast(predicate, DType::Bool);
  std::vector<Value> chosen;
  for (size_t i = 0; i < when_true.size(); ++i) {
    const Value &a = when_true[i], &b = when_false[i];
    if (a.failed || b.failed) {
      chosen.push_back(Value::failure());
      continue;
    }
    if (!a.tensor || !b.tensor) return unsupported("a conditional on data chooses between lists of tensors");
    if (a.tensor == b.tensor) {
      chosen.push_back(a);
      continue;
    }
    const auto x = emitter.dims_of(a.tensor), y = emitter.dims_of(b.tensor);
    if (x && y && *x != *y)
      return unsupported("the branches of a conditional on data have different shapes")
          .found(to_string(*x) + " and " + to_string(*y));
    chosen.push_back(emitter.emit("Where", {predicate, a.tensor, b.tensor}));
  }
  return chosen;
}

Status Lowering::lower_merge(Frame& frame, int32_t index, NodeState& state) {
  Scope& scope = *frame.scope;
  const NodeDef& node = scope.node(index);
  ORKNN_TRY_ASSIGN(const Choice choice, scope.choice(index));
  const Value* predicate = choice.predicate.node == Reference::kMissing ? nullptr : find(frame, choice.predicate);
  if (!predicate) return invalid_model("the predicate of a conditional is not in the graph");
  if (predicate->failed) {
    state.outputs = {Value::failure(), Value::failure()};
    return {};
  }
  const auto value_of = [&](size_t position) -> Result<Value> {
    const Reference r = scope.data_input(index, position);
    const Value* value = r.node == Reference::kMissing ? nullptr : find(frame, r);
    if (!value) return invalid_model("a branch of a conditional is not in the graph");
    return *value;
  };
  Layer layer(import_, network_.graph, network_.ops, node, frame.call, frame.prefix + std::string(node.name), {});
  if (const auto truth = constant_truth(*predicate)) {
    const size_t position = *truth ? choice.when_true : choice.when_false;
    ORKNN_TRY_ASSIGN(Value value, value_of(position));
    finish(frame, index, state, {std::move(value), layer.add_scalar("value_index", static_cast<double>(position), DType::Int32)});
    return {};
  }
  if (!predicate->tensor) return unsupported("a list of tensors cannot decide a conditional");
  ORKNN_TRY_ASSIGN(const Value a, value_of(choice.when_true));
  ORKNN_TRY_ASSIGN(const Value b, value_of(choice.when_false));
  const TensorId first = layer.add_scalar("index_when_true", static_cast<double>(choice.when_true), DType::Int32);
  const TensorId second = layer.add_scalar("index_when_false", static_cast<double>(choice.when_false), DType::Int32);
  ORKNN_TRY_ASSIGN(std::vector<Value> outputs, select(layer, predicate->tensor, {a, first}, {b, second}));
  finish(frame, index, state, std::move(outputs));
  return {};
}

// --- loops of TensorFlow 1

Status Lowering::run_loop(Frame& frame, const LoopFrame& loop) {
  Scope& scope = *frame.scope;
  if (frame.depth >= kMaxDepth) return unsupported("loops are nested too deeply");
  const std::vector<size_t> needed = scope.needed_variables(loop);
  std::vector<Value> values;
  for (size_t v : needed) {
    const Reference source = scope.data_input(loop.variables[v].enter, 0);
    if (source.node == Reference::kMissing) return invalid_model("a loop variable has no initial value");
    ORKNN_TRY_ASSIGN(Value value, get(frame, source));
    values.push_back(std::move(value));
  }
  for (size_t iteration = 0;; ++iteration) {
    if (iteration >= kMaxIterations)
      return unsupported("a loop has too many iterations").expected("at most " + std::to_string(kMaxIterations));
    Frame inner{.scope = &scope,
                .outer = &frame,
                .call = frame.call,
                .prefix = frame.prefix,
                .arguments = frame.arguments,
                .depth = frame.depth + 1,
                .states = {}};
    for (size_t i = 0; i < needed.size(); ++i) {
      NodeState& state = inner.states[loop.variables[needed[i]].merge];
      state.outputs = {values[i]};
      state.is_done = true;
    }
    const Reference condition = scope.data_input(loop.condition, 0);
    if (condition.node == Reference::kMissing) return invalid_model("a loop has no condition");
    ORKNN_TRY_ASSIGN(const Value goes_on, get(inner, condition));
    const auto truth = constant_truth(goes_on);
    if (!truth) {
      if (!network_.is_clean())
        values.assign(values.size(), Value::failure());
      else
        return endless();
    }
    if (!truth || !*truth) break;
    std::vector<Value> next;
    for (size_t v : needed) {
      const Reference source = scope.data_input(loop.variables[v].next, 0);
      if (source.node == Reference::kMissing) return invalid_model("a loop variable is not continued");
      ORKNN_TRY_ASSIGN(Value value, get(inner, source));
      next.push_back(std::move(value));
    }
    values = std::move(next);
    if (!network_.is_clean()) {  // more iterations would only repeat what was reported
      values.assign(values.size(), Value::failure());
      break;
    }
  }
  for (size_t i = 0; i < needed.size(); ++i)
    for (int32_t exit : loop.variables[needed[i]].exits) {
      NodeState& state = frame.states[exit];
      finish(frame, exit, state, {values[i]});
      state.is_done = true;
    }
  return {};
}

// --- functions

Result<std::vector<Value>> Lowering::call(Frame& frame, const NodeDef& node, std::string_view function,
                                          std::vector<Value> arguments) {
  if (frame.depth >= kMaxDepth)
    return unsupported("functions call each other too deeply").found("'" + std::string(function) + "'");
  const auto found = functions_.find(function);
  if (found == functions_.end()) return invalid_model("function '" + std::string(function) + "' is not in the graph's library");
  std::unique_ptr<Scope>& scope = function_scopes_[found->first];
  if (!scope) {
    ORKNN_TRY_ASSIGN(Scope made, Scope::of_function(*found->second, functions_));
    scope = std::make_unique<Scope>(std::move(made));
  }
  if (arguments.size() < found->second->inputs.size())
    return invalid_model("function '" + std::string(function) + "' is called with too few arguments")
        .expected(std::to_string(found->second->inputs.size()))
        .found(std::to_string(arguments.size()));
  const CallSite site{&node, frame.call};
  Frame inner{.scope = scope.get(),
              .outer = nullptr,
              .call = &site,
              .prefix = frame.prefix + std::string(node.name) + "/",
              .arguments = std::move(arguments),
              .depth = frame.depth + 1,
              .states = {}};
  std::vector<Value> results;
  for (const Reference& r : scope->results) {
    ORKNN_TRY_ASSIGN(Value value, get(inner, r));
    results.push_back(std::move(value));
  }
  return results;
}

Result<std::vector<Value>> Lowering::lower_call(Frame& frame, const NodeDef& node, Layer& layer) {
  if (functions_.contains(node.op)) return call(frame, node, node.op, std::move(layer.values()));
  const AttributeValue function = layer.attribute(node.op == "XlaLaunch" ? "function" : "f");
  if (function.kind != AttributeValue::Kind::Function) return invalid_model("the call names no function");
  std::vector<Value> arguments = std::move(layer.values());
  if (node.op == "RemoteCall" && !arguments.empty()) arguments.erase(arguments.begin());  // where it runs
  return call(frame, node, function.text, std::move(arguments));
}

Result<std::vector<Value>> Lowering::lower_if(Frame& frame, const NodeDef& node, Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId selector, layer.operand(0));
  const std::vector<Value> arguments(layer.values().begin() + 1, layer.values().end());
  const bool is_case = node.op.ends_with("Case");
  std::vector<std::string_view> branches;
  if (is_case) {
    ORKNN_TRY_ASSIGN(branches, parse_function_list(layer.attribute("branches")));
  } else {
    const AttributeValue otherwise = layer.attribute("else_branch"), then = layer.attribute("then_branch");
    if (then.kind == AttributeValue::Kind::Function && otherwise.kind == AttributeValue::Kind::Function)
      branches = {otherwise.text, then.text};
  }
  if (branches.empty()) return invalid_model("a conditional names no branches");
  if (const TensorData* value = layer.constant_of(selector); value && value->count() == 1) {
    const double number = to_doubles(value->view())[0];
    size_t branch = is_case ? branches.size() - 1 : number != 0;
    if (is_case && number >= 0 && number < static_cast<double>(branches.size())) branch = static_cast<size_t>(number);
    return call(frame, node, branches[branch], arguments);
  }
  // The last branch is that of any other number.
  ORKNN_TRY_ASSIGN(std::vector<Value> chosen, call(frame, node, branches.back(), arguments));
  for (size_t i = branches.size() - 1; i-- > 0;) {
    ORKNN_TRY_ASSIGN(const std::vector<Value> other, call(frame, node, branches[i], arguments));
    if (is_case) {
      const TensorId is_this = layer.with_scalar("Equal", selector, static_cast<double>(i));
      ORKNN_TRY_ASSIGN(chosen, select(layer, is_this, other, chosen));
    } else {
      ORKNN_TRY_ASSIGN(chosen, select(layer, selector, chosen, other));
    }
  }
  return chosen;
}

Result<std::vector<Value>> Lowering::lower_while(Frame& frame, const NodeDef& node, Layer& layer) {
  const AttributeValue condition = layer.attribute("cond"), body = layer.attribute("body");
  if (condition.kind != AttributeValue::Kind::Function || body.kind != AttributeValue::Kind::Function)
    return invalid_model("a loop names no condition or no body");
  std::vector<Value> values = std::move(layer.values());
  for (size_t iteration = 0;; ++iteration) {
    if (iteration >= kMaxIterations)
      return unsupported("a loop has too many iterations").expected("at most " + std::to_string(kMaxIterations));
    ORKNN_TRY_ASSIGN(const std::vector<Value> goes_on, call(frame, node, condition.text, values));
    if (goes_on.size() != 1)
      return invalid_model("the condition of a loop must have one result").found(std::to_string(goes_on.size()));
    const auto truth = constant_truth(goes_on[0]);
    if (!truth && !network_.is_clean()) return std::vector<Value>(values.size(), Value::failure());
    if (!truth) return endless();
    if (!*truth) return values;
    ORKNN_TRY_ASSIGN(std::vector<Value> next, call(frame, node, body.text, values));
    if (!network_.is_clean())
      return std::vector<Value>(values.size(), Value::failure());  // more iterations would only repeat what was reported
    if (next.size() != values.size())
      return invalid_model("the body of a loop has the wrong number of results")
          .expected(std::to_string(values.size()))
          .found(std::to_string(next.size()));
    values = std::move(next);
  }
}

}  // namespace orknn::importer::tensorflow
