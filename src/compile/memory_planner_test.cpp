// The addresses in published memory tables of the vendor's tool, and the rules they follow.
#include "compile/memory_planner.h"

#include <gtest/gtest.h>

#include <string>

#include "compile/plan_memory.h"

namespace orknn::compile {
namespace {

struct Published {
  const char* tensor;
  uint64_t offset, bytes;
  // The shape the size follows from, 0 = not stated: channels, side of the map, what made it.
  int64_t channels = 0, side = 0;
  Producer producer = Producer::Conv;
};
constexpr Producer kDepthwise = Producer::Depthwise, kConv = Producer::Conv;

// Chains: tensor i is written at step i and read at step i + 1.
std::vector<BufferRequest> chain(std::span<const Published> rows) {
  std::vector<BufferRequest> requests;
  for (size_t i = 0; i < rows.size(); ++i)
    requests.push_back({rows[i].bytes, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1});
  return requests;
}

void expect_published(std::span<const Published> rows, uint64_t total) {
  const MemoryPlan plan = first_fit_planner()->plan(chain(rows));
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(plan.offsets[i], rows[i].offset) << rows[i].tensor;
  EXPECT_EQ(plan.total_bytes, total);
}

constexpr Published kAnchorA[] = {
    {"input0", 0x0, 0x24c00, 3, 224, Producer::Cpu},     {"output2", 0x24c00, 0x62000, 32, 112, kConv},
    {"output4", 0x86c00, 0xc4000, 32, 112, kDepthwise},  {"output6", 0x14ac00, 0xc4000, 64, 112, kConv},
    {"output8", 0x0, 0x31000, 64, 56, kDepthwise},       {"output10", 0x31000, 0x62000, 128, 56, kConv},
    {"output12", 0x93000, 0x62000, 128, 56, kDepthwise}, {"output14", 0x0, 0x62000, 128, 56, kConv},
    {"output16", 0x62000, 0x18800, 128, 28, kDepthwise}, {"output18", 0x0, 0x31000, 256, 28, kConv},
    {"output20", 0x31000, 0x31000, 256, 28, kDepthwise}, {"output22", 0x0, 0x31000, 256, 28, kConv},
    {"output24", 0x31000, 0xc400, 256, 14, kDepthwise},  {"output26", 0x0, 0x18800, 512, 14, kConv},
    {"output28", 0x18800, 0x18800, 512, 14, kDepthwise}, {"output30", 0x0, 0x18800, 512, 14, kConv},
    {"output32", 0x18800, 0x18800, 512, 14, kDepthwise}, {"output34", 0x0, 0x18800, 512, 14, kConv},
    {"output36", 0x18800, 0x18800, 512, 14, kDepthwise}, {"output38", 0x0, 0x18800, 512, 14, kConv},
    {"output40", 0x18800, 0x18800, 512, 14, kDepthwise}, {"output42", 0x0, 0x18800, 512, 14, kConv},
    {"output44", 0x18800, 0x18800, 512, 14, kDepthwise}, {"output46", 0x0, 0x18800, 512, 14, kConv},
    {"output48", 0x18800, 0x6800, 512, 7, kDepthwise},   {"output50", 0x0, 0xd000, 1024, 7, kConv},
    {"output52", 0xd000, 0xd000, 1024, 7, kDepthwise},   {"output54", 0x0, 0xd000, 1024, 7, kConv},
    {"output55", 0xd000, 0x400, 1024, 1, kConv},         {"output56", 0x0, 0x400, 1000, 1, kConv},
};

TEST(FirstFitPlanner, AnchorA) { expect_published(kAnchorA, 2157568); }

TEST(FirstFitPlanner, AnchorB) {
  std::vector<Published> rows = {
      {"input", 0x0, 0x24c00},   {"conv0", 0x24c00, 0x62000}, {"dw1", 0x86c00, 0x62000}, {"pw1", 0xe8c00, 0xc4000},
      {"dw2", 0x0, 0x3d400},     {"pw2", 0x3d400, 0x62000},   {"dw3", 0x9f400, 0x6e400}, {"pw3", 0x0, 0x62000},
      {"dw4", 0x62000, 0x1b900}, {"pw4", 0x0, 0x31000},       {"dw5", 0x31000, 0x31000}, {"pw5", 0x0, 0x31000},
      {"dw6", 0x31000, 0xc400},
  };
  for (int i = 0; i < 11; ++i) rows.push_back({"pw6 to pw11", i % 2 ? 0x18800u : 0x0u, 0x18800});
  rows.insert(rows.end(), {{"dw12", 0x18800, 0x6800},
                           {"pw12", 0x0, 0xd000},
                           {"dw13", 0xd000, 0xd000},
                           {"pw13", 0x0, 0xd000},
                           {"global pool", 0xd000, 0x400},
                           {"logits int8", 0x0, 0x3f0},
                           {"logits fp16", 0x400, 0x7e0}});
  expect_published(rows, 1756160);
}

// mobilenet_v2 of the 2.x tools, where the input has memory of its own: 0x62000 + 0x126000.
TEST(FirstFitPlanner, InputOutsideTheArena) {
  const BufferRequest requests[] = {{0x62000, 0, 1}, {0x126000, 1, 2}};
  EXPECT_EQ(first_fit_planner()->plan(requests).total_bytes, 1605632u);
}

TEST(FirstFitPlanner, LongLivedBuffersKeepTheirPlace) {
  const BufferRequest requests[] = {{100, 0, 5}, {64, 1, 2}, {64, 2, 3}, {64, 3, 4}, {1000, 4, 5}, {0, 4, 4}, {64, 6, 6}};
  const MemoryPlan plan = first_fit_planner()->plan(requests);
  EXPECT_EQ(plan.offsets, (std::vector<uint64_t>{0, 128, 192, 128, 192, 0, 0}));
  EXPECT_EQ(plan.total_bytes, 1192u);
}

TEST(LinearPlanner, SharesNothing) {
  const MemoryPlan plan = linear_planner()->plan(chain(kAnchorA));
  for (size_t i = 1; i < plan.offsets.size(); ++i) EXPECT_GE(plan.offsets[i], plan.offsets[i - 1] + kAnchorA[i - 1].bytes);
}

// Every size of anchor A follows from the shape, the producer and the chip.
TEST(NativeBytes, AnchorAFromShapes) {
  const platform::Platform& chip = *platform::find("rk3588");
  for (const Published& row : kAnchorA) {
    const int64_t dims[] = {1, row.channels, row.side, row.side};
    EXPECT_EQ(native_bytes(chip, DType::Int8, dims, row.producer), row.bytes) << row.tensor;
  }
  const int64_t narrow[] = {1, 16, 10, 10};
  EXPECT_EQ(native_bytes(chip, DType::Int8, narrow, Producer::Conv), 3200u) << "16 channels made by a convolution occupy 32";
}

// Anchor B: sizes of the chip with narrower alignments. Three depthwise results have a block of channels more in the log, for no
// known reason.
TEST(NativeBytes, AnchorBFromShapes) {
  const platform::Platform& chip = *platform::find("rv1106");
  const auto size = [&](int64_t channels, int64_t side, Producer producer) {
    const int64_t dims[] = {1, channels, side, side};
    return native_bytes(chip, DType::Int8, dims, producer);
  };
  EXPECT_EQ(size(32, 112, kConv), 0x62000u);
  EXPECT_EQ(size(32, 112, kDepthwise), 0x62000u);
  EXPECT_EQ(size(64, 112, kConv), 0xc4000u);
  EXPECT_EQ(size(128, 56, kConv), 0x62000u);
  EXPECT_EQ(size(256, 28, kConv), 0x31000u);
  EXPECT_EQ(size(256, 28, kDepthwise), 0x31000u);
  EXPECT_EQ(size(256, 14, kDepthwise), 0xc400u);
  EXPECT_EQ(size(512, 14, kConv), 0x18800u);
  EXPECT_EQ(size(512, 7, kDepthwise), 0x6800u);
  EXPECT_EQ(size(1024, 7, kDepthwise), 0xd000u);
  EXPECT_EQ(size(1024, 1, kConv), 0x400u);
  EXPECT_EQ(size(1001, 1, kConv), 0x3f0u);
}

TEST(NativeBytes, NeverSmallerThanDenseAndNeverOverflows) {
  for (const platform::Platform& chip : platform::all())
    for (DType t : {DType::Int8, DType::Float16, DType::Float32, DType::Float64, DType::Int64, DType::Bool})
      for (Producer p : {Producer::Conv, Producer::Depthwise, Producer::Other, Producer::Cpu}) {
        const int64_t dims[] = {2, 5, 3, 7};
        EXPECT_GE(native_bytes(chip, t, dims, p).value(), 210 * dtype_bytes(t)) << chip.name;
      }
  const int64_t huge[] = {1 << 20, 1 << 20, 1 << 20, 1 << 20};
  EXPECT_FALSE(native_bytes(platform::default_platform(), DType::Float32, huge, Producer::Other));
  const int64_t empty[] = {1 << 20, 0, 1 << 20, 1 << 20};
  EXPECT_EQ(native_bytes(platform::default_platform(), DType::Float32, empty, Producer::Conv), 0u);
}

}  // namespace
}  // namespace orknn::compile
