// Integer vectors of AVX2: eight int32 lanes.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels::int_avx2 {

struct I32 {
  __m256i v;
};
struct I64 {
  __m256i v;
};
constexpr int64_t kLanes = 8;
constexpr int kTileRows = 4, kTileVectors = 2;
constexpr bool kHasBytes = false;

ORKNN_SIMD I32 zero32() { return {_mm256_setzero_si256()}; }
ORKNN_SIMD I32 load32(const void* from) { return {_mm256_loadu_si256(static_cast<const __m256i*>(from))}; }
ORKNN_SIMD void store32(int32_t* to, I32 value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value.v); }
ORKNN_SIMD I32 all32(int32_t value) { return {_mm256_set1_epi32(value)}; }
ORKNN_SIMD I64 all64(int64_t value) { return {_mm256_set1_epi64x(value)}; }
// The saturating product of bytes, vpmaddubsw, is not exact; that of words is.
template <Dot kDot>
ORKNN_SIMD I32 dot(I32 sum, I32 a, I32 b) {
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(a.v, b.v))};
}
ORKNN_SIMD I32 add(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
ORKNN_SIMD I64 add(I64 a, I64 b) { return {_mm256_add_epi64(a.v, b.v)}; }
ORKNN_SIMD I32 subtract(I32 a, I32 b) { return {_mm256_sub_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 multiply(I32 a, I32 b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 clamp(I32 v, I32 low, I32 high) { return {_mm256_min_epi32(_mm256_max_epi32(v.v, low.v), high.v)}; }
// Lanes 1, 3, ... where lanes 0, 2, ... were.
ORKNN_SIMD I32 odd(I32 v) { return {_mm256_srli_epi64(v.v, 32)}; }
// Signed 64-bit products of the even lanes.
ORKNN_SIMD I64 multiply_even(I32 a, I32 b) { return {_mm256_mul_epi32(a.v, b.v)}; }
// Lane by lane `below` where v is below zero, else `other`.
ORKNN_SIMD I32 by_sign(I32 v, I32 below, I32 other) {
  return {_mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(other.v), _mm256_castsi256_ps(below.v), _mm256_castsi256_ps(v.v)))};
}
ORKNN_SIMD I64 largest(I64 a, I64 b) { return {_mm256_blendv_epi8(b.v, a.v, _mm256_cmpgt_epi64(a.v, b.v))}; }
ORKNN_SIMD I64 smallest(I64 a, I64 b) { return {_mm256_blendv_epi8(a.v, b.v, _mm256_cmpgt_epi64(a.v, b.v))}; }

// round_shift of 64-bit lanes. There is no arithmetic shift of them: 2^63 is added before the shift and what became of it is
// taken away after it, where only 32 bits are left.
struct Rounding {
  __m256i even, odd, even_shift, odd_shift, away;
};
ORKNN_SIMD Rounding rounding(I32 shifts) {
  Rounding r;
  const __m256i one = _mm256_set1_epi64x(1), top = _mm256_set1_epi64x(INT64_MIN), low = _mm256_set1_epi64x(0xffffffff);
  r.even_shift = _mm256_and_si256(shifts.v, low);
  r.odd_shift = _mm256_srli_epi64(shifts.v, 32);
  r.even = _mm256_add_epi64(top, _mm256_sllv_epi64(one, _mm256_sub_epi64(r.even_shift, one)));
  r.odd = _mm256_add_epi64(top, _mm256_sllv_epi64(one, _mm256_sub_epi64(r.odd_shift, one)));
  r.away =
      _mm256_blend_epi32(_mm256_srlv_epi64(top, r.even_shift), _mm256_slli_epi64(_mm256_srlv_epi64(top, r.odd_shift), 32), 0xaa);
  return r;
}
ORKNN_SIMD I32 round_shift(I64 even, I64 odd, const Rounding& r) {
  const __m256i e = _mm256_srlv_epi64(_mm256_add_epi64(even.v, r.even), r.even_shift),
                o = _mm256_srlv_epi64(_mm256_add_epi64(odd.v, r.odd), r.odd_shift);
  return {_mm256_sub_epi32(_mm256_blend_epi32(e, _mm256_slli_epi64(o, 32), 0xaa), r.away)};
}

ORKNN_SIMD I32 widen(const void* from, Int type, int64_t i, int64_t count) {
  alignas(16) uint8_t buffer[16] = {};
  const size_t bytes = type == Int::Signed16 ? 2 : 1;
  const void* at = static_cast<const uint8_t*>(from) + static_cast<size_t>(i) * bytes;
  if (count < kLanes) {
    std::memcpy(buffer, at, static_cast<size_t>(count) * bytes);
    at = buffer;
  }
  if (type == Int::Signed16) return {_mm256_cvtepi16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(at)))};
  const __m128i eight = _mm_loadl_epi64(static_cast<const __m128i*>(at));
  return {type == Int::Signed8 ? _mm256_cvtepi8_epi32(eight) : _mm256_cvtepu8_epi32(eight)};
}
// Factors kept as int64, of magnitudes below 2^31.
ORKNN_SIMD I32 narrow(const int64_t* from) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 4));
  const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
  return {_mm256_permute4x64_epi64(low, 0xd8)};
}
ORKNN_SIMD void store_words(int16_t* to, I32 value, int64_t count) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(value.v), _mm256_extracti128_si256(value.v, 1));
  if (count >= kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), words);
    return;
  }
  alignas(16) int16_t buffer[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(buffer), words);
  std::memcpy(to, buffer, static_cast<size_t>(count) * 2);
}
// High halves of 64-bit lanes.
ORKNN_SIMD I32 high_halves(I64 even, I64 odd) { return {_mm256_blend_epi32(_mm256_srli_epi64(even.v, 32), odd.v, 0xaa)}; }

