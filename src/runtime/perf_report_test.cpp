// The memory totals that the vendor printed for a known network and the form of the performance tables.
#include "runtime/perf_report.h"

#include <gtest/gtest.h>

#include <map>

#include "format/viewer_part.h"

namespace orknn::runtime {
namespace {

// mobilenet_v1 with 524288 bytes of SRAM: [start, size) of the internal tensors in the order of the report.
constexpr MemoryBlock kAnchorA[] = {
    {0x24c00, 0x62000}, {0x86c00, 0xc4000}, {0x14ac00, 0xc4000}, {0x0, 0x31000},     {0x31000, 0x62000}, {0x93000, 0x62000},
    {0x0, 0x62000},     {0x62000, 0x18800}, {0x0, 0x31000},      {0x31000, 0x31000}, {0x0, 0x31000},     {0x31000, 0xc400},
    {0x0, 0x18800},     {0x18800, 0x18800}, {0x0, 0x18800},      {0x18800, 0x18800}, {0x0, 0x18800},     {0x18800, 0x18800},
    {0x0, 0x18800},     {0x18800, 0x18800}, {0x0, 0x18800},      {0x18800, 0x18800}, {0x0, 0x18800},     {0x18800, 0x6800},
    {0x0, 0xd000},      {0xd000, 0xd000},   {0x0, 0xd000},       {0xd000, 0x400},    {0x0, 0x400},
};

TEST(MemoryTotals, AnchorA) {
  const MemoryTotals totals = memory_totals(kAnchorA, 150528, 4000, 524288);
  EXPECT_EQ(totals.internal_bytes, 2157568u);
  EXPECT_EQ(totals.internal_traffic, 11068320u);
  EXPECT_EQ(totals.sram_traffic, 6688768u);
  // The SramHit column: a few straddle the end of the SRAM or lie after it, all others are inside.
  const std::map<size_t, uint64_t> partly{{0, 0x5b400}, {1, 0}, {2, 0}, {4, 0x4f000}, {5, 0}};
  for (size_t i = 0; i < std::size(kAnchorA); ++i)
    EXPECT_EQ(sram_hit(kAnchorA[i], 524288), partly.contains(i) ? partly.at(i) : kAnchorA[i].bytes) << i;
}

// The small chips: the input and the internal tensors as logged; how the log counts the conversion of the logits is not known.
TEST(MemoryTotals, AnchorB) {
  std::vector<MemoryBlock> blocks = {
      {0x24c00, 0x62000}, {0x86c00, 0x62000}, {0xe8c00, 0xc4000}, {0x0, 0x3d400},     {0x3d400, 0x62000}, {0x9f400, 0x6e400},
      {0x0, 0x62000},     {0x62000, 0x1b900}, {0x0, 0x31000},     {0x31000, 0x31000}, {0x0, 0x31000},     {0x31000, 0xc400},
  };
  for (int i = 0; i < 11; ++i) blocks.push_back({i % 2 ? 0x18800u : 0x0u, 0x18800});
  blocks.insert(blocks.end(), {{0x18800, 0x6800}, {0x0, 0xd000}, {0xd000, 0xd000}, {0x0, 0xd000}, {0xd000, 0x400}, {0x0, 0x3f0}});
  const MemoryTotals totals = memory_totals(blocks, 0x24c00, 0x7e0, 0);
  EXPECT_EQ(totals.internal_bytes, 1756160u);
  EXPECT_NEAR(static_cast<double>(totals.internal_traffic), 10570545, 10570545 * 0.01);
}

// A convolution and an operator of the CPU, made for the chip of the published tables.
format::Model sample(std::string chip) {
  format::Model model;
  model.target_platform = std::move(chip);
  format::Program program;
  ir::Graph& g = program.graph;
  const std::vector<int64_t> in{1, 3, 8, 8}, out{1, 4, 8, 8};
  const ir::TensorId x = g.add_tensor("x", DType::Int8, ir::to_shape(in));
  const ir::TensorId w = g.add_constant("w", ir::TensorData::zeros(DType::Int8, {4, 3, 3, 3}));
  const ir::NodeId conv = g.add_node("Conv", "first", {x, w});
  const ir::TensorId y = g.node(conv).output(0);
  const ir::NodeId erf = g.add_node("Erf", "second", {y});
  for (ir::TensorId t : {y, g.node(erf).output(0)}) {
    g.tensor(t).dtype = DType::Int8;
    g.tensor(t).shape = ir::to_shape(out);
  }
  g.inputs() = {x};
  g.outputs() = {g.node(erf).output(0)};
  format::Task first, second;
  first.node = conv;
  first.device = format::Device::Npu;
  first.predicted_cycles = 100'000;
  first.array_cycles = 2304;
  first.ddr_cycles = 100;
  first.macs = 6912;
  first.read_bytes = 2048;
  first.weight_bytes = 640;
  second.node = erf;
  second.predicted_cycles = 50'000;
  program.tasks = {first, second};
  program.buffers.resize(g.tensor_count());
  program.buffers[static_cast<size_t>(x.index)] = {format::Buffer::Place::External, 0, 192};
  program.buffers[static_cast<size_t>(y.index)] = {format::Buffer::Place::Arena, 0, 2048};
  program.buffers[static_cast<size_t>(g.node(erf).output(0).index)] = {format::Buffer::Place::External, 0, 256};
  program.inputs = {{.tensor = x, .mean = {}, .std = {}}};
  program.outputs = {{.tensor = g.outputs()[0], .mean = {}, .std = {}}};
  program.arena_bytes = 2048;
  model.programs.push_back(std::move(program));
  return model;
}

TEST(PerfReport, TablesOfAMultiCoreChip) {
  const format::Model model = sample("rk3588");
  EXPECT_DOUBLE_EQ(predicted_microseconds(model).value(), 150);
  const auto rows = layer_rows(model, false);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].type, "InputOperator");
  EXPECT_EQ(rows[1].microseconds, 100u);
  EXPECT_EQ(rows[0].load.size() + rows[2].load.size(), 0u) << "not the NPU's";
  EXPECT_EQ(rows[3].type, "OutputOperator");
  const std::string text = perf_table(model);
  for (const char* part :
       {"Network Layer Information Table", "Cycles(DDR/NPU/Total)", "100/2304/2304", "WorkLoad(0/1/2)", "100.0%/0.0%/0.0%",
        "(1,3,8,8),(4,3,3,3)", "Conv:first",
        "Total Memory Read/Write Per Frame Size(KB): ", "Operator Time Consuming Ranking Table", "TimeRatio(%)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // A client takes what follows the last "Time(us): " up to the line end.
  const size_t at = text.rfind("Time(us): ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.substr(at + 10, text.find('\n', at) - at - 10), "230") << "10 + 160 + 50 + 10";
  EXPECT_NE(clocks_text(platform::find("rk3588")).find("NPU Current Frequency List:\n    - 1000000000\n"), std::string::npos);
}

TEST(PerfReport, OneCoreAndUnknownChips) {
  EXPECT_EQ(perf_table(sample("rk3562")).find("WorkLoad"), std::string::npos);
  EXPECT_FALSE(predicted_microseconds(sample("rv1103b")));
  const std::string unknown = perf_table(sample("rv1103b"));
  EXPECT_NE(unknown.find("Total Operator Elapsed Per Frame Time(us): Unknown\n"), std::string::npos) << unknown;
  for (const LayerRow& row : layer_rows(sample("rv1103b"), true)) EXPECT_FALSE(row.microseconds);
  EXPECT_NE(clocks_text(platform::find("rv1103b")).find("Unknown"), std::string::npos);
  EXPECT_NE(unknown.find(" \\/\\/\\ "), std::string::npos) << "neither clocks nor the array are published\n" << unknown;
  EXPECT_EQ(unknown.find("2304"), std::string::npos) << unknown;
  EXPECT_NE(why_no_time(sample("rv1103b")).find("speed of rv1103b is not published"), std::string::npos);
  // Known array, unknown memory.
  EXPECT_NE(perf_table(sample("rv1126b")).find(" \\/2304/\\ "), std::string::npos);
}

// A float model on a chip that multiplies in integers only: no time instead of one for the reference kernels.
TEST(PerfReport, LayersThatAChipCannotCompute) {
  format::Model model = sample("rv1106");
  EXPECT_TRUE(predicted_microseconds(model));
  model.programs[0].tasks[0].device = format::Device::Cpu;
  EXPECT_FALSE(predicted_microseconds(model));
  EXPECT_NE(why_no_time(model).find("rv1106 cannot compute 'first' (Conv) in int8"), std::string::npos) << why_no_time(model);
  model.target_platform = "rk3588";
  EXPECT_TRUE(predicted_microseconds(model)) << "its CPU multiplies too";
}

// SRAM takes traffic off the memory, and time with it.
TEST(PerfReport, SramShortensTheTime) {
  format::Model model = sample("rk3588");
  format::Task& conv = model.programs[0].tasks[0];
  conv.engine = ir::Engine::Conv;
  conv.predicted_cycles = 300'000;
  conv.read_bytes = 2'000'000;
  const double without = predicted_microseconds(model).value(), half = predicted_microseconds(model, 1, 1024).value(),
               whole = predicted_microseconds(model, 1, 4096).value();
  EXPECT_LT(half, without);
  EXPECT_LT(whole, half);
  EXPECT_GT(whole, without / 3) << "the array takes its time all the same";
  model.programs[0].buffers[static_cast<size_t>(model.programs[0].graph.node(conv.node).output(0).index)].offset = 1 << 20;
  EXPECT_EQ(predicted_microseconds(model, 1, 4096).value(), without) << "nothing lies in the SRAM";
}

// A layer that three cores share, in a table made for three cores.
TEST(PerfReport, CoresOfTheMask) {
  format::Model model = sample("rk3588");
  format::Task& conv = model.programs[0].tasks[0];
  conv.core_mask = 7;
  conv.pieces = 8;
  conv.shared_cycles = {60'000, 40'000};
  EXPECT_DOUBLE_EQ(predicted_microseconds(model, 3).value(), 90);
  EXPECT_DOUBLE_EQ(predicted_microseconds(model, 2).value(), 110);
  EXPECT_DOUBLE_EQ(predicted_microseconds(model).value(), 150);
  const std::string text = perf_table(model, 3);
  EXPECT_NE(text.find("25.0%/37.5%/37.5%"), std::string::npos) << text;
  EXPECT_NE(text.find("0.0%/0.0%/0.0%"), std::string::npos) << text;
  EXPECT_NE(perf_table(model, 2).find("50.0%/50.0%/0.0%"), std::string::npos);
  EXPECT_EQ(layer_rows(model, false, 3)[1].tasks, 3u) << "one for each core";
  EXPECT_EQ(layer_rows(model, false, 1)[1].tasks, 1u);
  // 6912 MACs in 100 us (40 and 60 for measuring) of three cores.
  EXPECT_NE(text.find(" 0.00/0.00/0.00 "), std::string::npos) << text;
  conv.pieces = 1;
  EXPECT_NE(perf_table(model, 3).find("100.0%/0.0%/0.0%"), std::string::npos) << "one part for one core";
  EXPECT_EQ(layer_rows(model, false, 3)[1].tasks, 1u);
  conv.pieces = 2;
  EXPECT_NE(perf_table(model, 3).find("50.0%/50.0%/0.0%"), std::string::npos);
}

// Integer layers have the names of what they compute, and their tables are no inputs.
TEST(PerfReport, NamesOfIntegerLayers) {
  const auto type = [](std::string op, std::vector<std::string> fused) {
    ir::Node n;
    n.op = std::move(op);
    if (!fused.empty()) n.attributes.set("fused", std::move(fused));
    return format::viewer_node_type(n);
  };
  EXPECT_EQ(type("int:Conv", {}), "Conv");
  EXPECT_EQ(type("int:Conv", {"Add", "Relu"}), "ConvAddRelu");
  EXPECT_EQ(type("int:Conv", {"Swish"}), "ConvExSwish");
  EXPECT_EQ(type("int:Table", {"Swish"}), "exSwish");
  EXPECT_EQ(type("int:Table", {}), "exDataConvert");
  EXPECT_EQ(type("int:ReduceMean", {"GlobalAveragePool"}), "GlobalAveragePool");
  EXPECT_EQ(type("int:MatMul", {}), "MatMul");

  format::Model model = sample("rk3588");
  ir::Graph& g = model.programs[0].graph;
  const ir::NodeId conv = model.programs[0].tasks[0].node;
  ir::Node n = g.node(conv);
  n.op = "int:Conv";
  n.inputs.insert(n.inputs.end(),
                  {ir::TensorId{}, ir::TensorId{}, g.add_constant("table", ir::TensorData::zeros(DType::Int8, {4096}))});
  g.replace_node(conv, std::move(n));
  model.programs[0].buffers.resize(g.tensor_count());
  EXPECT_EQ(layer_rows(model, false)[1].inputs, "(1,3,8,8),(4,3,3,3)");
}

TEST(PerfReport, SparseColumn) {
  format::Model model = sample("rk3576");
  EXPECT_EQ(perf_table(model).find("SparseRation"), std::string::npos);
  model.programs[0].tasks[0].sparsity = format::Sparsity::Outputs;
  EXPECT_NE(perf_table(model).find("SparseRation"), std::string::npos);
  EXPECT_NE(perf_table(model).find("50%(OC)"), std::string::npos);
}

// Toolkit1's simulator counts with 800 MHz where the board has 792.
TEST(PerfReport, ClockOfTheSimulator) {
  EXPECT_EQ(platform::find("rk1808")->report_hz(), 800'000'000);
  EXPECT_EQ(platform::find("rv1126")->report_hz(), platform::find("rv1126")->npu_hz);
  EXPECT_DOUBLE_EQ(predicted_microseconds(sample("rk1808")).value(), 150'000 / 800.0);
}

TEST(PerfReport, MemoryTable) {
  const std::string text = memory_table(sample("rk3588"), 1024);
  for (const char* part : {"Total Weight Memory Size: 640", "Total Internal Memory Size: 2048",
                           "Predict SRAM Hit RW Amount: 2048", "SramHit", "(1,2,8,8,16)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(memory_table(sample("rk3588"), 0).find("SramHit"), std::string::npos);
  // A block of whole granules, no larger than what lies in it.
  EXPECT_NE(text.find("Total allocated Internal SRAM Size: 1024, "), std::string::npos) << text;
  EXPECT_NE(
      memory_table(sample("rk3588"), 978944).find("Total allocated Internal SRAM Size: 4096, Addr: [0x00000000, 0x00001000)"),
      std::string::npos);
  EXPECT_EQ(sram_block(4097, 978944), 8192u);
  EXPECT_EQ(sram_block(4096, 978944), 4096u);
  EXPECT_EQ(sram_block(0, 978944), 0u);
  EXPECT_EQ(sram_block(UINT64_MAX, 978944), 978944u);
  // The picture as it is, the mark of the tensor that ends highest, the output, and the constants.
  for (const char* part : {"(1,1,8,8,3)", "0x00000000*", "OutputOperator", "Const Tensor Information Table", "(4,3,3,3)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(text.find("0x00000280", text.find("Const Tensor")), std::string::npos) << "640 bytes of weights\n" << text;
}

}  // namespace
}  // namespace orknn::runtime
