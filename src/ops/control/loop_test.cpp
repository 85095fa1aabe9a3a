// How often shape rules of nested loops look into their bodies.
#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::ops {
namespace {
using namespace ir;

int inferences = 0;
Status count_inference(InferContext& c) {
  ++inferences;
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

// A value that grows, in a loop, in a loop whose results are kept, and so on.
std::string nested_loops(int levels) {
  const std::string body = "(%m, _, %s) {body = graph \"b\" (%i: int64[], %c: bool[], %s: float32[1]) -> ";
  if (levels == 1) return "%n = Loop" + body + "(%c, %t) {\n  %d = Concat(%s, %s) {axis = 0}\n  %t = \"test:Counted\"(%d)\n}}\n";
  return "%n, %all = Loop" + body + "(%c, %n, %n) {\n  %m: int64[] = const {3}\n" + nested_loops(levels - 1) + "}}\n";
}

TEST(Loop, InferencesOfNestedBodiesStayFew) {
  constexpr int kLevels = 6;
  const auto graph = parse("graph \"g\" (%s: float32[1]) -> (%n) {\n  %m: int64[] = const {3}\n" + nested_loops(kLevels) + "}\n");
  ASSERT_TRUE(graph) << graph.status().to_string();
  const OpDef counted{.name = "test:Counted", .infer = count_inference};
  OpSet ops = builtin_ops();
  ops.add({&counted, 1});
  Graph inferred = *graph;
  inferences = 0;
  const Status status = infer_shapes(inferred, ops);
  EXPECT_TRUE(status) << status.to_string();
  EXPECT_GT(inferences, 0);
  // Three rounds settle what is carried; the outermost loop looks at its first two iterations besides.
  EXPECT_LE(inferences, 5 * 3 * 3 * 3 * 3 * 3);
}
}  // namespace
}  // namespace orknn::ops
