// Profiles of a small network: figures add up, chips refuse what they cannot compute, what-if options work, reports are well formed.
#include "toolkit/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::toolkit {
namespace {

// Two convolutions, the second with a table activation, and an operator that falls to the CPU.
ir::Graph network() {
  ir::Graph g;
  const auto weights = [&](const char* name, ir::Dims dims) {
    ir::TensorData value = ir::TensorData::zeros(DType::Float32, std::move(dims));
    return g.add_constant(name, std::move(value));
  };
  const ir::TensorId x = g.add_tensor("x", DType::Float32, ir::to_shape(std::vector<int64_t>{1, 3, 64, 64}));
  g.inputs() = {x};
  ir::Attributes pads;
  pads.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  const ir::NodeId a = g.add_node("Conv", "stem", {x, weights("w0", {20, 3, 3, 3})}, pads);
  ir::Node second;
  second.op = "Conv";
  second.name = "body";
  second.inputs = {g.node(a).output(0), weights("w1", {40, 20, 3, 3})};
  second.outputs = {g.add_tensor("b")};
  second.attributes = pads;
  second.tail.push_back({.op = "Swish", .attributes = {}});
  const ir::NodeId b = g.add_node(second);
  const ir::NodeId c = g.add_node("Erf", "odd", {g.node(b).output(0)});
  g.outputs() = {g.node(c).output(0)};
  EXPECT_TRUE(ir::infer_shapes(g, ops::builtin_ops()));
  return g;
}

std::vector<Profile> run(const ProfileRequest& request = {}, std::string_view chip = "rk3588") {
  auto result = profile(network(), *platform::find(chip), request);
  EXPECT_TRUE(result) << result.status().to_string();
  return result ? *result : std::vector<Profile>{};
}

TEST(Profile, OneEntryPerCoreCount) {
  const auto rows = run();
  ASSERT_EQ(rows.size(), 3u);
  double sum = 0;
  for (const LayerProfile& l : rows[0].layers) sum += l.us;
  EXPECT_NEAR(rows[0].latency_ms, sum / 1000, 1e-9);
  EXPECT_NEAR(rows[0].fps * rows[0].latency_ms, 1000, 1e-6);
  EXPECT_EQ(rows[0].layers.size(), 3u);
  EXPECT_EQ(rows[0].layers[2].device, "CPU");
  EXPECT_EQ(rows[0].layers[2].bound, "cpu");
  EXPECT_EQ(rows[0].layers[0].data_type, "INT8");
  EXPECT_EQ(rows[0].macs, 64u * 64 * 9 * (3 * 20 + 20 * 40));
  EXPECT_GT(rows[0].weight_bytes, 40u * 20 * 9);
  EXPECT_GE(rows[2].fps, rows[0].fps);
  EXPECT_EQ(run({.cores = {2}}).size(), 1u);
  EXPECT_EQ(run({}, "rk3562").size(), 1u);
}

TEST(Profile, WhatIf) {
  const double now = run()[0].fps;
  EXPECT_LT(run({.npu_hz = 500'000'000})[0].fps, now);
  EXPECT_LT(run({.ddr_hz = 100'000'000})[0].fps, now);
  EXPECT_LT(run({.dtype = "fp16"})[0].fps, now);
  EXPECT_NEAR(run({.batch = 4})[0].latency_ms, 4 * run()[0].latency_ms, 1e-9);
}

TEST(Profile, RefusesWhatAChipCannotDo) {
  EXPECT_NE(run({.dtype = "float16"}, "rv1106")[0].problem.find("no float16 convolution"), std::string::npos);
  EXPECT_NE(run({.dtype = "w8a8"}, "rk2118")[0].problem.find("float16 only"), std::string::npos);
  EXPECT_NE(run({.dtype = "w4a16"}, "rk3588")[0].problem.find("does not offer w4a16"), std::string::npos);
  EXPECT_NE(run({}, "rv1103b")[0].problem.find("not published"), std::string::npos);
  EXPECT_NE(run({.cores = {3}}, "rk3576")[0].problem.find("2 NPU cores, not 3"), std::string::npos);
  EXPECT_FALSE(profile(network(), *platform::find("rk3588"), {.dtype = "int3"}));
  EXPECT_FALSE(profile(network(), *platform::find("rk3588"), {.npu_hz = -5}));
  EXPECT_FALSE(profile(network(), *platform::find("rk3588"), {.batch = 0}));
}

TEST(Profile, AdviceNamesLayerAndReason) {
  const auto rows = run({.cores = {1}});
  const std::string text = advice_text(rows[0]);
  EXPECT_NE(text.find("'odd' (Erf) falls to the CPU"), std::string::npos) << text;
  EXPECT_NE(text.find("Erf is not an NPU operator"), std::string::npos) << text;
}

TEST(Profile, ReportsAreWellFormed) {
  const auto rows = run();
  const auto j = to_json(rows[0]);
  for (const char* key : {"platform", "cores", "dtype", "fps", "latency_ms", "weight_bytes", "internal_bytes", "layers"}) EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["layers"].size(), 3u);
  EXPECT_TRUE(to_json(run({}, "rv1103b")[0])["fps"].is_null());
  EXPECT_EQ(chrome_trace(rows[0])["traceEvents"].size(), 1u + 1 + 1 + 3);
  const std::string html = html_page("<net>", rows);
  EXPECT_NE(html.find("&lt;net&gt;"), std::string::npos);
  EXPECT_EQ(html.find("<net>"), std::string::npos);
  EXPECT_NE(html.find("</html>"), std::string::npos);
  EXPECT_NE(chips_text(rows).find("rk3588"), std::string::npos);
  EXPECT_NE(layers_text(rows[0]).find("body"), std::string::npos);
}

}  // namespace
}  // namespace orknn::toolkit
