#include "toolkit/trials.h"

#include <gtest/gtest.h>

namespace orknn::toolkit {
namespace {

// Samples that calibrated a network know little of what others lose: those that were held back count on their own.
TEST(Trials, ExpectsWhatHeldBackSamplesLose) {
  Losses losses;
  losses.by_sample = {{0.001, 0.001, 0.001, 0.001, 0.01, 0.01, 0.01, 0.01}};
  losses.calibrated = {true, true, true, true};
  summarize(losses);
  EXPECT_NEAR(losses.worst_mean(), 0.0055, 1e-12);
  EXPECT_NEAR(losses.worst_expected(), 0.01, 1e-12);
}

// One sample loses more than all others together: what it gains says little, that all of them gain a lot.
TEST(Trials, GainsOfUnequalSamplesCount) {
  Losses before, after, mixed;
  before.by_sample = {{0.2, 0.004, 0.005, 0.006, 0.003, 0.004, 0.005, 0.006}};
  after.by_sample = {{0.07, 0.002, 0.002, 0.004, 0.001, 0.002, 0.003, 0.003}};
  mixed.by_sample = {{0.07, 0.005, 0.004, 0.009, 0.002, 0.006, 0.004, 0.007}};
  EXPECT_TRUE(surely_loses_less(after, before, 0));
  EXPECT_FALSE(surely_loses_less(before, after, 0));
  EXPECT_FALSE(surely_loses_less(mixed, before, 0)) << "a gain of one sample alone";
  Losses little = before;
  for (double& loss : little.by_sample[0]) loss *= loss > 0.1 ? 0.8 : 0.9;
  EXPECT_FALSE(surely_loses_less(little, before, 0)) << "each gains, but none much";
}

// Much less on several samples is far less, whatever the others do; not on one alone.
TEST(Trials, FarLessIsMoreThanOneSample) {
  Losses before, after, one;
  before.by_sample = {{0.2, 0.1, 0.05, 0.001, 0.001, 0.001, 0.001, 0.001}};
  after.by_sample = {{0.1, 0.05, 0.04, 0.002, 0.002, 0.001, 0.002, 0.001}};
  one.by_sample = {{0.01, 0.1, 0.05, 0.001, 0.001, 0.001, 0.001, 0.001}};
  EXPECT_TRUE(loses_far_less(after, before, 0));
  EXPECT_FALSE(surely_loses_less(after, before, 0));
  EXPECT_FALSE(loses_far_less(one, before, 0));
  EXPECT_FALSE(loses_far_less(before, after, 0));
  before.by_sample[0].resize(7);
  after.by_sample[0].resize(7);
  EXPECT_FALSE(loses_far_less(after, before, 0)) << "too few to tell";
}

// Large values of a few samples are hardly seen in the mean of the cosines.
TEST(Trials, LossesCountOnAverageAndOverAllSamples) {
  const Losses before{.mean = {0.01, 0.00004}, .squares = {5, 1}};
  EXPECT_TRUE(loses_nowhere({.mean = {0.009, 0.00004}, .squares = {4, 2}}, before)) << "the second output loses nothing";
  EXPECT_FALSE(loses_nowhere({.mean = {0.009, 0.00004}, .squares = {6, 1}}, before));
  EXPECT_FALSE(loses_nowhere({.mean = {0.011, 0.00004}, .squares = {4, 1}}, before));
  EXPECT_FALSE(loses_nowhere({.mean = {0.009, 0.0001}, .squares = {4, 1}}, before));
}

}  // namespace
}  // namespace orknn::toolkit
