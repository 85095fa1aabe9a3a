#include "silicon/weight_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

namespace orknn::silicon {
namespace {

WeightPlan dense(int64_t kernels, int64_t channels, int64_t height, int64_t width) {
  return {.kernels = kernels,
          .channels = channels,
          .height = height,
          .width = width,
          .kernel_step = height * width * channels,
          .tap_step = channels,
          .channel_step = 1,
          .own_channels = channels,
          .kernels_together = kernels};
}

std::vector<std::byte> packed(const WeightPlan& plan, const void* values) {
  std::vector<std::byte> to(plan.bytes(), std::byte{0xaa});
  plan.pack(values, to, ThreadPool::shared());
  return to;
}

template <class T>
std::vector<T> random_values(int64_t count) {
  std::mt19937 engine(5);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& v : values) v = static_cast<T>(engine());
  return values;
}

// What stands where weight_offset() says, one element after the other.
template <class T>
std::vector<T> by_elements(const WeightPlan& p, const std::vector<T>& values) {
  const KernelShape shape = p.stored();
  std::vector<T> to(p.bytes() / sizeof(T));
  for (int64_t k = 0; k < (p.depthwise ? 1 : p.kernels); ++k)
    for (int64_t tap = 0; tap < p.taps(); ++tap)
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t own = p.depthwise ? c : c - k / p.kernels_together * p.own_channels;
        const bool has_value = c < p.channels && own >= 0 && (p.depthwise || own < p.own_channels);
        const int64_t at =
            p.depthwise ? c * p.kernel_step + tap * p.tap_step : k * p.kernel_step + tap * p.tap_step + own * p.channel_step;
        to[static_cast<size_t>(weight_offset(shape, k, tap, c))] =
            has_value ? values[static_cast<size_t>(at)] : static_cast<T>(p.zero_point);
      }
  return to;
}

template <class T>
void expect_right(const WeightPlan& p, int64_t count) {
  const std::vector<T> values = random_values<T>(count);
  const std::vector<T> expected = by_elements(p, values);
  const std::vector<std::byte> found = packed(p, values.data());
  ASSERT_EQ(found.size(), expected.size() * sizeof(T));
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
}

TEST(WeightPlan, ChannelsWithoutWeightsHoldTheirZeroPoint) {
  const int8_t values[] = {1, 2, 3};
  WeightPlan plan = dense(1, 3, 1, 1);
  plan.zero_point = 9;
  const auto to = packed(plan, values);
  ASSERT_EQ(to.size(), 32u * 16);
  EXPECT_EQ(static_cast<int8_t>(to[2]), 3);
  EXPECT_EQ(static_cast<int8_t>(to[3]), 9);
  EXPECT_EQ(static_cast<int8_t>(to[16]), 0);  // a kernel that only fills the group
}

TEST(WeightPlan, TakesValuesFromWhereTheyLie) {
  for (const Precision precision : {Precision::Int8, Precision::Half})
    for (const Grouping grouping : {Grouping::Whole, Grouping::Short})
      for (const auto& [kernels, channels, height, width] :
           {std::array<int64_t, 4>{1, 1, 1, 1}, {32, 32, 3, 3}, {70, 50, 3, 2}, {100, 513, 1, 1}, {33, 96, 5, 5}}) {
        WeightPlan plan = dense(kernels, channels, height, width);
        plan.precision = precision;
        plan.grouping = grouping;
        plan.zero_point = precision == Precision::Int8 ? 7 : 0;
        WeightPlan rows = plan;  // [kernels][channels][taps]
        rows.tap_step = 1;
        rows.channel_step = plan.taps();
        WeightPlan columns = plan;  // [taps][channels][kernels]
        columns.kernel_step = 1;
        columns.channel_step = kernels;
        columns.tap_step = kernels * channels;
        WeightPlan depthwise = plan;  // [channels][taps]
        depthwise.depthwise = true;
        depthwise.kernels = channels;
        depthwise.kernel_step = plan.taps();
        depthwise.tap_step = 1;
        const int64_t count = kernels * channels * plan.taps();
        for (const WeightPlan& p : {plan, rows, columns, depthwise}) {
          SCOPED_TRACE(testing::Message() << kernels << " x " << channels << " x " << height << " x " << width);
          EXPECT_TRUE(p.fits(count));
          precision == Precision::Int8 ? expect_right<uint8_t>(p, count) : expect_right<uint16_t>(p, count);
        }
      }
}

