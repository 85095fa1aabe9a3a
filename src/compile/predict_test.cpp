// Rows of published layer tables: traffic, array cycles and bytes of the vendor's own per-layer tables.
#include "compile/predict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::compile {
namespace {

struct Row {
  const char* name;
  DType type;
  int64_t kernel, stride, in, out, height_in, width_in, height_out, width_out;
  bool depthwise, first;
  uint64_t array_cycles, ddr_cycles, read_kib;
  int64_t npu_mhz = 1000, ddr_mhz = 2112;
  double us = 0, usage = 0;  // 0 = not published
  int cores = 1;
};

constexpr DType I = DType::Int8, F = DType::Float16;
const Row kRows[] = {
    {"stem, 1920", I, 3, 2, 3, 16, 1920, 1920, 960, 960, false, true, 8294400, 1091036, 10802, 1000, 2112, 16130, 2.41},
    {"3x3 s2 16->32", I, 3, 2, 16, 32, 960, 960, 480, 480, false, false, 2073600, 935287, 14404, 1000, 2112, 4862, 21.32},
    {"1x1 32->32", I, 1, 1, 32, 32, 480, 480, 480, 480, false, false, 921600, 623442, 7201, 1000, 2112, 4204, 5.48},
    {"3x3 16->16", I, 3, 1, 16, 16, 480, 480, 480, 480, false, false, 2073600, 311802, 3602, 1000, 2112, 4094, 12.66},
    {"1x1 48->32", I, 1, 1, 48, 32, 480, 480, 480, 480, false, false, 921600, 779310, 10801, 1000, 2112, 4743, 7.29},
    {"3x3 s2 32->64", I, 3, 2, 32, 64, 480, 480, 240, 240, false, false, 1036800, 468342, 7218, 1000, 2112, 2655, 39.05},
    {"1x1 128->64", I, 1, 1, 128, 64, 240, 240, 240, 240, false, false, 460800, 467909, 7208, 1000, 2112, 2641, 17.45},
    {"3x3 64->64 @240", I, 3, 1, 64, 64, 240, 240, 240, 240, false, false, 2073600, 313274, 3636, 1000, 2112, 2480, 83.61},
    {"1x1 64->64 @240", I, 1, 1, 64, 64, 240, 240, 240, 240, false, false, 460800, 311889, 3604, 1000, 2112, 928, 24.83},
    {"3x3 64->64 @120", I, 3, 1, 64, 64, 120, 120, 120, 120, false, false, 518400, 79504, 936, 1000, 2112, 718, 72.20},
    {"3x3 128->128 @60", I, 3, 1, 128, 128, 60, 60, 60, 60, false, false, 518400, 45239, 595, 1000, 2112, 700, 74.06},
    {"1x1 512->256 @60", I, 1, 1, 512, 256, 60, 60, 60, 60, false, false, 460800, 122513, 1930, 1000, 2112, 825, 55.85},
    {"3x3 s2 128->256 -> 60x34",
     I,
     3,
     2,
     128,
     256,
     120,
     68,
     60,
     34,
     false,
     false,
     589824,
     155801,
     1310,
     1000,
     1068,
     897,
     21.83,
     3},
    {"1x1 256->512 @20", I, 1, 1, 256, 512, 20, 20, 20, 20, false, false, 51200, 14962, 232, 800, 2112, 289, 22.15},
    {"depthwise 256 @20", I, 3, 1, 256, 256, 20, 20, 20, 20, true, false, 14400, 7074, 104, 800, 2112, 224, 0.50},
    {"depthwise 128 @40", I, 3, 1, 128, 128, 40, 40, 40, 40, true, false, 28800, 13927, 202, 800, 2112, 290, 0.78},
    {"fp16 3x3 64->64", F, 3, 1, 64, 64, 258, 258, 256, 256, false, false, 4718592, 717967, 8392, 1000, 2112, 5873, 80.34},
    {"fp16 depthwise 7x7 s7", F, 7, 7, 128, 128, 256, 256, 37, 37, true, false, 134848, 724645, 16396, 1000, 2112, 1864, 0.90},
    {"fully connected 3072->10", I, 1, 1, 3072, 10, 1, 1, 1, 1, false, false, 1536, 1441, 33},
};

// One convolution of a row's shape, placed on the NPU.
format::Program program_of(const Row& r) {
  format::Program program;
  ir::Graph& g = program.graph;
  const auto shape = [](std::vector<int64_t> dims) { return ir::to_shape(dims); };
  const ir::TensorId x = g.add_tensor("x", r.type, shape({1, r.in, r.height_in, r.width_in}));
  const int64_t group = r.depthwise ? r.in : 1;
  const ir::TensorId w = g.add_constant("w", ir::TensorData::zeros(r.type, {r.out, r.in / group, r.kernel, r.kernel}));
  ir::Attributes attributes;
  attributes.set("group", group);
  attributes.set("strides", std::vector<int64_t>{r.stride, r.stride});
  const ir::NodeId node = g.add_node("Conv", "conv", {x, w}, std::move(attributes));
  g.tensor(g.node(node).output(0)).dtype = r.type;
  g.tensor(g.node(node).output(0)).shape = shape({1, r.out, r.height_out, r.width_out});
  if (r.first) g.inputs() = {x};
  format::Task task;
  task.node = node;
  task.device = format::Device::Npu;
  task.core_mask = 7;
  program.tasks.push_back(task);
  return program;
}

TEST(Predict, WorkedRowsOfTheGuide) {
  for (const Row& r : kRows) {
    SCOPED_TRACE(r.name);
    platform::Platform chip = *platform::find("rk3588");
    chip.npu_hz = r.npu_mhz * 1'000'000;
    chip.ddr_hz = r.ddr_mhz * 1'000'000;
    format::Program program = program_of(r);
    predict(program, chip, ops::builtin_ops());
    const format::Task& task = program.tasks[0];
    EXPECT_EQ(task.array_cycles, r.array_cycles);
    EXPECT_EQ(task.ddr_cycles, r.ddr_cycles);
    EXPECT_EQ(task.read_bytes / 1024, r.read_kib);
    if (r.us == 0) continue;
    EXPECT_NEAR(
        100 * static_cast<double>(task.macs) / (chip.macs_per_cycle(r.type) * static_cast<double>(r.npu_mhz) * r.us * r.cores),
        r.usage, 0.005);
  }
}

// The last node of a graph in text form as the only task.
format::Program program_of(const char* text, format::Device device = format::Device::Npu) {
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  format::Program program;
  if (!graph) return program;
  program.graph = std::move(*graph);
  format::Task task;
  task.node = program.graph.order().back();
  task.device = device;
  program.tasks.push_back(task);
  return program;
}

// The rows that are no convolutions: "fp16 matmul as conv, 768->2304, 1x512" (no bias), "Add, 16 ch @480" and "Concat 3 x 16 ch
// @480".
TEST(Predict, OtherWorkedRowsOfTheGuide) {
  const struct {
    const char* graph;
    uint64_t ddr_cycles, array_cycles, read_kib;
  } kOthers[] = {
      {R"(graph "g" (%x: float16[1,512,768]) -> (%y) {
  %w: float16[768,2304] = const splat 0.5
  %y: float16[1,512,2304] = MatMul(%x, %w)
})",
       282603, 1769472, 4224},
      {R"(graph "g" (%a: int8[1,16,480,480], %b: int8[1,16,480,480]) -> (%y) {
  %y: int8[1,16,480,480] = Add(%a, %b)
})",
       467541, 0, 7200},
      {R"(graph "g" (%a: int8[1,16,480,480], %b: int8[1,16,480,480], %c: int8[1,16,480,480]) -> (%y) {
  %y: int8[1,48,480,480] = Concat(%a, %b, %c) {axis = 1}
})",
       935081, 0, 10800},
  };
  for (const auto& row : kOthers) {
    SCOPED_TRACE(row.graph);
    format::Program program = program_of(row.graph);
    ASSERT_EQ(program.tasks.size(), 1u);
    predict(program, *platform::find("rk3588"), ops::builtin_ops());
    EXPECT_EQ(program.tasks[0].ddr_cycles, row.ddr_cycles);
    EXPECT_EQ(program.tasks[0].array_cycles, row.array_cycles);
    EXPECT_EQ(program.tasks[0].read_bytes / 1024, row.read_kib);
  }
}

