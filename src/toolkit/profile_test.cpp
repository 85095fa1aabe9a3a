// Profiles of a small network: figures add up, chips refuse what they cannot compute, what-if options work, reports are well
// formed.
#include "toolkit/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "runtime/perf_report.h"
#include "toolkit/report.h"

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
  EXPECT_LT(run({.npu_mhz = 500})[0].fps, now);
  EXPECT_LT(run({.ddr_mhz = 100})[0].fps, now);
  EXPECT_LT(run({.dtype = "fp16"})[0].fps, now);
  EXPECT_GT(run({.sram_kib = 512})[0].layers[1].on_chip_bytes, 0u);
  EXPECT_NE(run({.sram_kib = 512}, "rk3562")[0].problem.find("no SRAM"), std::string::npos);
  EXPECT_NE(run({.sram_kib = 4096})[0].problem.find("at most 956 KiB"), std::string::npos);
  EXPECT_NE(run({.sparse_percent = 50})[0].problem.find("no kernels for sparse weights"), std::string::npos);
}

// Samples are spread over the cores, one each; weights are there once.
TEST(Profile, Batch) {
  const auto one = run(), four = run({.batch = 4});
  EXPECT_NEAR(four[0].latency_ms, 4 * one[0].latency_ms, 1e-9) << "one core: one sample after the other";
  EXPECT_NEAR(four[0].fps, one[0].fps, 1e-9);
  EXPECT_EQ(four[2].at_once, 3);
  EXPECT_GT(four[2].fps, 1.2 * one[0].fps);
  EXPECT_LT(four[2].fps, 3 * one[0].fps);
  EXPECT_GT(run({.batch = 3})[2].fps, four[2].fps) << "a multiple of the cores fills them";
  EXPECT_EQ(four[2].weight_bytes, one[2].weight_bytes);
  EXPECT_EQ(four[2].internal_bytes, 3 * one[2].internal_bytes);
  EXPECT_EQ(four[2].port_bytes, 4 * one[2].port_bytes);
}

