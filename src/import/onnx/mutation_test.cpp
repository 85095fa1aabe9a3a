// Damaged ONNX files: whatever the bytes say, the importer returns a graph or a Status, in bounded memory. The mutations
// are the same on every run; ORKNN_MUTATIONS sets how many there are.
#include "mutation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "import_samples.h"

namespace orknn {
namespace {

bool survives(std::string_view bytes) { return tests::import_survives(bytes, "onnx"); }

TEST(ImportMutation, SamplesAreValid) {
  for (const auto& sample : tests::sample_onnx_models()) EXPECT_TRUE(survives(sample.bytes)) << sample.name;
}

// That no prefix crashes is all there is to see; most of them must be refused.
TEST(ImportMutation, PrefixesDoNotCrash) {
  tests::Tally seen;
  for (const auto& sample : tests::sample_onnx_models())
    for (size_t length = 0; length < sample.bytes.size(); ++length)
      seen.add(survives(std::string_view(sample.bytes).substr(0, length)));
  EXPECT_GT(seen.refused, seen.read) << "of " << seen.tried();
}

TEST(ImportMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(3000);
  const auto samples = tests::sample_onnx_models();
  std::mt19937 random(20240517);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = tests::mutate(samples[static_cast<size_t>(i) % samples.size()].bytes, random);
    accepted += survives(bytes);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

TEST(ImportMutation, NoiseIsRefused) { EXPECT_EQ(tests::noise_read("onnx").read, 0u); }

}  // namespace
}  // namespace orknn