// The layers of mobilenet_v1 that have weights: traffic and memory of their constants.
std::pair<uint64_t, uint64_t> mobilenet_constants(const platform::Platform& chip, int64_t classes, bool pool_has_weights) {
  uint64_t traffic = 0, memory = 0;
  const auto add = [&](Row r) {
    format::Program program = program_of(r);
    const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
    traffic += cost.weight_bytes;
    memory += cost.packed_bytes;
  };
  add({"stem", I, 3, 2, 3, 32, 224, 224, 112, 112, false, true, 0, 0, 0});
  int64_t channels = 32, side = 112;
  const std::pair<int64_t, int64_t> kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  for (const auto& [out, stride] : kBlocks) {
    add({"depthwise", I, 3, stride, channels, channels, side, side, side / stride, side / stride, true, false, 0, 0, 0});
    side /= stride;
    add({"pointwise", I, 1, 1, channels, out, side, side, side, side, false, false, 0, 0, 0});
    channels = out;
  }
  if (pool_has_weights) add({"pool", I, 7, 1, 1024, 1024, 7, 7, 1, 1, true, false, 0, 0, 0});
  add({"classes", I, 1, 1, 1024, classes, 1, 1, 1, 1, false, false, 0, 0, 0});
  return {traffic, memory};
}

