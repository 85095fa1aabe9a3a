#include "import/lower/fake_quant.h"

#include <cmath>

#include "emitted.h"

namespace orknn::importer {
namespace {
TEST(FakeQuant, ZeroLiesOnTheGrid) {
  const auto g = nudged_grid(-0.1, 6, 8, false);
  ASSERT_TRUE(g);
  EXPECT_EQ(g->zero_point, 4);
  EXPECT_NEAR(g->least(), -4 * 6.1 / 255, 1e-6);
  EXPECT_EQ(nudged_grid(1, 2, 8, true)->zero_point, 1) << "a range without 0 is moved";
  EXPECT_EQ(nudged_grid(0, 0, 8, false)->scale, 1);
  EXPECT_FALSE(nudged_grid(1, 0, 8, false));
  EXPECT_FALSE(nudged_grid(0, 1, 17, false));
  EXPECT_FALSE(nudged_grid(0, INFINITY, 8, false));
}

TEST(FakeQuant, FewBitsAreCutFirst) {
  tests::Emitted m;
  const auto grid = nudged_grid(0, 3, 2, false);
  const ir::TensorId y = fake_quant(m.e, m.input({4}), {*grid}, std::nullopt, 2);
  std::vector<std::string> path;
  for (ir::TensorId at = y; const ir::Node* node = m.graph.producer_node(at); at = node->inputs[0]) path.push_back(node->op);
  EXPECT_EQ(path, (std::vector<std::string>{"DequantizeLinear", "QuantizeLinear", "Clip"}));
}

TEST(FakeQuant, BoundsOfChannelsBroadcastOverTheAxesAfterThem) {
  tests::Emitted m;
  const std::vector<IntegerGrid> grids{{.scale = 1, .zero_point = 128, .low = 1, .high = 255},
                                       {.scale = 2, .zero_point = 128, .low = 1, .high = 255}};
  const ir::TensorId y = fake_quant(m.e, m.input({2, 3, 4}), grids, 0, 8);
  ASSERT_TRUE(m.e.dims_of(y));
  EXPECT_EQ(*m.e.dims_of(y), (ir::Dims{2, 3, 4}));
}
}  // namespace
}  // namespace orknn::importer
