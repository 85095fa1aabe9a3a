#include "silicon/layout.h"

#include <gtest/gtest.h>

#include <cstring>

namespace orknn::silicon {
namespace {

TEST(Layout, CubesHoldAtomsOfSixteenBytes) {
  const Cube cube{2, 3, 18, Precision::Int8};
  EXPECT_EQ(cube.planes(), 2);
  EXPECT_EQ(cube.bytes(), 2 * 2 * 3 * 16);
  std::vector<int8_t> tensor(2 * 3 * 18);
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<int8_t>(i);
  std::vector<std::byte> packed(static_cast<size_t>(cube.bytes()));
  pack_cube(cube, TensorOrder::Hwc, tensor.data(), packed, -5);
  // Row 1, column 2, channel 17: second plane, its last pixel, lane 1.
  EXPECT_EQ(static_cast<int8_t>(packed[96 + 5 * 16 + 1]), tensor[5 * 18 + 17]);
  EXPECT_EQ(static_cast<int8_t>(packed[96 + 5 * 16 + 2]), -5);
  std::vector<int8_t> back(tensor.size());
  unpack_cube(cube, TensorOrder::Hwc, packed, back.data());
  EXPECT_EQ(back, tensor);
}

TEST(Layout, WeightsStandInGroupsOfKernelsAndSlicesOfChannels) {
  const KernelShape shape{.kernels = 64, .channels = 48, .height = 3, .width = 3};
  EXPECT_EQ(weight_offset(shape, 0, 0, 31), 31);
  EXPECT_EQ(weight_offset(shape, 1, 0, 0), 32);
  EXPECT_EQ(weight_offset(shape, 0, 1, 0), 32 * 32);
  EXPECT_EQ(weight_offset(shape, 0, 0, 32), 9 * 32 * 32);  // the last slice is 16 wide
  EXPECT_EQ(weight_offset(shape, 1, 0, 32), 9 * 32 * 32 + 16);
  EXPECT_EQ(weight_offset(shape, 32, 0, 0), 32 * 9 * 48);
  const KernelShape half{.kernels = 32, .channels = 32, .precision = Precision::Half};
  EXPECT_EQ(weight_offset(half, 16, 0, 0), 16 * 32);
  const KernelShape deep{.kernels = 1, .channels = 96, .height = 3, .width = 3, .depthwise = true};
  EXPECT_EQ(weight_offset(deep, 0, 1, 0), 64);
  EXPECT_EQ(weight_offset(deep, 0, 1, 64), 9 * 64 + 32);
}

TEST(Layout, BiasAndMultipliersStandInGroupsOfEight) {
  const std::vector<int32_t> bias{1, 2, 3, 4, 5, 6, 7, 8, -9}, factors{10, 20, 30, 40, 50, 60, 70, 80, -90};
  const auto packed = pack_bias(bias, factors, 9);
  ASSERT_EQ(packed.size(), 128u);
  int32_t a;
  int16_t c;
  std::memcpy(&a, packed.data() + 64, 4);
  std::memcpy(&c, packed.data() + 64 + 48, 2);
  EXPECT_EQ(a, -9);
  EXPECT_EQ(c, -90);
  EXPECT_EQ(pack_bias(bias, {}, 16).size(), 64u);
}

}  // namespace
}  // namespace orknn::silicon
