// Statistics of parts of the samples, from one run, against runs of each part alone.
#include "quantize/measurements.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

constexpr size_t kSamples = 5;  // two and three

// Computes samples `first` to `first + count` of `run` alone.
RunSamples part_of(const RunSamples& run, size_t first) {
  return [&run, first](const Graph& graph, size_t count, const Observe& observe) {
    std::map<std::string, size_t, std::less<>> seen;
    return run(graph, first + count, [&](std::string_view name, const TensorView& value) {
      if (seen[std::string(name)]++ >= first) observe(name, value);
    });
  };
}

void expect_same(const TensorStatistics& found, const TensorStatistics& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, e] : expected) {
    const Statistics& f = found.at(name);
    EXPECT_EQ(f.count(), e.count()) << name;
    EXPECT_EQ(f.min(), e.min()) << name;
    EXPECT_EQ(f.max(), e.max()) << name;
    EXPECT_EQ(f.moving_max(), e.moving_max()) << name;
    ASSERT_EQ(f.channels().size(), e.channels().size()) << name;
    for (size_t c = 0; c < e.channels().size(); ++c) {
      EXPECT_EQ(f.channels()[c].sum, e.channels()[c].sum) << name;
      EXPECT_EQ(f.channels()[c].squares, e.channels()[c].squares) << name;
    }
    EXPECT_TRUE(std::ranges::equal(f.histogram().bins(), e.histogram().bins())) << name;
    EXPECT_TRUE(std::ranges::equal(f.weighted_histogram().bins(), e.weighted_histogram().bins())) << name;
    EXPECT_EQ(f.importance(), e.importance()) << name;
  }
}

TEST(Measurements, PartsAreAsIfMeasuredAlone) {
  const Graph graph = graph_of(kStretched);
  const LayerForms forms(graph);
  const RunSamples run = run_on({1, 2, 8, 8});
  for (const Detail detail : {Detail{}, Detail{.weighted = true}, Detail{.histograms = true, .weighted = true}}) {
    Measurements measured(graph, forms, run, kSamples, true);
    const auto expect = [&](Part part, size_t first, size_t count) {
      const auto found = measured.of(part, detail), expected = measure(graph, forms, part_of(run, first), count, detail);
      ASSERT_TRUE(found && expected);
      EXPECT_EQ(found->at("h").weighted_histogram().empty(), !detail.weighted);
      expect_same(*found, *expected);
    };
    expect(Part::All, 0, kSamples);
    expect(Part::FirstHalf, 0, 2);
    expect(Part::SecondHalf, 2, 3);
  }
}

TEST(Measurements, SamplesRunAgainOnlyForMoreDetail) {
  const Graph graph = graph_of(kStretched);
  const LayerForms forms(graph);
  const RunSamples run = run_on({1, 2, 8, 8});
  int runs = 0;
  Measurements measured(
      graph, forms,
      [&](const Graph& computed, size_t count, const Observe& observe) {
        ++runs;
        return run(computed, count, observe);
      },
      kSamples, true);
  for (const Part part : {Part::All, Part::FirstHalf, Part::SecondHalf}) ASSERT_TRUE(measured.of(part, {.weighted = true}));
  const auto plain = measured.of(Part::All, {}), expected = measure(graph, forms, run, kSamples, {});
  EXPECT_EQ(runs, 1);
  ASSERT_TRUE(plain && expected);
  expect_same(*plain, *expected);
  ASSERT_TRUE(measured.of(Part::All, {.histograms = true}));
  EXPECT_EQ(runs, 2);
}
}  // namespace
}  // namespace orknn::quantize
