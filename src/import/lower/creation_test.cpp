#include "import/lower/creation.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace ir;
using tests::Values;

TEST(LowerCreation, NumbersEndExactly) {
  tests::Emitted m;
  EXPECT_EQ(m.values(evenly_spaced(m.e, 0, 1, 5, DType::Float32)), (Values{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(m.values(evenly_spaced(m.e, 3, 0, 4, DType::Int32)), (Values{3, 2, 1, 0}));
  EXPECT_EQ(m.values(evenly_spaced(m.e, 2, 9, 1, DType::Float32)), Values{2});
  EXPECT_EQ(m.values(evenly_spaced(m.e, 0.1, 0.7, 8, DType::Float64)).back(), 0.7);
  EXPECT_TRUE(m.values(evenly_spaced(m.e, 0, 1, 0, DType::Float32)).empty());
  EXPECT_FALSE(evenly_spaced(m.e, 0, 1, -1, DType::Float32));
  EXPECT_FALSE(evenly_spaced(m.e, 0, 1, int64_t{1} << 40, DType::Float32));
}

TEST(LowerCreation, OnesStandOnADiagonal) {
  tests::Emitted m;
  EXPECT_EQ(m.values(identity_matrix(m.e, 2, 3, 0, DType::Float32)), (Values{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(m.values(identity_matrix(m.e, 2, 3, 1, DType::Int64)), (Values{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(m.values(identity_matrix(m.e, 3, 2, -2, DType::Float32)), (Values{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(m.values(identity_matrix(m.e, 2, 2, INT64_MIN, DType::Float32)), (Values{0, 0, 0, 0}));
  EXPECT_EQ(m.values(identity_matrix(m.e, 2, 2, INT64_MAX, DType::Float32)), (Values{0, 0, 0, 0}));
  EXPECT_FALSE(identity_matrix(m.e, 1 << 20, 1 << 20, 0, DType::Float32));
}
}  // namespace
}  // namespace orknn::importer
