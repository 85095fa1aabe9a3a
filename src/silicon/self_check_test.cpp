#include "silicon/self_check.h"

#include <gtest/gtest.h>

#include <set>

#include "silicon/drivers/board.h"
#include "stand_in_kernel.h"

namespace orknn::silicon {
namespace {
using State = FamilyResult::State;

TEST(SelfCheck, TheChipModelGivesWhatTheProgramExpects) {
  const std::vector<FamilyResult> results = check_families([] { return Result(make_chip_model_unit()); });
  std::set<uint64_t> checksums;
  for (const FamilyResult& r : results) {
    EXPECT_EQ(r.state, State::Equal) << r.family << " 0x" << std::hex << r.checksum << " " << r.detail;
    EXPECT_GT(r.elements, 0u) << r.family;
    checksums.insert(r.checksum);
  }
  EXPECT_EQ(checksums.size(), results.size());  // no family computes nothing
}

TEST(SelfCheck, RunsThroughBothDrivers) {
  for (const auto driver : {StandInKernel::Driver::Rocket, StandInKernel::Driver::Rknpu}) {
    StandInKernel kernel(driver, "rk3588");
    const std::vector<FamilyResult> results = check_families([&] { return open_board("rk3588", kernel); });
    for (const std::string& c : kernel.complaints) ADD_FAILURE() << c;
    for (const FamilyResult& r : results) {
      const bool pools = r.family.find("maxima") != std::string::npos || r.family.find("averages") != std::string::npos;
      EXPECT_EQ(r.state, pools && driver == StandInKernel::Driver::Rocket ? State::LeftOut : State::Equal)
          << r.family << ": " << r.detail;
    }
  }
}

TEST(SelfCheck, SaysWhatABrokenUnitDoes) {
  StandInKernel kernel(StandInKernel::Driver::Rknpu, "rk3588");
  kernel.faults.hangs_at_task = 1;
  const std::vector<FamilyResult> results = check_families([&] { return open_board("rk3588", kernel); });
  ASSERT_GT(results.size(), 2u);
  EXPECT_EQ(results[0].state, State::Equal);
  EXPECT_EQ(results[1].state, State::Failed);
  EXPECT_NE(results[1].detail.find("SUBMIT"), std::string::npos);
  EXPECT_EQ(results[2].state, State::Equal) << results[2].detail;  // it was reset
  EXPECT_EQ(kernel.resets, 1u);
}

}  // namespace
}  // namespace orknn::silicon
