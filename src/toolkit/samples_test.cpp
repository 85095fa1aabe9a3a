// Samples computed side by side: what is seen of them, in which order, and what becomes of a bad one.
#include "toolkit/samples.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "data/npy.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "temporary_folder.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

constexpr size_t kSamples = 9;

class SamplesTest : public testing::Test {
 protected:
  SamplesTest() {
    auto parsed = parse(R"(graph "g" (%x: float32[1,16]) -> (%y) {
  %a = Relu(%x)
  %b = Add(%a, %x)
  %y = Neg(%b)
})");
    EXPECT_TRUE(parsed && infer_shapes(*parsed, ops::builtin_ops()));
    graph = std::move(*parsed);
    std::ofstream list(folder.file("list.txt"));
    for (size_t i = 0; i < kSamples; ++i) {
      write(i, {1, 16});
      list << i << ".npy\n";
    }
  }
  // Sample i is all i + 1.
  void write(size_t i, Dims dims) {
    const std::vector<float> values(static_cast<size_t>(element_count(dims)), static_cast<float>(i + 1));
    EXPECT_TRUE(data::write_npy(folder.file(std::to_string(i) + ".npy"), TensorData::from<float>(std::move(dims), values)));
  }
  Samples open() {
    auto samples = Samples::open(folder.file("list.txt"), graph, {}, {});
    EXPECT_TRUE(samples) << samples.status().to_string();
    return std::move(*samples);
  }

  tests::TemporaryFolder folder;
  Graph graph;
};

TEST_F(SamplesTest, EachTensorIsSeenInTheOrderOfTheSamples) {
  std::mutex mutex;
  std::map<std::string, std::vector<std::pair<size_t, float>>> seen;
  std::vector<size_t> done;
  ASSERT_TRUE(open().run(
      graph, kSamples,
      [&](size_t sample, std::string_view name, const TensorView& value) {
        const std::lock_guard lock(mutex);
        seen[std::string(name)].emplace_back(sample, value.values<float>()[15]);
      },
      [&](size_t number) { done.push_back(number); }));
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [name, factor] : std::map<std::string, float>{{"x", 1}, {"a", 1}, {"b", 2}, {"y", -2}}) {
    ASSERT_EQ(seen[name].size(), kSamples) << name;
    for (size_t i = 0; i < kSamples; ++i) EXPECT_EQ(seen[name][i], std::pair(i, factor * static_cast<float>(i + 1))) << name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(done));
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), kSamples);
}

TEST_F(SamplesTest, OutputsBelongToTheirSamples) {
  std::vector<float> found(kSamples);
  const Samples turned = open().starting_at(2);
  ASSERT_TRUE(turned.run_for_outputs(graph, 100, [&](size_t sample, std::span<const TensorView> outputs) {
    found[sample] = outputs[0].values<float>()[0];
    return outputs.size() == 1;
  }));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], -2 * static_cast<float>((i + 2) % kSamples + 1));
}

TEST_F(SamplesTest, NoSampleBeginsAfterTheLastThatIsWanted) {
  std::atomic<size_t> computed{0};
  ASSERT_TRUE(open().run_for_outputs(graph, kSamples, [&](size_t, std::span<const TensorView>) {
    ++computed;
    return false;
  }));
  EXPECT_LE(computed, static_cast<size_t>(ThreadPool::shared().threads()));
}

TEST_F(SamplesTest, TheFirstBadSampleIsNamedAndNobodyWaitsForIt) {
  for (size_t bad : {4u, 7u}) write(bad, {1, 15});
  std::mutex mutex;
  std::vector<size_t> seen;
  const Status status = open().run(graph, kSamples, [&](size_t sample, std::string_view name, const TensorView&) {
    if (name != "y") return;
    const std::lock_guard lock(mutex);
    seen.push_back(sample);
  });
  ASSERT_FALSE(status);
  EXPECT_NE(status.to_string().find("line 5"), std::string::npos) << status.to_string();
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
  EXPECT_LE(seen.size(), 4u);
}
}  // namespace
}  // namespace orknn::toolkit
