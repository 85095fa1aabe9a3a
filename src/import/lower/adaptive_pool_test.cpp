#include "import/lower/adaptive_pool.h"

#include <gtest/gtest.h>

#include "emitted.h"

namespace orknn::importer {
namespace {
using Numbers = std::vector<double>;

TEST(LowerAdaptivePool, UnevenWindowsOverlap) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 1, 5}, {1, 9, 3, 8, 5});
  const int64_t size[] = {3};  // elements 0-1, 1-3, 3-4
  const auto mean = adaptive_average_pool(f.e, x, size);
  ASSERT_TRUE(mean) << mean.status().to_string();
  const Numbers y = f.values(*mean);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], (Numbers{5, 20.0 / 3, 6.5})[i], 1e-5);
  const auto most = adaptive_max_pool(f.e, x, size);
  ASSERT_TRUE(most) << most.status().to_string();
  EXPECT_EQ(f.values(most->values), (Numbers{9, 9, 8}));
  EXPECT_EQ(f.values(most->positions), (Numbers{1, 1, 3}));
}

TEST(LowerAdaptivePool, PositionsCountWithinTheirPlane) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 2, 2, 2}, {1, 2, 4, 3, 8, 7, 5, 6});
  const int64_t size[] = {1, 1};
  const auto y = adaptive_max_pool(f.e, x, size);
  ASSERT_TRUE(y) << y.status().to_string();
  EXPECT_EQ(f.values(y->values), (Numbers{4, 8}));
  EXPECT_EQ(f.values(y->positions), (Numbers{2, 0}));
}

TEST(LowerAdaptivePool, ImpossibleSizesAreRefused) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 1, 4}, {1, 2, 3, 4});
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    const int64_t size[] = {bad};
    EXPECT_FALSE(adaptive_average_pool(f.e, x, size)) << bad;
    EXPECT_FALSE(adaptive_max_pool(f.e, x, size)) << bad;
  }
  const int64_t two[] = {2, 2};
  EXPECT_FALSE(adaptive_average_pool(f.e, x, two));
}

}  // namespace
}  // namespace orknn::importer
