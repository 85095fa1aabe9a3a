#include "import/lower/emitter.h"

#include "emitted.h"
#include "ir/infer.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

TEST(Emitter, SwapsAxesOfEitherSign) {
  Emitted m;
  const ir::TensorId x = m.counted({2, 1, 3});
  EXPECT_EQ(m.dims(m.e.swap_axes(x, 0, -1)), (Dims{3, 1, 2}));
  EXPECT_EQ(m.values(m.e.swap_axes(x, 0, -1)), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(m.e.swap_axes(x, 1, -2), x);
}

// What a model says wrongly is reported by the shape rule, with the node; nothing is written outside of the permutation.
TEST(Emitter, AxesThatDoNotExistAreLeftToTheShapeRule) {
  Emitted m;
  EXPECT_FALSE(m.e.rank_of(m.e.swap_axes(m.input({2, 3}), 0, 2)));
  EXPECT_FALSE(m.e.rank_of(m.e.swap_axes(m.input({2, 3}), -3, 0)));
  EXPECT_FALSE(ir::infer_shapes(m.graph, m.e.ops()));
}

TEST(Emitter, TensorsOfUnknownRankAreTakenForMatrices) {
  Emitted m;
  const ir::TensorId matrix = m.graph.add_tensor("matrix", DType::Float32), cube = m.graph.add_tensor("cube", DType::Float32);
  const ir::TensorId y = m.e.swap_axes(matrix, -1, -2);
  m.graph.tensor(matrix).shape = ir::to_shape(Dims{2, 3});
  ASSERT_TRUE(ir::infer_shapes(m.graph, m.e.ops()));
  EXPECT_EQ(m.dims(y), (Dims{3, 2}));
  m.e.swap_axes(cube, -1, -2);
  m.graph.tensor(cube).shape = ir::to_shape(Dims{2, 3, 4});
  EXPECT_FALSE(ir::infer_shapes(m.graph, m.e.ops()));
}

TEST(Emitter, AWrongRankIsReportedWithTheTensor) {
  Emitted m;
  const ir::TensorId x = m.input({2, 3});
  EXPECT_TRUE(m.e.need_dims(x, "to look at it", 2));
  const auto refused = m.e.need_dims(x, "to look at it", 4);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().to_string().find("has the wrong rank; expected 4 axes to look at it, found [2,3]"),
            std::string::npos)
      << refused.status().to_string();
}

TEST(Emitter, ShortFormsAreOurOperators) {
  Emitted m;
  const ir::TensorId x = m.counted({2, 3});
  EXPECT_EQ(m.values(m.e.linear(x, m.floats({1, 3}, {1, 1, 1}), m.floats({1}, {10}))), (Values{13, 22}));
  EXPECT_EQ(m.values(m.e.top_k(x, 2, 1)[0]), (Values{2, 1, 5, 4}));
  EXPECT_EQ(m.values(m.e.gather_elements(
                x, m.e.add_constant("i", ir::TensorData::from<int64_t>({2, 1}, std::vector<int64_t>{2, 0})), 1)),
            (Values{2, 3}));
}

}  // namespace
}  // namespace orknn::importer