// Published sums: mobilenet_v1 by the runtime 1.5, which packed closer, with a bias of four bytes and 128 bytes more in the first
// layer.
TEST(Predict, ConstantsOfAnchorA) {
  platform::Platform chip = *platform::find("rk3588");
  chip.packing = {.inputs = 1, .pads_depthwise = false, .bias_bytes = 4, .depthwise_bias_bytes = 4};
  const auto [traffic, memory] = mobilenet_constants(chip, 1000, false);
  EXPECT_EQ(traffic + 128, 4260832u);
  EXPECT_EQ(memory + 128, 4260864u);
}

// The small chips; 64 bytes of the published memory are not explained, and the traffic holds a conversion of the logits whose
// form is not known.
TEST(Predict, ConstantsOfAnchorB) {
  const auto [traffic, memory] = mobilenet_constants(*platform::find("rv1106"), 1001, true);
  EXPECT_EQ(memory + 64, 4447296u);
  EXPECT_NEAR(static_cast<double>(traffic), 4479552, 4479552 * 0.01);
}

// Products that fall to the CPU cost what they multiply, and what picks elements costs what it picks.
TEST(Predict, WorkOfTheCpu) {
  const platform::Platform& chip = *platform::find("rk3588");
  const auto step = [&](const char* text) {
    format::Program program = program_of(text, format::Device::Cpu);
    const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
    EXPECT_EQ(cost.steps.size(), 1u);
    EXPECT_FALSE(cost.steps[0].npu);
    return cost.steps[0];
  };
  const Step volume = step(R"(graph "g" (%x: float16[1,3,8,8,8]) -> (%y) {
  %w: float16[8,3,3,3,3] = const splat 0.5
  %y: float16[1,8,6,6,6] = Conv(%x, %w)
})");
  EXPECT_EQ(volume.work, Step::Work::CpuMacs);
  EXPECT_EQ(volume.macs, 6 * 6 * 6 * 8 * 3 * 27);
  const Step sum = step(R"(graph "g" (%x: float16[4,10,20], %z: float16[4,20,30]) -> (%y) {
  %y: float16[4,10,30] = Einsum(%x, %z) {equation = "bij,bjk->bik"}
})");
  EXPECT_EQ(sum.work, Step::Work::CpuMacs);
  EXPECT_EQ(sum.macs, 4 * 10 * 20 * 30);
  const Step recurrent = step(R"(graph "g" (%x: float16[10,1,16]) -> (%y) {
  %w: float16[1,128,16] = const splat 0.5
  %r: float16[1,128,32] = const splat 0.5
  %y: float16[10,1,1,32] = LSTM(%x, %w, %r) {hidden_size = 32}
})");
  EXPECT_EQ(recurrent.work, Step::Work::CpuMacs);
  EXPECT_GE(recurrent.macs, 10 * 128 * (16 + 32));
  const Step picked = step(R"(graph "g" (%x: float16[1,50,768]) -> (%y) {
  %i: int64[] = const {0}
  %y: float16[1,768] = Gather(%x, %i) {axis = 1}
})");
  EXPECT_EQ(picked.work, Step::Work::CpuElements);
  EXPECT_EQ(picked.elements, 768) << "one row, not the whole table";
}

