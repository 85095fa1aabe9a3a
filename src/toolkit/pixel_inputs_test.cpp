// Inputs whose integers are pixels: the network computes what it computed, in the layers that took the rest.
#include "toolkit/pixel_inputs.h"

#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "quantize/number_format.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

const compile::Normalization kThreeChannels{{123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f}};

Graph network(const std::string& body, const char* input = "float32[1,3,4,5]") {
  Result<Graph> g = parse(std::string("graph \"g\" (%x: ") + input + ") -> (%y) {\n" + body + "}");
  EXPECT_TRUE(g) << g.status().to_string();
  EXPECT_TRUE(infer_shapes(*g, ops::builtin_ops()));
  return std::move(*g);
}

std::string convolution(const char* attributes, const char* rest = "") {
  std::string weights;
  for (int i = 0; i < 2 * 3 * 3 * 3; ++i) weights += (i ? ", " : "") + std::to_string(0.01 * (i * 7 % 31) - 0.1);
  return "%w: float32[2,3,3,3] = const {" + weights + "}\n%b: float32[2] = const {0.5, -0.25}\n%y = Conv(%x, %w, %b) {" +
         attributes + "}" + rest + "\n";
}

// Results for a picture of ascending pixels.
std::vector<double> results(const Graph& g, const compile::Normalization& n, size_t axis = 1) {
  TensorData x = TensorData::allocate(DType::Float32, *to_dims(*g.tensor(g.inputs()[0]).shape));
  int64_t inner = 1;
  for (size_t i = axis + 1; i < x.dims().size(); ++i) inner *= x.dims()[i];
  for (int64_t i = 0; i < x.count(); ++i) {
    const auto c = static_cast<size_t>(i / inner % x.dims()[axis]);
    const auto pixel = static_cast<double>(i * 37 % 256);
    static_cast<float*>(x.mutable_data())[i] =
        static_cast<float>(n.mean.empty() ? pixel : (pixel - static_cast<double>(n.mean[c])) / static_cast<double>(n.std[c]));
  }
  const auto found = ops::eval_graph(g, ops::builtin_ops(), std::span(&x, 1));
  EXPECT_TRUE(found) << found.status().to_string();
  return to_doubles((*found)[0].view());
}

void expect_pixels(const PixelInput& pixels) {
  const QuantParams q = quantize::parameters_of(pixels.range, DType::Int8, false);
  const double mean = pixels.normalization.mean.empty() ? 0 : static_cast<double>(pixels.normalization.mean[0]);
  const double std = pixels.normalization.std.empty() ? 1 : static_cast<double>(pixels.normalization.std[0]);
  for (int pixel = 0; pixel < 256; ++pixel) {
    const double place = (pixel - mean) / std / static_cast<double>(q.scale[0]) + q.zero_point[0];
    ASSERT_NEAR(place, pixel - 128, 1e-3);
  }
}

// Changes the graph where its pixels can be read as they are.
std::optional<PixelInput> fold(Graph& g, const compile::Normalization& n) {
  auto pixels = read_pixels({&g}, 0, n);
  if (pixels) pixels->patches[0].apply(g);
  return pixels;
}

void expect_same(const std::string& body, const compile::Normalization& n) {
  const Graph before = network(body);
  Graph after = before;
  const auto pixels = fold(after, n);
  ASSERT_TRUE(pixels);
  EXPECT_EQ(pixels->layers, std::vector<std::string>{"y"});
  expect_pixels(*pixels);
  const std::vector<double> expected = results(before, n), found = results(after, pixels->normalization);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5);
}

const compile::Normalization kHalf{{127.5f, 127.5f, 127.5f}, {127.5f, 127.5f, 127.5f}};

TEST(PixelInputs, WithoutABorderTheBiasTakesTheRestExactly) {
  expect_same(convolution("strides = [1,1]"), kHalf);
  expect_same(convolution("strides = [1,1]"), {{103.53f, 103.53f, 103.53f}, {57, 57, 57}});
}

TEST(PixelInputs, ChannelsThatDifferStayAsTheyAre) {
  for (const compile::Normalization& n : {kThreeChannels, compile::Normalization{{0, 0, 0}, {58, 57, 50}}}) {
    const Graph before = network(convolution("strides = [1,1]"));
    Graph after = before;
    EXPECT_FALSE(fold(after, n));
    EXPECT_EQ(print(after), print(before));
  }
}

TEST(PixelInputs, ATransposedConvolutionTakesNoRest) {
  Graph g = network("%w: float32[3,2,3,3] = const splat 0.5\n%y = ConvTranspose(%x, %w) {strides = [2,2]}\n");
  EXPECT_FALSE(read_pixels({&g}, 0, kHalf));
  EXPECT_TRUE(read_pixels({&g}, 0, {{128, 128, 128}, {64, 64, 64}}));
}

TEST(PixelInputs, AMeanBetweenTwoPixelsMovesTheBorderByHalfAPixel) {
  const Graph before = network(convolution("pads = [1,1,1,1]"));
  Graph after = before;
  const auto pixels = fold(after, kHalf);
  ASSERT_TRUE(pixels);
  expect_pixels(*pixels);
  const std::vector<double> expected = results(before, kHalf), found = results(after, pixels->normalization);
  for (int64_t i = 0; i < static_cast<int64_t>(found.size()); ++i) {
    const int64_t row = i / 5 % 4, column = i % 5;
    const bool inside = row > 0 && row < 3 && column > 0 && column < 4;
    EXPECT_NEAR(found[static_cast<size_t>(i)], expected[static_cast<size_t>(i)], inside ? 2e-5 : 27 * 0.2 * 0.5 / 127.5);
  }
}

TEST(PixelInputs, FusedStepsKeepTheirOperands) {
  const std::string text = convolution("strides = [1,1]", " + Add(%k) + Relu()");
  expect_same("%k: float32[1,2,1,1] = const {0.125, -3}\n" + text, kHalf);
}

TEST(PixelInputs, TransposesOnTheWayArePassed) {
  const std::string body = convolution("strides = [1,1]");
  const Graph before = network("%n = Transpose(%x) {perm = [0,3,1,2]}\n" + std::string(body).replace(body.find("(%x"), 3, "(%n"),
                               "float32[1,4,5,3] nhwc");
  Graph after = before;
  const auto pixels = fold(after, kHalf);
  ASSERT_TRUE(pixels);
  const std::vector<double> expected = results(before, kHalf, 3), found = results(after, pixels->normalization, 3);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5);
}

TEST(PixelInputs, OneWholeMeanNeedsNoLayer) {
  Graph g = network("%y = Relu(%x)\n");
  const auto pixels = read_pixels({&g}, 0, {{127, 127, 127}, {64, 64, 64}});
  ASSERT_TRUE(pixels);
  EXPECT_TRUE(pixels->layers.empty());
  expect_pixels(*pixels);
  EXPECT_FALSE(read_pixels({&g}, 0, kThreeChannels));
  EXPECT_FALSE(read_pixels({&g}, 0, {{300, 300, 300}, {64, 64, 64}})) << "no pixel lies at the mean";
}
}  // namespace
}  // namespace orknn::toolkit
