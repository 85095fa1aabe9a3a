// Boxes placed, decoded, suppressed and pooled, against values worked out by hand.
#include "import/lower/detection.h"

#include <gtest/gtest.h>

#include "import/lower/network.h"
#include "ops/eval.h"

namespace orknn::importer {
namespace {
using namespace ir;

// A graph of one layer whose operands are inputs, so that nothing is computed while it is built.
struct Sample {
  Network network{ops::builtin_ops()};
  Emitter e{network.graph, network.ops, "boxes", {"boxes"}};
  std::vector<TensorData> values;

  TensorId input(Dims dims, std::vector<float> numbers) {
    const TensorId id = network.graph.add_tensor("x" + std::to_string(values.size()), DType::Float32, to_shape(dims));
    network.graph.inputs().push_back(id);
    values.push_back(TensorData::from<float>(std::move(dims), numbers));
    return id;
  }
  std::vector<double> run(TensorId y) {
    network.graph.outputs().push_back(y);
    auto results = ops::eval_graph(network.graph, network.ops, values);
    EXPECT_TRUE(results) << (results ? "" : results.status().to_string());
    return results ? to_doubles(results->front().view()) : std::vector<double>();
  }
};

TEST(LowerDetection, PriorsStandAroundEveryPlace) {
  PriorGrid grid{.height = 1, .width = 2, .boxes = {{4, 2}, {2, 2}}, .step_x = 10, .step_y = 10, .unit_x = 20, .unit_y = 10};
  const std::vector<float> expected{0.15f, 0.4f, 0.35f, 0.6f, 0.2f, 0.4f, 0.3f, 0.6f,
                                    0.65f, 0.4f, 0.85f, 0.6f, 0.7f, 0.4f, 0.8f, 0.6f};
  auto boxes = place_priors(grid);
  ASSERT_TRUE(boxes);
  ASSERT_EQ(boxes->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ((*boxes)[i], expected[i]) << i;

  grid = {.height = 1, .width = 1, .boxes = {{6, 6}}, .offsets = {{0, 0}, {1, 1}}, .step_x = 4, .step_y = 4, .border = 1};
  EXPECT_EQ(*place_priors(grid), (std::vector<float>{-3, -3, 2, 2, 1, 1, 6, 6}));
  grid.clip = true;
  EXPECT_EQ(*place_priors(grid), (std::vector<float>{0, 0, 1, 1, 1, 1, 1, 1}));
  grid.height = grid.width = int64_t{1} << 20;
  EXPECT_FALSE(place_priors(grid));
}

TEST(LowerDetection, PriorsHaveTheirSizesInEitherOrder) {
  const auto sizes = [](PriorSizes sides) {
    std::vector<std::vector<float>> found;
    const auto boxes = prior_sizes(sides);
    EXPECT_TRUE(boxes) << boxes.status().to_string();
    if (boxes)
      for (const PriorGrid::Size& box : *boxes) found.push_back({box.width, box.height});
    return found;
  };
  using Sizes = std::vector<std::vector<float>>;
  PriorSizes sides{{2}, {8}, {1, 4, 4, 0.25}, true};
  EXPECT_EQ(sizes(sides), (Sizes{{2, 2}, {4, 4}, {4, 1}, {1, 4}}));  // a quarter is the reciprocal of 4
  sides.between_before_ratios = false;
  EXPECT_EQ(sizes(sides), (Sizes{{2, 2}, {4, 1}, {1, 4}, {4, 4}}));
  EXPECT_EQ(sizes({{1, 3}, {}, {4}, false}), (Sizes{{1, 1}, {2, 0.5f}, {3, 3}, {6, 1.5f}}));
  EXPECT_FALSE(prior_sizes({}));
  EXPECT_FALSE(prior_sizes({{1, 2}, {3}, {}, false}));
  EXPECT_FALSE(prior_sizes({{1}, {}, {-1}, false}));
}

TEST(LowerDetection, OffsetsAreDecodedAroundAnchors) {
  Sample s;
  const TensorId anchors = s.input({1, 2, 4}, {0, 0, 4, 2, 2, 2, 4, 6});
  const TensorId offsets = s.input({1, 2, 4}, {2, 4, 0, 0, 0, 0, 100, -100});
  const BoxCode code{.scales = {0.5, 0.25, 1, 1}, .divides = false, .most_growth = 1e-30};
  const std::vector<double> corners =
      s.run(corners_from_centred(s.e, decode_boxes(s.e, offsets, centred_from_corners(s.e, anchors), code)));
  EXPECT_EQ(corners, (std::vector<double>{4, 2, 8, 4, 2, 4, 4, 4}));  // growth up to e^0, shrinking without limit

  Sample divided;
  const TensorId centred = divided.input({1, 4}, {1, 2, 10, 20});
  const TensorId shift = divided.input({1, 4}, {5, -10, 0, 0});
  EXPECT_EQ(
      divided.run(corners_from_centred(divided.e, decode_boxes(divided.e, shift, columns_of_centred(divided.e, centred),
                                                               {.scales = {10, 10, 5, 5}, .divides = true, .most_growth = 0}))),
      (std::vector<double>{1, -28, 11, -8}));
}

TEST(LowerDetection, SurvivorsAreListedPerClassAndFilledUp) {
  const auto list = [](int64_t length, double fill) {
    Sample s;
    const TensorId boxes = s.input({3, 4}, {0, 0, 10, 10, 0, 0, 10, 9, 20, 20, 30, 30});
    const TensorId scores = s.input({2, 3}, {0.9f, 0.8f, 0.7f, 0.1f, 0.6f, 0.2f});
    const TensorId rows = suppress_boxes(s.e, boxes, scores, s.e.add_int_scalar("most", 5), s.e.add_scalar("overlap", 0.5),
                                         s.e.add_scalar("threshold", 0.3));
    return s.run(of_length(s.e, rows, length, {3}, fill));
  };
  EXPECT_EQ(list(4, 7), (std::vector<double>{0, 0, 0, 0, 0, 2, 0, 1, 1, 7, 7, 7}));
  EXPECT_EQ(list(2, 0), (std::vector<double>{0, 0, 0, 0, 0, 2}));
}

TEST(LowerDetection, RegionsArePooled) {
  const auto pooled = [](auto pool) {
    Sample s;
    const TensorId x = s.input({2, 1, 2, 2}, {0, 0, 0, 0, 1, 2, 3, 4});
    const TensorId rows = s.input({1, 5}, {1, 0, 0, 2, 2});
    return s.run(pool(s.e, x, rows));
  };
  const RegionPooling pooling{.height = 1, .width = 1, .scale = 0.5, .samples = 1};
  EXPECT_EQ(pooled([&](Emitter& e, TensorId x, TensorId rows) { return roi_max_pool(e, x, rows, pooling); }),
            (std::vector<double>{4}));
  EXPECT_EQ(pooled([&](Emitter& e, TensorId x, TensorId rows) { return roi_align(e, x, split_regions(e, rows), pooling); }),
            (std::vector<double>{2.5}));
  RegionPooling middles = pooling;
  middles.aligned = true;
  EXPECT_EQ(pooled([&](Emitter& e, TensorId x, TensorId rows) { return roi_align(e, x, split_regions(e, rows), middles); }),
            (std::vector<double>{1}));
  EXPECT_EQ(pooled([&](Emitter& e, TensorId x, TensorId rows) { return position_sensitive_pool(e, x, rows, 1, 1, 0.5); }),
            (std::vector<double>{2.5}));
}
}  // namespace
}  // namespace orknn::importer
