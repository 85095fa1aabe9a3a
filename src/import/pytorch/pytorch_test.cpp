// The PyTorch importer on archives written in memory: code, aliases, weights, inputs, refusals.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "import/importer.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "run_import.h"
#include "torch_writer.h"

namespace orknn {
namespace {
using namespace tests;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;

Result<Imported> import_bytes(const std::string& content, const ImportOptions& options = {}) {
  return import_content("test.pt", content, options, "pytorch");
}
std::string error_of(const std::string& bytes, const ImportOptions& options = {}) {
  const auto result = import_bytes(bytes, options);
  return result ? "no error" : result.status().to_string();
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// forward(self, x) with this body.
TorchModel forward(const std::string& body, std::vector<std::pair<std::string, std::string>> attributes = {},
                   ZipEntries more = {}) {
  return {"class M(Module):\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n" + body, std::move(attributes),
          std::move(more)};
}
ImportOptions sized(std::vector<ir::Dims> sizes) {
  ImportOptions options;
  options.input_size_list = std::move(sizes);
  return options;
}
std::vector<std::vector<double>> run(const TorchModel& model, ir::Dims dims, const std::vector<float>& input) {
  const TensorData x = TensorData::from<float>(dims, input);
  return tests::run_import_values(import_bytes(model.bytes(), sized({dims})), std::span(&x, 1));
}
using Numbers = std::vector<double>;

TEST(ImportPytorch, SamplesAreRead) {
  for (const TorchSample& s : sample_torch_models()) EXPECT_EQ(error_of(s.bytes), "no error") << s.name;
}

TEST(ImportPytorch, ConstantControlFlowIsExecuted) {
  const auto y = run(forward("    n = torch.size(x, 0)\n    y = x\n    for i in range(n):\n      if torch.gt(i, 0):\n        y = "
                             "torch.add(y, i)\n      else:\n        pass\n    return y\n"),
                     {3}, {1, 2, 3});
  EXPECT_EQ(y[0], (Numbers{4, 5, 6}));
}

TEST(ImportPytorch, WritesReachEveryAlias) {
  const auto y = run(forward("    y = torch.clone(x)\n    v = torch.view(y, [-1])\n    _0 = torch.fill_(torch.select(y, 0, 1), "
                             "9)\n    _1 = torch.mul_(torch.slice(v, 0, 0, 4, 3), 10)\n    return (y, v, x)\n"),
                     {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(y[0], (Numbers{10, 2, 9, 90}));
  EXPECT_EQ(y[1], y[0]);
  EXPECT_EQ(y[2], (Numbers{1, 2, 3, 4}));
}

TEST(ImportPytorch, WritesReachEveryAliasOfPickedElements) {
  const auto y = run(
      forward("    a = torch.clone(x)\n    v = torch.diagonal(a)\n    _0 = torch.fill_(torch.diagonal(a), 9)\n    _1 = "
              "torch.mul_(torch.diagonal(a, 1), 2)\n    b = torch.clone(x)\n    _2 = torch.fill_(torch.unfold(b, 1, 1, 2), 7)\n"
              "    _3 = torch.add_(torch.as_strided(b, [2], [3], 1), 1)\n    c = torch.clone(x)\n    _4 = "
              "torch.fill_diagonal_(c, -1)\n    _5 = torch.put_(c, torch.tensor([5, 0]), torch.tensor([3., 4.]))\n"
              "    z = torch.zeros([2])\n"
              "    return (a, v, b, c, torch.diagonal_scatter(x, z, 1), torch.as_strided_scatter(x, z, [2], [4], 1))\n"),
      {2, 3}, {1, 2, 3, -4, 5, 0.5});
  EXPECT_EQ(y[0], (Numbers{9, 4, 3, -4, 9, 1}));
  EXPECT_EQ(y[1], (Numbers{9, 9}));
  EXPECT_EQ(y[2], (Numbers{7, 3, 7, 7, 6, 7}));
  EXPECT_EQ(y[3], (Numbers{4, 2, 3, -4, -1, 3}));
  EXPECT_EQ(y[4], (Numbers{1, 0, 3, -4, 5, 0}));
  EXPECT_EQ(y[5], (Numbers{1, 0, 3, -4, 5, 0}));
}

TEST(ImportPytorch, ReshapeOfATransposedTensorIsACopy) {
  const auto y = run(
      forward("    y = torch.clone(x)\n    r = torch.reshape(torch.t(y), [-1])\n    _0 = torch.zero_(r)\n    return (y, r)\n"),
      {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(y[0], (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(y[1], (Numbers{0, 0, 0, 0}));
}

TEST(ImportPytorch, ShapeChangedInPlaceKeepsOlderViews) {
  const auto y = run(forward("    y = torch.clone(x)\n    r = torch.select(y, 0, 1)\n    _0 = torch.unsqueeze_(y, 0)\n    _1 = "
                             "torch.add_(y, 1)\n    return (y, r)\n"),
                     {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(y[0], (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(y[1], (Numbers{4, 5}));
}

TEST(ImportPytorch, StridesOfWeightsAreHonoured) {
  const std::string weight = pickle::tensor("FloatStorage", "0", 6, 0, {2, 3}, {1, 2}),
                    part = pickle::tensor("FloatStorage", "0", 6, 1, {2}, {2});
  const auto y = run(forward("    return (torch.add(x, self.w), self.p)\n", {{"w", weight}, {"p", part}},
                             {{"data/0", float_bytes({1, 2, 3, 4, 5, 6})}}),
                     {1}, {0});
  EXPECT_EQ(y[0], (Numbers{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(y[1], (Numbers{2, 4}));
}

TEST(ImportPytorch, RecurrentLayersWithPackedWeightsAreWrittenOut) {
  using namespace pickle;
  const std::string packed = object_with_state(
      "W", tuple({tensor("FloatStorage", "0", 4, 0, {4, 1}, {1, 1}), tensor("FloatStorage", "0", 4, 0, {4}, {1})}));
  const std::string cell =
      object_with_state("P", tuple({text("quantized_dynamic"), "]", "]", "]", "](" + packed + packed + "e"}));
  // Weights of nothing: every gate is a half, the new content is none.
  const auto y = run(forward("    h = torch.zeros([1, 1, 1])\n    c = torch.full([1, 1, 1], 2.)\n"
                             "    y, h2, c2, = torch.quantized_lstm(x, [h, c], [self.p], True, 1, 0., False, False, False, "
                             "dtype=12, use_dynamic=True)\n    return (y, c2)\n",
                             {{"p", cell}}, {{"data/0", float_bytes({0, 0, 0, 0})}}),
                     {2, 1, 1}, {5, 6});
  EXPECT_NEAR(y[0][0], 0.5 * std::tanh(1.0), 1e-6);
  EXPECT_NEAR(y[0][1], 0.5 * std::tanh(0.5), 1e-6);
  EXPECT_EQ(y[1], (Numbers{0.5}));
}

TEST(ImportPytorch, OperatorsOfPartsAndMasks) {
  const auto y = run(forward("    a, b, = torch.hsplit(x, 2)\n    m = torch.masked_scatter(x, torch.gt(x, 2), torch.neg(x))\n    "
                             "_0, i, = torch.adaptive_max_pool1d(x, [3])\n"
                             "    return (b, m, torch.logaddexp2(a, b), i, torch.nanmean(x, [1]))\n"),
                     {1, 4}, {1, 2, 4, 3});
  EXPECT_EQ(y[0], (Numbers{4, 3}));
  EXPECT_EQ(y[1], (Numbers{1, 2, -1, -2}));
  EXPECT_NEAR(y[2][0], std::log2(2 + 16), 1e-6);
  EXPECT_EQ(y[3], (Numbers{1, 2, 2}));  // windows 0-1, 1-2, 2-3
  EXPECT_EQ(y[4], (Numbers{2.5}));
}

TEST(ImportPytorch, RemaindersAndQuotientsAreExactAtTheEdges) {
  // 0.1 as a float is a little more than a tenth: the rounded quotient 1 / 0.1 is 10, the one rounded down 9.
  const auto y = run(forward("    return (torch.div(x, 0.1, rounding_mode=\"floor\"), torch.floor_divide(x, 0.1), "
                             "torch.remainder(x, 0.5), torch.div(x, 0, rounding_mode=\"floor\"))\n"),
                     {4}, {1, -1, 0.3f, -0.75f});
  EXPECT_EQ(y[0], (Numbers{9, -10, 3, -8}));
  EXPECT_EQ(y[1], y[0]);
  EXPECT_NEAR(y[2][2], 0.3, 1e-6);
  EXPECT_EQ(y[2][3], 0.25);
  EXPECT_TRUE(std::isinf(y[3][0]));
  // The product of remainder and divisor is too small for a float, its sign still counts.
  const auto tiny = run(forward("    return torch.remainder(x, 1e-20)\n"), {2}, {-1e-30f, 1e-30f});
  EXPECT_NEAR(tiny[0][0], 1e-20, 1e-26);
  EXPECT_NEAR(tiny[0][1], 1e-30, 1e-36);
}

TEST(ImportPytorch, ReversedAxesKeepTheirExtents) {
  const auto y = run(forward("    return (torch.flip(x, [0, 1]), torch.rot90(x, 1, [0, 1]), torch.rot90(x, 3, [0, 1]))\n"),
                     {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(y[0], (Numbers{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(y[1], (Numbers{3, 6, 2, 5, 1, 4}));
  EXPECT_EQ(y[2], (Numbers{4, 1, 5, 2, 6, 3}));
}

TEST(ImportPytorch, ElementsAreLookedForAmongOthers) {
  const auto y = run(forward("    t = torch.tensor([[2., 7.], [4., 2.]])\n    return (torch.isin(x, t), torch.isin(x, t, "
                             "invert=True), torch.isin(x, 3), torch.isin(7, t), torch.isin(x, torch.zeros([0])))\n"),
                     {2, 2}, {1, 2, 3, 4});
  ASSERT_EQ(y.size(), 5u);
  EXPECT_EQ(y[0], (Numbers{0, 1, 0, 1}));
  EXPECT_EQ(y[1], (Numbers{1, 0, 1, 0}));
  EXPECT_EQ(y[2], (Numbers{0, 0, 1, 0}));
  EXPECT_EQ(y[3], (Numbers{1}));
  EXPECT_EQ(y[4], (Numbers{0, 0, 0, 0}));
}

void expect_near(const Numbers& got, const Numbers& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(ImportPytorch, ProjectedRecurrentLayers) {
  using namespace pickle;
  std::vector<float> numbers;  // w [8,2], r [8,1], p [1,2], -w
  for (int i = 0; i < 16; ++i) numbers.push_back(static_cast<float>(-1 + i * 2.0 / 15));
  for (int i = 0; i < 8; ++i) numbers.push_back(static_cast<float>(1 - i * 2.0 / 7));
  numbers.insert(numbers.end(), {0.5f, -2.0f});
  for (int i = 0; i < 16; ++i) numbers.push_back(-numbers[static_cast<size_t>(i)]);
  const auto part = [](int64_t offset, std::vector<int64_t> dims) {
    return tensor("FloatStorage", "0", 42, offset, dims, {dims[1], 1});
  };
  const TorchModel model = forward(
      "    h = torch.full([1, 1, 1], 0.25)\n    c = torch.reshape(torch.tensor([0.5, -0.5]), [1, 1, 2])\n"
      "    y, hn, cn, = torch.lstm(x, [h, c], [self.w, self.r, self.p], False, 1, 0., False, False, False)\n"
      "    z, hz, cz, = torch.lstm(x, [torch.cat([h, torch.neg(h)]), torch.cat([c, c])], [self.w, self.r, self.p, self.m, "
      "self.r, self.p], False, 1, 0., False, True, False)\n"
      "    return (y, hn, cn, z, hz, cz)\n",
      {{"w", part(0, {8, 2})}, {"r", part(16, {8, 1})}, {"p", part(24, {1, 2})}, {"m", part(26, {8, 2})}},
      {{"data/0", float_bytes(numbers)}});
  const auto y = run(model, {3, 1, 2}, {1, -1, 0.5f, 2, -2, 1});
  // Values of PyTorch.
  expect_near(y[0], {0.3118767, 0.0539681, 0.1200989});
  expect_near(y[1], {0.1200989});
  expect_near(y[2], {0.1085604, -0.1608499});
  expect_near(y[3], {0.3118767, 0.3354081, 0.0539681, 0.0671566, 0.1200989, 0.2354157});
  expect_near(y[4], {0.1200989, 0.3354081});
  expect_near(y[5], {0.1085604, -0.1608499, -0.0866000, -0.3614215});
}

TEST(ImportPytorch, FourierTransforms) {
  const auto y = run(forward("    s = torch.fft_rfft(x)\n    f = torch.fft_fft(x, None, -1, \"ortho\")\n"
                             "    return (torch.abs(s), torch.view_as_real(s), torch.fft_irfft(s, 4), "
                             "torch.real(torch.fft_ifft(f, None, -1, \"ortho\")),\n"
                             "      torch.imag(torch.mul(s, torch.conj(s))), torch.angle(s), torch.fft_irfft(torch.div(s, 2)), "
                             "torch.real(torch.slice(f, 0, 1, 3)))\n"),
                     {4}, {1, 2, 3, 4});
  expect_near(y[0], {10, std::sqrt(8.0), 2});
  expect_near(y[1], {10, 0, -2, 2, -2, 0});
  expect_near(y[2], {1, 2, 3, 4});
  expect_near(y[3], {1, 2, 3, 4});
  expect_near(y[4], {0, 0, 0});
  expect_near(y[5], {0, 2.3561945, 3.1415927});
  expect_near(y[6], {0.5, 1, 1.5, 2});
  expect_near(y[7], {-1, -1});
}

TEST(ImportPytorch, Spectrograms) {
  const auto y =
      run(forward("    w = torch.tensor([1., 0.5])\n    s = torch.stft(x, 4, 2, 2, w, True, \"reflect\", False, True, True)\n"
                  "    return (torch.stft(x, 2, 1, None, None, False, True, False), torch.abs(s), torch.istft(s, 4, 2, 2, w))\n"),
          {5}, {1, 2, 3, 5, 4});
  expect_near(y[0], {3, 0, 5, 0, 8, 0, 9, 0, -1, 0, -1, 0, -2, 0, 1, 0});
  ASSERT_EQ(y[1].size(), 9u);  // frames around elements 0, 2 and 4: the window covers the one before and the element
  expect_near(Numbers(y[1].begin(), y[1].begin() + 3), {2.5, 3.5, 7});
  expect_near(y[2], {1, 2, 3, 5});  // as many as whole steps cover
}

TEST(ImportPytorch, AlignedCornersDoNotFollowTheFactor) {
  const auto y = run(forward("    return torch.upsample_linear1d(x, None, True, [0.7])\n"), {1, 1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_near(y[0], {0, 1.75, 3.5, 5.25, 7});
}

TEST(ImportPytorch, InversesAndReductionsByIndex) {
  const auto y =
      run(forward("    i = torch.tensor([0, 0, 2])\n    s = torch.tensor([1., 2., 3.])\n    v = torch.reshape(x, [4])\n"
                  "    return (torch.linalg_inv(x), torch.linalg_solve(x, torch.tensor([2., 1.])), torch.scatter_reduce(v, 0, i, "
                  "s, \"mean\", include_self=False),\n"
                  "      torch.scatter_reduce(v, 0, i, s, \"amax\", include_self=False), torch.scatter_reduce(v, 0, i, s, "
                  "\"prod\", include_self=False), torch.scatter_reduce(v, 0, i, s, \"mean\"))\n"),
          {2, 2}, {5, 6, 7, 8});
  expect_near(y[0], {-4, 3, 3.5, -2.5});
  expect_near(y[1], {-5, 4.5});
  expect_near(y[2], {1.5, 6, 3, 8});
  expect_near(y[3], {2, 6, 3, 8});
  expect_near(y[4], {2, 6, 3, 8});
  expect_near(y[5], {8.0 / 3, 6, 5, 8});
}

TEST(ImportPytorch, MatricesAndLosses) {
  const auto y = run(forward("    s, l, = torch.slogdet(x)\n    z = torch.zeros([2, 2])\n"
                             "    return (torch.matrix_power(x, 3), s, l, torch.linalg_matrix_norm(x, 1), torch.block_diag([x, "
                             "torch.ones([1])]), torch.cartesian_prod([torch.select(x, 0, 0), torch.select(x, 0, 1)]),\n"
                             "      torch.diagflat(torch.select(x, 0, 0)), torch.mse_loss(x, z), torch.huber_loss(x, z, 0, 2.), "
                             "torch.binary_cross_entropy_with_logits(x, z, None, None, 2), torch.blackman_window(4), "
                             "torch.bartlett_window(4, False))\n"),
                     {2, 2}, {1, 2, 3, -4});
  EXPECT_EQ(y[0], (Numbers{-11, 38, 57, -106}));
  EXPECT_EQ(y[1], (Numbers{-1}));
  expect_near(y[2], {std::log(10.0)});
  EXPECT_EQ(y[3], (Numbers{6}));
  EXPECT_EQ(y[4], (Numbers{1, 2, 0, 3, -4, 0, 0, 0, 1}));
  EXPECT_EQ(y[5], (Numbers{1, 3, 1, -4, 2, 3, 2, -4}));
  EXPECT_EQ(y[6], (Numbers{1, 0, 0, 2}));
  EXPECT_EQ(y[7], (Numbers{7.5}));
  EXPECT_EQ(y[8], (Numbers{0.5, 2, 4, 6}));
  expect_near(y[9],
              {std::log1p(std::exp(1.0)) + std::log1p(std::exp(2.0)) + std::log1p(std::exp(3.0)) + std::log1p(std::exp(-4.0))});
  expect_near(y[10], {0, 0.34, 1, 0.34});
  expect_near(y[11], {0, 2.0 / 3, 2.0 / 3, 0});
}

TEST(ImportPytorch, LossesOfClassesAndPairs) {
  const auto y = run(
      forward(
          "    t = torch.tensor([2, 0])\n    a = torch.select(x, 0, 0)\n    b = torch.select(x, 0, 1)\n    f = torch.flip(x, "
          "[0])\n    return (torch.nll_loss_nd(x, t), torch.cross_entropy_loss(x, t), torch.cross_entropy_loss(x, t, None, 1, "
          "-100, 0.3), torch.cross_entropy_loss(x, torch.tensor([2, -100]), None, 1, -100, 0.3),\n"
          "      torch.cross_entropy_loss(x, torch.tensor([[.2, .3, .5], [1., 0., 0.]]), None, 0), torch.soft_margin_loss(x, "
          "torch.ones([2, 3])), torch.margin_ranking_loss(a, b, torch.tensor([1., -1., 1.]), 7., 0),\n"
          "      torch.hinge_embedding_loss(x, torch.tensor([[1., -1., 1.], [-1., 1., -1.]]), 1., 0), "
          "torch.cosine_embedding_loss(x, f, torch.tensor([1., -1.]), -0.5, 0), torch.triplet_margin_loss(x, f, "
          "torch.mul(x, 2), 1., 2., 1e-06, True, 0),\n"
          "      torch.poisson_nll_loss(x, torch.tensor([[1., 2., 3.], [1., 2., 3.]]), True, True, 1e-08, 0), "
          "torch.binary_cross_entropy_with_logits(x, torch.tensor([[1., 0., 1.], [0., 1., .5]]), None, torch.tensor([2., 3., "
          ".5]), 0))\n"),
      {2, 3}, {1, 2, 3, -4, 5, 0.5});
  expect_near(y[0], {0.5});
  expect_near(y[1], {4.709388});
  expect_near(y[2], {4.184388});
  expect_near(y[3], {0.707606});
  expect_near(y[4], {1.107606, 9.011169});
  expect_near(y[5], {0.831287});
  expect_near(y[6], {2, 4, 4.5});
  expect_near(y[7], {1, 0, 3, 5, 5, 0.5});
  expect_near(y[8], {0.687906, 0.812094});
  expect_near(y[9], {3.602633, 0.921672});
  expect_near(y[10], {1.718282, 4.040863, 12.849619, 4.018316, 139.064972, 1.912803});
  expect_near(y[11], {0.626523, 2.126928, 0.024294, 0.018150, 0.020146, 0.605558});
}

TEST(ImportPytorch, StatisticsAndReductionsOfRows) {
  const auto y = run(
      forward(
          "    i = torch.tensor([1, 1])\n    j = torch.tensor([0, 0])\n"
          "    return (torch.cov(x), torch.corrcoef(x), torch.trapezoid(x), torch.trapezoid(x, torch.tensor([0., 1., 3.])), "
          "torch.cumulative_trapezoid(x, dx=2, dim=0), torch.histc(x, 4, -4, 4), torch.histc(x, 3), torch.pdist(torch.t(x)),\n"
          "      torch.sum_to_size(x, [1, 3]), torch.index_reduce(x, 0, i, torch.mul(x, 2), \"mean\"), "
          "torch.index_reduce(x, 1, j, torch.slice(x, 1, 0, 2), \"amax\", include_self=False))\n"),
      {2, 3}, {1, 2, 3, -4, 5, 0.5});
  expect_near(y[0], {1, 2.25, 2.25, 20.25});
  expect_near(y[1], {1, 0.5, 0.5, 1});
  expect_near(y[2], {4, 3.25});
  expect_near(y[3], {6.5, 6});
  expect_near(y[4], {-3, 7, 3.5});
  expect_near(y[5], {1, 0, 2, 2});  // 5 lies outside
  expect_near(y[6], {1, 2, 3});
  expect_near(y[7], {9.055386, 4.924429, 4.609772});
  expect_near(y[8], {-3, 7, 3.5});
  expect_near(y[9], {1, 2, 3, -10.0 / 3, 19.0 / 3, 2.5});
  expect_near(y[10], {2, 2, 3, 5, 5, 0.5});
}

TEST(ImportPytorch, SignsOfZeroSmallTailsAndLongRuns) {
  const auto y = run(forward("    n = torch.neg(torch.mul(x, 0))\n"
                             "    return (torch.signbit(n), torch.copysign(x, n), torch.atan2(n, n), torch.erfc(x), "
                             "torch.logcumsumexp(torch.mul(x, -100), 0))\n"),
                     {3}, {9, 5, 1});
  EXPECT_EQ(y[0], (Numbers{1, 1, 1}));
  EXPECT_EQ(y[1], (Numbers{-9, -5, -1}));
  expect_near(y[2], {-M_PI, -M_PI, -M_PI});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[3][i] / std::erfc(std::array{9.0, 5.0, 1.0}[i]), 1, 1e-6);
  expect_near(y[4], {-900, -500, -100});
}

TEST(ImportPytorch, GammaFunctionsAndQuantiles) {
  const auto y =
      run(forward("    q = torch.quantile(x, 0.5)\n    r = torch.quantile(x, torch.tensor([0., 0.4]), 1, True)\n    s = "
                  "torch.quantile(x, 0.4, 1, False, interpolation=\"higher\")\n    n = torch.nanquantile(x, 0.25, 0)\n    "
                  "return (torch.lgamma(x), torch.digamma(x), torch.erfinv(torch.mul(x, 0.1)), q, r, s, n)\n"),
          {2, 3}, {3, 1, 2, 6, 4, 5});
  expect_near(y[0], {std::log(2.0), 0, 0, std::log(120.0), std::log(6.0), std::log(24.0)});
  expect_near(y[1], {0.9227843351, -0.5772156649, 0.4227843351, 1.7061176684, 1.2561176684, 1.5061176684});
  expect_near(y[2], {0.2724627147, 0.0888559905, 0.1791434546, 0.5951160815, 0.3708071586, 0.4769362762});
  expect_near(y[3], {3.5});
  expect_near(y[4], {1, 4, 1.8, 4.8});  // the shares come first
  expect_near(y[5], {2, 5});
  expect_near(y[6], {3.75, 1.75, 2.75});
}

// Golden values from scipy.special.
TEST(ImportPytorch, SpecialFunctions) {
  const auto y = run(forward("    a = torch.special_gammainc(x, torch.mul(x, 2.))\n    b = torch.igammac(x, torch.mul(x, 2.))\n"
                             "    return (a, b, torch.polygamma(2, x), torch.mvlgamma(torch.add(x, 2.), 3), "
                             "torch.special_ndtri(torch.mul(x, 0.25)), torch.special_log_ndtr(x), torch.special_i0(x), "
                             "torch.special_i1e(x), torch.special_zeta(torch.add(x, 1.), 3.), torch.special_erfcx(x))\n"),
                     {3}, {0.5, 1, 3});
  expect_near(y[0], {0.8427007929, 0.8646647168, 0.9380311956});
  expect_near(y[1], {0.1572992071, 0.1353352832, 0.0619688044});
  expect_near(y[2], {-16.8287966442, -2.4041138063, -0.1541138063});
  expect_near(y[3], {1.8809954616, 2.6949248798, 9.1406446992});
  expect_near(y[4], {-1.1503493804, -0.6744897502, 0.6744897502});
  expect_near(y[5], {-0.3689464152, -0.1727537790, -0.0013508100});
  expect_near(y[6], {1.0634833707, 1.2660658778, 4.8807925859});
  expect_near(y[7], {0.1564208032, 0.2079104154, 0.1968267133});
  expect_near(y[8], {1.2588219617, 0.3949340668, 0.0198232337});
  expect_near(y[9], {0.6156903442, 0.4275835762, 0.1790011511});
}

TEST(ImportPytorch, FurtherResultsOfAnOperatorAreNotLeftOutSilently) {
  const TorchModel model = forward("    y, m, r, = torch.native_layer_norm(x, [3], None, None, 0.)\n    return (y, m)\n");
  const std::string error = error_of(model.bytes(), sized({{2, 3}}));
  EXPECT_TRUE(contains(error, "output 1 of the model")) << error;
}

TEST(ImportPytorch, AllOfATensorHasAVarianceAndAMean) {
  const auto y = run(forward("    v, m, = torch.var_mean(x, False)\n    s, n, = torch.std_mean(x, True)\n"
                             "    w = torch.div(torch.tensor([2., 0.]), torch.tensor([1., 0.]))\n    a, b, = torch.hsplit(x, 2)\n"
                             "    return (v, m, s, torch.fmax(x, w), b)\n"),
                     {2}, {1, 5});
  expect_near(y[0], {4});
  expect_near(y[1], {3});
  expect_near(y[2], {std::sqrt(8.0)});
  EXPECT_EQ(y[3], (Numbers{2, 5}));
  EXPECT_EQ(y[4], (Numbers{5}));
}

TEST(ImportPytorch, RowsThatAreMaskedWholeHaveNoShares) {
  const auto y = run(forward("    return torch._safe_softmax(x, 1)\n"), {2, 2}, {-INFINITY, -INFINITY, 1, 1});
  EXPECT_EQ(y[0], (Numbers{0, 0, 0.5, 0.5}));
}

TEST(ImportPytorch, AValueThatIsNoNumberDecidesQuantiles) {
  const auto y =
      run(forward("    return (torch.quantile(x, 0.5, 1), torch.nanquantile(x, 0.5, 1))\n"), {2, 3}, {1, NAN, 3, 4, 5, 6});
  EXPECT_TRUE(std::isnan(y[0][0]));
  EXPECT_EQ(y[0][1], 5);
  EXPECT_EQ(y[1], (Numbers{2, 5}));
}

TEST(ImportPytorch, MediansOfNumbers) {
  const auto y = run(forward("    v, i, = torch.nanmedian(x, 1, True)\n    w, j, = torch.kthvalue(x, 2, 0)\n    return "
                             "(torch.nanmedian(x), v, i, w, j)\n"),
                     {2, 4}, {5, NAN, 3, 1, 4, 2, 8, 6});
  EXPECT_EQ(y[0], (Numbers{4}));
  EXPECT_EQ(y[1], (Numbers{3, 4}));  // the smaller one of both in the middle
  EXPECT_EQ(y[2], (Numbers{2, 0}));
  EXPECT_EQ(y[3][0], 5);
  EXPECT_EQ(y[3][3], 6);
  EXPECT_EQ(y[4][0], 0);
  const auto none = run(forward("    v, i, = torch.nanmedian(x, 1)\n    return v\n"), {1, 2}, {NAN, NAN});
  EXPECT_TRUE(std::isnan(none[0][0]));
}

TEST(ImportPytorch, QuantizedPicturesMayLackTheBatch) {
  using namespace pickle;
  const std::string weight = tensor("FloatStorage", "0", 1, 0, {1, 1, 1, 1}, {1, 1, 1, 1});
  const TorchModel model = forward(
      "    w = torch.quantize_per_tensor(self.w, 0.5, 0, 12)\n    p = ops.quantized.conv2d_prepack(w, None, [1, 1], [0, 0], [1, "
      "1], "
      "1)\n    q = torch.quantize_per_tensor(x, 0.5, 0, 13)\n    return torch.dequantize(ops.quantized.conv2d(q, p, 0.5, 0))\n",
      {{"w", weight}}, {{"data/0", float_bytes({2})}});
  const auto imported = import_bytes(model.bytes(), sized({{1, 2, 2}}));
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(ir::to_dims(*imported->graph.tensor(imported->graph.inputs()[0]).shape), (ir::Dims{1, 1, 2, 2}));
}

TEST(ImportPytorch, TrainingModeIsWarnedOf) {
  using namespace pickle;
  const std::string weight = tensor("FloatStorage", "0", 4, 0, {2}, {1}), variance = tensor("FloatStorage", "0", 4, 2, {2}, {1});
  const TorchModel model = forward(
      "    _0 = torch.add_(self.k, 1)\n    y = torch.batch_norm(x, None, None, self.k, self.v, True, 0.1, 0., True)\n    return "
      "torch.dropout(y, 0.5, True)\n",
      {{"k", weight}, {"v", variance}}, {{"data/0", float_bytes({1, 3, 4, 16})}});
  const auto imported = import_bytes(model.bytes(), sized({{1, 2}}));
  ASSERT_TRUE(imported.is_ok()) << imported.status().to_string();
  ASSERT_EQ(imported->source.warnings.size(), 3u);
  EXPECT_TRUE(contains(imported->source.warnings[0], "batch normalization is in training mode; it is computed as in inference"))
      << imported->source.warnings[0];
  EXPECT_TRUE(contains(imported->source.warnings[1], "dropout is in training mode")) << imported->source.warnings[1];
  EXPECT_TRUE(contains(imported->source.warnings[2], "changes its own state when it runs ('k')")) << imported->source.warnings[2];
  EXPECT_EQ(run(model, {1, 2}, {4, 8})[0], (Numbers{1, 1}));  // (4 - 2) / 2, (8 - 4) / 4
}

TEST(ImportPytorch, OutputsAreNamed) {
  const auto imported =
      import_bytes(forward("    return {\"a\": x, \"b\": (torch.relu(x), torch.neg(x))}\n").bytes(), sized({{2}}));
  ASSERT_TRUE(imported.is_ok()) << imported.status().to_string();
  std::vector<std::string> names;
  for (ir::TensorId id : imported->graph.outputs()) names.push_back(imported->graph.tensor(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b.0", "b.1"}));
}

TEST(ImportPytorch, InputTypeIsFoundOut) {
  const std::string weight = pickle::tensor("FloatStorage", "0", 4, 0, {2, 2}, {2, 1});
  const auto imported = import_bytes(
      forward("    return torch.embedding(self.w, x)\n", {{"w", weight}}, {{"data/0", float_bytes({1, 2, 3, 4})}}).bytes(),
      sized({{3}}));
  ASSERT_TRUE(imported.is_ok()) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).dtype, DType::Int64);
}

TEST(ImportPytorch, BatchMissingInTheSizeIsAdded) {
  const std::string weight = pickle::tensor("FloatStorage", "0", 2, 0, {2, 1, 1, 1}, {1, 1, 1, 1});
  const auto imported = import_bytes(forward("    return torch.conv2d(x, self.w, None, [1, 1], [0, 0], [1, 1], 1)\n",
                                             {{"w", weight}}, {{"data/0", float_bytes({1, 2})}})
                                         .bytes(),
                                     sized({{1, 4, 4}}));
  ASSERT_TRUE(imported.is_ok()) << imported.status().to_string();
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.inputs()[0]).shape), "[1,1,4,4]");
}

struct Refusal {
  const char* name;
  std::string bytes, part;
};
TEST(ImportPytorch, RefusalsSayWhatAndWhere) {
  const std::string weight = pickle::tensor("FloatStorage", "0", 2, 0, {2}, {1});
  const ZipEntries data{{"data/0", float_bytes({1, 2})}};
  const std::string good = forward("    return x\n").bytes();
  const Refusal cases[] = {
      {"state_dict", zip_archive({{"a/data.pkl", pickle::whole("}")}, {"a/version", "3"}}), "torch.jit.trace"},
      {"legacy", std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.more", 19), "torch.save"},
      {"no archive", "hello", "not an archive"},
      {"cut off", good.substr(0, good.size() - 8), "end record"},
      {"unknown name", zip_archive({{"m/code/__torch__.py", ""}, {"m/data.pkl", pickle::whole(pickle::global("os", "system"))}}),
       "'os.system' is not a name"},
      {"unknown opcode", zip_archive({{"m/code/__torch__.py", ""}, {"m/data.pkl", "\x80\x02i."}}), "offset 2: opcode 0x69"},
      {"unknown operator", forward("    return torch.frobnicate(torch.also_unknown(x))\n").bytes(), "aten::also_unknown"},
      {"every unknown operator", forward("    y = torch.also_unknown(x)\n    return torch.frobnicate(y)\n").bytes(),
       "aten::frobnicate"},
      {"wrong arguments", forward("    return torch.relu(\"x\")\n").bytes(), "found (str)"},
      {"data in a condition",
       forward("    if bool(torch.sum(x)):\n      y = x\n    else:\n      y = torch.neg(x)\n    return y\n").bytes(),
       "only known when the network runs"},
      {"data in a shape", forward("    return torch.nonzero(x)\n").bytes(), "depends on values"},
      {"storage too short",
       forward("    return self.w\n", {{"w", pickle::tensor("FloatStorage", "0", 9, 0, {9}, {1})}}, data).bytes(),
       "longer than its archive entry"},
      {"tensor outside",
       forward("    return self.w\n", {{"w", pickle::tensor("FloatStorage", "0", 2, 1, {2}, {1})}}, data).bytes(),
       "outside its storage"},
      {"negative stride",
       forward("    return self.w\n", {{"w", pickle::tensor("FloatStorage", "0", 2, 1, {2}, {-1})}}, data).bytes(),
       "impossible strides"},
      {"huge tensor",
       forward("    return self.w\n", {{"w", pickle::tensor("FloatStorage", "0", 2, 0, {1 << 30, 1 << 30}, {0, 0})}}, data)
           .bytes(),
       "too large"},
      {"view with elements twice",
       forward("    y = torch.clone(x)\n    _0 = torch.fill_(torch.as_strided(y, [2, 2], [0, 1]), 1)\n    return y\n").bytes(),
       "writing into this kind of view"},
      {"offset into another storage", forward("    return torch.as_strided(torch.slice(x, 0, 1, 2), [1], [1], 1)\n").bytes(),
       "a part of another tensor"},
      {"endless loop", forward("    while True:\n      pass\n    return x\n").bytes(), "runs too long"},
      {"endless calls", forward("    return (self).forward(x, )\n").bytes(), "nested too deeply"},
      {"deep source", forward("    return " + std::string(5000, '(') + "x" + std::string(5000, ')') + "\n").bytes(),
       "nested too deeply"},
      {"deep suffixes", forward("    return x" + std::string(6000, '.') + "\n").bytes(), "not understood"},
      {"growing list",
       forward("    l = [1, 2, 3, 4]\n    for i in range(64):\n      l = torch.add(l, l)\n    return x\n").bytes(),
       "grows too long"},
      {"overflow", forward("    return torch.mul(4611686018427387904, 4)\n").bytes(), "64 bits"},
      {"division", forward("    return torch.floordiv(1, 0)\n").bytes(), "divided by zero"},
      {"the model's own error", forward("    ops.prim.RaiseException(\"too short\")\n    return x\n").bytes(), "too short"},
      {"complex output", forward("    return torch.fft_rfft(x)\n").bytes(),
       "output 0 of the model is complex. Hint: return torch.view_as_real(y)"},
      {"complex argument", forward("    return torch.relu(torch.fft_rfft(x))\n").bytes(), "found (complex Tensor)"},
      {"optimized for inference",
       forward("    w = ops.prim.ConstantMKLDNNTensor()\n    return ops.prim.mkldnn_convolution(torch.to_mkldnn(x), w)\n")
           .bytes(),
       "saved after torch.jit.optimize_for_inference"},
      {"no forward", TorchModel{"class M(Module):\n  pass\n", {}, {}}.bytes(), "no forward"},
      {"bad code", TorchModel{"class M(Module):\n  def forward(self, x)\n    return x\n", {}, {}}.bytes(), "line 2"},
  };
  for (const Refusal& r : cases) {
    const std::string error = error_of(r.bytes, sized({{2}}));
    EXPECT_TRUE(contains(error, r.part)) << r.name << ": " << error;
  }
}

TEST(ImportPytorch, ShapesAreAskedFor) {
  EXPECT_TRUE(contains(error_of(forward("    return x\n").bytes()), "input_size_list"));
  EXPECT_TRUE(contains(error_of(forward("    return x\n").bytes(), sized({{1}, {2}})), "wrong length"));
  ImportOptions options = sized({{1}});
  options.outputs = {"nowhere"};
  EXPECT_TRUE(contains(error_of(forward("    return x\n").bytes(), options), "the 'nowhere' in outputs=['nowhere'] is invalid!"));
}

TEST(ImportPytorch, IsRecognized) {
  const std::string bytes = sample_torch_models()[0].bytes;
  const auto found = importer::sniff("model.bin", std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(found.is_ok());
  EXPECT_EQ((*found)->name, "pytorch");
}

}  // namespace
}  // namespace orknn
