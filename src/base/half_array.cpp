#include "base/half_array.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace orknn {
namespace {
#if defined(__x86_64__)
// clang 14 cannot ask for f16c; whatever has AVX2 has it.
bool has_instructions() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

// Both return how many elements they did, a multiple of eight.
__attribute__((target("avx,f16c"))) size_t widen_eights(const Half* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
__attribute__((target("avx,f16c"))) size_t narrow_eights(const float* from, Half* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
#elif defined(__aarch64__)
bool has_instructions() { return true; }

size_t widen_eights(const Half* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const float16x8_t eight = vreinterpretq_f16_u16(vld1q_u16(&from[i].bits));
    vst1q_f32(to + i, vcvt_f32_f16(vget_low_f16(eight)));
    vst1q_f32(to + i + 4, vcvt_high_f32_f16(eight));
  }
  return i;
}
size_t narrow_eights(const float* from, Half* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const float16x8_t eight = vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(from + i)), vld1q_f32(from + i + 4));
    vst1q_u16(&to[i].bits, vreinterpretq_u16_f16(eight));
  }
  return i;
}
#else
bool has_instructions() { return false; }
size_t widen_eights(const Half*, float*, size_t) { return 0; }
size_t narrow_eights(const float*, Half*, size_t) { return 0; }
#endif
}  // namespace

void widen_halves(const Half* from, float* to, size_t count) {
  for (size_t i = has_instructions() ? widen_eights(from, to, count) : 0; i < count; ++i) to[i] = from[i];
}

void narrow_to_halves(const float* from, Half* to, size_t count) {
  for (size_t i = has_instructions() ? narrow_eights(from, to, count) : 0; i < count; ++i) to[i] = Half(from[i]);
}

}  // namespace orknn
