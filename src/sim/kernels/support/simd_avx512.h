// Sixteen floats with AVX-512 F, BW, DQ and VL.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/half.h"
#include "sim/kernels/support/simd_names.h"

namespace orknn::sim::kernels::avx512 {

struct Mask {
  __mmask16 m;
};
struct Vec {
  static constexpr int kWidth = 16;
  __m512 v;
};

ORKNN_SIMD __mmask16 part_mask(int n) { return static_cast<__mmask16>((1u << n) - 1); }

ORKNN_SIMD Vec splat(float x) { return {_mm512_set1_ps(x)}; }
ORKNN_SIMD Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
ORKNN_SIMD Vec load(const Half* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
ORKNN_SIMD Vec load_part(const float* p, int n) { return {_mm512_maskz_loadu_ps(part_mask(n), p)}; }
ORKNN_SIMD Vec load_part(const Half* p, int n) { return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(part_mask(n), p))}; }
ORKNN_SIMD void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
ORKNN_SIMD void store(Half* p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
// Past the caches; `p` is aligned to 64 bytes.
ORKNN_SIMD void stream(float* p, Vec a) { _mm512_stream_ps(p, a.v); }
ORKNN_SIMD void finish_streams() { _mm_sfence(); }
ORKNN_SIMD void store_part(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, part_mask(n), a.v); }
ORKNN_SIMD void store_part(Half* p, Vec a, int n) {
  _mm256_mask_storeu_epi16(p, part_mask(n), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
// p[at[0]], p[at[1]], ...
ORKNN_SIMD Vec gather(const float* p, const int32_t* at) { return {_mm512_i32gather_ps(_mm512_loadu_si512(at), p, 4)}; }
// Elements p[0], p[2], p[4], ...; reads nothing after the last one.
ORKNN_SIMD Vec load_even(const float* p) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  return {_mm512_permutex2var_ps(_mm512_loadu_ps(p), even, _mm512_loadu_ps(p + 15))};
}
ORKNN_SIMD Vec load_even(const Half* p) {
  const __m512i bits = _mm512_maskz_loadu_epi16(0x7fffffffu, p);
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits))};
}

// Elements [begin, end) of p[0], p[1], ... (or p[0], p[2], ...), 0 elsewhere; touches no other memory.
ORKNN_SIMD Vec load_window(const float* p, int begin, int end) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>(part_mask(end) & ~part_mask(begin)), p)};
}
ORKNN_SIMD Vec load_window(const Half* p, int begin, int end) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(part_mask(end) & ~part_mask(begin)), p))};
}
ORKNN_SIMD uint32_t even_mask(int begin, int end) {
  return static_cast<uint32_t>(((uint64_t{1} << (2 * end)) - (uint64_t{1} << (2 * begin))) & 0x55555555u);
}
ORKNN_SIMD Vec load_even_window(const float* p, int begin, int end) {
  if (begin >= end) return splat(0.0f);
  const uint32_t mask = even_mask(begin, end);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p), even,
                                 _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), p + 16))};
}
ORKNN_SIMD Vec load_even_window(const Half* p, int begin, int end) {
  if (begin >= end) return splat(0.0f);
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_maskz_loadu_epi16(even_mask(begin, end), p)))};
}

ORKNN_SIMD Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
ORKNN_SIMD Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }

