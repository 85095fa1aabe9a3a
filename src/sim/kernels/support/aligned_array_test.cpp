#include "sim/kernels/support/aligned_array.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace orknn::sim::kernels {
namespace {

AlignedDwords packed(const void* source, int64_t count, int32_t value) {
  AlignedDwords a;
  EXPECT_TRUE(a.allocate(count));
  std::fill_n(a.data(), count, value);
  a.share(source);
  return a;
}

TEST(AlignedArray, EqualPackingsOfOneConstantAreOne) {
  const int source = 0, other = 0;
  AlignedDwords first = packed(&source, 100, 1);
  EXPECT_EQ(packed(&source, 100, 1).data(), first.data());
  EXPECT_NE(packed(&source, 100, 2).data(), first.data()) << "packed otherwise";
  EXPECT_NE(packed(&source, 99, 1).data(), first.data());
  EXPECT_NE(packed(&other, 100, 1).data(), first.data());
  EXPECT_EQ(first.data()[99], 1);
}

TEST(AlignedArray, LivesAsLongAsAnyoneHasIt) {
  const int source = 0;
  AlignedDwords second;
  {
    const AlignedDwords first = packed(&source, 100, 3);
    second = packed(&source, 100, 3);
    EXPECT_EQ(first.data(), second.data());
  }
  EXPECT_TRUE(std::all_of(second.data(), second.data() + 100, [](int32_t v) { return v == 3; }));
  second = {};
  EXPECT_EQ(packed(&source, 100, 4).data()[0], 4) << "what was released is forgotten";
}

}  // namespace
}  // namespace orknn::sim::kernels
