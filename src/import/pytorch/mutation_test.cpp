// Damaged TorchScript archives: whatever the bytes say, the importer returns a graph or a Status, in bounded memory. The
// mutations are the same on every run; ORKNN_MUTATIONS sets how many there are.
#include "mutation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>

#include "torch_writer.h"

namespace orknn {
namespace {

bool survives(std::string_view bytes) { return tests::import_survives(bytes, "pytorch"); }

std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t steps = 1 + below(4);
  for (size_t step = 0; step < steps && !bytes.empty(); ++step) {
    const size_t at = below(bytes.size());
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: bytes[at] = "()[],.0123456789-=x\n"[below(20)]; break;  // other code
      case 3:
        bytes.replace(at, std::min<size_t>(8, bytes.size() - at),
                      std::string(std::min<size_t>(8, bytes.size() - at), "\xff\x7f\0"[below(3)]));
        break;   // huge or no lengths
      case 4: {  // a piece from elsewhere, sizes kept
        const size_t from = below(bytes.size()),
                     count = std::min({size_t{1} + below(32), bytes.size() - at, bytes.size() - from});
        bytes.replace(at, count, std::string(bytes.substr(from, count)));
        break;
      }
      default: bytes.resize(below(16) == 0 ? at : bytes.size()); break;  // sometimes cut off
    }
  }
  return bytes;
}

TEST(ImportPytorchMutation, SamplesAreValid) {
  for (const auto& sample : tests::sample_torch_models()) EXPECT_TRUE(survives(sample.bytes)) << sample.name;
}

TEST(ImportPytorchMutation, AnyPrefixIsRefused) {
  for (const auto& sample : tests::sample_torch_models())
    for (size_t length = 0; length < sample.bytes.size(); ++length)
      EXPECT_FALSE(survives(std::string_view(sample.bytes).substr(0, length)));
}

TEST(ImportPytorchMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(3000);
  const auto samples = tests::sample_torch_models();
  std::mt19937 random(20240517);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) accepted += survives(mutate(samples[static_cast<size_t>(i) % samples.size()].bytes, random));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

}  // namespace
}  // namespace orknn