// Four vectors as bytes, saturated.
struct Bytes {
  __m256i v;
};
ORKNN_SIMD Bytes all_bytes(int32_t value) { return {_mm256_set1_epi8(static_cast<char>(value))}; }
ORKNN_SIMD Bytes pack(I32 a, I32 b, I32 c, I32 d, Int type) {
  const __m256i low = _mm256_packs_epi32(a.v, b.v), high = _mm256_packs_epi32(c.v, d.v);
  const __m256i bytes = type == Int::Signed8 ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  return {_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))};
}
ORKNN_SIMD Bytes clamp_bytes(Bytes v, Bytes low, Bytes high, Int type) {
  if (type == Int::Signed8) return {_mm256_min_epi8(_mm256_max_epi8(v.v, low.v), high.v)};
  return {_mm256_min_epu8(_mm256_max_epu8(v.v, low.v), high.v)};
}
ORKNN_SIMD void store_bytes(uint8_t* to, Bytes v, int64_t count) {
  if (count >= 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v.v);
    return;
  }
  if (count == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(v.v));
    return;
  }
  alignas(32) uint8_t buffer[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(buffer), v.v);
  std::memcpy(to, buffer, static_cast<size_t>(count));
}

// Up to sixteen bytes, zeros after them; four vectors, of which `count` dwords are stored.
ORKNN_SIMD __m128i load_bytes(const uint8_t* from, int64_t count) {
  if (count >= 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  alignas(16) uint8_t buffer[16] = {};
  std::memcpy(buffer, from, static_cast<size_t>(count));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(buffer));
}
ORKNN_SIMD void store_dwords(int32_t* to, const __m128i (&v)[4], int64_t count) {
  if (count >= 16) {
    for (int j = 0; j < 4; ++j) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * j), v[j]);
    return;
  }
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int j = 0; j < 2; ++j) {
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count) - 8 * j), lanes);
    _mm256_maskstore_epi32(to + 8 * j, mask, _mm256_inserti128_si256(_mm256_castsi128_si256(v[2 * j]), v[2 * j + 1], 1));
  }
}

// Four neighbours of every `stride`th byte, stride 1 or 2; `pick` says where those of the first four dwords are.
ORKNN_SIMD void expand_bytes(const uint8_t* x, int64_t stride, int64_t count, __m128i pick, int32_t* y) {
  for (int64_t i = 0; i < count; i += 4)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * stride)), pick));
}

}  // namespace orknn::sim::kernels::int_avx2