TEST(Profile, RefusesWhatAChipCannotDo) {
  EXPECT_NE(run({.dtype = "float16"}, "rv1106")[0].problem.find("no float16 convolution"), std::string::npos);
  EXPECT_NE(run({.dtype = "w8a8"}, "rk2118")[0].problem.find("float16 only"), std::string::npos);
  EXPECT_NE(run({.dtype = "w4a16"}, "rk3588")[0].problem.find("does not offer w4a16: it offers w8a8 and float16"),
            std::string::npos);
  EXPECT_NE(run({.cores = {3}}, "rk3576")[0].problem.find("2 NPU cores, not 3"), std::string::npos);
  const platform::Platform& chip = *platform::find("rk3588");
  EXPECT_FALSE(profile(network(), chip, {.dtype = "int3"}));
  for (double mhz : {0.0, -5.0, 1e30, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(profile(network(), chip, {.npu_mhz = mhz})) << mhz;
    EXPECT_FALSE(profile(network(), chip, {.ddr_mhz = mhz})) << mhz;
  }
  EXPECT_FALSE(profile(network(), chip, {.batch = 0}));
  EXPECT_FALSE(profile(network(), chip, {.sparse_percent = 10}));
}

// No clock, no time: memory and work are stated, the rest is null and never 0.
TEST(Profile, UnknownSpeedsStayUnknown) {
  const Profile p = run({}, "rv1103b")[0];
  EXPECT_NE(p.unknown.find("NPU clock"), std::string::npos) << p.unknown;
  EXPECT_FALSE(p.has_times());
  EXPECT_GT(p.weight_bytes, 0u);
  const auto j = to_json(p);
  for (const char* key : {"fps", "latency_ms", "gb_per_s"}) EXPECT_TRUE(j[key].is_null()) << key;
  EXPECT_GT(j["weight_bytes"], 0);
  EXPECT_EQ(j["layers"].size(), 3u);
  EXPECT_TRUE(j["layers"][0]["us"].is_null());
  EXPECT_NE(chips_text({p}).find("?"), std::string::npos);
  EXPECT_NE(html_page("net", {p}).find("not published"), std::string::npos);
}

// The chips that compute in 16-bit integers do so on the NPU.
TEST(Profile, SixteenBitIntegers) {
  for (const char* chip : {"rv1106", "rk1808"}) {
    const Profile p = run({.dtype = "w16a16i"}, chip)[0];
    EXPECT_TRUE(p.problem.empty()) << p.problem;
    EXPECT_EQ(p.layers[0].device, "NPU") << chip << ": " << p.layers[0].reason;
    EXPECT_EQ(p.layers[0].data_type, "INT16");
    EXPECT_LT(p.fps, run({}, chip)[0].fps);
  }
  EXPECT_NE(run({.dtype = "w16a16i"}, "rk3588")[0].problem.find("does not offer w16a16i"), std::string::npos);
}

// Types of a graph that has been lowered to float16 already.
TEST(Profile, FinishedModels) {
  const ir::Graph source = network();
  compile::CompileOptions options;
  options.platform = platform::find("rk3588");
  const auto program = compile::compile(source, options);
  ASSERT_TRUE(program);
  const auto as_it_is = profile(program->graph, *options.platform, {.dtype = "", .cores = {1}});
  ASSERT_TRUE(as_it_is);
  EXPECT_EQ(as_it_is->front().dtype, "float16");
  EXPECT_NEAR(as_it_is->front().fps, run({.dtype = "float16"})[0].fps, 1e-6);
  const auto retyped = profile(program->graph, *options.platform, {.dtype = "w8a8", .cores = {1}});
  ASSERT_TRUE(retyped);
  EXPECT_EQ(retyped->front().layers[1].data_type, "INT8");
  EXPECT_NEAR(retyped->front().fps, run()[0].fps, run()[0].fps * 0.01);
  const auto elsewhere = profile(program->graph, *platform::find("rv1106"), {.dtype = ""});
  ASSERT_TRUE(elsewhere);
  EXPECT_NE(elsewhere->front().problem.find("no float16 convolution"), std::string::npos);
  const auto quantized = ir::parse(R"(graph "g" (%x: int8[1,32,20,20]) -> (%y) {
  %w: int8[32,32,1,1] = const splat 1
  %y: int8[1,32,20,20] = "int:Conv"(%x, %w) {fused = strings["Relu"]} "layer"
})");
  ASSERT_TRUE(quantized) << quantized.status().to_string();
  EXPECT_FALSE(profile(*quantized, *options.platform, {.dtype = "float16"}));
  const auto integers = profile(*quantized, *options.platform, {.dtype = "", .cores = {1}});
  ASSERT_TRUE(integers);
  EXPECT_EQ(integers->front().dtype, "w8a8");
  EXPECT_EQ(integers->front().npu_layers, 1u);
  EXPECT_EQ(integers->front().macs, 20u * 20 * 32 * 32);
}

// What the runtime tells about SRAM agrees with what the compiler predicts for it.
TEST(Profile, SramInTheFinishedModel) {
  compile::CompileOptions options;
  options.platform = platform::find("rk3588");
  const auto time = [&](uint64_t in_compiler, uint64_t in_runtime) {
    options.cost.on_chip_bytes = in_compiler;
    auto program = compile::compile(network(), options);
    EXPECT_TRUE(program);
    format::Model model;
    model.target_platform = "rk3588";
    model.programs.push_back(std::move(*program));
    return runtime::predicted_microseconds(model, 1, in_runtime).value();
  };
  const uint64_t sram = 512 * 1024;
  EXPECT_LT(time(sram, 0), time(0, 0));
  EXPECT_NEAR(time(0, sram), time(sram, 0), time(0, 0) * 0.01);
}

TEST(Profile, UsageIsThatOfTheNpu) {
  const Profile p = run({.cores = {1}})[0];
  EXPECT_TRUE(p.layers[1].mac_usage);
  ASSERT_TRUE(p.mac_usage);
  EXPECT_LE(*p.mac_usage, 1);
  const Profile forced = run({.cores = {1}, .op_target = {{"body", "cpu"}}})[0];
  EXPECT_EQ(forced.layers[1].device, "CPU");
  EXPECT_FALSE(forced.layers[1].mac_usage) << "the CPU has no MAC array";
  EXPECT_FALSE(run({}, "rk1808")[0].layers[2].mac_usage) << "nothing is multiplied";
  EXPECT_LT(*forced.mac_usage, *p.mac_usage);
  EXPECT_GT(forced.layers[1].us, 10 * p.layers[1].us) << "the CPU is charged for its products";
  const Profile unknown = run({.dtype = "float16"}, "rv1126")[0];
  EXPECT_FALSE(unknown.mac_usage) << "its float16 array is not published";
  EXPECT_TRUE(to_json(unknown)["mac_usage"].is_null());
}

