// Puts the taken branch in place of an If whose condition is constant.
//
// Before: %y = If(%true, %x) {then_branch = ..., else_branch = ...}     After: the nodes of then_branch, reading %x
// Legal: always; the branches are closed (what they capture are inputs of the node).
#include "optimize/inline_body.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite inline_constant_if_rule(const Graph& g, const Node& n) {
  const std::optional<double> condition = constant_scalar(g, n.input(0));
  if (!condition || !n.tail.empty()) return no_match();
  const auto* branch = n.attributes.get<std::shared_ptr<const Graph>>(*condition != 0 ? "then_branch" : "else_branch");
  if (!branch || (*branch)->inputs().size() + 1 != n.inputs.size()) return no_match();
  Patch patch(g);
  const std::string prefix = n.name.empty() ? "" : n.name + "/";
  const auto results = inline_body(patch, **branch, std::span(n.inputs).subspan(1), prefix, n);
  patch.remove_node(id_of(g, n));
  replace_outputs(patch, g, n, results);
  return rewrite(std::move(patch));
}
}  // namespace

Pass inline_constant_if() {
  return {.name = "inline_constant_if",
          .summary = "the taken branch of an If with a constant condition",
          .min_level = 0,
          .rule = inline_constant_if_rule,
          .roots = {"If"}};
}
}  // namespace orknn::optimize
