// Special functions that C++ does not have, or has only for part of the line. All in double, accurate to about 1e-12 of the
// result (1e-9 for incomplete gamma functions of a above 1e6); outside of its domain a function is NaN.
#pragma once

namespace orknn::ops {

// --- gamma
double log_gamma(double x);                       // of the size of the gamma function
double digamma(double x);                         // derivative of log_gamma
double polygamma(double n, double x);             // n-th derivative of digamma, n a whole number
double hurwitz_zeta(double s, double q);          // sum of (q + k)^-s, s > 1, q > -1e4
double lower_gamma_share(double a, double x);     // the regularized incomplete gamma function P(a, x)
double upper_gamma_share(double a, double x);     // 1 - P(a, x), which keeps its digits where P is near 1
double beta_share(double a, double b, double x);  // the regularized incomplete beta function I_x(a, b)

// --- errors and the normal distribution
double inverse_erf(double y);
double scaled_erfc(double x);               // exp(x^2) erfc(x)
double inverse_normal(double probability);  // x below which a standard normal value lies with that probability
double log_normal(double x);                // logarithm of the probability of a standard normal value below x

// --- Bessel functions of order 0 or 1
double bessel_i(int order, double x);         // modified, first kind
double scaled_bessel_i(int order, double x);  // exp(-|x|) I(x)
double bessel_k(int order, double x);         // modified, second kind
double scaled_bessel_k(int order, double x);  // exp(x) K(x)
double bessel_j(int order, double x);
double bessel_y(int order, double x);

// --- integrals
double dilogarithm(double x);           // Spence's: the integral of -log(t) / (t - 1) from 1 to x
double dawson(double x);                // exp(-x^2) times the integral of exp(t^2) from 0 to x
double exponential_integral(double x);  // Ei
double fresnel_sin(double x);           // the integral of sin(pi t^2 / 2) from 0 to x
double fresnel_cos(double x);

}  // namespace orknn::ops
