// Elementary functions on vectors, a few units in the last place from exact. NaN gives NaN.
#pragma once

#include "sim/kernels/support/simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

// e^x = 2^n * e^r with |r| <= ln(2)/2; overflows to infinity and underflows gradually.
ORKNN_SIMD Vec exp(Vec x) {
  x = min(splat(89.0f), max(splat(-104.0f), x));
  const Vec n = round_small(x * splat(1.44269504f));
  Vec r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(2.12194440e-4f), r);
  Vec q = splat(1.395047879e-03f);
  q = fma(q, r, splat(8.368884062e-03f));
  q = fma(q, r, splat(4.166620598e-02f));
  q = fma(q, r, splat(1.666651888e-01f));
  q = fma(q, r, splat(5.000000095e-01f));
  return scale_by_power(fma(q, r * r, r) + splat(1.0f), n);
}

// Natural logarithm; 0 gives -infinity, negative numbers NaN.
ORKNN_SIMD Vec log(Vec x) {
  const Mask subnormal = less(x, splat(1.17549435e-38f));
  const Vec scaled = select(subnormal, x * splat(16777216.0f), x);
  Vec e;
  Vec m = split_exponent(scaled, e);
  e = select(subnormal, e - splat(24.0f), e);
  const Mask low = less(m, splat(0.70710678f));
  e = select(low, e - splat(1.0f), e);
  const Vec f = select(low, m + m, m) - splat(1.0f);
  Vec p = splat(-7.859535312e-02f);
  p = fma(p, f, splat(1.288162958e-01f));
  p = fma(p, f, splat(-1.312877464e-01f));
  p = fma(p, f, splat(1.418119545e-01f));
  p = fma(p, f, splat(-1.662455239e-01f));
  p = fma(p, f, splat(2.000228610e-01f));
  p = fma(p, f, splat(-2.500081045e-01f));
  p = fma(p, f, splat(3.333331673e-01f));
  const Vec f2 = f * f;
  Vec y = fma(p * f, f2, e * splat(-2.12194440e-4f));
  y = fma(f2, splat(-0.5f), y) + f;
  y = fma(e, splat(0.693359375f), y);
  const float infinity = __builtin_inff();
  y = select(less(x, splat(infinity)), y, x);  // +infinity and NaN stay
  y = select(less(x, splat(0.0f)), splat(__builtin_nanf("")), y);
  return select(less(abs(x), splat(1e-45f)), splat(-infinity), y);
}

ORKNN_SIMD Vec sigmoid(Vec x) { return splat(1.0f) / (splat(1.0f) + exp(negate(x))); }

ORKNN_SIMD Vec tanh(Vec x) {
  const Vec a = abs(x), t = x * x;
  Vec p = splat(-5.672420685e-03f);
  p = fma(p, t, splat(2.060314702e-02f));
  p = fma(p, t, splat(-5.372523197e-02f));
  p = fma(p, t, splat(1.333118578e-01f));
  p = fma(p, t, splat(-3.333326338e-01f));
  const Vec near = fma(p * t, x, x);
  const Vec far = splat(1.0f) - splat(2.0f) / (exp(a + a) + splat(1.0f));
  return select(less(a, splat(0.625f)), near, copy_sign(far, x));
}

// erf(x) for |x| <= 1.
ORKNN_SIMD Vec erf_near(Vec x) {
  const Vec t = x * x;
  Vec p = splat(-9.680135433e-06f);
  p = fma(p, t, splat(1.127054446e-04f));
  p = fma(p, t, splat(-8.484711494e-04f));
  p = fma(p, t, splat(5.221074885e-03f));
  p = fma(p, t, splat(-2.686544583e-02f));
  p = fma(p, t, splat(1.128378275e-01f));
  p = fma(p, t, splat(-3.761263848e-01f));
  p = fma(p, t, splat(1.128379167e+00f));
  return p * x;
}
// 1 - erf(a) for a >= 1, as e^(polynomial - a^2); 0 above 6.
ORKNN_SIMD Vec erfc_far(Vec a) {
  const Vec b = min(splat(6.0f), a);
  Vec p = splat(5.454321303e-09f);
  p = fma(p, b, splat(-2.747430791e-07f));
  p = fma(p, b, splat(6.275280897e-06f));
  p = fma(p, b, splat(-8.650378224e-05f));
  p = fma(p, b, splat(8.087417764e-04f));
  p = fma(p, b, splat(-5.471775418e-03f));
  p = fma(p, b, splat(2.799185371e-02f));
  p = fma(p, b, splat(-1.123381818e-01f));
  p = fma(p, b, splat(3.702060743e-01f));
  p = fma(p, b, splat(-1.131269623e+00f));
  p = fma(p, b, splat(5.479195457e-04f));
  return select(less(splat(6.0f), a), splat(0.0f), exp(p - b * b));
}
ORKNN_SIMD Vec erf(Vec x) {
  const Vec a = abs(x);
  return select(less(a, splat(1.0f)), erf_near(x), copy_sign(splat(1.0f) - erfc_far(a), x));
}

