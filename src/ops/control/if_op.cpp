// Runs one of two bodies, chosen by a condition. All inputs after the condition are handed to both.
#include "ops/eval.h"
#include "ops/support/operands.h"
#include "ops/support/subgraph.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_inputs(c, 1));
  if (c.dtype(0) != DType::Bool) return invalid_model("the condition must be bool").found(std::string(dtype_name(c.dtype(0))));
  ORKNN_TRY(require_one_value(c, 0, "the condition"));
  std::vector<TensorFacts> captured;
  for (size_t i = 1; i < c.input_count(); ++i) captured.push_back(c.input(i));
  const auto branch = [&](std::string_view name) -> Result<std::vector<TensorFacts>> {
    ORKNN_TRY_ASSIGN(const Graph* body, body_of(c, name, captured.size(), c.output_count()));
    return infer_body(*body, c.ops, captured);
  };
  const auto condition = c.ints(0);
  if (condition && condition->size() == 1) {
    ORKNN_TRY_ASSIGN(const auto facts, branch(condition->front() ? "then_branch" : "else_branch"));
    for (size_t i = 0; i < facts.size(); ++i) {
      c.set_output(i, facts[i].dtype, facts[i].shape);
      if (facts[i].content) c.set_content(i, *facts[i].content);
    }
    return {};
  }
  // A branch that cannot work for these shapes is never taken; exporters leave such branches behind.
  auto taken = branch("then_branch"), other = branch("else_branch");
  if (!taken && !other) return taken.status();
  const std::vector<TensorFacts>& known = taken ? *taken : *other;
  for (size_t i = 0; i < known.size(); ++i) {
    TensorFacts facts{.dtype = known[i].dtype};
    if (taken && other) {
      ORKNN_TRY_ASSIGN(facts, join_facts((*taken)[i], (*other)[i]));
    }
    c.set_output(i, facts.dtype, facts.shape);
  }
  return {};
}

Status run(RunContext& c) {
  const TensorView condition = c.input(0);
  if (condition.count() != 1) return invalid_argument("the condition must be one value").found(to_string(condition.dims));
  const BodyScope scope;
  ORKNN_TRY(scope.status());
  std::vector<TensorData> captured;
  for (size_t i = 1; i < c.input_count(); ++i) captured.push_back(borrowed_input(c, i));
  ORKNN_TRY_ASSIGN(const Graph* body,
                   body_of(c, *condition.as<bool>() ? "then_branch" : "else_branch", captured.size(), c.output_count()));
  ORKNN_TRY_ASSIGN(const auto results, eval_graph(*body, c.ops, captured, {.pool = &c.pool}));
  for (size_t i = 0; i < results.size(); ++i) ORKNN_TRY(deliver_output(c, i, results[i]));
  return {};
}
}  // namespace

std::span<const OpDef> if_op() {
  static const OpDef def{.name = "If",
                         .summary = "runs one of two bodies",
                         .inputs = {1, Arity::kMany},
                         .outputs = {1, Arity::kMany},
                         .attributes = {required(attr_graph("then_branch")), required(attr_graph("else_branch"))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .chooses_body = true};
  return {&def, 1};
}
}  // namespace orknn::ops
