// The vector type of the form being compiled: `Vec` of Vec::kWidth floats and functions on it, in the namespace the macro
// ORKNN_FORM names (portable, fused, avx2, avx512, neon). Only the forms_*.cpp files include this.
#pragma once

#if defined(ORKNN_FORM_AVX512)
#define ORKNN_FORM avx512
#include "sim/kernels/support/simd_avx512.h"
#elif defined(ORKNN_FORM_AVX2)
#define ORKNN_FORM avx2
#include "sim/kernels/support/simd_avx2.h"
#elif defined(ORKNN_FORM_NEON)
#define ORKNN_FORM neon
#include "sim/kernels/support/simd_neon.h"
#else
#if defined(ORKNN_FORM_FUSED)
#define ORKNN_FORM fused
#else
#define ORKNN_FORM portable
#endif
#include "sim/kernels/support/simd_portable.h"
#endif

#if defined(ORKNN_FORM_AVX512) || defined(ORKNN_FORM_NEON)
#define ORKNN_FORM_32_REGISTERS
#endif

#if defined(ORKNN_FORM_AVX512) || defined(ORKNN_FORM_AVX2)
namespace orknn::sim::kernels::ORKNN_FORM {

// dst[j * dst_stride + i] = src[i * src_stride + j] for i, j < 8.
template <class T>
ORKNN_SIMD void transpose8(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  __m256 r[8], s[8];
  ORKNN_UNROLL
  for (int i = 0; i < 8; ++i) r[i] = load8(src + i * src_stride);
  ORKNN_UNROLL
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  ORKNN_UNROLL
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(s[4 * i], s[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(s[4 * i], s[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(s[4 * i + 1], s[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(s[4 * i + 1], s[4 * i + 3], 0xee);
  }
  ORKNN_UNROLL
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(dst + i * dst_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(dst + (i + 4) * dst_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

#if defined(ORKNN_FORM_AVX512)
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
#endif

}  // namespace orknn::sim::kernels::ORKNN_FORM
#endif

namespace orknn::sim::kernels::ORKNN_FORM {

ORKNN_SIMD int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The first n of kWidth elements, n >= 1; more than kWidth means all.
template <class T>
ORKNN_SIMD Vec load_up_to(const T* p, int64_t n) {
  return n >= Vec::kWidth ? load(p) : load_part(p, static_cast<int>(n));
}
template <class T>
ORKNN_SIMD void store_up_to(T* p, Vec a, int64_t n) {
  if (n >= Vec::kWidth)
    store(p, a);
  else
    store_part(p, a, static_cast<int>(n));
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
