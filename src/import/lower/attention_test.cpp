#include "import/lower/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "emitted.h"

namespace orknn::importer {
namespace {
using Numbers = std::vector<double>;

TEST(LowerAttention, ScoresAreScaledAndWeighTheValues) {
  tests::Emitted f;
  const ir::TensorId q = f.floats({1, 1}, {1}), k = f.floats({2, 1}, {0, 1}), v = f.floats({2, 1}, {10, 20});
  const auto y = attention(f.e, q, k, v, {.scale = 2.0});
  ASSERT_TRUE(y) << y.status().to_string();
  const double weight = std::exp(2.0) / (1 + std::exp(2.0));
  EXPECT_NEAR(f.values(*y)[0], 10 * (1 - weight) + 20 * weight, 1e-5);
}

TEST(LowerAttention, MasksHideKeys) {
  tests::Emitted f;
  const ir::TensorId q = f.floats({2, 1}, {1, 1}), v = f.floats({2, 1}, {10, 20});
  const auto causal = attention(f.e, q, q, v, {.is_causal = true});
  ASSERT_TRUE(causal) << causal.status().to_string();
  EXPECT_EQ(f.values(*causal), (Numbers{10, 15}));
  const ir::TensorId mask = f.e.cast(f.floats({2, 2}, {0, 1, 1, 1}), DType::Bool);
  const auto shown = attention(f.e, q, q, v, {.mask = mask});
  ASSERT_TRUE(shown) << shown.status().to_string();
  EXPECT_EQ(f.values(*shown), (Numbers{20, 15}));
  const auto hidden = f.values(masked_scores(f.e, f.floats({2, 2}, {1, 2, 3, 4}), mask, true));
  EXPECT_EQ(hidden[0], 1);
  EXPECT_TRUE(std::isinf(hidden[1]));
}

TEST(LowerAttention, KeysServeSeveralHeads) {
  tests::Emitted f;
  const ir::TensorId q = f.floats({2, 1, 1}, {1, 2}), k = f.floats({1, 1, 1}, {1}), v = f.floats({1, 1, 1}, {7});
  const auto y = attention(f.e, q, k, v, {.shares_heads = true});
  ASSERT_TRUE(y) << y.status().to_string();
  EXPECT_EQ(f.values(*y), (Numbers{7, 7}));
  const ir::TensorId three = f.floats({3, 1, 1}, {1, 2, 3});
  EXPECT_FALSE(attention(f.e, three, q, q, {.shares_heads = true}));
  EXPECT_FALSE(attention(f.e, f.floats({1}, {1}), q, q, {}));
}

}  // namespace
}  // namespace orknn::importer