// Means are convolutions with equal weights: over channels, of all elements, of windows beyond the pooling block.
TEST(Predict, MeansAreConvolutions) {
  const platform::Platform& chip = *platform::find("rk3588");
  const auto step = [&](const char* text) {
    const format::Program program = program_of(text);
    const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
    EXPECT_EQ(cost.steps.size(), 1u);
    EXPECT_TRUE(cost.steps[0].npu);
    return cost.steps[0];
  };
  const Step channels = step(R"(graph "g" (%x: int8[1,64,40,40]) -> (%y) {
  %a: int64[1] = const {1}
  %y: int8[1,1,40,40] = ReduceMean(%x, %a)
})");
  EXPECT_EQ(channels.work, Step::Work::Pointwise);
  EXPECT_EQ(channels.cycles, 40 * 40 * 4) << "at least four passes";
  const Step all = step(R"(graph "g" (%x: int8[1,64,4,18]) -> (%y) {
  %y: int8[1,1,1,1] = ReduceMean(%x)
})");
  EXPECT_EQ(all.work, Step::Work::Conv);
  EXPECT_EQ(all.cycles, 4 * 4 * 18 * 2) << "pixels in fours, two passes of 32 channels per tap";
  const Step rows = step(R"(graph "g" (%x: int8[1,64,4,18]) -> (%y) {
  %a: int64[1] = const {2}
  %y: int8[1,64,18] = ReduceMean(%x, %a) {keepdims = 0}
})");
  EXPECT_EQ(rows.work, Step::Work::Depthwise);
  EXPECT_EQ(rows.cycles, 20 * 4);
  const Step window = step(R"(graph "g" (%x: int8[1,64,20,40]) -> (%y) {
  %y: int8[1,64,5,16] = AveragePool(%x) {kernel_shape = [4,10], strides = [4,2]}
})");
  EXPECT_EQ(window.work, Step::Work::Depthwise);
  EXPECT_EQ(window.cycles, 5 * 16 * 4 * 10);
}

// Every place between four neighbours is a task that reads the map and writes with gaps.
TEST(Predict, InterpolationIsTasksWithGaps) {
  const platform::Platform& chip = *platform::find("rk3588");
  const auto cost = [&](const char* text) {
    const format::Program program = program_of(text);
    return cost_of(program, program.tasks[0], chip, ops::builtin_ops());
  };
  const TaskCost linear = cost(R"(graph "g" (%x: int8[1,16,20,20], %s: float32[4]) -> (%y) {
  %y: int8[1,16,80,80] = Resize(%x, _, %s) {mode = "linear"}
})");
  ASSERT_EQ(linear.steps.size(), 1u);
  EXPECT_EQ(linear.steps[0].work, Step::Work::Depthwise);
  EXPECT_EQ(linear.steps[0].tasks, 16);
  EXPECT_GE(linear.steps[0].bytes, 16.0 * 16 * 20 * 20 + 2 * 16 * 80 * 80);
  EXPECT_NEAR(time_of(linear.steps[0], chip, {}).fixed, 16 * chip.speed.layer_us, 1e-9);
  const TaskCost repeated = cost(R"(graph "g" (%x: int8[1,16,1,1], %s: float32[4]) -> (%y) {
  %y: int8[1,16,80,80] = Resize(%x, _, %s) {mode = "linear"}
})");
  EXPECT_EQ(repeated.steps[0].work, Step::Work::Move) << "one pixel has no neighbours";
}

// The shader works on many results at once, but on one element of each.
TEST(Predict, ReductionsOfTheShader) {
  const platform::Platform& chip = *platform::find("rk1808");
  const auto elements = [&](const char* text) {
    const format::Program program = program_of(text);
    const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
    EXPECT_EQ(cost.steps[0].work, Step::Work::CpuElements);
    return cost.steps[0].elements;
  };
  EXPECT_EQ(elements(R"(graph "g" (%x: int8[1,64,4,18]) -> (%y) {
  %y: int8[1,1,1,1] = ReduceMax(%x)
})"),
            200 * 64 * 4 * 18);
  EXPECT_EQ(elements(R"(graph "g" (%x: int8[1,64,20,20]) -> (%y) {
  %a: int64[1] = const {1}
  %y: int8[1,1,20,20] = ReduceMax(%x, %a)
})"),
            64 * 20 * 20);
}

