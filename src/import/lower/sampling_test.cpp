#include "import/lower/sampling.h"

#include <gtest/gtest.h>

#include <limits>

#include "emitted.h"

namespace orknn::importer {
namespace {
using Numbers = std::vector<double>;

TEST(LowerSampling, SizesAndFactorsGiveTheSameExtents) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 1, 2}, {1, 2});
  const auto by_size = interpolated(f.e, x, {}, {4}, {}), by_factor = interpolated(f.e, x, {}, {}, {2.0});
  ASSERT_TRUE(by_size) << by_size.status().to_string();
  ASSERT_TRUE(by_factor) << by_factor.status().to_string();
  EXPECT_EQ(f.values(*by_size), (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(f.values(*by_factor), (Numbers{1, 1, 2, 2}));
}

TEST(LowerSampling, AlignedCornersStayWhereTheyAre) {
  tests::Emitted f;
  const Interpolation linear{.mode = Interpolation::Mode::Linear, .align_corners = true};
  const auto y = interpolated(f.e, f.floats({1, 1, 2}, {0, 3}), linear, {}, {2.0});
  ASSERT_TRUE(y) << y.status().to_string();
  const Numbers values = f.values(*y);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], static_cast<double>(i), 1e-6);
}

// 0.3 in float32 is more than 0.3: ten elements would become three, as in double, not two.
TEST(LowerSampling, FactorsGiveTheExtentsOfDoubles) {
  for (const double factor : {0.3, 0.7, 1.0 / 3, 2.3}) {
    tests::Emitted f;
    const auto extent = scaled_extent(10, factor);
    const auto y = interpolated(f.e, f.floats({1, 1, 10}, std::vector<float>(10, 1)), {}, {}, {factor});
    ASSERT_TRUE(extent && y);
    EXPECT_EQ(f.dims(*y), (ir::Dims{1, 1, *extent})) << factor;
  }
}

TEST(LowerSampling, IntegersAreInterpolatedAsFloats) {
  tests::Emitted f;
  const ir::TensorId x = f.e.add_constant("x", ir::TensorData::from<int32_t>({1, 1, 2}, std::vector<int32_t>{1, 2}));
  const auto y = interpolated(f.e, x, {}, {4}, {});
  ASSERT_TRUE(y) << y.status().to_string();
  EXPECT_EQ(f.e.dtype_of(*y), DType::Int32);
}

TEST(LowerSampling, ImpossibleFactorsAreRefused) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 1, 2}, {1, 2});
  for (const double factor : {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(interpolated(f.e, x, {}, {}, {factor})) << factor;
  EXPECT_FALSE(interpolated(f.e, x, {}, {}, {}));
  EXPECT_FALSE(interpolated(f.e, x, {}, {1, 2, 3}, {}));
  EXPECT_FALSE(interpolated(f.e, f.floats({2}, {1, 2}), {}, {4}, {}));
}

TEST(LowerSampling, AnIdentityGridReadsTheImage) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const ir::TensorId grid = affine_grid(f.e, f.floats({1, 2, 3}, {1, 0, 0, 0, 1, 0}), {1, 1, 2, 2}, true);
  const Numbers y = f.values(grid_sampled(f.e, x, grid, "linear", "zeros", true));
  ASSERT_EQ(y.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], static_cast<double>(i + 1), 1e-5);
}

}  // namespace
}  // namespace orknn::importer
