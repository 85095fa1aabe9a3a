// Decisions that calibration makes once and that everything after it follows.
#include "quantize/calibrate.h"

#include <gtest/gtest.h>

#include "quantize_networks.h"

namespace orknn::quantize {
namespace {
using namespace tests;

TEST(Calibrate, WithOutliersCutTheNextLayerSeesMoreOfTheOtherChannels) {
  // Channels on axis 1, and on the last one of three.
  constexpr const char* products = R"(graph "g" (%x: float32[1,64,2]) -> (%y) {
  %w: float32[2,2] = const {400, 0, 0, 1}
  %h = MatMul(%x, %w) + HardSwish()
  %v: float32[2,2] = const {0.000001, 0, 0, 2}
  %y = MatMul(%h, %v)
})";
  for (const auto& [text, dims] : {std::pair{kStretched, Dims{1, 2, 8, 8}}, {products, Dims{1, 64, 2}}}) {
    SCOPED_TRACE(text);
    const Graph graph = graph_of(text);
    const TensorData x = TensorData::from<float>(dims, noise(128, 9, 1));
    const std::vector<double> expected = result_of(graph, x);
    const auto error = [&](bool clip, passes::Trace& trace) {
      Graph changed = graph;
      QuantizeOptions options;
      if (!clip) options.leave_out(kClipOutliers);
      options.trace = &trace;
      EXPECT_TRUE(quantized(changed, run_on(dims), options));
      return distance(real_result(changed, x), expected);
    };
    passes::Trace full, cut;
    const double before = error(false, full);
    EXPECT_TRUE(lines_of(full, kClipOutliers).empty());
    EXPECT_LT(error(true, cut), 0.2 * before);
    ASSERT_EQ(lines_of(cut, kClipOutliers).size(), 1u) << cut.to_text();
    EXPECT_NE(lines_of(cut, kClipOutliers)[0].find("the range of 'h'"), std::string::npos);
  }
}

TEST(Calibrate, ACutIsTheRangeOfItsTensorInEightBitsWhateverTheAlgorithm) {
  Graph graph = graph_of(kStretched);
  const auto calibration = calibrated(graph, run_on({1, 2, 8, 8}));
  ASSERT_TRUE(calibration);
  ASSERT_EQ(calibration->cuts.size(), 1u);
  const Statistics& seen = calibration->statistics.at("h");
  const Range cut = calibration->cuts.at("h").range;
  EXPECT_LT(cut.high, seen.max());
  for (Algorithm a : {Algorithm::Normal, Algorithm::MovingAverage}) EXPECT_EQ(calibration->range("h", seen, a, 8).high, cut.high);
  EXPECT_EQ(calibration->range("h", seen, Algorithm::Normal, 16).high, seen.max());
  ASSERT_TRUE(quantize(graph, ops::builtin_ops(), LayerForms(graph), *calibration, {}));
  EXPECT_EQ(graph.tensor(graph.find_tensor("h")).quant->max[0], static_cast<float>(cut.high));
}
}  // namespace
}  // namespace orknn::quantize