// sin(x + quarters * pi / 2): x = n * pi / 2 + r with |r| <= pi / 4, and n + quarters says which of the four arcs. Pi / 2 is
// subtracted in three parts whose products with n are exact; beyond their reach the elements are computed one by one.
ORKNN_SIMD Vec sine(Vec x, float quarters) {
  const Vec n = round_small(min(splat(8192.0f), max(splat(-8192.0f), x)) * splat(0.636619772f));
  Vec r = fma(n, splat(-1.5703125f), x);
  r = fma(n, splat(-4.837512969970703e-4f), r);
  r = fma(n, splat(-7.549789954891882e-8f), r);
  const Vec t = r * r;
  Vec s = splat(-1.9515295891e-4f);
  s = fma(s, t, splat(8.3321608736e-3f));
  s = fma(s, t, splat(-1.6666654611e-1f));
  s = fma(s * t, r, r);
  Vec c = splat(2.443315711809948e-5f);
  c = fma(c, t, splat(-1.388731625493765e-3f));
  c = fma(c, t, splat(4.166664568298827e-2f));
  c = fma(c * t, t, fma(t, splat(-0.5f), splat(1.0f)));
  const Vec arc = n + splat(quarters);
  const Vec odd = arc - splat(2.0f) * floor(arc * splat(0.5f)), place = arc - splat(4.0f) * floor(arc * splat(0.25f));
  const Vec y = select(less(splat(0.5f), odd), c, s);
  const Vec result = select(less(splat(1.5f), place), negate(y), y);
  const Vec far = select(less(splat(8192.0f), abs(x)), splat(1.0f), splat(0.0f));
  if (sum(far) == 0.0f) return result;
  float values[Vec::kWidth], results[Vec::kWidth];
  store(values, x);
  store(results, result);
  for (int i = 0; i < Vec::kWidth; ++i)
    if (values[i] > 8192.0f || values[i] < -8192.0f) {
      const double value = values[i];
      results[i] = static_cast<float>(quarters == 0.0f ? __builtin_sin(value) : __builtin_cos(value));
    }
  return load(results);
}

// x * P(standard normal <= x), without cancellation for negative x.
ORKNN_SIMD Vec gelu(Vec x) {
  const Vec z = x * splat(0.70710678f), a = abs(z);
  const Vec tail = splat(0.5f) * erfc_far(a);
  const Vec near = fma(splat(0.5f), erf_near(z), splat(0.5f));
  const Vec far = select(less(z, splat(0.0f)), tail, splat(1.0f) - tail);
  return x * select(less(a, splat(1.0f)), near, far);
}
ORKNN_SIMD Vec gelu_tanh(Vec x) {
  const Vec inner = splat(0.7978845608f) * fma(splat(0.044715f) * x * x, x, x);
  return splat(0.5f) * x * (splat(1.0f) + tanh(inner));
}

// log(1 + e^x).
ORKNN_SIMD Vec softplus(Vec x) {
  const Vec e = exp(negate(abs(x)));
  const Vec u = splat(1.0f) + e;
  const Vec rounding = (u - splat(1.0f)) - e;  // what the sum lost
  const Vec log1p = select(less(e, splat(1e-4f)), e - splat(0.5f) * e * e, log(u) - rounding / u);
  return select(is_nan(x), x, max(splat(0.0f), x) + log1p);  // a sum of two NaNs may be either of them
}

// x * tanh(softplus(x)) with tanh and log cancelled: x * (e^2 + 2e) / (e^2 + 2e + 2), e = e^x.
ORKNN_SIMD Vec mish(Vec x) {
  const Vec e = exp(min(splat(20.0f), x));
  const Vec n = e * (e + splat(2.0f));
  return x * (n / (n + splat(2.0f)));
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