ORKNN_SIMD Mask less(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
ORKNN_SIMD Mask is_nan(Vec a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
ORKNN_SIMD Vec select(Mask m, Vec yes, Vec no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }
// min and max return `b` when the two do not compare: put what may be NaN second.
ORKNN_SIMD Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
ORKNN_SIMD Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }

ORKNN_SIMD Vec abs(Vec a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
ORKNN_SIMD Vec negate(Vec a) { return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), a.v)}; }
ORKNN_SIMD Vec copy_sign(Vec magnitude, Vec sign) {
  const __m512 bit = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(bit, magnitude.v), _mm512_and_ps(bit, sign.v))};
}
ORKNN_SIMD Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
ORKNN_SIMD Vec floor(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD Vec ceil(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD Vec round_even(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD Vec round_small(Vec a) { return round_even(a); }

// a * 2^n for whole n, with overflow to infinity and gradual underflow.
ORKNN_SIMD Vec scale_by_power(Vec a, Vec n) { return {_mm512_scalef_ps(a.v, n.v)}; }
// Splits a positive normal number into mantissa in [0.5, 1) and exponent.
ORKNN_SIMD Vec split_exponent(Vec a, Vec& exponent) {
  exponent = {_mm512_add_ps(_mm512_getexp_ps(a.v), _mm512_set1_ps(1.0f))};
  return {_mm512_getmant_ps(a.v, _MM_MANT_NORM_p5_1, _MM_MANT_SIGN_src)};
}

// Rows of four fours become fours of four rows.
ORKNN_SIMD void transpose_fours(Vec a, Vec b, Vec c, Vec d, Vec (&to)[4]) {
  const __m512 ab = _mm512_shuffle_f32x4(a.v, b.v, 0x44), cd = _mm512_shuffle_f32x4(c.v, d.v, 0x44),
               ab_high = _mm512_shuffle_f32x4(a.v, b.v, 0xee), cd_high = _mm512_shuffle_f32x4(c.v, d.v, 0xee);
  to[0].v = _mm512_shuffle_f32x4(ab, cd, 0x88);
  to[1].v = _mm512_shuffle_f32x4(ab, cd, 0xdd);
  to[2].v = _mm512_shuffle_f32x4(ab_high, cd_high, 0x88);
  to[3].v = _mm512_shuffle_f32x4(ab_high, cd_high, 0xdd);
}

ORKNN_SIMD float sum(Vec a) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

ORKNN_SIMD __m256 load8(const float* p) { return _mm256_loadu_ps(p); }
ORKNN_SIMD __m256 load8(const Half* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

// Halves change places as 16-bit words and are widened then.
ORKNN_SIMD void transpose8(const Half* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  const auto four_rows = [&](const Half* from) __attribute__((always_inline)) {
    if (src_stride == 8) return _mm512_loadu_si512(from);
    const auto row = [&](int i) __attribute__((always_inline)) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * src_stride));
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1),
                  high = _mm256_inserti128_si256(_mm256_castsi128_si256(row(2)), row(3), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  };
  const __m512i top = four_rows(src), bottom = four_rows(src + 4 * src_stride);
  // Word 8 j + i of the result is word j of row i: of `top` for rows below 4, else of `bottom`, whose words count from 32.
  alignas(64) static constexpr uint16_t kFirst[32] = {0, 8,  16, 24, 32, 40, 48, 56, 1, 9,  17, 25, 33, 41, 49, 57,
                                                      2, 10, 18, 26, 34, 42, 50, 58, 3, 11, 19, 27, 35, 43, 51, 59};
  const __m512i first = _mm512_load_si512(kFirst), second = _mm512_add_epi16(first, _mm512_set1_epi16(4));
  const __m512i columns[2] = {_mm512_permutex2var_epi16(top, first, bottom), _mm512_permutex2var_epi16(top, second, bottom)};
  ORKNN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i pair = i % 2 == 0 ? _mm512_castsi512_si256(columns[i / 2]) : _mm512_extracti64x4_epi64(columns[i / 2], 1);
    const __m512 values = _mm512_cvtph_ps(pair);
    float* to = dst + 2 * i * dst_stride;
    if (dst_stride == 8) {
      _mm512_storeu_ps(to, values);
    } else {
      _mm256_storeu_ps(to, _mm512_castps512_ps256(values));
      _mm256_storeu_ps(to + dst_stride, _mm512_extractf32x8_ps(values, 1));
    }
  }
}

}  // namespace orknn::sim::kernels::avx512
