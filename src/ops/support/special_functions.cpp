#include "ops/support/special_functions.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

namespace orknn::ops {
namespace {
using std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = 1e-300;  // stands for 0 in continued fractions

// x^a exp(-x) / gamma(a), the factor that both forms of the incomplete gamma function have.
double gamma_density(double a, double x) { return std::exp(a * std::log(x) - x - log_gamma(a)); }

// Terms fall as x / (a + k), so that their number grows with the root of a.
double gamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double k = a + 1; term > sum * kEpsilon; ++k) sum += term *= x / k;
  return sum * gamma_density(a, x);
}

// The value of a continued fraction by Lentz: `part(k)` gives the k-th numerator and denominator. Stops where nothing changes.
template <class Real, class Part>
Real continued_fraction(Real first, const Part& part) {
  constexpr int kSteps = 100000;
  Real value = first, c = first, d = 0;
  for (int k = 1; k < kSteps; ++k) {
    const auto [a, b] = part(k);
    d = b + a * d;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + a / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = Real(1) / d;
    const Real factor = c * d;
    value *= factor;
    if (std::abs(factor - Real(1)) < kEpsilon) break;
  }
  return value;
}
struct RealPart {
  double numerator, denominator;
};

double gamma_fraction(double a, double x) {
  const double below = continued_fraction(x + 1 - a, [&](int k) { return RealPart{-k * (k - a), x + 2 * k + 1 - a}; });
  return gamma_density(a, x) / below;
}

// P(a, x) of large a by Temme's expansion around the normal distribution, whose error falls as a^-1.5. `sign` -1: 1 - P.
double large_gamma_share(double a, double x, double sign) {
  const double distance = (x - a) / a;
  // distance - log(1 + distance), by its series where the two are nearly equal
  const double excess = std::abs(distance) > 1e-3
                            ? distance - std::log1p(distance)
                            : distance * distance * (0.5 - distance * (1.0 / 3 - distance * (0.25 - distance / 5)));
  const double eta = std::copysign(std::sqrt(2 * excess), distance);
  const double correction = std::abs(distance) < 1e-5 ? 1.0 / 3 : 1 / eta - 1 / distance;
  return std::erfc(-sign * eta * std::sqrt(a / 2)) / 2 + sign * correction * std::exp(-a * eta * eta / 2) / std::sqrt(2 * pi * a);
}
constexpr double kLargeGamma = 1e6;

// Whether (a, x) is outside where the incomplete gamma functions need computing; `lower` is P(a, x) there.
bool is_gamma_edge(double a, double x, double& lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
    lower = kNan;
  else if (a == 0 || std::isinf(x))
    lower = 1;
  else if (x == 0 || std::isinf(a))
    lower = 0;
  else
    return false;
  return true;
}

double beta_fraction(double a, double b, double x) {
  return continued_fraction(1.0, [&](int k) {
    const int m = k / 2;
    return RealPart{
        k % 2 ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
        1};
  });
}

// x > 0 whose erfc is `y`, 0 < y <= 1: Winitzki's guess, then Halley's steps.
double inverse_erfc(double y) {
  constexpr double kA = 0.147;
  const double log = std::log(y * (2 - y)), half = 2 / (pi * kA) + log / 2;
  double x = std::sqrt(std::max(0.0, std::sqrt(half * half - log / kA) - half));
  for (int i = 0; i < 8; ++i) {
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    if (slope == 0) break;
    const double step = (y - std::erfc(x)) / slope;
    x -= step / (1 + x * step);
  }
  return x;
}

// What exp(-x) I(x) and exp(x) K(x) tend to: the series in 1 / x, the same for both but for the signs of its odd terms.
double large_bessel(int order, double x, double sign) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const double odd = 2 * k - 1, next = term * sign * (mu - odd * odd) / (k * 8 * x);
    if (std::abs(next) > std::abs(term)) break;
    sum += term = next;
  }
  return sum;
}
constexpr double kLargeBessel = 100;  // from here on the series above is exact
}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);  // std::lgamma stores the sign where other threads see it
}

