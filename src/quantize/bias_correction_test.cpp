// What rounding does to means comes back in the bias.
#include "quantize/bias_correction.h"

#include <gtest/gtest.h>

#include <limits>

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
  // Weights with a zero point: 0.4 becomes a whole step, 139 / 255.
  const TensorData around = TensorData::from<float>({1, 3, 1, 1}, std::vector<float>{127, 0.4f, -12});
  const QuantizedWeights shifted = round_weights(around, {}, {}, DType::UInt8);
  ASSERT_GT(shifted.zero_points.at(0), 0);
  ASSERT_EQ(shifted.values.as<uint8_t>()[1], shifted.zero_points[0] + 1);
  input.resize(3);
  EXPECT_NEAR(bias_correction(conv, around, shifted, input).at(0), 10 * (0.4 - shifted.scales[0]), 1e-5);
}

TEST(BiasCorrection, WeightsThatAreNotFiniteHaveAGrid) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const TensorData w = TensorData::from<float>({1, 4, 1, 1}, std::vector<float>{-2, 3, kInfinity, kNan});
  const QuantizedWeights shifted = round_weights(w, {}, {}, DType::UInt8);
  EXPECT_NEAR(shifted.scales.at(0), 5.0 / 255, 1e-3);
  EXPECT_EQ(shifted.zero_points.at(0), 102);
  EXPECT_EQ(shifted.values.as<uint8_t>()[2], 255);
  EXPECT_EQ(shifted.values.as<uint8_t>()[3], 102);
  const QuantizedWeights even = round_weights(w, {}, {});
  EXPECT_NEAR(even.scales.at(0), 3.0 / 127, 1e-4);
  EXPECT_EQ(even.values.as<int8_t>()[2], 127);
  EXPECT_EQ(even.values.as<int8_t>()[3], 0);
}

TEST(BiasCorrection, MovesTheBiasesOfEveryEightBitFormat) {
  for (const char* name : {"w8a8", "asymmetric_affine-u8"}) {
    Graph graph = graph_of(R"(graph "g" (%x: float32[1,2,4,4]) -> (%y) {
  %w: float32[2,2,1,1] = const {127, 0.4, -12, 30.3}
  %y = Conv(%x, %w)
})");
    const auto format = number_format(name);
    ASSERT_TRUE(format);
    QuantizeOptions options;
    passes::Trace trace;
    options.format = *format;
    options.trace = &trace;
    ASSERT_TRUE(quantized(graph, run_on({1, 2, 4, 4}), options));
    EXPECT_EQ(lines_of(trace, kCorrectBias).size(), 1u) << name;
  }
}
}  // namespace
}  // namespace orknn::quantize