// Narrow groups lie side by side in the array: as many of them as fit share a pass, and none costs more than a dense kernel.
TEST(Predict, NarrowGroupsShareThePassesOfTheArray) {
  const platform::Platform& chip = *platform::find("rk3588");
  const auto cycles = [&](int group, int out) {
    const std::string outs = std::to_string(out);
    const format::Program program = program_of(("graph \"g\" (%x: int8[1,64,40,40]) -> (%y) {\n  %w: int8[" + outs + "," +
                                                std::to_string(64 / group) + ",3,3] = const splat 1\n  %y: int8[1," + outs +
                                                ",38,38] = Conv(%x, %w) {group = " + std::to_string(group) + "}\n}")
                                                   .c_str());
    return cost_of(program, program.tasks[0], chip, ops::builtin_ops()).steps[0].cycles;
  };
  const double dense = cycles(1, 64);
  EXPECT_EQ(cycles(2, 64), dense / 2);
  for (int group : {4, 8, 16, 32}) EXPECT_EQ(cycles(group, 64), cycles(2, 64)) << group;
  for (int group : {2, 8, 32}) EXPECT_LE(cycles(group, 128), cycles(1, 128)) << group;
}

// With few rows every weight is used once, and nothing is left to do while the next ones arrive.
TEST(Predict, FewFloatRowsWaitForTheirWeights) {
  const platform::Platform& chip = *platform::find("rk3588");
  const auto step = [&](const std::string& rows, const std::string& type) {
    const format::Program program =
        program_of(("graph \"g\" (%x: " + type + "[" + rows + ",512]) -> (%y) {\n  %w: " + type +
                    "[512,512] = const splat 1\n  %y: " + type + "[" + rows + ",512] = MatMul(%x, %w)\n}")
                       .c_str());
    return cost_of(program, program.tasks[0], chip, ops::builtin_ops()).steps[0];
  };
  EXPECT_TRUE(step("1", "float16").serial);
  EXPECT_TRUE(step("4", "float16").serial);
  EXPECT_FALSE(step("5", "float16").serial);
  EXPECT_FALSE(step("1", "int8").serial);
  Step one = step("1", "float16");
  const StepTime waits = time_of(one, chip, {});
  one.serial = false;
  EXPECT_GT(waits.total, time_of(one, chip, {}).total);
  EXPECT_LE(waits.total, waits.compute + waits.traffic + waits.fixed + 1e-9);
}

// Data movement and attention tell their traffic, and follow both clocks.
TEST(Predict, LayoutsAndSoftmaxFollowTheClocks) {
  const platform::Platform& chip = *platform::find("rk3588");
  for (const char* text : {R"(graph "g" (%x: float16[1,64,32,32]) -> (%y) {
  %y: float16[1,32,32,64] = Transpose(%x) {perm = [0,2,3,1]}
})",
                           R"(graph "g" (%x: float16[1,64,32,32]) -> (%y) {
  %y: float16[1,64,32,32] = Softmax(%x) {axis = 1}
})",
                           R"(graph "g" (%q: float16[1,8,64,64], %k: float16[1,8,64,64], %v: float16[1,8,64,64]) -> (%y) {
  %y: float16[1,8,64,64] = Attention(%q, %k, %v)
})"}) {
    SCOPED_TRACE(text);
    format::Program program = program_of(text);
    ASSERT_EQ(program.tasks.size(), 1u);
    const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
    const Step& s = cost.steps.back();
    EXPECT_EQ(s.bytes, static_cast<double>(cost.read_bytes + cost.write_bytes));
    const StepTime own = time_of(s, chip, {});
    EXPECT_NEAR(own.total, own.compute + own.fixed, 1e-9) << "the traffic is part of the time per element";
    EXPECT_NEAR(time_of(s, chip, {.npu_hz = chip.npu_hz / 2}).compute, 2 * own.compute, 1e-9);
    EXPECT_GT(time_of(s, chip, {.ddr_hz = chip.ddr_hz / 4}).total, own.total);
    EXPECT_LE(time_of(s, chip, {.ddr_hz = chip.ddr_hz / 4}).total, 4 * own.compute + own.fixed);
  }
  Step moved;
  moved.work = Step::Work::SpaceToBatch;
  moved.elements = 1e6;
  EXPECT_NEAR(time_of(moved, chip, {.npu_hz = chip.npu_hz / 2}).total, 2 * time_of(moved, chip, {}).total, 1e-9);
  Step waiting = moved;
  waiting.work = Step::Work::Softmax;
  waiting.npu = false;
  EXPECT_EQ(time_of(waiting, chip, {.npu_hz = chip.npu_hz / 2}).total, time_of(waiting, chip, {}).total)
      << "the CPU has its own clock";
}