// Its reflection maps negative values to positive ones, its recurrence small ones to large ones, where a few terms of the
// asymptotic series are exact enough.
double digamma(double x) {
  constexpr double kLarge = 10;
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isnan(x) || x == -kInfinity || (x < 0 && x == std::floor(x))) return kNan;
  if (x == kInfinity) return x;
  if (x < 0) return digamma(1 - x) - pi / std::tan(pi * (x - std::floor(x)));
  double result = 0;
  for (; x < kLarge; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (5.0 / 660 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

double polygamma(double n, double x) {
  if (std::isnan(x) || !(n >= 0) || n != std::floor(n)) return kNan;
  if (n == 0) return digamma(x);
  const double size = std::tgamma(n + 1) * hurwitz_zeta(n + 1, x);
  return std::fmod(n, 2) == 1 ? size : -size;
}

// The first terms one by one, the rest by Euler and Maclaurin, whose terms fall as s / q does.
double hurwitz_zeta(double s, double q) {
  const double large = 10 + std::min(s, 100.0);
  // Coefficients (2k)! / B(2k).
  constexpr double kFactors[] = {12.0,
                                 -720.0,
                                 30240.0,
                                 -1209600.0,
                                 47900160.0,
                                 -1.8924375803183791606e9,
                                 7.47242496e10,
                                 -2.950130727918164224e12,
                                 1.1646782814350067249e14,
                                 -4.5979787224074726105e15,
                                 1.8152105401943546773e17,
                                 -7.1661652561756670113e18};
  if (s == 1) return kInfinity;
  if (!(s > 1) || std::isnan(q)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s) || q < -1e4) return kNan;  // further left every term would have to be added
  }
  if (std::isinf(q)) return 0;
  double sum = 0;
  for (; q < large; ++q) sum += std::pow(q, -s);
  double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s, step = 0;
  for (const double divisor : kFactors) {
    power /= q;
    const double term = factor * power / divisor;
    sum += term;
    if (std::abs(term) < std::abs(sum) * kEpsilon) break;
    factor *= (s + step + 1) * (s + step + 2);
    power /= q;
    step += 2;
  }
  return sum;
}

double lower_gamma_share(double a, double x) {
  double lower = 0;
  if (is_gamma_edge(a, x, lower)) return lower;
  if (a > kLargeGamma) return large_gamma_share(a, x, 1);
  return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}
double upper_gamma_share(double a, double x) {
  double lower = 0;
  if (is_gamma_edge(a, x, lower)) return 1 - lower;
  if (a > kLargeGamma) return large_gamma_share(a, x, -1);
  return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

double beta_share(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b)) return kNan;
  if (x == 0 || x == 1) return x;
  const double factor = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? factor / (a * beta_fraction(a, b, x)) : 1 - factor / (b * beta_fraction(b, a, 1 - x));
}

// Newton's method on erf near 0; near the ends, where erf hardly changes, that of erfc.
double inverse_erf(double y) {
  if (std::isnan(y) || std::abs(y) > 1) return kNan;
  if (std::abs(y) == 1) return std::copysign(kInfinity, y);
  if (y == 0) return y;
  const double size = std::abs(y);
  double x = inverse_erfc(1 - size);
  if (size < 0.5)
    for (int i = 0; i < 4; ++i) {
      const double step = (std::erf(x) - size) / (2 * std::numbers::inv_sqrtpi * std::exp(-x * x));
      x -= step / (1 + x * step);
    }
  return std::copysign(x, y);
}

double scaled_erfc(double x) {
  constexpr double kLarge = 25;  // from here on a few terms of the series in 1 / x^2 are exact
  if (x < kLarge) return std::exp(x * x) * std::erfc(x);
  const double z = 1 / (2 * x * x);
  return std::numbers::inv_sqrtpi / x * (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z)))));
}

double inverse_normal(double probability) {
  if (!(probability >= 0) || probability > 1) return kNan;
  if (probability == 0 || probability == 1) return probability == 0 ? -kInfinity : kInfinity;
  return probability < 0.5 ? -std::numbers::sqrt2 * inverse_erfc(2 * probability)
                           : std::numbers::sqrt2 * inverse_erfc(2 * (1 - probability));
}

double log_normal(double x) {
  const double scaled = -x / std::numbers::sqrt2;
  if (x > 0) return std::log1p(-std::erfc(-scaled) / 2);
  return x > -1 ? std::log(std::erfc(scaled) / 2) : std::log(scaled_erfc(scaled) / 2) - scaled * scaled;
}