// A chip that cannot run the network says which layer and why, also where nothing is known about time.
TEST(Profile, LayersOfNoList) {
  for (const char* chip : {"rk2118", "rv1106", "rv1103b"}) {
    const Profile p = run({.dtype = chip == std::string_view("rk2118") ? "float16" : "w8a8"}, chip)[0];
    EXPECT_TRUE(p.problem.empty()) << p.problem;
    EXPECT_NE(p.off_list.find("cannot run the network as it is: 'odd' (Erf)"), std::string::npos) << chip << ": " << p.off_list;
    EXPECT_NE(chips_text({p}).find("'odd' (Erf)"), std::string::npos);
    EXPECT_NE(advice_text(p).find("'odd'"), std::string::npos) << advice_text(p);
    EXPECT_TRUE(to_json(p).contains("off_list"));
  }
  EXPECT_TRUE(run()[0].off_list.empty())
      << "chips with the whole CPU list leave this to the advice: the vendor's tools rewrite much";
}

TEST(Profile, MemoryOfThePackage) {
  auto graph = ir::parse(R"(graph "g" (%x: float32[1,16,1024,1024]) -> (%y) {
  %a: float32[32,16,1,1] = const splat 0.5
  %b: float32[32,32,1,1] = const splat 0.5
  %m: float32[1,32,1024,1024] = Conv(%x, %a) "first"
  %y: float32[1,32,1024,1024] = Conv(%m, %b) "second"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  const auto problem = [&](const char* chip) {
    const auto rows = profile(*graph, *platform::find(chip), {});
    return rows ? rows->front().problem : rows.status().to_string();
  };
  EXPECT_NE(problem("rv1103").find("at most 64.00 MiB of memory in its package, the network needs 80.0"), std::string::npos)
      << problem("rv1103");
  EXPECT_EQ(problem("rv1106"), "");
  EXPECT_EQ(problem("rk3588"), "");
}

// Clocks that are not published: no cycles of the memory, but what-if questions about it are answered.
TEST(Profile, UnknownMemoryClock) {
  const Profile p = run({}, "rv1126b")[0], slow = run({.ddr_mhz = 300}, "rv1126b")[0];
  EXPECT_NE(p.remark.find("DDR clock unknown, counted as 2112 MHz"), std::string::npos) << p.remark;
  EXPECT_TRUE(to_json(p)["layers"][0]["ddr_cycles"].is_null());
  EXPECT_TRUE(to_json(slow)["layers"][0]["ddr_cycles"].is_number());
  EXPECT_LT(slow.fps, p.fps);
  EXPECT_LT(p.fps, run({.cores = {1}}, "rk3576")[0].fps) << "one core of that chip at a lower clock";
}

// Sentences that could mislead.
TEST(Profile, AdviceIsCareful) {
  // A convolution that waits for memory: wider channels would be slower.
  auto narrow = ir::parse(R"(graph "g" (%x: float32[1,8,320,320]) -> (%y) {
  %w: float32[8,8,1,1] = const splat 0.5
  %m: float32[1,8,320,320] = Conv(%x, %w) "first"
  %y: float32[1,8,320,320] = Conv(%m, %w) "second"
})");
  ASSERT_TRUE(narrow) << narrow.status().to_string();
  for (const char* chip : {"rk3588", "rk3562", "rk3566"}) {
    const auto profiles = profile(*narrow, *platform::find(chip), {.cores = {1}});
    ASSERT_TRUE(profiles) << profiles.status().to_string();
    for (const auto& p : *profiles) EXPECT_EQ(advice_text(p).find("-> 128"), std::string::npos) << advice_text(p);
  }
  // Two activations are told apart, each with its own gain.
  auto two = ir::parse(R"(graph "g" (%x: float32[1,64,160,160]) -> (%y) {
  %w: float32[64,64,1,1] = const splat 0.5
  %a: float32[1,64,160,160] = Conv(%x, %w) "first"
  %b: float32[1,64,160,160] = Sigmoid(%a) "s"
  %c: float32[1,64,160,160] = Conv(%b, %w) "second"
  %d: float32[1,64,160,160] = Tanh(%c) "t"
  %y: float32[1,64,160,160] = Conv(%d, %w) "third"
})");
  ASSERT_TRUE(two) << two.status().to_string();
  const auto told = profile(*two, *platform::find("rk3588"), {.cores = {1}});
  ASSERT_TRUE(told) << told.status().to_string();
  const std::string text = advice_text(told->front());
  EXPECT_NE(text.find("Sigmoid costs"), std::string::npos) << text;
  EXPECT_NE(text.find("Tanh costs"), std::string::npos) << text;
  auto small = ir::parse(R"(graph "g" (%x: float32[1,32,2,2]) -> (%y) {
  %w: float32[32,32,1,1] = const splat 0.5
  %y: float32[1,32,2,2] = Conv(%x, %w) "tiny"
})");
  ASSERT_TRUE(small);
  const auto one = profile(*small, *platform::find("rk3588"), {.cores = {1}});
  ASSERT_TRUE(one) << one.status().to_string();
  EXPECT_NE(advice_text(one->front()).find("1 layer is so small that starting it"), std::string::npos);
  // Without its only layer a network has no speed.
  auto alone = ir::parse(R"(graph "g" (%x: float16[1,64,160,160]) -> (%y) {
  %y: float16[1,64,160,160] = Sigmoid(%x) "s"
})");
  ASSERT_TRUE(alone);
  const auto function = profile(*alone, *platform::find("rk3588"), {.cores = {1}});
  ASSERT_TRUE(function) << function.status().to_string();
  EXPECT_EQ(advice_text(function->front()).find("inf"), std::string::npos) << advice_text(function->front());
}

