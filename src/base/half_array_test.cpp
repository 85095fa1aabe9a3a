#include "base/half_array.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace orknn {
namespace {

TEST(HalfArray, WidensEveryHalf) {
  std::vector<Half> halves(65536 + 3);  // a rest after the last whole vector
  for (size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<uint16_t>(i);
  std::vector<float> floats(halves.size());
  widen_halves(halves.data(), floats.data(), halves.size());
  for (size_t i = 0; i < halves.size(); ++i) {
    const float expected = half_to_float(halves[i].bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(expected)) << i;
    }
  }
}

// Every half, the floats halfway to its neighbour and just beside that, overflow, underflow and NaN.
TEST(HalfArray, NarrowsAsOneByOne) {
  std::vector<float> floats;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint32_t exact = std::bit_cast<uint32_t>(half_to_float(static_cast<uint16_t>(bits)));
    for (uint32_t offset : {0u, 0x0fffu, 0x1000u, 0x1001u}) floats.push_back(std::bit_cast<float>(exact + offset));
  }
  for (float special : {1e30f, -1e30f, 1e-30f, -1e-30f, 65519.9f, 65520.0f, 2.9802322e-8f, 3e-8f}) floats.push_back(special);
  std::vector<Half> halves(floats.size());
  narrow_to_halves(floats.data(), halves.data(), floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    if (std::isnan(floats[i])) {
      ASSERT_TRUE(std::isnan(half_to_float(halves[i].bits))) << i;
    } else {
      ASSERT_EQ(halves[i].bits, float_to_half(floats[i])) << i << " " << floats[i];
    }
  }
}

}  // namespace
}  // namespace orknn
