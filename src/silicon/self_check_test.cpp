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
    const auto unit = open_board("rk3588", kernel);
    ASSERT_TRUE(unit && *unit);
    EXPECT_EQ((*unit)->driver(), driver == StandInKernel::Driver::Rocket
                                     ? "rocket 0.9.8, 20250101, a driver of this process"
                                     : "rknpu 0.9.8, 20250101, a driver of this process, hardware version 17993, "
                                       "driver version 908");
    for (const FamilyResult& r : results) {
      const bool pools = r.family.find("maxima") != std::string::npos || r.family.find("averages") != std::string::npos ||
                         r.family.find("minima") != std::string::npos;
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

// The chip model, but every byte that it hands back is inverted.
class InvertingUnit final : public Unit {
 public:
  std::string name() const override { return "inverting"; }
  bool is_board() const override { return true; }
  bool waits_for_pooling() const override { return true; }
  bool keeps_buffer_between_tasks() const override { return true; }
  Result<UnitBuffer> allocate(BufferUse use, uint64_t bytes) override {
    auto buffer = model_->allocate(use, bytes);
    if (buffer && use == BufferUse::Features) features_ = buffer->bytes;
    return buffer;
  }
  Status give(BufferUse use) override { return model_->give(use); }
  Status take(BufferUse) override {
    for (std::byte& b : features_) b = ~b;
    return {};
  }
  Status run(std::span<const UnitTask> tasks, const UnitRun& run) override { return model_->run(tasks, run); }

 private:
  std::unique_ptr<Unit> model_ = make_chip_model_unit();
  std::span<std::byte> features_;
};

TEST(SelfCheck, KeepsWhatIsNeededToCorrectARecipe) {
  const auto results = check_families([]() -> Result<std::unique_ptr<Unit>> { return std::unique_ptr<Unit>(new InvertingUnit); });
  for (const FamilyResult& r : results) {
    EXPECT_EQ(r.state, State::Different) << r.family;
    EXPECT_EQ(r.different, r.elements) << r.family;
    ASSERT_EQ(r.wrong.size(), std::min(r.elements, kMostWrongElements)) << r.family;
    for (const WrongElement& w : r.wrong) {
      const uint64_t ones = (uint64_t{1} << (4 * w.found.size())) - 1;
      EXPECT_EQ(std::stoull(w.expected, nullptr, 16) ^ std::stoull(w.found, nullptr, 16), ones) << r.family;
    }
  }
  const WrongElement& last = results[1].wrong.back();  // 14x14x64
  EXPECT_EQ(last.row, 0);
  EXPECT_EQ(last.column, 0);
  EXPECT_EQ(last.channel, 63);
}

}  // namespace
}  // namespace orknn::silicon