// Float16: kernels larger than 1x1 keep their share of the array, products lose, tables take twice the time; generation 1 loses
// everywhere.
TEST(Predict, Float16) {
  const platform::Platform &chip = *platform::find("rk3588"), &first = *platform::find("rk1808");
  const auto ratio = [](const platform::Platform& p, Step s) {
    const double before = time_of(s, p, {}).compute + time_of(s, p, {}).table;
    s.half = true;
    return (time_of(s, p, {}).compute + time_of(s, p, {}).table) / before;
  };
  Step s;
  s.cycles = 1e6;
  s.work = Step::Work::Conv;
  EXPECT_DOUBLE_EQ(ratio(chip, s), 1);
  EXPECT_DOUBLE_EQ(ratio(first, s), 1 / first.speed.half);
  s.work = Step::Work::Pointwise;
  EXPECT_DOUBLE_EQ(ratio(chip, s), 1 / chip.speed.half);
  Step table;
  table.table_elements = 1e6;
  EXPECT_DOUBLE_EQ(ratio(chip, table), 2);
}

// Constants that were fitted elsewhere never make a layer beat the array.
TEST(Predict, NoStepBeatsTheArray) {
  const platform::Platform& chip = *platform::find("rk1808");
  const format::Program program = program_of({"stem", DType::Float16, 6, 2, 3, 32, 640, 640, 320, 320, false, true, 0, 0, 0});
  const TaskCost cost = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
  const double least = static_cast<double>(cost.macs) / (chip.half_macs * static_cast<double>(chip.npu_hz) / 1e6);
  EXPECT_LT(time_of(cost.steps[0], chip, {}).compute, least) << "the constants alone would";
  EXPECT_GE(microseconds(program.tasks[0], cost, chip, {}, 1), least * (1 - 1e-9));
  EXPECT_GE(time_of(cost.steps[0], chip, {.npu_hz = chip.npu_hz / 2}).total, 2 * least * (1 - 1e-9));
}

// A chip that is one core of another at a lower clock is never faster, and its memory can be asked about although its clock is
// not published.
TEST(Predict, OneCoreOfARelative) {
  const platform::Platform &single = *platform::find("rv1126b"), &relative = *platform::find("rk3576");
  for (const Row& r : kRows) {
    SCOPED_TRACE(r.name);
    format::Program a = program_of(r), b = program_of(r);
    // The result lies in memory that the NPU's own buffer could hold.
    for (format::Program* p : {&a, &b}) {
      p->buffers.resize(p->graph.tensor_count());
      const ir::TensorId out = p->graph.node(p->tasks[0].node).output(0);
      p->buffers[static_cast<size_t>(out.index)] = {format::Buffer::Place::Arena, 0, 1 << 16};
    }
    const double slow = microseconds(a.tasks[0], cost_of(a, a.tasks[0], single, ops::builtin_ops()), single, {}, 1);
    EXPECT_GE(slow, microseconds(b.tasks[0], cost_of(b, b.tasks[0], relative, ops::builtin_ops()), relative, {}, 1));
  }
  Step s;
  s.bytes = 1e8;
  EXPECT_NEAR(time_of(s, single, {.ddr_hz = relative.ddr_hz / 2}).traffic, 2 * time_of(s, single, {}).traffic, 1e-6);
}

