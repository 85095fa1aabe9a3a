// What rounding does to means comes back in the bias.
#include "quantize/bias_correction.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

TEST(BiasCorrection, TakesAPlantedShiftBack) {
  // Weights of 0.4 steps round to nothing; the input's mean is 10.
  Node conv;
  conv.op = "Conv";
  const TensorData w = TensorData::from<float>({1, 2, 1, 1}, std::vector<float>{127, 0.4f});
  const QuantizedWeights q = round_weights(w, 0, {});
  ASSERT_EQ(q.values.as<int8_t>()[1], 0);
  std::vector<ChannelStatistics> input(2);
  input[1] = {.min = 8, .max = 12, .sum = 100, .squares = 1000, .count = 10};
  const std::vector<double> shift = bias_correction(conv, w, q, input);
  ASSERT_EQ(shift.size(), 1u);
  EXPECT_NEAR(shift[0], 4, 1e-5);
}
}  // namespace
}  // namespace orknn::quantize
