// Functions by the tables of the DPU, on the chip model.
#include <gtest/gtest.h>

#include "base/half.h"
#include "silicon/chip_model.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {

struct TableBench {
  TableLayer layer;
  std::vector<uint16_t> input, output;
  DeviceMemory memory;
  std::vector<Stream> streams;

  TableBench(std::string_view function, int64_t elements, float from, float to) : layer(*table_of_function(function, elements)) {
    for (int64_t i = 0; i < elements; ++i)
      input.push_back(float_to_half(from + (to - from) * static_cast<float>(i) / static_cast<float>(elements)));
    output.resize(input.size());
    EXPECT_TRUE(memory.map("in", 0x10000, std::as_writable_bytes(std::span(input))));
    EXPECT_TRUE(memory.map("out", 0x200000, std::as_writable_bytes(std::span(output))));
    auto made = table_streams(layer, 0x10000, 0x200000);
    EXPECT_TRUE(made) << made.status().to_string();
    if (made) streams = std::move(*made);
  }
};

TEST(Tables, ComputeTheirFunction) {
  for (const char* function : {"sigmoid", "hard_sigmoid", "tanh"}) {
    TableBench bench(function, 40000, -6.25f, 6.25f);
    EXPECT_EQ(bench.streams.size(), 2u);  // more than a task has
    const Status ran = run_streams(bench.streams, bench.memory, ThreadPool::shared());
    ASSERT_TRUE(ran) << ran.to_string();
    // Entries are 0.012 apart: a corner between two of them is cut.
    for (size_t i = 0; i < bench.input.size(); ++i) {
      const double x = half_to_float(bench.input[i]);
      ASSERT_NEAR(half_to_float(bench.output[i]), value_of_function(function, x), 0x1p-10) << function << " of " << x;
    }
  }
  EXPECT_FALSE(table_of_function("softmax", 8));
  EXPECT_FALSE(table_streams(*table_of_function("tanh", 12), 0x10000, 0x20000));
}

TEST(Tables, SingleBitChangesAreNoticed) {
  TableBench bench("sigmoid", 4096, -6.3f, 6.3f);
  ASSERT_TRUE(run_streams(bench.streams, bench.memory, ThreadPool::shared()));
  const std::vector<uint16_t> right = bench.output, input = bench.input;
  size_t changes = 0, noticed = 0, entries = 0;
  for (uint64_t& word : bench.streams[0]) {
    if (decode(word).offset == reg::DPU_LUT_ACCESS_DATA && entries++ % 64 != 5) continue;  // some of the entries
    for (int bit = 0; bit < 64; ++bit) {
      word ^= uint64_t{1} << bit;
      std::ranges::fill(bench.output, uint16_t{0});
      std::ranges::copy(input, bench.input.begin());
      noticed += !run_streams(bench.streams, bench.memory, ThreadPool::shared()) || bench.output != right;
      ++changes;
      word ^= uint64_t{1} << bit;
    }
  }
  EXPECT_GE(noticed * 100, changes * 90) << noticed << " of " << changes;
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("changes", static_cast<int>(changes));
}

TEST(Tables, TheLintAsksForBothTables) {
  TableBench bench("tanh", 64, -1, 1);
  Stream& stream = bench.streams[0];
  const auto entry = std::ranges::find_if(stream, [](uint64_t w) { return decode(w).offset == reg::DPU_LUT_ACCESS_DATA; });
  stream.erase(entry);
  const Status ran = run_streams(bench.streams, bench.memory, ThreadPool::shared());
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.to_string().find("tables are not loaded"), std::string::npos) << ran.to_string();
}

}  // namespace
}  // namespace orknn::silicon