double bessel_i(int order, double x) {
  const double size = std::abs(x);
  if (std::isinf(x)) return order == 1 ? x : size;
  const double value = size < kLargeBessel ? std::cyl_bessel_i(order, size) : scaled_bessel_i(order, size) * std::exp(size);
  return order == 1 ? std::copysign(value, x) : value;
}
double scaled_bessel_i(int order, double x) {
  const double size = std::abs(x);
  const double value = size < kLargeBessel ? std::cyl_bessel_i(order, size) * std::exp(-size)
                                           : large_bessel(order, size, -1) / std::sqrt(2 * pi * size);
  return order == 1 ? std::copysign(value, x) : value;
}
double scaled_bessel_k(int order, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInfinity;
  return x < kLargeBessel ? std::cyl_bessel_k(order, x) * std::exp(x) : large_bessel(order, x, 1) * std::sqrt(pi / (2 * x));
}
double bessel_k(int order, double x) { return scaled_bessel_k(order, x) * std::exp(-x); }

double bessel_j(int order, double x) { return order == 0 ? ::j0(x) : ::j1(x); }
double bessel_y(int order, double x) {
  if (x < 0) return kNan;
  if (x == 0) return -kInfinity;
  return order == 0 ? ::y0(x) : ::y1(x);
}

// The series of Li2(-w) for small w, reached by reflection and inversion.
double dilogarithm(double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (std::isinf(x)) return -kInfinity;
  const auto series = [](double w) {
    double sum = 0, power = 1;
    for (int k = 1; k < 80; ++k) sum += (power *= -w) / (static_cast<double>(k) * k);
    return sum;
  };
  if (x == 0) return pi * pi / 6;
  if (x < 0.5) return pi * pi / 6 - std::log(x) * std::log1p(-x) - series(-x);
  if (x <= 1.5) return series(x - 1);
  const double log = std::log(x);
  return -0.5 * log * log - dilogarithm(1 / x);
}

// Rybicki's sum over a grid whose error falls as exp(-(pi / 2h)^2).
double dawson(double x) {
  constexpr double kStep = 0.2;
  constexpr int kTerms = 33;
  if (std::isnan(x)) return x;
  const double size = std::abs(x);
  double value = 0;
  if (size < kStep) {
    double term = size;
    for (int k = 1; k < 20; ++k) {
      value += term;
      term *= -2 * size * size / (2 * k + 1);
    }
  } else if (size > 50) {
    const double z = 1 / (2 * size * size);
    value = (1 + z * (1 + 3 * z * (1 + 5 * z * (1 + 7 * z)))) / (2 * size);
  } else {
    const double middle = 2 * std::rint(0.5 * size / kStep), rest = size - middle * kStep;
    for (int k = -kTerms; k <= kTerms; k += 2) {
      const double offset = rest - k * kStep;
      value += std::exp(-offset * offset) / (middle + k);
    }
    value *= std::numbers::inv_sqrtpi;
  }
  return std::copysign(value, x);
}

double exponential_integral(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  return std::expint(x);
}

namespace {
// (1 + i) / 2 times the error function of (1 - i) sqrt(pi) x / 2: its real part is the cosine's integral.
std::complex<double> fresnel(double x) {
  using Complex = std::complex<double>;
  if (std::isnan(x)) return {kNan, kNan};
  const double size = std::abs(x), square = size * size;
  if (size > 1e8) return {std::copysign(0.5, x), std::copysign(0.5, x)};
  Complex value;
  if (size < 1.5) {
    Complex term = size;
    const Complex factor(0, pi / 2 * square);
    for (int k = 0; k < 60; ++k) {
      value += term / (2.0 * k + 1);
      term *= factor / (k + 1.0);
    }
  } else {
    struct ComplexPart {
      Complex numerator, denominator;
    };
    const Complex first(1, -pi * square);
    const Complex below = continued_fraction(first, [&](int k) {
      return ComplexPart{-(2.0 * k - 1) * (2.0 * k), first + 4.0 * k};
    });
    const double angle = pi / 2 * std::fmod(square, 4.0);
    const Complex tail = Complex(size, -size) / below * Complex(std::cos(angle), std::sin(angle));
    value = Complex(0.5, 0.5) * (1.0 - tail);
  }
  return x < 0 ? -value : value;
}
}  // namespace
double fresnel_sin(double x) { return fresnel(x).imag(); }
double fresnel_cos(double x) { return fresnel(x).real(); }

}  // namespace orknn::ops
