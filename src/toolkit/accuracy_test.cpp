// Distances and the report's forms; whole analyses are tested from Python (tests/test_accuracy.py).
#include "toolkit/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orknn::toolkit {
namespace {

TEST(Accuracy, DistanceOfTwoTensors) {
  const float inf = INFINITY, nan = NAN;
  const struct {
    std::vector<float> a, b;
    double cosine, euclid;
    const char* word;
  } cases[] = {
      {{3, 4}, {3, 4}, 1, 0, ""},      {{3, 0}, {0, 4}, 0, 5, ""},       {{0, 0}, {0, 0}, 1, 0, ""},
      {{0, 0}, {1, 0}, 0, 1, ""},      {{-inf, 3}, {-inf, 3}, 1, 0, ""},  // padding that both have
      {{1, 3}, {inf, 3}, 1, 0, "inf"}, {{1, 3}, {nan, 3}, 1, 0, "nan"},
  };
  for (const auto& c : cases) {
    const Distance d = distance(c.a, c.b);
    EXPECT_DOUBLE_EQ(d.cosine, c.cosine);
    EXPECT_DOUBLE_EQ(d.euclid, c.euclid);
    EXPECT_EQ(d.word, c.word);
  }
}

AccuracyReport example() {
  AccuracyReport report;
  report.layers.push_back({.type = "Input", .name = "data", .entire = Distance{}, .single = Distance{}});
  report.layers.push_back({.type = "Conv", .name = "conv1", .fused = true});
  report.layers.push_back(
      {.type = "Relu", .name = "relu1", .entire = Distance{0.985, 135.4321, ""}, .single = Distance{0.5, 22.6391, ""}});
  report.layers.push_back({.type = "Exp", .name = "exp", .entire = Distance{1, 0, "inf"}, .single = Distance{1, 0, "inf"}});
  return report;
}

TEST(Accuracy, TextHasTheColumnsUsersKnow) {
  const std::string text = accuracy_text(example(), false);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  for (const char* words : {"layer_name", "simulator_error", "entire", "single", "[Input] data   1.00000 | 0.0",
                            "\n[Conv] conv1\n", "0.98500 | 135.43", "0.50000 | 22.639", "s_inf | s_inf", "q_inf | q_inf"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("runtime_error"), std::string::npos);
  const std::string coloured = accuracy_text(example(), true);
  EXPECT_NE(coloured.find("\033[33m 0.98500"), std::string::npos) << coloured;
  EXPECT_NE(coloured.find("\033[31m 0.50000"), std::string::npos) << coloured;
}

TEST(Accuracy, Toolkit1Lines) {
  EXPECT_EQ(accuracy_text_toolkit1(example(), true),
            "data \teculidean_norm=0.000000\tcosine_norm=1.000000\teculidean=0.000000\tcosine=1.000000\n"
            "relu1\teculidean_norm=1.000000\tcosine_norm=0.500000\teculidean=22.639100\tcosine=0.500000\n"
            "exp  \teculidean_norm=inf\tcosine_norm=inf\teculidean=inf\tcosine=inf\n");
}

}  // namespace
}  // namespace orknn::toolkit
