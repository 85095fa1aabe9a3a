// Composed functions at the places where a careless composition is wrong.
#include "import/lower/functions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace ir;
using tests::Values;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Operands are constants, so that results are computed at once.
class Composed : public testing::Test {
 protected:
  template <class T>
  TensorId constant(const std::vector<T>& values) {
    return emitted_.e.add_constant("x", TensorData::from<T>({static_cast<int64_t>(values.size())}, values));
  }
  Values of(TensorId (*f)(Emitter&, TensorId), const std::vector<float>& x) {
    return emitted_.values(f(emitted_.e, constant(x)));
  }
  template <class T>
  Values of(TensorId (*f)(Emitter&, TensorId, TensorId), const std::vector<T>& a, const std::vector<T>& b) {
    return emitted_.values(f(emitted_.e, constant(a), constant(b)));
  }

  tests::Emitted emitted_;
};

TEST_F(Composed, logarithm_and_exponential_keep_their_digits_near_zero) {
  const std::vector<float> x{1e-20f, -1e-20f, 1e-7f, -3e-5f, 0.3f, -0.6f, 2.0f, 1e30f, 0.0f};
  const Values log = of(log1p, x), exp = of(expm1, {x.begin(), x.end() - 2});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(log[i], std::log1p(x[i]), 1e-6 * std::abs(std::log1p(x[i]))) << x[i];
  for (size_t i = 0; i < exp.size(); ++i) EXPECT_NEAR(exp[i], std::expm1(x[i]), 1e-6 * std::abs(std::expm1(x[i]))) << x[i];
  EXPECT_EQ(of(log1p, {kInfinity, -1.0f}), (Values{kInfinity, -kInfinity}));
  EXPECT_EQ(of(expm1, {kInfinity, -kInfinity, 0.0f}), (Values{kInfinity, -1.0f, 0.0f}));
}

TEST_F(Composed, sums_of_exponentials_take_infinities) {
  const std::vector<float> a{kInfinity, -kInfinity, kInfinity, -kInfinity, 100, 0},
      b{kInfinity, -kInfinity, -kInfinity, 3, 100, -100};
  const Values found = of(log_add_exp, a, b);
  EXPECT_EQ(Values(found.begin(), found.begin() + 4), (Values{kInfinity, -kInfinity, kInfinity, 3}));
  EXPECT_NEAR(found[4], 100 + std::log(2.0), 1e-5);
  EXPECT_NEAR(found[5], 0, 1e-40);
  EXPECT_TRUE(std::isnan(of(log_add_exp, std::vector<float>{NAN}, std::vector<float>{1})[0]));
}

TEST_F(Composed, rounding_decides_by_the_exact_fraction) {
  const std::vector<float> x{0.49999997f, -0.49999997f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 8388609.0f, kInfinity};
  EXPECT_EQ(of(round_half_away, x), (Values{0, -0.0f, 1, -1, 2, 3, -3, 8388609.0f, kInfinity}));
  EXPECT_EQ(of(round_half_down, {0.49999997f, -0.49999997f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 8388609.0f}),
            (Values{0, 0, 0, -1, 1, 2, -3, 8388609.0f}));
  EXPECT_EQ(of(truncate, {1.9f, -1.9f, 0.3f, -3.0f}), (Values{1, -1, 0, -3}));
}

TEST_F(Composed, remainders_are_exact_and_have_the_right_sign) {
  const std::vector<float> a{7, -7, 7, -7, 1e10f, -1e-8f, 6, -6}, b{3, 3, -3, -3, 3, 5, 3, 3};
  // As Python's %: what -1e-8 leaves of 5 rounds to 5.
  EXPECT_EQ(of(floor_mod, a, b), (Values{1, 2, -2, -1, std::fmod(1e10f, 3.0f), 5, 0, 0}));
  EXPECT_EQ(of(truncate_mod, a, b), (Values{1, -1, 1, -1, std::fmod(1e10f, 3.0f), -1e-8f, 0, 0}));
  const std::vector<int32_t> c{7, -7, 7, -7}, d{3, 3, -3, -3};
  EXPECT_EQ(of(floor_mod, c, d), (Values{1, 2, -2, -1}));
  EXPECT_EQ(of(floor_div, c, d), (Values{2, -3, -3, 2}));
  EXPECT_EQ(of(truncate_div, c, d), (Values{2, -2, -2, 2}));
}

