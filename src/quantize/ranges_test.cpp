// Ranges that the algorithms choose, and where outliers are cut.
#include "quantize/ranges.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

Statistics with_outlier(float outlier) {
  Statistics s;
  for (unsigned i = 1; i <= 80; ++i) s.add(noise(20000, i, 1));
  s.add(std::vector<float>{outlier});
  return s;
}

TEST(Ranges, OutliersAreCutOnlyWhereThatPays) {
  for (Algorithm a : {Algorithm::Mmse, Algorithm::KlDivergence}) {
    const Range even = choose_range(with_outlier(1), a);
    EXPECT_GT(even.high, 0.97);
    EXPECT_LT(even.low, -0.97);
    const Range cut = choose_range(with_outlier(40), a);
    EXPECT_LT(cut.high, 40);
    EXPECT_GE(cut.high, 1);
  }
}

// Eight channels of noise, the first many times as large, and what the next layers make of it.
Statistics with_large_channel(float importance, float size = 100) {
  std::vector<float> list(8, (8 - importance) / 7);
  list[0] = importance;
  Statistics s(false, {1, list});
  for (unsigned i = 1; i <= 4; ++i) {
    std::vector<float> values = noise(8 * 2000, i, 1);
    for (size_t k = 0; k < 2000; ++k) values[k] *= size;
    s.add(TensorData::from<float>({1, 8, 2000}, values).view());
  }
  return s;
}

TEST(Ranges, AChannelThatStretchesTheRangeIsCutWhereItHardlyCounts) {
  const auto cut = cut_outliers(with_large_channel(1e-7f));
  ASSERT_TRUE(cut);
  EXPECT_LT(cut->error, 0.32);
  EXPECT_GT(cut->range.high, 1);
  EXPECT_LT(cut->range.high, 25);
  EXPECT_FALSE(cut_outliers(with_large_channel(1e-7f), 16)) << "wider integers hold the outliers";
  // Read like the others, or as most layers do that saw such channels in training, by as much less as they are larger.
  for (float importance : {1.f, 1e-4f}) EXPECT_FALSE(cut_outliers(with_large_channel(importance))) << importance;
}

TEST(Ranges, NothingIsCutForChannelsThatStayBelowAStep) { EXPECT_FALSE(cut_outliers(with_large_channel(1e-9f, 1e6f))); }

TEST(Ranges, AScoreMapOfMostlyZerosKeepsItsScores) {
  Statistics s;
  std::vector<float> values(10000, 0.001f);
  for (size_t i = 0; i < 20; ++i) values[i * 50] = 0.9f;
  s.add(values);
  for (Algorithm a : {Algorithm::Mmse, Algorithm::KlDivergence, Algorithm::Normal})
    EXPECT_GT(choose_range(s, a).high, 0.8) << static_cast<int>(a);
}
}  // namespace
}  // namespace orknn::quantize
