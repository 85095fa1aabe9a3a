// Rows of published layer tables: traffic, array cycles and bytes of the vendor's own per-layer tables.
#include "compile/predict.h"

#include <gtest/gtest.h>

#include <cmath>

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
    {"3x3 s2 128->256 -> 60x34", I, 3, 2, 128, 256, 120, 68, 60, 34, false, false, 589824, 155801, 1310, 1000, 1068, 897, 21.83, 3},
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
    EXPECT_NEAR(100 * static_cast<double>(task.macs) / (chip.macs_per_cycle(r.type) * static_cast<double>(r.npu_mhz) * r.us * r.cores), r.usage, 0.005);
  }
}

// The row "fp16 matmul as conv, 768->2304, 1x512": no bias.
TEST(Predict, MatMulIsAConvolutionOverItsRows) {
  const platform::Platform& chip = *platform::find("rk3588");
  const ConvWork work = mat_mul_work(chip, 1, 512, 768, 2304, DType::Float16);
  EXPECT_EQ(work.array_cycles, 1769472u);
  const double bytes = static_cast<double>(work.weight_bytes + 2 * 512 * (768 + 2304));
  EXPECT_EQ(std::ceil(bytes / chip.ddr_bytes_per_cycle()), 282603);
}

// The rows "Add, 16 ch @480" and "Concat 3 x 16 ch @480": every operand, no array.
TEST(Predict, ElementwiseRowsCountTheirOperands) {
  const platform::Platform& chip = *platform::find("rk3588");
  const int64_t map[] = {1, 16, 480, 480}, joined[] = {1, 48, 480, 480};
  const auto cycles = [&](uint64_t bytes) { return std::ceil(static_cast<double>(bytes) / chip.ddr_bytes_per_cycle()); };
  const uint64_t one = traffic_bytes(chip, DType::Int8, map);
  EXPECT_EQ(cycles(3 * one), 467541);
  EXPECT_EQ(2 * one / 1024, 7200u);
  EXPECT_EQ(cycles(3 * one + traffic_bytes(chip, DType::Int8, joined)), 935081);
  EXPECT_EQ(3 * one / 1024, 10800u);
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
  EXPECT_EQ(cost_of(program, program.tasks[0], buffered, ops::builtin_ops()).steps[0].on_chip_bytes, static_cast<double>(buffered.nbuf_bytes));
  EXPECT_EQ(cost_of(program, program.tasks[0], two_cores, ops::builtin_ops()).steps[0].on_chip_bytes, 0);
}

TEST(Predict, SparseAndCompressedWeights) {
  const format::Program program = program_of(kRows[7]);  // all weights are zero
  const platform::Platform &sparse_chip = *platform::find("rk3576"), &dense_chip = *platform::find("rk3588");
  const auto cost = [&](const platform::Platform& chip, WeightForms forms) { return cost_of(program, program.tasks[0], chip, ops::builtin_ops(), {.weights = forms}); };
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
