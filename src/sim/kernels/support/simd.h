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
