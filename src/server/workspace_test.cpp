// Which memory a run on a server reads and writes: its own, and the client's only where no harm can come of that.
#include "server/workspace.h"

#include <gtest/gtest.h>

#include <cstring>

#include "capi_models.h"

namespace orknn::server {
namespace {
constexpr int64_t kElements = 20 * 5 * 6;
const ir::Dims kDims{1, 20, 5, 6};

// Two convolutions, which take and make blocks; or one of them, or none.
std::unique_ptr<runtime::Session> make_session(bool begins_with_blocks, bool ends_with_blocks) {
  const std::string shape = "int8[1,20,5,6]", conv = "{multiplier = [20000], shift = [16], low = -128, high = 127}";
  const std::string text = "graph \"g\" (%x: " + shape + ") -> (%y) {\n  %v: int8[20,20,1,1] = const splat -2\n  %a: " + shape +
                           (begins_with_blocks ? " = \"int:Conv\"(%x, %v) " + conv : " = Identity(%x)") + "\n  %y: " + shape +
                           (ends_with_blocks ? " = \"int:Conv\"(%a, %v) " + conv : " = Identity(%a)") + "\n}";
  auto session = runtime::Session::open(std::make_shared<const format::Model>(tests::capi_model(text)));
  EXPECT_TRUE(session) << session.status().to_string();
  return std::move(*session);
}

class WorkspaceTest : public ::testing::Test {
 protected:
  // Input at `input`, results from `results` on.
  ir::TensorView lend(runtime::Session& session, size_t input, size_t results, bool holds_results = true) {
    x_ = {DType::Int8, kDims, memory_ + input};
    for (int64_t i = 0; i < kElements; ++i) memory_[input + static_cast<size_t>(i)] = static_cast<std::byte>(i * 37);
    auto views = workspace_.lend_to(session, {&x_, 1}, holds_results, {memory_, results});
    EXPECT_TRUE(views) << views.status().to_string();
    return (*views)[0];
  }
  bool is_in_place(const ir::TensorView& view) const { return view.data == x_.data; }
  // What the session computes of that, and whether it did so at `results`.
  bool computes_at(runtime::Session& session, const ir::TensorView& input, size_t results) {
    const std::vector<int8_t> given(input.as<int8_t>(), input.as<int8_t>() + kElements);
    const Status s = session.run_values({&input, 1}, {});
    EXPECT_TRUE(s) << s.to_string();
    const ir::TensorView result = session.output_value(0);
    const std::vector<int8_t> values(result.as<int8_t>(), result.as<int8_t>() + kElements);
    auto own = session.duplicate();
    EXPECT_TRUE(own);
    const ir::TensorView again{DType::Int8, kDims, given.data()};
    EXPECT_TRUE((*own)->run_values({&again, 1}, {}));
    EXPECT_EQ(std::memcmp((*own)->output_value(0).data, values.data(), values.size()), 0);
    return result.data == memory_ + results;
  }
  static constexpr size_t kBytes = 4096, kResults = 1024;
  alignas(64) std::byte memory_[kBytes] = {};
  ir::TensorView x_;
  Workspace workspace_;
};

TEST_F(WorkspaceTest, OnlyConversionsUseTheClientsMemory) {
  for (const bool begins : {false, true})
    for (const bool ends : {false, true}) {
      const auto session = make_session(begins, ends);
      const ir::TensorView input = lend(*session, 0, kResults);
      EXPECT_EQ(is_in_place(input), begins);
      EXPECT_EQ(computes_at(*session, input, kResults), ends);
    }
}

TEST_F(WorkspaceTest, InputsElsewhereAreCopied) {
  const auto session = make_session(true, true);
  ir::TensorView input = lend(*session, 8, kResults);  // not aligned
  EXPECT_FALSE(is_in_place(input));
  EXPECT_TRUE(computes_at(*session, input, kResults));
  input = lend(*session, kResults, 512);  // the results begin before the input ends
  EXPECT_FALSE(is_in_place(input));
  EXPECT_TRUE(computes_at(*session, input, 512));
  EXPECT_TRUE(is_in_place(lend(*session, 0, 600)));
}

TEST_F(WorkspaceTest, ResultsWithoutAPlaceStayHere) {
  const auto session = make_session(true, true);
  for (const size_t results : {kBytes - 512, kBytes, kBytes + 64})
    EXPECT_FALSE(computes_at(*session, lend(*session, 0, results), results)) << results;
  EXPECT_FALSE(computes_at(*session, lend(*session, 0, kResults, false), kResults));  // a trace sends them later
}

}  // namespace
}  // namespace orknn::server