TEST(WeightPlan, KernelsOfOtherGroupsAreZeroPoints) {
  for (const int64_t groups : {2, 5, 40}) {
    WeightPlan plan = dense(80, 40, 3, 3);
    plan.zero_point = 3;
    plan.own_channels = 40 / groups;
    plan.kernels_together = 80 / groups;
    plan.kernel_step = plan.own_channels * 9;
    plan.channel_step = 9;
    plan.tap_step = 1;
    expect_right<uint8_t>(plan, 80 * plan.own_channels * 9);
  }
}

TEST(WeightPlan, BlocksArePackedOneAfterTheOther) {
  WeightPlan plan = dense(70, 70, 3, 3);  // values [channels][taps]: each kernel has one channel
  plan.block = 32;
  plan.own_channels = plan.kernels_together = 1;
  plan.kernel_step = 9;
  plan.tap_step = plan.channel_step = 1;
  ASSERT_TRUE(plan.fits(70 * 9));
  const std::vector<int8_t> values = random_values<int8_t>(70 * 9);
  std::vector<std::byte> expected;
  for (int64_t first = 0; first < 70; first += 32) {
    WeightPlan part = plan;
    part.block = 0;
    part.kernels = part.channels = std::min<int64_t>(32, 70 - first);
    const auto own = packed(part, values.data() + first * 9);
    expected.insert(expected.end(), own.begin(), own.end());
  }
  EXPECT_EQ(packed(plan, values.data()), expected);
}

TEST(WeightPlan, SumsAreThoseOfItsValues) {
  const std::vector<int8_t> values = random_values<int8_t>(24 * 40 * 9);
  WeightPlan rows = dense(24, 40, 3, 3), plan = rows, columns = rows, depthwise = rows;
  rows.tap_step = 1;
  rows.channel_step = 9;
  columns.kernel_step = 1;
  columns.channel_step = 24;
  columns.tap_step = 24 * 40;
  depthwise.depthwise = true;
  depthwise.kernels = 40;
  depthwise.kernel_step = 1;
  depthwise.tap_step = 40;
  for (WeightPlan p : {plan, rows, columns, depthwise}) {
    p.zero_point = -4;
    const std::vector<int64_t> sums = p.sums(values.data()), equal = [&] {
      p.value = -1;
      return p.sums(nullptr);
    }();
    for (int64_t k = 0; k < p.kernels; ++k) {
      int64_t sum = 0, count = 0;
      for (int64_t c = 0; c < (p.depthwise ? 1 : p.channels); ++c)
        for (int64_t t = 0; t < 9; ++t, ++count)
          sum += values[static_cast<size_t>(k * p.kernel_step + t * p.tap_step + c * p.channel_step)] + 4;
      EXPECT_EQ(sums[static_cast<size_t>(k)], sum);
      EXPECT_EQ(equal[static_cast<size_t>(k)], count * 3);
    }
  }
}

TEST(WeightPlan, RefusesValuesOutsideOfTheirTensor) {
  const WeightPlan plan = dense(8, 16, 3, 3);
  EXPECT_TRUE(plan.fits(8 * 16 * 9));
  EXPECT_FALSE(plan.fits(8 * 16 * 9 - 1));
  const auto is_refused = [&](auto change) {
    WeightPlan p = plan;
    change(p);
    return !p.fits(8 * 16 * 9);
  };
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.kernel_step = -1; }));
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.kernels = 0; }));
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.height = int64_t{1} << 40; }));
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.kernels_together = 4; }));  // channels of the second group do not exist
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.block = 32; }));
  EXPECT_TRUE(is_refused([](WeightPlan& p) { p.precision = Precision::Int32; }));
}

}  // namespace
}  // namespace orknn::silicon
