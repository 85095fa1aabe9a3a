// Every way a layer is cut to fit the convolution buffer, and what is read again for it.
#include "compile/tile.h"

#include <gtest/gtest.h>

namespace orknn::compile {
namespace {
using Resident = format::Tiling::Resident;

const platform::Platform& chip() { return *platform::find("rk3588"); }  // 12 banks of 32 KiB

Window square(int64_t in, int64_t out, int64_t side, int64_t kernel, int64_t stride = 1) {
  Window w;
  w.in_channels = in;
  w.out_channels = out;
  w.kernel = {kernel, kernel};
  w.stride = {stride, stride};
  w.in = {1, in, side, side};
  w.out = {1, out, side / stride, side / stride};
  return w;
}

void expect_fits(const platform::Platform& p, const TilePlan& plan) {
  EXPECT_GE(plan.tiling.data_banks, 1u);
  EXPECT_GE(plan.tiling.weight_banks, 1u);
  EXPECT_LE(plan.tiling.data_banks + plan.tiling.weight_banks, static_cast<uint32_t>(p.cbuf_banks));
}

TEST(Tile, EverythingFitsAtOnce) {
  const TilePlan plan = tile(chip(), square(64, 64, 20, 3), DType::Int8, 64 * 9 * 64);
  EXPECT_EQ(plan.tasks(), 1u);
  EXPECT_EQ(plan.tiling.resident, Resident::Both);
  EXPECT_EQ(plan.features_again + plan.weights_again, 0u);
  EXPECT_EQ(plan.tiling.data_banks, 1u);    // 25,600 bytes
  EXPECT_EQ(plan.tiling.weight_banks, 2u);  // 36,864 bytes
}

// 240 rows of 15,360 bytes beside two banks of kernels: 21 rows fit, 19 of them give results.
TEST(Tile, RowsPassByResidentKernels) {
  const TilePlan plan = tile(chip(), square(64, 64, 240, 3), DType::Int8, 64 * 9 * 64);
  EXPECT_EQ(plan.tiling.resident, Resident::Weights);
  EXPECT_EQ(plan.tiling.rows, 13u);
  EXPECT_EQ(plan.tasks(), 13u);
  EXPECT_EQ(plan.features_again, 12u * 2 * 240 * 64) << "neighbouring bands share two rows";
  EXPECT_EQ(plan.weights_again, 0u);
  expect_fits(chip(), plan);
}

// 2.25 MiB of kernels pass by a map of 50 KiB.
TEST(Tile, KernelsPassByResidentFeatures) {
  const TilePlan plan = tile(chip(), square(512, 512, 10, 3), DType::Int8, 512 * 9 * 512);
  EXPECT_EQ(plan.tiling.resident, Resident::Features);
  EXPECT_EQ(plan.tasks(), 1u);
  EXPECT_EQ(plan.features_again + plan.weights_again, 0u);
  expect_fits(chip(), plan);
}

// Neither fits: whichever is cheaper is read again.
TEST(Tile, TheCheaperSideIsReadAgain) {
  // 1.6 MB of features in 7 bands of rows, 590 KB of kernels for each.
  const TilePlan many_rows = tile(chip(), square(256, 256, 80, 3), DType::Int8, 256 * 9 * 256);
  EXPECT_EQ(many_rows.tiling.resident, Resident::Features);
  EXPECT_EQ(many_rows.tiling.rows, 7u);
  EXPECT_EQ(many_rows.weights_again, 6u * 256 * 9 * 256);
  expect_fits(chip(), many_rows);
  // 9.4 MB of kernels in 32 groups, 590 KB of features for each.
  const TilePlan many_kernels = tile(chip(), square(1024, 1024, 24, 3), DType::Int8, 1024 * 9 * 1024);
  EXPECT_EQ(many_kernels.tiling.resident, Resident::Weights);
  EXPECT_EQ(many_kernels.tiling.kernels, 32u);
  EXPECT_EQ(many_kernels.weights_again, 0u);
  EXPECT_GE(many_kernels.features_again, 31u * 1024 * 24 * 24);
  expect_fits(chip(), many_kernels);
}

// Three rows of 4,000 pixels and 512 channels are 6 MB.
TEST(Tile, ColumnsAreCutWhenNoRowFits) {
  Window w = square(512, 64, 4000, 3);
  w.in.h = w.out.h = 8;
  const TilePlan plan = tile(chip(), w, DType::Int8, 64 * 9 * 512);
  EXPECT_GT(plan.tiling.columns, 8u);
  EXPECT_GE(plan.tasks(), plan.tiling.columns);
  EXPECT_GT(plan.features_again, 0u);
  expect_fits(chip(), plan);
}

// 32 kernels of 25,088 inputs are 784 KiB: the inputs are cut into segments whose sums are added up.
TEST(Tile, InputsAreCutWhenNoGroupOfKernelsFits) {
  Window w = square(25088, 4096, 1, 1);
  const TilePlan plan = tile(chip(), w, DType::Int8, 25088ull * 4096);
  EXPECT_EQ(plan.tiling.channels, 3u);
  EXPECT_GE(plan.features_again, 2u * 4096 * 8);
  expect_fits(chip(), plan);
}

// Channels of a depthwise convolution have nothing to do with each other: cutting them costs nothing.
TEST(Tile, DepthwiseIsCutByChannels) {
  Window w = square(2048, 2048, 200, 3);
  w.depthwise = true;
  w.group = 2048;
  const TilePlan plan = tile(chip(), w, DType::Int8, 2048 * 9);
  EXPECT_GT(plan.tiling.kernels, 1u);
  EXPECT_EQ(plan.tiling.columns, 1u);
  EXPECT_EQ(plan.weights_again, 0u);
  expect_fits(chip(), plan);
}

TEST(Tile, SmallerBuffersMakeMoreTasks) {
  const Window w = square(64, 64, 160, 3);
  EXPECT_GT(tile(*platform::find("rk3566"), w, DType::Int8, 64 * 9 * 64).tasks(),
            tile(chip(), w, DType::Int8, 64 * 9 * 64).tasks());
  EXPECT_GT(tile(chip(), w, DType::Float16, 2 * 64 * 9 * 64).tasks(), tile(chip(), w, DType::Int8, 64 * 9 * 64).tasks());
}

TEST(Tile, EveryImageOfABatchIsItsOwn) {
  Window w = square(512, 512, 10, 3);
  w.in.n = w.out.n = 4;
  const TilePlan plan = tile(chip(), w, DType::Int8, 512 * 9 * 512);
  EXPECT_EQ(plan.tasks(), 4u);
  EXPECT_EQ(plan.weights_again, 3ull * 512 * 9 * 512) << "kernels that pass by do so for every image";
}

TEST(Tile, LyingSizesEnd) {
  Window w = square(int64_t{1} << 40, int64_t{1} << 40, int64_t{1} << 30, 1 << 20);
  for (bool depthwise : {false, true}) {
    w.depthwise = depthwise;
    w.group = depthwise ? w.in_channels : 1;
    EXPECT_GE(tile(chip(), w, DType::Float16, uint64_t{1} << 60).tasks(), 1u);
  }
  EXPECT_EQ(tile(chip(), Window{}, DType::Int8, 0).tasks(), 1u);
}

}  // namespace
}  // namespace orknn::compile
