#include "import/lower/axes.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace ir;
using tests::Values;

TEST(LowerAxes, OrdersAreCountedFromEitherEnd) {
  tests::Emitted m;
  const TensorId x = m.counted({2, 3});
  EXPECT_EQ(m.values(permuted(m.e, x, {-1, 0})), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(m.values(permuted(m.e, x, {})), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(m.dims(permuted(m.e, m.counted({1, 2, 3}), {})), (Dims{3, 2, 1}));
  EXPECT_EQ(*permuted(m.e, x, {0, 1}), x);
  EXPECT_FALSE(permuted(m.e, x, {0, 2}));
}

TEST(LowerAxes, ExtentsOfOneAreFound) {
  tests::Emitted m;
  EXPECT_EQ(*axes_of_extent_one(m.e, m.input({1, 3, 1})), (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(axes_of_extent_one(m.e, m.counted({2, 3}))->empty());
}

TEST(LowerAxes, ElementsAreRepeatedInPlace) {
  tests::Emitted m;
  const TensorId x = m.counted({2, 2});
  EXPECT_EQ(m.values(repeat_elements(m.e, x, 1, 2)), (Values{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(m.values(repeat_elements(m.e, x, 0, 2)), (Values{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_FALSE(repeat_elements(m.e, x, 0, 0));
  EXPECT_FALSE(repeat_elements(m.e, x, 0, int64_t{1} << 62));
}

TEST(LowerAxes, VectorsAreSpreadOverGrids) {
  tests::Emitted m;
  EXPECT_EQ(m.values(along_axis_of_grid(m.e, m.floats({2}, {5, 7}), 0, {2, 3})), (Values{5, 5, 5, 7, 7, 7}));
  EXPECT_EQ(m.values(along_axis_of_grid(m.e, m.floats({2}, {5, 7}), 1, {3, 2})), (Values{5, 7, 5, 7, 5, 7}));
}
}  // namespace
}  // namespace orknn::importer
