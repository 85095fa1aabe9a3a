// The gamma function and its relatives, and the inverse of the error function. All are computed in double.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);  // std::lgamma stores the sign where other threads see it
}

// The derivative of log_gamma. Its reflection maps negative values to positive ones, its recurrence small ones to large ones,
// where a few terms of the asymptotic series are exact enough.
double digamma(double x) {
  constexpr double kLarge = 10;
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isnan(x) || x == -kInfinity || (x < 0 && x == std::floor(x))) return kNan;
  if (x == kInfinity) return x;
  if (x < 0) return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * (x - std::floor(x)));
  double result = 0;
  for (; x < kLarge; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (5.0 / 660 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

// A rational first guess (Winitzki), then Newton's method on erf, or on erfc near the ends where erf hardly changes.
double inverse_erf(double y) {
  if (std::isnan(y) || std::abs(y) > 1) return kNan;
  if (std::abs(y) == 1) return std::copysign(kInfinity, y);
  if (y == 0) return y;
  constexpr double kA = 0.147;
  const double size = std::abs(y), log = std::log1p(-size * size), half = 2 / (std::numbers::pi * kA) + log / 2;
  double x = std::sqrt(std::sqrt(half * half - log / kA) - half);
  for (int i = 0; i < 4; ++i) {
    const double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    if (slope == 0) break;
    const double step = error / slope;
    x -= step / (1 + x * step);  // Halley's
  }
  return std::copysign(x, y);
}

template <class F>
OpDef in_double(std::string_view name, std::string_view summary, F) {
  return float_function({.name = name, .summary = summary, .quant = QuantRule::Table},
                        []<class T>(T x, T, T) { return static_cast<T>(F{}(static_cast<double>(x))); });
}
}  // namespace

std::span<const OpDef> gamma_functions() {
  static const OpDef defs[] = {
      in_double("Gamma", "gamma function, (x - 1)! of whole numbers", [](double x) { return std::tgamma(x); }),
      in_double("LogGamma", "natural logarithm of the size of the gamma function", [](double x) { return log_gamma(x); }),
      in_double("Digamma", "derivative of LogGamma", [](double x) { return digamma(x); }),
      in_double("ErfInv", "x whose error function is the given value", [](double x) { return inverse_erf(x); }),
  };
  return defs;
}
}  // namespace orknn::ops
