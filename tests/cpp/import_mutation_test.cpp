// Damaged ONNX files: whatever the bytes say, the importer answers with a graph or a Status, in bounded memory. The mutations
// are the same on every run; ORKNN_MUTATIONS sets how many there are.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <random>

#include "import_samples.h"

namespace orknn {
namespace {

std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t steps = 1 + below(4);
  for (size_t step = 0; step < steps && !bytes.empty(); ++step) {
    const size_t at = below(bytes.size());
    switch (below(7)) {
      case 0: bytes.resize(at); break;                                                      // cut off
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;            // one bit
      case 2: bytes[at] = static_cast<char>(random()); break;                               // one byte
      case 3: bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); break;            // a huge length or number
      case 4: bytes.erase(at, 1 + below(8)); break;
      case 5: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32))); break;    // a piece from elsewhere
      default: bytes[at] = static_cast<char>(0x7f - below(2) * 0x77); break;                // a plausible length, but wrong
    }
  }
  return bytes;
}

TEST(ImportMutation, SamplesAreValid) {
  for (const auto& sample : tests::sample_onnx_models()) EXPECT_TRUE(tests::import_survives(sample.bytes)) << sample.name;
}

TEST(ImportMutation, AnyPrefixIsRefusedOrRead) {
  for (const auto& sample : tests::sample_onnx_models())
    for (size_t length = 0; length < sample.bytes.size(); ++length) tests::import_survives(std::string_view(sample.bytes).substr(0, length));
}

TEST(ImportMutation, DamageDoesNoHarm) {
  const char* wanted = std::getenv("ORKNN_MUTATIONS");
  const int count = wanted ? std::atoi(wanted) : 3000;
  const auto samples = tests::sample_onnx_models();
  std::mt19937 random(20240517);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutate(samples[static_cast<size_t>(i) % samples.size()].bytes, random);
    accepted += tests::import_survives(bytes);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

TEST(ImportMutation, NoiseIsRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(tests::import_survives(bytes));
  }
}

}  // namespace
}  // namespace orknn
