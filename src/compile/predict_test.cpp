// Rows of published layer tables: traffic, array cycles and bytes of the vendor's own per-layer tables.
#include "compile/predict.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orknn::compile {
namespace {

struct Row {
  const char* name;
  DType type;
  int64_t kernel, stride, in, out, height_in, width_in, height_out, width_out;
  bool depthwise, first;
  uint64_t array_cycles;
  uint64_t ddr_cycles;
  double ddr_bytes_per_cycle;
};

constexpr DType I = DType::Int8, F = DType::Float16;
const Row kRows[] = {
    {"stem, 1920", I, 3, 2, 3, 16, 1920, 1920, 960, 960, false, true, 8294400, 1091036, 23.654},
    {"3x3 s2 16->32", I, 3, 2, 16, 32, 960, 960, 480, 480, false, false, 2073600, 935287, 23.654},
    {"1x1 32->32", I, 1, 1, 32, 32, 480, 480, 480, 480, false, false, 921600, 623442, 23.654},
    {"3x3 16->16", I, 3, 1, 16, 16, 480, 480, 480, 480, false, false, 2073600, 311802, 23.654},
    {"1x1 48->32", I, 1, 1, 48, 32, 480, 480, 480, 480, false, false, 921600, 779310, 23.654},
    {"3x3 s2 32->64", I, 3, 2, 32, 64, 480, 480, 240, 240, false, false, 1036800, 468342, 23.654},
    {"1x1 128->64", I, 1, 1, 128, 64, 240, 240, 240, 240, false, false, 460800, 467909, 23.654},
    {"3x3 64->64 @240", I, 3, 1, 64, 64, 240, 240, 240, 240, false, false, 2073600, 313274, 23.654},
    {"1x1 64->64 @240", I, 1, 1, 64, 64, 240, 240, 240, 240, false, false, 460800, 311889, 23.654},
    {"3x3 64->64 @120", I, 3, 1, 64, 64, 120, 120, 120, 120, false, false, 518400, 79504, 23.654},
    {"3x3 128->128 @60", I, 3, 1, 128, 128, 60, 60, 60, 60, false, false, 518400, 45239, 23.654},
    {"1x1 512->256 @60", I, 1, 1, 512, 256, 60, 60, 60, 60, false, false, 460800, 122513, 23.654},
    {"3x3 s2 128->256 -> 60x34", I, 3, 2, 128, 256, 120, 68, 60, 34, false, false, 589824, 155801, 11.962},
    {"1x1 256->512 @20", I, 1, 1, 256, 512, 20, 20, 20, 20, false, false, 51200, 14962, 29.568},
    {"depthwise 256 @20", I, 3, 1, 256, 256, 20, 20, 20, 20, true, false, 14400, 7074, 29.568},
    {"depthwise 128 @40", I, 3, 1, 128, 128, 40, 40, 40, 40, true, false, 28800, 13927, 29.568},
    {"fp16 3x3 64->64", F, 3, 1, 64, 64, 258, 258, 256, 256, false, false, 4718592, 717967, 23.654},
    {"fp16 depthwise 7x7 s7", F, 7, 7, 128, 128, 256, 256, 37, 37, true, false, 134848, 724645, 23.654},
    {"fully connected 3072->10", I, 1, 1, 3072, 10, 1, 1, 1, 1, false, false, 1536, 1441, 23.654},
};

TEST(Predict, WorkedRowsOfTheGuide) {
  const platform::Platform& chip = *platform::find("rk3588");
  for (const Row& r : kRows) {
    SCOPED_TRACE(r.name);
    Window w;
    w.depthwise = r.depthwise;
    w.group = r.depthwise ? r.in : 1;
    w.in_channels = r.in;
    w.out_channels = r.out;
    w.kernel = {r.kernel, r.kernel};
    w.stride = {r.stride, r.stride};
    w.in = {1, r.in, r.height_in, r.width_in};
    w.out = {1, r.out, r.height_out, r.width_out};
    const ConvWork work = conv_work(chip, w, r.type, r.first);
    EXPECT_EQ(work.array_cycles, r.array_cycles);
    const int64_t in[] = {1, r.in, r.height_in, r.width_in}, out[] = {1, r.out, r.height_out, r.width_out};
    const uint64_t bytes = traffic_bytes(chip, r.type, in, r.first) + traffic_bytes(chip, r.type, out) + work.weight_bytes;
    const double cycles = std::ceil(static_cast<double>(bytes) / r.ddr_bytes_per_cycle);
    // Rows with few output channels deviate by a few hundred bytes in the source too.
    EXPECT_NEAR(cycles, static_cast<double>(r.ddr_cycles), r.out < 16 ? 25 : 0);
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

TEST(Predict, BandsAppearWhenTheBufferOverflows) {
  const platform::Platform& chip = *platform::find("rk3588");
  Window w;
  w.in_channels = w.out_channels = 64;
  w.kernel = {3, 3};
  w.in = w.out = {1, 64, 20, 20};
  EXPECT_EQ(row_bands(chip, w, DType::Int8, 64 * 9 * 64), 1u);
  w.in = w.out = {1, 64, 240, 240};
  const uint32_t bands = row_bands(chip, w, DType::Int8, 64 * 9 * 64);
  EXPECT_GT(bands, 10u);
  EXPECT_LT(bands, 15u);
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
