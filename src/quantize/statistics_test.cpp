// What samples leave in the statistics of a tensor.
#include "quantize/statistics.h"

#include <gtest/gtest.h>

#include "quantize/ranges.h"
#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

TEST(Statistics, CountsConstantSamples) {
  const std::vector<float> zeros(8, 0), ones(8, 1), mixed{0, 1, 0, 0};
  Statistics s;
  s.add(mixed);
  s.add(zeros);
  s.add(ones);
  EXPECT_EQ(s.constant_samples(), 2);
  EXPECT_EQ(s.first_constant(), 1);
  EXPECT_TRUE(s.varies());
  Statistics same, different;
  for (int i = 0; i < 2; ++i) same.add(ones);
  EXPECT_FALSE(same.varies());
  different.add(zeros);
  EXPECT_FALSE(different.varies());
  different.add(ones);
  EXPECT_TRUE(different.varies());
}

TEST(Statistics, TellsHowFarTheFurthestSampleReaches) {
  Statistics s;
  s.add(std::vector<float>{1, 2});
  s.add(std::vector<float>{NAN});
  s.add(std::vector<float>{4, -1});
  EXPECT_NEAR(s.stretch_above(), 4 / 3.0, 1e-12);
  EXPECT_NEAR(s.stretch_below(), 2, 1e-12);
  Statistics positive;
  positive.add(std::vector<float>{1, 2});
  EXPECT_EQ(positive.stretch_below(), 1);
}

TEST(Statistics, ChannelsAndValuesThatAreNotFinite) {
  Statistics s(false);
  s.add(TensorData::from<float>({1, 2, 2}, std::vector<float>{1, 3, NAN, -2}).view());
  s.add(TensorData::from<float>({1, 2, 2}, std::vector<float>{5, 3, INFINITY, -4}).view());
  EXPECT_EQ(s.not_finite(), 2);
  EXPECT_EQ(s.first_not_finite(), 0);
  EXPECT_TRUE(s.varies());
  EXPECT_EQ(s.min(), -4);
  EXPECT_EQ(s.max(), 5);
  ASSERT_EQ(s.channels().size(), 2u);
  EXPECT_EQ(s.channels()[0].mean(), 3);
  EXPECT_EQ(s.channels()[1].mean(), -3);
  EXPECT_EQ(s.channels()[1].mean_square(), 10);
  EXPECT_TRUE(s.histogram().empty());
  EXPECT_EQ(choose_range(s, Algorithm::Normal).high, 5);
}
}  // namespace
}  // namespace orknn::quantize
