// transA and transB instead of Transposes in front of a Gemm.
//
// Before: %t = Transpose(%x) ; %y = Gemm(%t, %w)     After: %y = Gemm(%x, %w) {transA = 1}
// Legal: always (matrices).
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fold_gemm_transpose_rule(const Graph& g, const Node& n) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* transpose = producer(g, n.input(i), "Transpose");
    if (!transpose || transpose_perm(g, *transpose) != std::vector<int64_t>{1, 0}) continue;
    const std::string name = i == 0 ? "transA" : "transB";
    Node fresh = n;
    fresh.inputs[i] = transpose->input(0);
    fresh.attributes.set(name, int64_t{1 - n.attributes.int_or(name, 0)});
    return replace_node(g, n, std::move(fresh), {transpose});
  }
  return no_match();
}
}  // namespace

Pass fold_gemm_transpose() {
  return {.name = "fold_gemm_transpose",
          .summary = "Transpose in front of a Gemm becomes transA or transB",
          .min_level = 1,
          .rule = fold_gemm_transpose_rule,
          .roots = {"Gemm"}};
}
}  // namespace orknn::optimize
