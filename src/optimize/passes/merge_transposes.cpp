// One Transpose instead of two in a row; none when they cancel.
//
// Before: %a = Transpose(%x) {perm = [0,2,3,1]} ; %y = Transpose(%a) {perm = [0,3,1,2]}     After: readers of %y read %x
// Legal: always.
#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/permute.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite merge_transposes_rule(const Graph& g, const Node& n) {
  const Node* first = producer(g, n.input(0), "Transpose");
  if (!first || !n.tail.empty()) return no_match();
  const auto inner = transpose_perm(g, *first), outer = transpose_perm(g, n);
  if (!inner || !outer) return no_match();
  const Perm perm = compose(*inner, *outer);
  if (is_identity(perm) && can_replace(g, n.output(0), first->input(0))) return bypass(g, n.output(0), first->input(0));
  return replace_node(g, n, successor(n, "Transpose", {first->input(0)}, {{"perm", perm}}), {first});
}
}  // namespace

Pass merge_transposes() {
  return {.name = "merge_transposes",
          .summary = "consecutive Transposes become one or cancel",
          .min_level = 1,
          .rule = merge_transposes_rule,
          .roots = {"Transpose"}};
}
}  // namespace orknn::optimize
