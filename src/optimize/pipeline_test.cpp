// The driver: options, limits, trace.
#include "optimize/pipeline.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Graph sample() {
  Result<Graph> g = parse(R"(graph "g" (%x: float32[2]) -> (%y) {
    %a = Neg(%x) "r1" from "r1"
    %b = Abs(%a) "r2" from "r2"
    %dead = Relu(%x) "r3" from "r3"
    %c: float32[2] = const {-1, 1}
    %d = Relu(%c) "r4" from "r4"
    %dead2 = Relu(%d) "r5" from "r5"
    %y = Relu(%b) "r6" from "r6"
  })");
  EXPECT_TRUE(g) << g.status().to_string();
  return std::move(*g);
}

TEST(Optimize, RejectsUnknownPassNamesAndListsTheLegalOnes) {
  Graph g = sample();
  const Status s = optimize(g, ops::builtin_ops(), {.disable = {"fold_everything"}, .stop_after = "nope"});
  ASSERT_FALSE(s);
  EXPECT_EQ(s.count(), 2u);
  EXPECT_NE(s.to_string().find("fold_constants, "), std::string::npos) << s.to_string();
  EXPECT_NE(s.to_string().find("fold_everything"), std::string::npos);
}

TEST(Optimize, RejectsUnknownLevels) {
  Graph g = sample();
  EXPECT_FALSE(optimize(g, ops::builtin_ops(), {.level = 4}));
  EXPECT_FALSE(optimize(g, ops::builtin_ops(), {.level = -1}));
}

TEST(Optimize, RemovesDeadNodesAtEveryLevelAndTracesThem) {
  for (int level = 0; level <= 3; ++level) {
    Graph g = sample();
    Trace trace;
    const Status s = optimize(g, ops::builtin_ops(), {.level = level}, &trace);
    ASSERT_TRUE(s) << s.to_string();
    EXPECT_EQ(g.node_count(), 3u);
    EXPECT_NE(trace.to_text().find("Relu:r3 -> nothing"), std::string::npos) << trace.to_text();
    EXPECT_NE(trace.to_json().find("\"pass\": \"fold_constants\""), std::string::npos) << trace.to_json();
  }
}

// Whatever a rewrite makes carries the names of all layers it came from, so a node that grows by one layer at a time costs the
// square of the row's length.
TEST(Optimize, ALongRowMergesInPairs) {
  constexpr size_t kLayers = 256;
  const struct { const char *pass, *layer; } rows[] = {{"fuse_clip", "Relu(%{})"}, {"merge_constant_arithmetic", "Mul(%{}, %c)"}};
  for (const auto& row : rows) {
    std::string text = "graph \"g\" (%t0: float32[2,2]) -> (%t256) {\n%c: float32[] = const {0.99}\n";
    for (size_t i = 0; i < kLayers; ++i) {
      std::string layer = row.layer;
      layer.replace(layer.find("{}"), 2, "t" + std::to_string(i));
      text +=
          "%t" + std::to_string(i + 1) + " = " + layer + " \"r" + std::to_string(i) + "\" from \"r" + std::to_string(i) + "\"\n";
    }
    Result<Graph> g = parse(text + "}");
    ASSERT_TRUE(g) << g.status().to_string();
    Trace trace;
    ASSERT_TRUE(run_passes(*g, ops::builtin_ops(), {row.pass}, {.strict = true}, &trace));
    ASSERT_EQ(g->node_count(), 1u) << row.pass;
    EXPECT_EQ(g->node(g->order()[0]).origin.size(), kLayers);
    std::map<std::string, size_t> layers;  // by node name: how many it stands for, 1 when not yet here
    size_t work = 0;
    for (const TraceEntry& e : trace.entries) {
      size_t sum = 0;
      const size_t arrow = e.text.find(" -> ");
      for (size_t at = e.text.find(":r"); at < arrow; at = e.text.find(":r", at + 1)) {
        const std::string name = e.text.substr(at + 1, e.text.find_first_of(", ", at) - at - 1);
        sum += layers.contains(name) ? layers[name] : 1;
      }
      layers[e.text.substr(e.text.rfind(':') + 1)] = sum;
      work += sum;
    }
    EXPECT_LE(work, kLayers * 8) << row.pass;  // n log n
  }
}

