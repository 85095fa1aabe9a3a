// The gamma function and its relatives, Bessel functions, functions of the normal distribution and other integrals; functions of
// two values that tell the zeros apart.
// All are computed in double.
#include "ops/support/special_functions.h"

#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class F>
OpDef in_double(std::string_view name, std::string_view summary, F) {
  return float_function({.name = name, .summary = summary, .quant = QuantRule::Table},
                        []<class T>(T x, T, T) { return static_cast<T>(F{}(static_cast<double>(x))); });
}

Status infer_floats(InferContext& c) {
  ORKNN_TRY(check_types(c, is_float, "a float type"));
  return broadcast_inputs(c);
}

// A function of two or three values that broadcast. F takes doubles.
template <class F>
OpDef of_several(std::string_view name, std::string_view summary, int count, F) {
  return {.name = name,
          .summary = summary,
          .inputs = {count, count},
          .infer = infer_floats,
          .run = [](RunContext& c) -> Status {
            constexpr bool kThree = std::is_invocable_v<F, double, double, double>;
            const TensorView a = c.input(0), b = c.input(1), last = c.input(kThree ? 2 : 1);
            ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims, last.dims}));
            ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, plan.dims()));
            visit_real(a.dtype, [&]<class T>(TypeTag<T>) {
              plan.for_rows(c.pool, [&](int64_t out, const int64_t* in, int64_t n) {
                const auto value = [&](const TensorView& x, int i, int64_t k) {
                  return static_cast<double>(x.as<T>()[in[i] + k * plan.step(i)]);
                };
                for (int64_t k = 0; k < n; ++k) {
                  if constexpr (kThree)
                    y.as<T>()[out + k] = static_cast<T>(F{}(value(a, 0, k), value(b, 1, k), value(last, 2, k)));
                  else
                    y.as<T>()[out + k] = static_cast<T>(F{}(value(a, 0, k), value(b, 1, k)));
                }
              });
            });
            return {};
          },
          .pattern = Pattern::Broadcast};
}
}  // namespace

std::span<const OpDef> special_functions() {
  static const OpDef defs[] = {
      in_double("Gamma", "gamma function, (x - 1)! of whole numbers", [](double x) { return std::tgamma(x); }),
      in_double("LogGamma", "natural logarithm of the size of the gamma function", [](double x) { return log_gamma(x); }),
      in_double("Digamma", "derivative of LogGamma", [](double x) { return digamma(x); }),
      of_several("Polygamma", "a-th derivative of Digamma at b", 2, [](double n, double x) { return polygamma(n, x); }),
      of_several("Zeta", "Hurwitz zeta function, the sum of (b + k) to the power -a", 2,
                 [](double s, double q) { return hurwitz_zeta(s, q); }),
      of_several("GammaInc", "regularized lower incomplete gamma function P(a, b)", 2,
                 [](double a, double x) { return lower_gamma_share(a, x); }),
      of_several("GammaIncUpper", "regularized upper incomplete gamma function, 1 - P(a, b)", 2,
                 [](double a, double x) { return upper_gamma_share(a, x); }),
      of_several("BetaInc", "regularized incomplete beta function of (a, b) up to x", 3,
                 [](double a, double b, double x) { return beta_share(a, b, x); }),
      in_double("Erfc", "1 - erf(x), which keeps its digits where it is small", [](double x) { return std::erfc(x); }),
      in_double("ErfInv", "x whose error function is the given value", [](double x) { return inverse_erf(x); }),
      in_double("ErfcScaled", "exp(x^2) (1 - erf(x))", [](double x) { return scaled_erfc(x); }),
      in_double("NormalInverse", "value below which a standard normal one lies with the given probability",
                [](double x) { return inverse_normal(x); }),
      in_double("LogNormalCdf", "logarithm of the probability of a standard normal value below x",
                [](double x) { return log_normal(x); }),
      in_double("BesselI0", "modified Bessel function, first kind, order 0", [](double x) { return bessel_i(0, x); }),
      in_double("BesselI1", "modified Bessel function, first kind, order 1", [](double x) { return bessel_i(1, x); }),
      in_double("BesselI0Scaled", "exp(-|x|) BesselI0(x)", [](double x) { return scaled_bessel_i(0, x); }),
      in_double("BesselI1Scaled", "exp(-|x|) BesselI1(x)", [](double x) { return scaled_bessel_i(1, x); }),
      in_double("BesselK0", "modified Bessel function, second kind, order 0", [](double x) { return bessel_k(0, x); }),
      in_double("BesselK1", "modified Bessel function, second kind, order 1", [](double x) { return bessel_k(1, x); }),
      in_double("BesselK0Scaled", "exp(x) BesselK0(x)", [](double x) { return scaled_bessel_k(0, x); }),
      in_double("BesselK1Scaled", "exp(x) BesselK1(x)", [](double x) { return scaled_bessel_k(1, x); }),
      in_double("BesselJ0", "Bessel function, first kind, order 0", [](double x) { return bessel_j(0, x); }),
      in_double("BesselJ1", "Bessel function, first kind, order 1", [](double x) { return bessel_j(1, x); }),
      in_double("BesselY0", "Bessel function, second kind, order 0", [](double x) { return bessel_y(0, x); }),
      in_double("BesselY1", "Bessel function, second kind, order 1", [](double x) { return bessel_y(1, x); }),
      in_double("Dilogarithm", "Spence's function, the dilogarithm of 1 - x", [](double x) { return dilogarithm(x); }),
      in_double("Dawson", "Dawson's integral", [](double x) { return dawson(x); }),
      in_double("ExpIntegral", "exponential integral Ei", [](double x) { return exponential_integral(x); }),
      in_double("FresnelSin", "Fresnel's integral of the sine", [](double x) { return fresnel_sin(x); }),
      in_double("FresnelCos", "Fresnel's integral of the cosine", [](double x) { return fresnel_cos(x); }),
      of_several("Atan2", "angle of the point with height a at place b, from -pi to pi", 2,
                 [](double y, double x) { return std::atan2(y, x); }),
      of_several("CopySign", "size of a with the sign of b, that of a zero too", 2,
                 [](double size, double sign) { return std::copysign(size, sign); }),
  };
  return defs;
}
}  // namespace orknn::ops
