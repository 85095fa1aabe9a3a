#include "import/lower/gather.h"

#include <cmath>

#include "emitted.h"
#include "import/lower/cumulative.h"
#include "import/lower/one_hot.h"
#include "import/lower/segments.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

TEST(OneHot, NumbersOutsideAreOff) {
  Emitted m;
  const ir::TensorId on = m.e.add_scalar("on", 5), off = m.e.add_scalar("off", 1);
  const auto y = one_hot(m.e, m.e.add_ints("numbers", {1, -1, 3}), 3, 0, on, off);
  EXPECT_EQ(m.dims(y), (Dims{3, 3}));
  EXPECT_EQ(m.values(y), (Values{1, 1, 1, 5, 1, 1, 1, 1, 1}));
  EXPECT_EQ(m.dims(one_hot(m.e, m.e.add_ints("numbers", {1, 2}), 0, 1, on, off)), (Dims{2, 0}));
  EXPECT_FALSE(one_hot(m.e, m.e.add_ints("numbers", {1}), int64_t{1} << 40, -1, on, off));
}

TEST(Gather, SharesLeadingAxes) {
  Emitted m;
  const ir::TensorId ids = m.e.add_constant("ids", ir::TensorData::from<int64_t>({2, 1}, std::vector<int64_t>{2, 0}));
  const auto y = gather_along(m.e, m.counted({2, 2, 3}), ids, 2, 1);
  EXPECT_EQ(m.dims(y), (Dims{2, 2, 1}));
  EXPECT_EQ(m.values(y), (Values{2, 5, 6, 9}));
  EXPECT_FALSE(gather_along(m.e, m.counted({2, 3}), ids, 0, 1));
}

TEST(Gather, PlacesOneValueOrOneEach) {
  Emitted m;
  const ir::TensorId shape = m.e.add_ints("shape", {4}), places = m.e.add_ints("places", {1, 3}), fill = m.e.add_scalar("f", 9);
  EXPECT_EQ(m.values(sparse_to_dense(m.e, places, shape, m.floats({2}, {5, 6}), fill)), (Values{9, 5, 9, 6}));
  EXPECT_EQ(m.values(sparse_to_dense(m.e, places, shape, m.floats({}, {5}), fill)), (Values{9, 5, 9, 5}));
  EXPECT_FALSE(sparse_to_dense(m.e, places, m.e.add_ints("shape", {2, 3, 4}), m.floats({}, {5}), fill));
}

TEST(Gather, ReversesSequencesAlongAnyAxes) {
  Emitted m;
  EXPECT_EQ(m.values(reverse_sequence(m.e, m.counted({3, 2}), m.e.add_ints("lengths", {2, 3}), 0, 1)),
            (Values{2, 5, 0, 3, 4, 1}));
  EXPECT_FALSE(reverse_sequence(m.e, m.counted({3, 2}), m.e.add_ints("lengths", {2, 3}), 0, -2));
}

TEST(Gather, DiagonalsOfWideAndHighMatrices) {
  Emitted m;
  EXPECT_EQ(m.values(matrix_diagonal(m.e, m.floats({2}, {1, 2}))), (Values{1, 0, 0, 2}));
  const ir::TensorId diagonal = m.floats({2}, {8, 9});
  EXPECT_EQ(m.values(with_diagonal(m.e, m.counted({2, 3}), diagonal)), (Values{8, 1, 2, 3, 9, 5}));
  EXPECT_EQ(m.values(with_diagonal(m.e, m.counted({3, 2}), diagonal)), (Values{8, 1, 2, 9, 4, 5}));
}

TEST(Gather, ABoundaryBelongsToTheNextBucket) {
  Emitted m;
  EXPECT_EQ(m.values(bucketize(m.e, m.floats({3}, {-1, 0, 7}), {0, 5})), (Values{0, 1, 2}));
}

TEST(Cumulative, ExclusiveAndReversed) {
  Emitted m;
  EXPECT_EQ(m.values(cumulative(m.e, "CumSum", m.floats({3}, {1, 2, 3}), 0, true, true)), (Values{5, 3, 0}));
  EXPECT_EQ(m.values(cumulative(m.e, "CumProd", m.floats({3}, {2, 3, 4}), -1, false, false)), (Values{2, 6, 24}));
}

// Infinite rows stay in their segment; numbers outside belong to none; a segment without rows has the neutral value.
TEST(Segments, EveryCombination) {
  Emitted m;
  const ir::TensorId x = m.floats({4, 1}, {2, 3, INFINITY, 5}), ids = m.e.add_ints("ids", {0, 2, 2, 0});
  EXPECT_EQ(m.values(combine_segments(m.e, x, ids, std::nullopt, Combination::Sum)), (Values{7, 0, INFINITY}));
  EXPECT_EQ(m.values(combine_segments(m.e, x, ids, 3, Combination::Product)), (Values{10, 1, INFINITY}));
  EXPECT_EQ(m.values(combine_segments(m.e, x, ids, 1, Combination::Mean)), (Values{3.5}));
  const ir::TensorId outside = m.e.add_ints("ids", {-1, 0, 7, 0});
  EXPECT_EQ(m.values(combine_segments(m.e, x, outside, 1, Combination::Maximum)), (Values{5}));
  EXPECT_EQ(m.values(combine_segments(m.e, x, outside, 1, Combination::Minimum)), (Values{3}));
  EXPECT_FALSE(combine_segments(m.e, x, m.input({4}, DType::Int32), std::nullopt, Combination::Sum));
  EXPECT_TRUE(combine_segments(m.e, x, m.input({4}, DType::Int32), 2, Combination::Sum));
}
}  // namespace
}  // namespace orknn::importer
