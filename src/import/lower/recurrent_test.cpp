#include "import/lower/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "emitted.h"

namespace orknn::importer {
namespace {
using ir::Dims;
using ir::TensorId;
using Numbers = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(LowerRecurrent, GatesAreBroughtIntoOurOrder) {
  tests::Emitted f;
  const TensorId x = f.floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(f.values(in_our_order(f.e, x, kGatesIfco, 1)), (Numbers{1, 4, 2, 3}));
  EXPECT_EQ(f.values(in_our_order(f.e, x, {}, 1)), (Numbers{1, 2, 3, 4}));
}

TEST(LowerRecurrent, ModesNameCells) {
  EXPECT_EQ(*cell_of_mode("LSTM"), Cell::Lstm);
  EXPECT_EQ(*cell_of_mode("rnn_relu"), Cell::Relu);
  EXPECT_EQ(usual_order(*cell_of_mode("gru")).size(), 3u);
  EXPECT_TRUE(usual_order(*cell_of_mode("RNN_TANH")).empty());
  EXPECT_FALSE(cell_of_mode("elman"));
}

// One unit whose four gates have weights of their own, on two steps.
TEST(LowerRecurrent, AWholeLstmIsItsSteps) {
  tests::Emitted f;
  const std::vector<float> w{0.5f, -0.25f, 1.0f, 0.75f}, r{0.1f, 0.2f, -0.3f, 0.4f}, b{0.05f, 0.1f, -0.1f, 0.2f};
  RecurrentWeights weights{f.floats({4, 1}, w), f.floats({4, 1}, r), f.floats({4}, b), {}, {}};
  RecurrentLayers layers{.cell = Cell::Lstm, .order = kGatesIfco, .weights = {weights}};
  layers.states = {f.floats({1, 1, 1}, {0.3f}), f.floats({1, 1, 1}, {-0.6f})};
  const auto whole = run_recurrent(f.e, f.floats({2, 1, 1}, {2, -1}), layers);
  ASSERT_TRUE(whole) << whole.status().to_string();
  double h = 0.3, c = -0.6;
  Numbers expected;
  for (const double x : {2.0, -1.0}) {
    const auto gate = [&](size_t i) { return w[i] * x + r[i] * h + b[i]; };  // i, f, c, o
    c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * std::tanh(gate(2));
    h = sigmoid(gate(3)) * std::tanh(c);
    expected.push_back(h);
  }
  const Numbers y = f.values(whole->sequence);
  ASSERT_EQ(y.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
  EXPECT_NEAR(f.values(whole->states[1])[0], c, 1e-6);
}

TEST(LowerRecurrent, LayersWithoutTheirStatesAreRefused) {
  tests::Emitted f;
  const TensorId w = f.floats({4, 1}, {1, 2, 3, 4}), state = f.floats({1, 1, 1}, {0});
  RecurrentLayers layers{.cell = Cell::Lstm, .weights = {{w, w, {}, {}, {}}}};
  for (const auto& states : std::vector<std::vector<TensorId>>{{}, {state}, {state, state, state}}) {
    layers.states = states;
    EXPECT_FALSE(run_recurrent(f.e, f.floats({2, 1, 1}, {2, -1}), layers)) << states.size();
  }
}

TEST(LowerRecurrent, AWholeGruIsItsSteps) {
  tests::Emitted f;
  const TensorId w = f.floats({3, 1}, {0.5f, -0.25f, 1.0f}), r = f.floats({3, 1}, {0.1f, 0.2f, -0.3f});
  const TensorId bias = f.floats({3}, {0.1f, -0.2f, 0.3f}), state_bias = f.floats({3}, {0.2f, 0.1f, -0.4f});
  RecurrentLayers layers{.cell = Cell::Gru, .order = kGatesRzh, .weights = {{w, r, bias, state_bias, {}}}};
  layers.states = {f.floats({1, 1, 1}, {0.3f})};
  const TensorId x = f.floats({2, 1, 1}, {2, -1});
  const auto whole = run_recurrent(f.e, x, layers);
  ASSERT_TRUE(whole) << whole.status().to_string();
  TensorId h = f.floats({1, 1}, {0.3f});
  const auto steps = unrolled(f.e, x, false, [&](TensorId now) -> Result<TensorId> {
    const auto gates = [&](TensorId v, TensorId weight, TensorId b) {
      return f.e.add(f.e.matmul(v, f.e.swap_axes(weight, 0, 1)), b);
    };
    h = gru_step(f.e, gates(now, w, bias), gates(h, r, state_bias), h, kGatesRzh, 1);
    return h;
  });
  ASSERT_TRUE(steps);
  const Numbers a = f.values(whole->sequence), b = f.values(*steps);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

// The state that an LSTM hands on is projected; the first one is not zero.
TEST(LowerRecurrent, ProjectionsApplyToTheFirstStateToo) {
  for (const float first : {0.0f, 0.7f}) {
    tests::Emitted f;
    const std::vector<float> w{0.5f, -0.25f, 1.0f, 0.75f}, r{0.1f, 0.2f, -0.3f, 0.4f};
    RecurrentWeights weights{f.floats({4, 1}, w), f.floats({4, 1}, r), {}, {}, f.floats({1, 1}, {2})};
    RecurrentLayers layers{.cell = Cell::Lstm, .order = kGatesIfco, .weights = {weights}};
    layers.states = {f.floats({1, 1, 1}, {first}), f.floats({1, 1, 1}, {0.5f})};
    const auto whole = run_recurrent(f.e, f.floats({2, 1, 1}, {1, -1}), layers);
    ASSERT_TRUE(whole) << whole.status().to_string();
    const Numbers y = f.values(whole->sequence);
    double h = first, c = 0.5;
    for (size_t t = 0; t < 2; ++t) {
      const double x = t == 0 ? 1 : -1;
      const auto gate = [&](size_t i) { return w[i] * x + r[i] * h; };
      c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * std::tanh(gate(2));
      h = 2 * sigmoid(gate(3)) * std::tanh(c);
      EXPECT_NEAR(y[t], h, 1e-6);
    }
  }
}

// Peepholes weigh the cell: the one before for the input and forget gates, the new one for the output gate.
TEST(LowerRecurrent, AStepOfAnLstmWithPeepholesIsTheWholeLayer) {
  tests::Emitted f;
  const TensorId w = f.floats({4, 1}, {0.5f, -0.25f, 1.0f, 0.75f}), r = f.floats({4, 1}, {0.1f, 0.2f, -0.3f, 0.4f});
  const TensorId hidden = f.floats({1, 1}, {0.3f}), cell = f.floats({1, 1}, {-0.6f}), x = f.floats({1, 1}, {2});
  const std::array<TensorId, 4> peepholes{f.floats({1}, {0.7f}), f.floats({1}, {-0.8f}), f.floats({1}, {0.9f}), {}};
  RecurrentLayers layers{
      .weights = {{.input = w, .state = r, .peepholes = f.e.concat({peepholes[0], peepholes[1], peepholes[2]}, 0)}},
      .states = {f.e.unsqueeze(hidden, {0}), f.e.unsqueeze(cell, {0})}};
  const auto whole = run_recurrent(f.e, f.e.unsqueeze(x, {0}), layers);
  ASSERT_TRUE(whole) << whole.status().to_string();
  const TensorId sums = f.e.add(f.e.linear(x, w), f.e.linear(hidden, r));
  LstmRule rule{.sum = [&](LstmGate gate, TensorId seen) {
    const auto i = static_cast<int64_t>(gate);
    const TensorId part = f.e.slice(sums, 1, i, i + 1), peephole = peepholes[static_cast<size_t>(gate)];
    return peephole ? f.e.add(part, f.e.mul(seen, peephole)) : part;
  }};
  const auto step = lstm_step(f.e, cell, rule);
  ASSERT_TRUE(step);
  EXPECT_NEAR(f.values(step->hidden)[0], f.values(whole->sequence)[0], 1e-6);
  EXPECT_NEAR(f.values(step->cell)[0], f.values(whole->states[1])[0], 1e-6);
  rule.is_coupled = true;
  const auto coupled = lstm_step(f.e, cell, rule);
  ASSERT_TRUE(coupled);
  EXPECT_NEAR(f.values(coupled->input)[0], 1 - f.values(step->forget)[0], 1e-6);
}

TEST(LowerRecurrent, ALayerRunsBackwards) {
  tests::Emitted f;
  const TensorId w = f.floats({1, 1}, {0.5f}), r = f.floats({1, 1}, {0.25f});
  RecurrentLayers layers{.cell = Cell::Tanh, .weights = {{.input = w, .state = r}}, .states = {TensorId{}}};
  const auto ahead = run_recurrent(f.e, f.floats({3, 1, 1}, {3, 2, 1}), layers);
  layers.is_backward = true;
  const auto back = run_recurrent(f.e, f.floats({3, 1, 1}, {1, 2, 3}), layers);
  ASSERT_TRUE(ahead && back);
  Numbers expected = f.values(ahead->sequence);
  std::ranges::reverse(expected);
  EXPECT_EQ(f.values(back->sequence), expected);
}

TEST(LowerRecurrent, LayersAndDirectionsStack) {
  tests::Emitted f;
  const auto weights = [&](int64_t features) {
    return RecurrentWeights{
        f.e.full(Dims{2, features}, 0.5, DType::Float32), f.e.full(Dims{2, 2}, 0.25, DType::Float32), {}, {}, {}};
  };
  RecurrentLayers layers{.cell = Cell::Relu, .directions = 2, .weights = {weights(1), weights(1), weights(4), weights(4)}};
  layers.states = {TensorId{}};
  const auto y = run_recurrent(f.e, f.floats({3, 1, 1}, {1, 2, 3}), layers);
  ASSERT_TRUE(y) << y.status().to_string();
  EXPECT_EQ(f.dims(y->sequence), (Dims{3, 1, 4}));
  EXPECT_EQ(f.dims(y->states[0]), (Dims{4, 1, 2}));
}

TEST(LowerRecurrent, WeightsThatDoNotFitAreRefused) {
  tests::Emitted f;
  RecurrentLayers layers{.cell = Cell::Tanh, .weights = {{f.floats({2, 1}, {1, 2}), f.floats({1, 1}, {1}), {}, {}, {}}}};
  layers.states = {TensorId{}};
  EXPECT_FALSE(run_recurrent(f.e, f.floats({1, 1, 1}, {1}), layers));
  EXPECT_FALSE(unrolled(
      f.e, f.floats({3, 1}, {1, 2, 3}), false, [](TensorId x) -> Result<TensorId> { return x; }, 2));
}

}  // namespace
}  // namespace orknn::importer