TEST(Predict, ClocksAndCoresChangeTheTime) {
  const platform::Platform& chip = *platform::find("rk3588");
  Step s;
  s.work = Step::Work::Conv;
  s.cycles = 1e6;
  s.bytes = 1e5;
  const double one = time_of(s, chip, {}).total;
  EXPECT_GT(one, 1000);
  EXPECT_LT(one, 2000);
  EXPECT_NEAR(time_of(s, chip, {.npu_hz = chip.npu_hz / 2}).compute, 2 * time_of(s, chip, {}).compute, 1e-6);
  EXPECT_LT(time_of(s, chip, {}, 3).total, one / 2);
  s.cycles = 0;
  s.bytes = 1e8;
  EXPECT_NEAR(time_of(s, chip, {.ddr_hz = chip.ddr_hz / 2}).traffic, 2 * time_of(s, chip, {}).traffic, 1e-6);
  s.work = Step::Work::CpuElements;
  s.npu = false;
  s.elements = 1e6;
  EXPECT_EQ(time_of(s, chip, {.npu_hz = chip.npu_hz / 2}).total, time_of(s, chip, {}).total) << "the CPU has its own clock";
  EXPECT_EQ(time_of(s, *platform::find("rk2118"), {}).total, 0) << "nothing is known about this chip's speed";
}

// Even parts of rows; the busiest core decides, and what cannot be divided is not.
TEST(Predict, CoresShareALayer) {
  const platform::Platform& chip = *platform::find("rk3588");
  format::Program program = program_of(kRows[7]);  // 240 rows
  const auto costs = predict(program, chip, ops::builtin_ops());
  const format::Task& task = program.tasks[0];
  ASSERT_EQ(task.shared_cycles.size(), 2u);
  EXPECT_EQ(task.predicted_on(1), task.predicted_cycles);
  EXPECT_LT(task.predicted_on(2), task.predicted_on(1));
  EXPECT_LT(task.predicted_on(3), task.predicted_on(2));
  EXPECT_EQ(task.predicted_on(9), task.predicted_on(3));
  EXPECT_NEAR(times_of(task, costs[0], chip, {}, 3)[0].compute * 3, times_of(task, costs[0], chip, {}, 1)[0].compute, 1e-9);
  EXPECT_EQ(format::core_share(240, 3, 0), 1.0 / 3);
  EXPECT_EQ(format::core_share(27, 2, 0), 13.0 / 27) << "48.1 % and 51.9 % in the vendor's table";
  EXPECT_EQ(format::core_share(27, 2, 1), 14.0 / 27);
  EXPECT_EQ(format::core_share(5, 3, 0) + format::core_share(5, 3, 1) + format::core_share(5, 3, 2), 1);
  // Fewer parts than cores: the first work, and the time is theirs.
  for (uint32_t core = 0; core < 3; ++core) {
    EXPECT_EQ(format::core_share(1, 3, core), core < 1 ? 1 : 0) << core;
    EXPECT_EQ(format::core_share(2, 3, core), core < 2 ? 0.5 : 0) << core;
    EXPECT_EQ(format::core_share(0, 3, core), 0) << core;
  }
  format::Task few = task;
  few.tiles = 1;
  for (uint32_t pieces : {1u, 2u, 3u, 240u}) {
    few.pieces = pieces;
    EXPECT_EQ(few.working_cores(3), std::min(pieces, 3u));
    EXPECT_EQ(few.tasks_on(3), std::min(pieces, 3u)) << "each core that works has a task";
    EXPECT_EQ(few.tasks_on(1), 1u);
    EXPECT_EQ(microseconds(few, costs[0], chip, {}, 3),
              microseconds(few, costs[0], chip, {}, static_cast<int>(std::min(pieces, 3u))));
  }
  few.tiles = 13;
  EXPECT_EQ(few.tasks_on(3), 13u);
  format::Program single = program_of(kRows[7]);
  single.tasks[0].core_mask = 1;
  predict(single, chip, ops::builtin_ops());
  EXPECT_TRUE(single.tasks[0].shared_cycles.empty());
  EXPECT_EQ(single.tasks[0].predicted_on(3), single.tasks[0].predicted_on(1));
}

