// Eight floats with AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/half.h"
#include "sim/kernels/support/simd_names.h"

namespace orknn::sim::kernels::avx2 {

struct Mask {
  __m256 m;
};
struct Vec {
  static constexpr int kWidth = 8;
  __m256 v;
};

alignas(32) constexpr int32_t kPartMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
ORKNN_SIMD __m256i part_mask(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kPartMasks + 8 - n)); }

ORKNN_SIMD Vec splat(float x) { return {_mm256_set1_ps(x)}; }
ORKNN_SIMD Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
ORKNN_SIMD Vec load(const Half* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
ORKNN_SIMD Vec load_part(const float* p, int n) { return {_mm256_maskload_ps(p, part_mask(n))}; }
ORKNN_SIMD Vec load_part(const Half* p, int n) {
  alignas(16) uint16_t bits[8] = {};
  for (int i = 0; i < n; ++i) bits[i] = p[i].bits;
  return {_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(bits)))};
}
ORKNN_SIMD void store(float* p, Vec a) { _mm256_storeu_ps(p, a.v); }
ORKNN_SIMD void store(Half* p, Vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
ORKNN_SIMD void store_part(float* p, Vec a, int n) { _mm256_maskstore_ps(p, part_mask(n), a.v); }
ORKNN_SIMD void store_part(Half* p, Vec a, int n) {
  alignas(16) uint16_t bits[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(bits), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
  for (int i = 0; i < n; ++i) p[i].bits = bits[i];
}
// p[at[0]], p[at[1]], ...
ORKNN_SIMD Vec gather(const float* p, const int32_t* at) {
  return {_mm256_setr_ps(p[at[0]], p[at[1]], p[at[2]], p[at[3]], p[at[4]], p[at[5]], p[at[6]], p[at[7]])};
}
// Elements p[0], p[2], p[4], ...; reads nothing after the last one.
ORKNN_SIMD Vec load_even(const float* p) {
  const __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + 7);
  const __m256 mixed = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 2, 0));
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), _MM_SHUFFLE(3, 1, 2, 0)))};
}
ORKNN_SIMD Vec load_even(const Half* p) {
  const __m128i low = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_set1_epi32(0xffff));
  const __m128i high = _mm_srli_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 7)), 16);
  return {_mm256_cvtph_ps(_mm_packus_epi32(low, high))};
}

// Elements [begin, end) of p[0], p[1], ... (or p[0], p[2], ...), 0 elsewhere; touches no other memory.
ORKNN_SIMD Vec load_window(const float* p, int begin, int end) {
  return {_mm256_maskload_ps(p, _mm256_andnot_si256(part_mask(begin), part_mask(end)))};
}
ORKNN_SIMD Vec load_window(const Half* p, int begin, int end) {
  alignas(16) uint16_t bits[8] = {};
  for (int i = begin; i < end; ++i) bits[i] = p[i].bits;
  return {_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(bits)))};
}
ORKNN_SIMD Vec load_even_window(const float* p, int begin, int end) {
  alignas(32) float values[8] = {};
  for (int i = begin; i < end; ++i) values[i] = p[2 * i];
  return {_mm256_load_ps(values)};
}
ORKNN_SIMD Vec load_even_window(const Half* p, int begin, int end) {
  alignas(16) uint16_t bits[8] = {};
  for (int i = begin; i < end; ++i) bits[i] = p[2 * i].bits;
  return {_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(bits)))};
}

ORKNN_SIMD Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }

ORKNN_SIMD Mask less(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
ORKNN_SIMD Mask is_nan(Vec a) { return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)}; }
ORKNN_SIMD Vec select(Mask m, Vec yes, Vec no) { return {_mm256_blendv_ps(no.v, yes.v, m.m)}; }
// min and max return `b` when the two do not compare: put what may be NaN second.
ORKNN_SIMD Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
ORKNN_SIMD Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }

ORKNN_SIMD Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
ORKNN_SIMD Vec negate(Vec a) { return {_mm256_xor_ps(_mm256_set1_ps(-0.0f), a.v)}; }
ORKNN_SIMD Vec copy_sign(Vec magnitude, Vec sign) {
  const __m256 bit = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(bit, magnitude.v), _mm256_and_ps(bit, sign.v))};
}
ORKNN_SIMD Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
ORKNN_SIMD Vec floor(Vec a) { return {_mm256_floor_ps(a.v)}; }
ORKNN_SIMD Vec ceil(Vec a) { return {_mm256_ceil_ps(a.v)}; }
ORKNN_SIMD Vec round_even(Vec a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD Vec round_small(Vec a) { return round_even(a); }

// 2^n for whole n in [-126, 127].
ORKNN_SIMD Vec power_of_two(Vec n) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23))};
}
// a * 2^n for whole n in [-252, 254], with overflow to infinity and gradual underflow; n of a NaN may be anything.
ORKNN_SIMD Vec scale_by_power(Vec a, Vec n) {
  const Vec first = {_mm256_round_ps(_mm256_mul_ps(n.v, _mm256_set1_ps(0.5f)), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
  return a * power_of_two(first) * power_of_two(n - first);
}
// Splits a positive normal number into mantissa in [0.5, 1) and exponent.
ORKNN_SIMD Vec split_exponent(Vec a, Vec& exponent) {
  const __m256i bits = _mm256_castps_si256(a.v);
  exponent = {_mm256_cvtepi32_ps(
      _mm256_sub_epi32(_mm256_and_si256(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(0xff)), _mm256_set1_epi32(126)))};
  return {
      _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff)), _mm256_set1_epi32(0x3f000000)))};
}

ORKNN_SIMD float sum(Vec a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

ORKNN_SIMD __m256 load8(const float* p) { return load(p).v; }
ORKNN_SIMD __m256 load8(const Half* p) { return load(p).v; }

}  // namespace orknn::sim::kernels::avx2
