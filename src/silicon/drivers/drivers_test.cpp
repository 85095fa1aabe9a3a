// Networks through the kernel drivers, against a kernel of this process that executes with the chip model.
#include <gtest/gtest.h>

#include "silicon/drivers/board.h"
#include "silicon/network.h"
#include "silicon/recipe.h"
#include "small_network.h"
#include "stand_in_kernel.h"

namespace orknn::silicon {
namespace {
using Driver = StandInKernel::Driver;

struct Ran {
  Status status;
  std::vector<int8_t> output;
  std::vector<NetworkLayer> layers;
};
Ran run_on(StandInKernel& kernel, const SmallNetwork& small, const UnitRun& options = {}) {
  Ran ran;
  auto unit = open_board("rk3588", kernel);
  if (!unit) return {unit.status(), {}, {}};
  if (!*unit) return {unsupported("no board"), {}, {}};
  auto image = make_image(small.program, ops::builtin_ops());
  if (!image) return {image.status(), {}, {}};
  auto network = Network::create(small.program, ops::builtin_ops(), std::move(*image), std::move(*unit));
  if (!network) return {network.status(), {}, {}};
  const ir::TensorView input = small.input.view();
  ran.status = (*network)->run(std::span(&input, 1), options);
  ran.layers.assign((*network)->layers().begin(), (*network)->layers().end());
  if (!ran.status) return ran;
  const auto* bytes = (*network)->output(0).as<int8_t>();
  ran.output.assign(bytes, bytes + (*network)->output(0).count());
  return ran;
}
std::string all_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class Drivers : public testing::TestWithParam<Driver> {};
INSTANTIATE_TEST_SUITE_P(Both, Drivers, testing::Values(Driver::Rocket, Driver::Rknpu),
                         [](const auto& driver) { return driver.param == Driver::Rocket ? "rocket" : "rknpu"; });

TEST_P(Drivers, RunANetworkWithCpuLayersInBetween) {
  for (const SmallNetwork& small : {SmallNetwork(), SmallNetwork(200, 120)}) {  // the second in bands
    StandInKernel kernel(GetParam(), "rk3588");
    const Ran ran = run_on(kernel, small);
    ASSERT_TRUE(ran.status) << ran.status.to_string() << all_of(kernel.complaints);
    EXPECT_EQ(all_of(kernel.complaints), "");
    EXPECT_EQ(ran.output, small.expected());
    EXPECT_GE(kernel.tasks_run, 6u);
    EXPECT_EQ(kernel.open_files, 0u);
    EXPECT_EQ(kernel.live_buffers(), 0u);
  }
}

TEST_P(Drivers, ReportAHangAndWorkAgainAfterwards) {
  const SmallNetwork small;
  StandInKernel kernel(GetParam(), "rk3588");
  for (int task : {0, 2}) {
    kernel.faults.hangs_at_task = task;
    const Ran failed = run_on(kernel, small);
    EXPECT_FALSE(failed.status);
    EXPECT_NE(failed.status.to_string(), "");
  }
  EXPECT_EQ(kernel.resets, GetParam() == Driver::Rknpu ? 2u : 0u);  // the mainline kernel resets by itself
  const Ran ran = run_on(kernel, small);
  ASSERT_TRUE(ran.status) << ran.status.to_string();
  EXPECT_EQ(ran.output, small.expected());
  EXPECT_EQ(kernel.live_buffers(), 0u);
}

TEST_P(Drivers, ReportBuffersThatCannotBeUsed) {
  const SmallNetwork small;
  StandInKernel kernel(GetParam(), "rk3588");
  kernel.faults.create_error = ENOMEM;
  EXPECT_EQ(run_on(kernel, small).status.code(), Code::OutOfMemory);
  kernel.faults = {.maps_nothing = true};
  EXPECT_EQ(run_on(kernel, small).status.code(), Code::OutOfMemory);
  kernel.faults = {.high_addresses = true};
  EXPECT_NE(run_on(kernel, small).status.to_string().find("4 GiB"), std::string::npos);
  kernel.faults = {.open_error = EACCES};
  EXPECT_NE(run_on(kernel, small).status.to_string().find("Permission denied"), std::string::npos);
  EXPECT_EQ(kernel.live_buffers(), 0u);
}

TEST(Rocket, TimeoutsOfTheWaitAreErrors) {
  const SmallNetwork small;
  StandInKernel kernel(Driver::Rocket, "rk3588");
  auto unit = open_board("rk3588", kernel);
  ASSERT_TRUE(unit && *unit);
  ASSERT_TRUE((*unit)->allocate(BufferUse::Features, 4096));
  kernel.faults.wait_times_out = true;
  const Status s = (*unit)->take(BufferUse::Features);
  EXPECT_NE(s.to_string().find("PREP_BO"), std::string::npos);
}

// Pooling jobs never report their end there: the CPU computes maxima, averages are convolutions anyway.
TEST(Rocket, NoPoolingTaskIsSubmitted) {
  const SmallNetwork small;
  StandInKernel kernel(Driver::Rocket, "rk3588");
  const Ran ran = run_on(kernel, small);
  ASSERT_TRUE(ran.status);
  EXPECT_EQ(all_of(kernel.complaints), "");
  size_t left_to_cpu = 0;
  for (const NetworkLayer& l : ran.layers) left_to_cpu += l.reason.find("pooling") != std::string::npos;
  EXPECT_EQ(left_to_cpu, 1u);
}

TEST(Rocket, LayersBetweenCpuLayersAreOneJob) {
  StandInKernel kernel(Driver::Rocket, "rk3588");
  ASSERT_TRUE(run_on(kernel, SmallNetwork()).status);
  EXPECT_EQ(kernel.jobs, 2u);  // before and after the maxima
}

TEST(Rknpu, MasksChooseCores) {
  const SmallNetwork small(200, 120);
  for (const auto& [mask, submitted] :
       std::map<uint32_t, std::set<uint32_t>>{{0, {0}}, {1, {1}}, {2, {2}}, {4, {4}}, {3, {1, 3}}, {7, {1, 3, 7}}}) {
    StandInKernel kernel(Driver::Rknpu, "rk3588");
    const Ran ran = run_on(kernel, small, {.core_mask = mask});
    ASSERT_TRUE(ran.status) << mask << ran.status.to_string() << all_of(kernel.complaints);
    EXPECT_EQ(all_of(kernel.complaints), "") << mask;
    EXPECT_EQ(ran.output, small.expected()) << mask;
    for (const uint32_t used : kernel.core_masks) EXPECT_TRUE(submitted.contains(used)) << mask << ": " << used;
  }
}

TEST(Board, IsFoundByDriverAndChip) {
  StandInKernel rocket(Driver::Rocket, "rk3588"), vendor(Driver::Rknpu, "rk3588"), other(Driver::Other, "rk3588");
  const auto name = [](StandInKernel& kernel, const char* chip) {
    auto unit = open_board(chip, kernel);
    return !unit ? unit.status().to_string() : *unit ? (*unit)->name() : "none";
  };
  EXPECT_EQ(name(rocket, "rk3588"), "rocket (/dev/accel/accel0)");
  EXPECT_EQ(name(vendor, "rk3588"), "rknpu (/dev/dri/renderD128)");
  EXPECT_EQ(name(other, "rk3588"), "none");  // a graphics driver
  EXPECT_EQ(name(rocket, "rk3568"), "none");
  rocket.device_tree.clear();  // a PC
  EXPECT_EQ(name(rocket, "rk3588"), "none");
}

TEST(Board, APcHasNone) {
  const auto unit = open_board("rk3588");
  ASSERT_TRUE(unit) << unit.status().to_string();
  if (!linux_kernel().read("/proc/device-tree/compatible").empty()) GTEST_SKIP() << "this is a board";
  EXPECT_FALSE(*unit);
}

// A job that lists a buffer twice ends without having run, and no call fails: only the results tell.
TEST(Traps, AHandleInBothListsRunsNothing) {
  StandInKernel kernel(Driver::Rocket, "rk3588");
  abi::rocket::CreateBo bo;
  bo.bytes = 4096;
  ASSERT_EQ(kernel.control(3, abi::rocket::kCreateBo, &bo), 0);
  abi::rocket::FiniBo fini;
  fini.handle = bo.handle;
  ASSERT_EQ(kernel.control(3, abi::rocket::kFiniBo, &fini), 0);
  const abi::rocket::Task task{static_cast<uint32_t>(bo.dma_address), 130};
  abi::rocket::Job job;
  job.tasks = reinterpret_cast<uint64_t>(&task);
  job.task_count = 1;
  job.task_bytes = sizeof task;
  job.in_handles = job.out_handles = reinterpret_cast<uint64_t>(&bo.handle);
  job.in_count = job.out_count = 1;
  abi::rocket::Submit submit;
  submit.jobs = reinterpret_cast<uint64_t>(&job);
  submit.job_count = 1;
  submit.job_bytes = sizeof job;
  EXPECT_EQ(kernel.control(3, abi::rocket::kSubmit, &submit), 0);
  EXPECT_EQ(kernel.tasks_run, 0u);
  EXPECT_NE(all_of(kernel.complaints).find("listed twice"), std::string::npos);
}

}  // namespace
}  // namespace orknn::silicon