TEST(Predict, NeighboursTakeBandwidth) {
  const platform::Platform& chip = *platform::find("rk3588");
  Step s;
  s.bytes = 1e8;
  EXPECT_NEAR(time_of(s, chip, {.neighbours = 2}).traffic, time_of(s, chip, {}).traffic * 3 / 1.6, 1);
}

TEST(Predict, MemoryOfTheChipSavesTraffic) {
  const platform::Platform& chip = *platform::find("rk3588");
  format::Program program = program_of(kRows[7]);
  program.buffers.resize(program.graph.tensor_count());
  const ir::Node& n = program.graph.node(program.tasks[0].node);
  const uint64_t bytes = 64 * 240 * 240;
  program.buffers[static_cast<size_t>(n.inputs[0].index)] = {format::Buffer::Place::Arena, 0, bytes};
  program.buffers[static_cast<size_t>(n.output(0).index)] = {format::Buffer::Place::Arena, bytes, bytes};
  const TaskCost without = cost_of(program, program.tasks[0], chip, ops::builtin_ops());
  const TaskCost with = cost_of(program, program.tasks[0], chip, ops::builtin_ops(), {.weights = {}, .on_chip_bytes = bytes / 2});
  EXPECT_EQ(without.steps[0].on_chip_bytes, 0);
  EXPECT_EQ(with.steps[0].on_chip_bytes, static_cast<double>(bytes / 2));
  EXPECT_EQ(with.steps[0].bytes, without.steps[0].bytes - static_cast<double>(bytes / 2));
  EXPECT_EQ(with.read_bytes, without.read_bytes) << "the vendor's column counts all";
  // The NPU's own buffer needs no asking where published speeds show that it holds features.
  const platform::Platform &buffered = *platform::find("rk3562"), &two_cores = *platform::find("rk3576");
  EXPECT_EQ(cost_of(program, program.tasks[0], buffered, ops::builtin_ops()).steps[0].on_chip_bytes,
            static_cast<double>(buffered.nbuf_bytes));
  EXPECT_EQ(cost_of(program, program.tasks[0], two_cores, ops::builtin_ops()).steps[0].on_chip_bytes, 0);
}

TEST(Predict, SparseAndCompressedWeights) {
  const format::Program program = program_of(kRows[7]);  // all weights are zero
  const platform::Platform &sparse_chip = *platform::find("rk3576"), &dense_chip = *platform::find("rk3588");
  const auto cost = [&](const platform::Platform& chip, WeightForms forms) {
    return cost_of(program, program.tasks[0], chip, ops::builtin_ops(), {.weights = forms});
  };
  EXPECT_EQ(cost(sparse_chip, {}).sparsity, format::Sparsity::None);
  const TaskCost sparse = cost(sparse_chip, {.sparse = true});
  EXPECT_EQ(sparse.sparsity, format::Sparsity::Both);
  EXPECT_EQ(sparse.steps[0].cycles * 4, cost(sparse_chip, {}).steps[0].cycles);
  EXPECT_EQ(cost(sparse_chip, {.assumed = format::Sparsity::Inputs}).steps[0].cycles * 2, cost(sparse_chip, {}).steps[0].cycles);
  EXPECT_EQ(sparse.weight_bytes, 64u * 9 * 64 / 4 + 8 * 64);
  EXPECT_EQ(cost(dense_chip, {.sparse = true}).sparsity, format::Sparsity::None);
  EXPECT_EQ(cost(dense_chip, {.compressed = true}).weight_bytes, 64u * 9 * 64 / 8 + 8 * 64) << "the mask and the bias are left";
  EXPECT_EQ(cost(sparse_chip, {.compressed = true}).weight_bytes, cost(sparse_chip, {}).weight_bytes) << "not offered there";
}

TEST(Predict, LyingSizesSaturate) {
  Window w;
  w.in_channels = w.out_channels = int64_t{1} << 40;
  w.kernel = {1 << 20, 1 << 20};
  w.in = w.out = {1, 1 << 30, 1 << 30, 1 << 30};
  EXPECT_GT(conv_work(platform::default_platform(), w, DType::Float16, false).macs, uint64_t{1} << 50);
}

}  // namespace
}  // namespace orknn::compile
