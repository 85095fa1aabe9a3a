#include "server/load.h"

#include <gtest/gtest.h>

namespace orknn::server {
namespace {
using namespace std::chrono_literals;

TEST(Load, IsThatOfTheLastSeconds) {
  const Load::Time start = Load::Time(1000s);
  Load load(start);
  EXPECT_EQ(load.percent(start), 0);
  load.begin(0, start + 1s);
  EXPECT_NEAR(load.percent(start + 2s), 50, 0.01) << "a run that is under way counts";
  load.end(0, start + 3s);
  EXPECT_NEAR(load.percent(start + 4s), 50, 0.01);
  EXPECT_NEAR(load.percent(start + 8s), 25, 0.01);
  EXPECT_EQ(load.percent(start + 60s), 0) << "long ago";
  EXPECT_EQ(load.percent(start + 61s), 0);
}

TEST(Load, AddsUpCoresAndLongRuns) {
  const Load::Time start = Load::Time(500s);
  Load load(start);
  load.begin(0, start);
  load.begin(2, start + 20s);
  EXPECT_NEAR(load.percent(start + 40s), 200, 0.01);
  load.end(0, start + 40s);
  load.end(2, start + 40s);
  EXPECT_NEAR(load.percent(start + 40s), 200, 0.01);
  EXPECT_NEAR(load.percent(start + 44s), 200 * 5. / 9, 0.1);
}

}  // namespace
}  // namespace orknn::server
