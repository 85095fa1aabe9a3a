// Damaged TensorFlow graphs, binary and text: whatever they say, the importer returns a graph or a Status, in bounded
// memory. The mutations are the same on every run; ORKNN_MUTATIONS sets how many there are.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "import/tensorflow/parse.h"
#include "mutation.h"
#include "tensorflow_writer.h"

namespace orknn {
namespace {
std::string binary_of(const std::string& text) {
  const auto bytes = importer::tensorflow::encode_graph_text(text);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

bool survives(std::string_view bytes) { return tests::import_survives(bytes, "tensorflow"); }

std::vector<std::string> files() {
  std::vector<std::string> list;
  for (const auto& sample : tests::tf::samples()) {
    list.push_back(sample.text);
    list.push_back(binary_of(sample.text));
  }
  return list;
}

TEST(TensorFlowMutation, SamplesAreValid) {
  for (const auto& sample : tests::tf::samples()) {
    EXPECT_TRUE(survives(sample.text)) << sample.name;
    EXPECT_TRUE(survives(binary_of(sample.text))) << sample.name;
  }
}

// That no prefix crashes is all there is to see; some must be refused.
TEST(TensorFlowMutation, PrefixesDoNotCrash) {
  tests::Tally seen;
  for (const auto& sample : tests::tf::samples()) {
    const std::string bytes = binary_of(sample.text);
    for (size_t length = 0; length < bytes.size(); ++length) seen.add(survives(std::string_view(bytes).substr(0, length)));
    for (size_t length = 0; length < sample.text.size(); length += 7)
      seen.add(survives(std::string_view(sample.text).substr(0, length)));
  }
  EXPECT_GT(seen.refused, 0u) << "of " << seen.tried();
}

TEST(TensorFlowMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(3000);
  const auto list = files();
  std::mt19937 random(20240623);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) accepted += survives(tests::mutate(list[static_cast<size_t>(i) % list.size()], random));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

// Numbers in the text are what a hostile graph would change: extents, axes, counts. That none crashes is all there is to see;
// some must be refused, and some be harmless.
TEST(TensorFlowMutation, WildNumbersDoNotCrash) {
  const int count = tests::mutation_count(3000) / 6;  // wild extents make an import slow
  const auto samples = tests::tf::samples();
  constexpr std::string_view kNumbers[] = {"-1",
                                           "0",
                                           "1",
                                           "2",
                                           "7",
                                           "-9223372036854775808",
                                           "9223372036854775807",
                                           "2147483647",
                                           "-2147483648",
                                           "65536",
                                           "1099511627776",
                                           "nan",
                                           "1e38"};
  std::mt19937 random(20240624);
  tests::Tally seen;
  for (int i = 0; i < count; ++i) {
    std::string text = samples[static_cast<size_t>(i) % samples.size()].text;
    for (size_t step = 0, steps = 1 + random() % 3; step < steps; ++step) {
      const size_t at = text.find(": ", random() % text.size());
      if (at == std::string::npos || !(std::isdigit(static_cast<unsigned char>(text[at + 2])) || text[at + 2] == '-')) continue;
      text.replace(at + 2, text.find_first_of(" }\n", at + 2) - at - 2, kNumbers[random() % std::size(kNumbers)]);
    }
    seen.add(survives(text));
  }
  EXPECT_GT(seen.refused, 0u) << "of " << seen.tried();
  EXPECT_GT(seen.read, 0u) << "of " << seen.tried();
}

TEST(TensorFlowMutation, NoiseIsRefused) { EXPECT_EQ(tests::noise_read("tensorflow").read, 0u); }
}  // namespace
}  // namespace orknn