// Every rewrite of a Conv copies its weights.
TEST(Optimize, ARowOfFactorsAndOffsetsGoesIntoTheWeightsAtOnce) {
  constexpr size_t kLayers = 256;
  for (const bool ahead : {false, true}) {
    std::string text =
        "graph \"g\" (%x: float32[1,2,2,2]) -> (%y) {\n%w: float32[2,2,1,1] = const {1, 2, 3, 4}\n"
        "%one: float32[] = const {1}\n%minus: float32[] = const {-1}\n";
    std::string last = "x";
    if (!ahead) text += "%t = Conv(%x, %w) \"conv\" from \"conv\"\n", last = "t";
    for (size_t i = 0; i < kLayers; ++i) {
      const std::string name = !ahead && i + 1 == kLayers ? "y" : "t" + std::to_string(i);
      text += "%" + name + (i % 2 ? " = Add(%" + last + ", %one)" : " = Mul(%" + last + ", %minus)") + " \"r" +
              std::to_string(i) + "\" from \"r" + std::to_string(i) + "\"\n";
      last = name;
    }
    if (ahead) text += "%y = Conv(%" + last + ", %w) \"conv\" from \"conv\"\n";
    Result<Graph> g = parse(text + "}");
    ASSERT_TRUE(g) << g.status().to_string();
    const Graph before = *g;
    Trace trace;
    ASSERT_TRUE(run_passes(*g, ops::builtin_ops(), {"fold_scale"}, {.strict = true}, &trace));
    EXPECT_EQ(g->node_count(), 1u);
    EXPECT_EQ(trace.entries.size(), 1u);
    const std::vector<std::string>& origin = g->node(g->order()[0]).origin;
    ASSERT_EQ(origin.size(), kLayers + 1);
    EXPECT_EQ(origin[ahead ? 0 : 1], "r0");
    const float values[] = {1, -2, 3, 4, 5, 6, -7, 8};
    const TensorData x[] = {TensorData::from<float>({1, 2, 2, 2}, values)};
    const auto expected = ops::eval_graph(before, ops::builtin_ops(), x), found = ops::eval_graph(*g, ops::builtin_ops(), x);
    ASSERT_TRUE(expected && found);
    EXPECT_EQ(to_doubles((*expected)[0].view()), to_doubles((*found)[0].view()));
  }
}

TEST(Optimize, MaxRewritesAndStopAfterAndDisable) {
  Graph g = sample();
  Trace trace;
  ASSERT_TRUE(optimize(g, ops::builtin_ops(), {.max_rewrites = 1}, &trace));
  EXPECT_EQ(trace.entries.size(), 1u);

  g = sample();
  trace = {};
  ASSERT_TRUE(optimize(g, ops::builtin_ops(), {.stop_after = "fold_constants"}, &trace));
  for (const TraceEntry& e : trace.entries) EXPECT_EQ(e.pass, "fold_constants");

  g = sample();
  trace = {};
  ASSERT_TRUE(optimize(g, ops::builtin_ops(), {.disable = {"fold_constants"}}, &trace));
  for (const TraceEntry& e : trace.entries) EXPECT_NE(e.pass, "fold_constants");
}

TEST(Optimize, DumpsAndReportsProgress) {
  Graph g = sample();
  OptimizeOptions options;
  options.dump_after = {"fold_constants"};
  int dumps = 0;
  options.dump = [&](std::string_view pass, const Graph&) { dumps += pass == "fold_constants"; };
  double last = -1;
  options.progress = [&](std::string_view, double done) { last = done; };
  ASSERT_TRUE(optimize(g, ops::builtin_ops(), options));
  EXPECT_GE(dumps, 1);
  EXPECT_EQ(last, 1.0);
}

TEST(Optimize, LongChainsTakeLittleTime) {
  Graph g;
  TensorId t = g.add_tensor("x", DType::Float32, Shape{Dim(4)});
  g.inputs() = {t};
  for (int i = 0; i < 3000; ++i) t = g.node(g.add_node("Identity", "i" + std::to_string(i), {t})).output(0);
  t = g.node(g.add_node("Relu", "r", {t})).output(0);
  g.outputs() = {t};
  ASSERT_TRUE(optimize(g, ops::builtin_ops()));
  EXPECT_EQ(g.node_count(), 1u);
}

}  // namespace
}  // namespace orknn::optimize