// `info` names integer layers by what they compute, as every other report does.
TEST(Report, NamesOfIntegerLayers) {
  auto graph = ir::parse(R"(graph "g" (%x: int8[1,32,20,20]) -> (%y) {
  %w: int8[32,32,1,1] = const splat 1
  %y: int8[1,32,20,20] = "int:Conv"(%x, %w) {fused = strings["Relu"]} "layer"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  compile::CompileOptions options;
  options.platform = platform::find("rk3588");
  options.float_dtype = DType::Float32;  // nothing to lower
  auto program = compile::compile(std::move(*graph), options);
  ASSERT_TRUE(program) << program.status().to_string();
  format::Model model;
  model.target_platform = "rk3588";
  model.programs.push_back(std::move(*program));
  EXPECT_EQ(describe(model).programs[0].layers[0].type, "ConvRelu");
}

TEST(Profile, AdviceNamesLayerAndReason) {
  const auto rows = run({.cores = {1}});
  const std::string text = advice_text(rows[0]);
  EXPECT_NE(text.find("goes to the CPU for 'odd' (Erf): "), std::string::npos) << text;
  EXPECT_NE(text.find("Erf is not an NPU operator"), std::string::npos) << text;
}

// The roof is the chip's rate, whatever stays in its buffer; several cores get more of the bus, and a slower bus gives less.
TEST(Profile, MemoryRoof) {
  const platform::SpeedModel& medium = platform::find("rk3562")->speed;
  const Profile small = run({}, "rk3562")[0];
  EXPECT_GT(small.layers[1].on_chip_bytes, 0u);
  EXPECT_LT(small.layers[1].ddr_bytes(), small.layers[1].read_bytes + small.layers[1].write_bytes);
  EXPECT_DOUBLE_EQ(small.memory_gbs, medium.weight_gbs);
  EXPECT_NE(html_page("net", {small}).find("memory, 6.6 GB/s"), std::string::npos);
  EXPECT_DOUBLE_EQ(run({.ddr_mhz = 780}, "rk3562")[0].memory_gbs, medium.weight_gbs / 2);
  EXPECT_NEAR(run()[2].memory_gbs, 1.6 * run()[0].memory_gbs, 1e-9);
}

TEST(Profile, ReportsAreWellFormed) {
  const auto rows = run();
  const auto j = to_json(rows[0]);
  for (const char* key : {"platform", "cores", "dtype", "fps", "latency_ms", "weight_bytes", "internal_bytes", "layers"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["layers"].size(), 3u);
  EXPECT_TRUE(to_json(run({.dtype = "w4a16"})[0])["fps"].is_null());
  EXPECT_GE(j["layers"][0]["tiling"]["data_banks"], 1);
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
