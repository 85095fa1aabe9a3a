// Damaged TFLite files: whatever the bytes say, the importer returns a graph or a Status, in bounded memory. The mutations
// are the same on every run; ORKNN_MUTATIONS sets how many there are.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <random>

#include "mutation.h"
#include "tflite_samples.h"

namespace orknn {
namespace {

bool survives(std::string_view bytes) { return tests::import_survives(bytes, "tflite"); }

// Offsets, counts and indices are 4 bytes at multiples of 4: most damage goes there.
std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t steps = 1 + below(4);
  for (size_t step = 0; step < steps && bytes.size() > 8; ++step) {
    const size_t at = below(bytes.size()), word = below(bytes.size() / 4) * 4;
    int32_t value;
    std::memcpy(&value, bytes.data() + word, 4);
    const auto set_word = [&](int64_t v) {
      const auto w = static_cast<int32_t>(v);
      std::memcpy(bytes.data() + word, &w, 4);
    };
    switch (below(8)) {
      case 0: bytes.resize(8 + below(bytes.size() - 8)); break;                       // cut off
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;      // one bit
      case 2: bytes[at] = static_cast<char>(random()); break;                         // one byte
      case 3: set_word(static_cast<int64_t>(random())); break;                        // a wild number
      case 4: set_word(int64_t{value} + static_cast<int64_t>(below(17)) - 8); break;  // off by a little
      case 5: set_word(below(2) ? INT32_MAX : -1); break;
      case 6: set_word(static_cast<int64_t>(below(64))); break;  // a plausible index
      default: std::memcpy(bytes.data() + word, bytes.data() + below(bytes.size() / 4) * 4, 4); break;
    }
  }
  return bytes;
}

TEST(TfliteMutation, SamplesAreValid) {
  for (const auto& sample : tests::sample_tflite_models()) EXPECT_TRUE(survives(sample.bytes)) << sample.name;
}

// That no prefix crashes is all there is to see; most of them must be refused.
TEST(TfliteMutation, PrefixesDoNotCrash) {
  tests::Tally seen;
  for (const auto& sample : tests::sample_tflite_models())
    for (size_t length = 0; length < sample.bytes.size(); ++length)
      seen.add(survives(std::string_view(sample.bytes).substr(0, length)));
  EXPECT_GT(seen.refused, seen.read) << "of " << seen.tried();
}

TEST(TfliteMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(3000);
  const auto samples = tests::sample_tflite_models();
  std::mt19937 random(20240611);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutate(samples[static_cast<size_t>(i) % samples.size()].bytes, random);
    accepted += survives(bytes);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

TEST(TfliteMutation, NoiseIsRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(8 + random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::memcpy(bytes.data() + 4, "TFL3", 4);
    EXPECT_FALSE(survives(bytes));
  }
}

}  // namespace
}  // namespace orknn
