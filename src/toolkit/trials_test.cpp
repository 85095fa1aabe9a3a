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

}  // namespace
}  // namespace orknn::toolkit
