// What counts as equal up to rounding, and what does not.
#include "toolkit/engine_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"

namespace orknn::toolkit {
namespace {

LayerComparison compared(const std::vector<float>& a, const std::vector<float>& b, const std::vector<double>& allowed = {}) {
  const auto halves = [](const std::vector<float>& v) {
    const ir::Dims dims{static_cast<int64_t>(v.size())};
    return ir::convert(ir::TensorData::from<float>(dims, v).view(), DType::Float16);
  };
  LayerComparison layer;
  compare_elements(halves(a).view(), halves(b).view(), allowed, layer);
  return layer;
}

TEST(EngineComparison, OneUnitOfAFloat16NumberIsRounding) {
  const LayerComparison same = compared({1, -2, NAN, INFINITY}, {1, -2, NAN, INFINITY});
  EXPECT_EQ(same.unequal, 0);
  const LayerComparison unit = compared({1, 1000, 0}, {1 + 0x1p-10f, 1000.5f, 0x1p-24f});
  EXPECT_EQ(unit.unequal, 3);
  EXPECT_EQ(unit.beyond, 0);
  EXPECT_EQ(unit.largest_units, 1);
  const LayerComparison two = compared({1, 1000, 0}, {1 + 0x1p-9f, 1001, 0x1p-23f});
  EXPECT_EQ(two.beyond, 3);
  EXPECT_EQ(two.largest_units, 2);
  EXPECT_EQ(compared({1, 1000, 0}, {1 + 0x1p-9f, 1001, 0x1p-23f}, {0x1p-10, 0.5, 0}).beyond, 1);
}

TEST(EngineComparison, NumbersAreNoneWhereTheOtherEngineHasNone) {
  EXPECT_EQ(compared({NAN, 1, INFINITY}, {1, NAN, 65504}, {9e9, 9e9, 9e9}).beyond, 3);
}

TEST(EngineComparison, IntegersAreEqual) {
  const ir::TensorData a = ir::TensorData::vector(std::vector<int64_t>{1, 2, 3}),
                       b = ir::TensorData::vector(std::vector<int64_t>{1, 4, 3});
  LayerComparison layer;
  compare_elements(a.view(), b.view(), {9, 9, 9}, layer);
  EXPECT_EQ(layer.beyond, 1);
  EXPECT_EQ(layer.largest_units, 2);
}

TEST(EngineComparison, ErrorsNameTheFirstTensor) {
  EngineComparison total, bad;
  bad.layers.resize(1);
  bad.tensors = 3;
  bad.different = 1;
  bad.first_different = "logits";
  EXPECT_TRUE(status_of(total));
  merge(total, bad);
  merge(total, bad);
  EXPECT_EQ(total.tensors, 6u);
  EXPECT_NE(status_of(total).to_string().find("'logits'"), std::string::npos);
}

}  // namespace
}  // namespace orknn::toolkit