TEST_F(Composed, quotients_are_rounded_down_exactly_or_as_floats_round) {
  // 0.1 as a float is a little more than a tenth.
  const std::vector<float> a{1, -1, -7, 7, 6, 1e-30f, -1e-30f, 5, -5}, b{0.1f, 0.1f, 2, 2, -3, 3, 3, 0, 0};
  EXPECT_EQ(of(floor_div, a, b), (Values{9, -10, -4, 3, -2, 0, -1, kInfinity, -kInfinity}));
  EXPECT_EQ(of(floor_of_quotient, a, b), (Values{10, -10, -4, 3, -2, 0, -1, kInfinity, -kInfinity}));
  EXPECT_EQ(of(floor_of_quotient, std::vector<int32_t>{7, -7}, std::vector<int32_t>{3, 3}), (Values{2, -3}));
}

TEST_F(Composed, lengths_of_infinite_huge_and_tiny_operands) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{3, -3e38f, 2e38f, 1e-30f, 0, -0.0f, kInfinity, -kInfinity, kInfinity, 1e30f};
  const std::vector<float> b{4, 1e20f, -2e38f, 1e-30f, 0, 5, kInfinity, 1, none, 1};
  const Values length = of(hypot, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(length[i]), std::hypot(a[i], b[i])) << a[i] << ", " << b[i];
  EXPECT_TRUE(std::isnan(of(hypot, std::vector<float>{none}, std::vector<float>{1})[0]));
}

TEST_F(Composed, numbers_win_over_what_is_none) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(of(ignoring_nan<"Max">, std::vector<float>{none, 2, 1}, std::vector<float>{3, none, -1}), (Values{3, 2, 1}));
  EXPECT_EQ(of(ignoring_nan<"Min">, std::vector<int32_t>{2, 5}, std::vector<int32_t>{3, 4}), (Values{2, 4}));
}

TEST_F(Composed, activations_have_their_parameters) {
  Emitter& e = emitted_.e;
  const TensorId x = constant(std::vector<float>{-2, 0.25f, 2});
  EXPECT_EQ(emitted_.values(shrink(e, x, 0.5, false)), (Values{-2, 0, 2}));
  EXPECT_EQ(emitted_.values(shrink(e, x, 0.5, true)), (Values{-1.5, 0, 1.5}));
  const Values soft = emitted_.values(softplus(e, x, 2, 20)), bounded = emitted_.values(softplus(e, x, 2, 3));
  const Values exact = emitted_.values(gelu(e, x, false)), close = emitted_.values(gelu(e, x, true));
  for (size_t i = 0; i < 3; ++i) {
    const double v = std::array{-2.0, 0.25, 2.0}[i];
    EXPECT_NEAR(soft[i], std::log1p(std::exp(2 * v)) / 2, 1e-6);
    EXPECT_NEAR(bounded[i], v > 1.5 ? v : soft[i], 1e-6);
    EXPECT_NEAR(exact[i], v * (1 + std::erf(v / std::sqrt(2))) / 2, 1e-6);
    EXPECT_NEAR(close[i], v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v))) / 2, 1e-6);
  }
}

TEST_F(Composed, zero_wins_over_what_is_not_finite) {
  EXPECT_EQ(of(xlogy, std::vector<float>{0, 2}, std::vector<float>{0, 1}), (Values{0, 0}));
  EXPECT_EQ(of(div_no_nan, std::vector<float>{3, 4}, std::vector<float>{0, 2}), (Values{0, 2}));
}
}  // namespace
}  // namespace orknn::importer
