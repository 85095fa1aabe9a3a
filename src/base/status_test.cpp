#include "base/status.h"

#include <gtest/gtest.h>

namespace orknn {
namespace {

TEST(Status, AnnotatingACopyLeavesTheOriginal) {
  const Status original = invalid_model("no weights").found("0");
  const std::string text = original.to_string();
  Status copy = original;
  copy.model("a.onnx").stage("import").node("conv_1", "Conv").expected("3").hint("export again").also(io_error("disk full"));
  EXPECT_EQ(original.to_string(), text);
  EXPECT_EQ(original.count(), 1u);
  EXPECT_EQ(copy.count(), 2u);
  EXPECT_EQ(copy.to_string(),
            "a.onnx: import: node 'conv_1' (Conv): no weights; expected 3, found 0. Hint: export again.\ndisk full.");
  Status assigned;
  assigned = copy;
  assigned.stage("build").node("other", "Add");
  EXPECT_EQ(copy.to_string().find("build"), std::string::npos) << "the second problem of the copy has no stage yet";
  EXPECT_NE(assigned.to_string().find("\nbuild: node 'other' (Add): disk full."), std::string::npos) << assigned.to_string();
}

TEST(Status, TheOriginalMayChangeAfterItWasCopied) {
  Status original = unsupported("no such mode");
  const Status copy = original;
  original.node("resize_1", "Resize");
  EXPECT_EQ(copy.to_string(), "no such mode.");
}

TEST(Status, AResultsErrorIsCopiedOrMovedOut) {
  Result<int> result = shape_mismatch("rank 2");
  Status copy = result.status();
  copy.node("a", "MatMul");
  EXPECT_EQ(result.status().to_string(), "rank 2.");
  const Status moved = std::move(result).status();
  EXPECT_EQ(moved.code(), Code::ShapeMismatch);
  EXPECT_EQ(moved.to_string(), "rank 2.");
}

TEST(Status, AddsProblemsOfItsOwn) {
  Status problems;
  problems.also(Status());
  EXPECT_TRUE(problems.is_ok());
  for (int i = 0; i < 3; ++i) problems.also(invalid_model("problem " + std::to_string(i)));
  problems.also(problems);
  EXPECT_EQ(problems.count(), 6u);
  EXPECT_EQ(problems.message(), "problem 0");
}

TEST(Status, OkCostsAPointer) {
  static_assert(sizeof(Status) == sizeof(void*));
  Status ok;
  ok.model("m").stage("s").node("n", "o").expected("e").found("f").hint("h");
  EXPECT_TRUE(ok.is_ok());
  EXPECT_EQ(ok.to_string(), "ok");
  EXPECT_EQ(ok.count(), 0u);
  EXPECT_TRUE(ok.message().empty());
}

}  // namespace
}  // namespace orknn
