// Four floats with the compiler's generic vectors: SSE2 on x86-64, NEON on aarch64. The fused form differs in fma() alone.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "sim/kernels/support/simd_names.h"

namespace orknn::sim::kernels::ORKNN_FORM {

using Floats = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));

struct Mask {
  Ints m;
};
struct Vec {
  static constexpr int kWidth = 4;
  Floats v;
};

ORKNN_SIMD Vec splat(float x) { return {Floats{x, x, x, x}}; }
ORKNN_SIMD Vec load(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof v);
  return {v};
}
ORKNN_SIMD Vec load(const Half* p) { return {Floats{p[0], p[1], p[2], p[3]}}; }
template <class T>
ORKNN_SIMD Vec load_part(const T* p, int n) {
  Floats v = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return {v};
}
ORKNN_SIMD void store(float* p, Vec a) { __builtin_memcpy(p, &a.v, sizeof a.v); }
ORKNN_SIMD void store(Half* p, Vec a) {
  for (int i = 0; i < 4; ++i) p[i] = Half(a.v[i]);
}
template <class T>
ORKNN_SIMD void store_part(T* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = T(a.v[i]);
}
// p[at[0]], p[at[1]], ...
ORKNN_SIMD Vec gather(const float* p, const int32_t* at) { return {Floats{p[at[0]], p[at[1]], p[at[2]], p[at[3]]}}; }
// Elements p[0], p[2], p[4], ...; reads nothing after the last one.
template <class T>
ORKNN_SIMD Vec load_even(const T* p) {
  return {Floats{p[0], p[2], p[4], p[6]}};
}

// Elements [begin, end) of p[0], p[1], ... (or p[0], p[2], ...), 0 elsewhere; touches no other memory.
template <class T>
ORKNN_SIMD Vec load_window(const T* p, int begin, int end) {
  Floats v = {0, 0, 0, 0};
  for (int i = begin; i < end; ++i) v[i] = p[i];
  return {v};
}
template <class T>
ORKNN_SIMD Vec load_even_window(const T* p, int begin, int end) {
  Floats v = {0, 0, 0, 0};
  for (int i = begin; i < end; ++i) v[i] = p[2 * i];
  return {v};
}

ORKNN_SIMD Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
ORKNN_SIMD Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
ORKNN_SIMD Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
ORKNN_SIMD Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
#if !defined(ORKNN_FORM_FUSED)
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
#elif defined(__FP_FAST_FMAF)
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) {
  Floats r;
  for (int i = 0; i < 4; ++i) r[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return {r};
}
#else
// Rounded once, as the instruction does it: in double the product is exact, and the sum becomes the right float unless rounding
// to double has put it midway between two floats or it lies below the normal ones. These rare cases are left to the C library.
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) {
  using Doubles = double __attribute__((vector_size(32)));
  using Halves = int32_t __attribute__((vector_size(32)));
  using Longs = int64_t __attribute__((vector_size(16)));
  const Doubles sum =
      __builtin_convertvector(a.v, Doubles) * __builtin_convertvector(b.v, Doubles) + __builtin_convertvector(c.v, Doubles);
  Vec result = {__builtin_convertvector(sum, Floats)};
  const Halves bits = (Halves)sum;
  const Ints low = __builtin_shufflevector(bits, bits, 0, 2, 4, 6);  // of each double, on machines that store it first
  constexpr int32_t kBelowFloat = 0x1fffffff, kMidway = 0x10000000, kMagnitude = 0x7fffffff, kLeastNormal = 0x00800000;
  const Ints magnitude = (Ints)result.v & kMagnitude;
  const Longs rare = (Longs)(((low & kBelowFloat) == kMidway) | ((magnitude <= kLeastNormal) & (magnitude != 0)));
  if (__builtin_expect((rare[0] | rare[1]) != 0, 0))
    for (int i = 0; i < 4; ++i) result.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return result;
}
#endif

ORKNN_SIMD Mask less(Vec a, Vec b) { return {a.v < b.v}; }
ORKNN_SIMD Mask is_nan(Vec a) { return {a.v != a.v}; }
ORKNN_SIMD Vec select(Mask m, Vec yes, Vec no) { return {(Floats)((m.m & (Ints)yes.v) | (~m.m & (Ints)no.v))}; }
// min and max return `b` when the two do not compare, as the x86 instructions do: put what may be NaN second.
ORKNN_SIMD Vec min(Vec a, Vec b) { return select({a.v < b.v}, a, b); }
ORKNN_SIMD Vec max(Vec a, Vec b) { return select({a.v > b.v}, a, b); }

ORKNN_SIMD Vec abs(Vec a) { return {(Floats)((Ints)a.v & 0x7fffffff)}; }
ORKNN_SIMD Vec negate(Vec a) { return {-a.v}; }
ORKNN_SIMD Vec copy_sign(Vec magnitude, Vec sign) {
  return {(Floats)(((Ints)magnitude.v & 0x7fffffff) | ((Ints)sign.v & static_cast<int32_t>(0x80000000)))};
}
ORKNN_SIMD Vec sqrt(Vec a) { return {Floats{std::sqrt(a.v[0]), std::sqrt(a.v[1]), std::sqrt(a.v[2]), std::sqrt(a.v[3])}}; }
ORKNN_SIMD Vec floor(Vec a) { return {Floats{std::floor(a.v[0]), std::floor(a.v[1]), std::floor(a.v[2]), std::floor(a.v[3])}}; }
ORKNN_SIMD Vec ceil(Vec a) { return {Floats{std::ceil(a.v[0]), std::ceil(a.v[1]), std::ceil(a.v[2]), std::ceil(a.v[3])}}; }
ORKNN_SIMD Vec round_even(Vec a) {
  return {Floats{std::nearbyint(a.v[0]), std::nearbyint(a.v[1]), std::nearbyint(a.v[2]), std::nearbyint(a.v[3])}};
}

// 2^n for whole n in [-126, 127].
ORKNN_SIMD Vec power_of_two(Vec n) {
  const Ints e = __builtin_convertvector(n.v, Ints);
  return {(Floats)((e + 127) << 23)};
}
// a * 2^n for whole n in [-252, 254], with overflow to infinity and gradual underflow; n of a NaN may be anything.
ORKNN_SIMD Vec scale_by_power(Vec a, Vec n) {
  const Vec bounded = max(splat(-252), min(splat(254), n));
  const Vec first = {__builtin_convertvector(__builtin_convertvector(bounded.v * 0.5f, Ints), Floats)};
  return a * power_of_two(first) * power_of_two(bounded - first);
}
// n in [-0.25, 0.25] by nearest whole number below 2^22.
ORKNN_SIMD Vec round_small(Vec a) {
  const Floats magic = {12582912.0f, 12582912.0f, 12582912.0f, 12582912.0f};
  return {(a.v + magic) - magic};
}
// Splits a positive normal number into mantissa in [0.5, 1) and exponent.
ORKNN_SIMD Vec split_exponent(Vec a, Vec& exponent) {
  const Ints bits = (Ints)a.v;
  exponent = {__builtin_convertvector(((bits >> 23) & 0xff) - 126, Floats)};
  return {(Floats)((bits & 0x007fffff) | 0x3f000000)};
}

ORKNN_SIMD float sum(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }

// dst[j * dst_stride + i] = src[i * src_stride + j] for i, j < 8.
template <class T>
ORKNN_SIMD void transpose8(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) dst[j * dst_stride + i] = src[i * src_stride + j];
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
