// Two networks on one chip: neither is faster than alone, turns add up, chips with one core have no core for each.
#include "toolkit/sharing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::toolkit {
namespace {

ir::Graph network(const char* text) {
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  return graph ? std::move(*graph) : ir::Graph{};
}

// Bound by memory, and by the array.
const char* const kWide = R"(graph "wide" (%x: float32[1,64,128,128]) -> (%y) {
  %y: float32[1,64,128,128] = Add(%x, %x)
})";
const char* const kDeep = R"(graph "deep" (%x: float32[1,256,32,32]) -> (%y) {
  %w: float32[256,256,3,3] = const splat 0.5
  %y: float32[1,256,32,32] = Conv(%x, %w) {pads = [1,1,1,1]}
})";

Sharing shared(const char* chip) {
  const auto result = share(network(kWide), {}, network(kDeep), {}, *platform::find(chip));
  EXPECT_TRUE(result) << result.status().to_string();
  return result ? *result : Sharing{};
}

TEST(Sharing, CoresOfTheirOwnShareTheBus) {
  const Sharing s = shared("rk3588");
  ASSERT_TRUE(s.own_cores);
  EXPECT_LT(s.own_cores->first, 0.75 * s.alone.first) << "the memory is what it waits for";
  EXPECT_GT(s.own_cores->first, 0.5 * s.alone.first);
  EXPECT_GT(s.own_cores->second, 0.9 * s.alone.second);
  EXPECT_LE(s.own_cores->second, s.alone.second);
}

TEST(Sharing, OneCoreTakesTurns) {
  const Sharing s = shared("rk3562");
  EXPECT_FALSE(s.own_cores);
  EXPECT_NEAR(1 / s.one_core.first, 1 / s.alone.first + 1 / s.alone.second, 1e-9);
  EXPECT_EQ(s.one_core.first, s.one_core.second);
}

TEST(Sharing, Reports) {
  const Sharing s = shared("rk3588"), refused = shared("rk2118");
  EXPECT_NE(refused.problem.find("float16 only"), std::string::npos) << refused.problem;
  const std::string text = sharing_text({s, refused}, "wide", "deep");
  for (const char* part : {"wide", "deep", "a core each", "one core for both", "float16 only"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(to_json(s)["own_cores"]["first_fps"], s.own_cores->first);
  EXPECT_TRUE(to_json(shared("rk3562"))["own_cores"].is_null());
  EXPECT_TRUE(to_json(refused).contains("problem"));
}

}  // namespace
}  // namespace orknn::toolkit
