// Integer vectors of AVX-512: sixteen int32 lanes. The file that includes this names the form, with or without VNNI.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels::ORKNN_INT_FORM {

struct I32 {
  __m512i v;
};
struct F32 {
  __m512 v;
};
constexpr int64_t kLanes = 16;
constexpr int kTileRows = 8, kTileVectors = 3;
constexpr int kProductBlocks = 2, kBlockPixels = 14;
#define ORKNN_INT_PRODUCT
#define ORKNN_INT_CONVERTS_SUMS
#if defined(ORKNN_INT_VNNI)
constexpr bool kHasBytes = true;
#else
constexpr bool kHasBytes = false;
#endif

ORKNN_SIMD I32 zero32() { return {_mm512_setzero_si512()}; }
ORKNN_SIMD I32 load32(const void* from) { return {_mm512_loadu_si512(from)}; }
ORKNN_SIMD void store32(int32_t* to, I32 value) { _mm512_storeu_si512(to, value.v); }
#define ORKNN_INT_STREAMS
ORKNN_SIMD void stream32(int32_t* to, I32 value) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value.v); }
ORKNN_SIMD void finish_streams() { _mm_sfence(); }
ORKNN_SIMD I32 all32(int32_t value) { return {_mm512_set1_epi32(value)}; }
ORKNN_SIMD F32 all_float(float value) { return {_mm512_set1_ps(value)}; }
ORKNN_SIMD F32 load_float(const float* from) { return {_mm512_loadu_ps(from)}; }
// Rows of four fours become fours of four rows.
ORKNN_SIMD void transpose_fours(I32 a, I32 b, I32 c, I32 d, I32 (&to)[4]) {
  const __m512i ab = _mm512_shuffle_i32x4(a.v, b.v, 0x44), cd = _mm512_shuffle_i32x4(c.v, d.v, 0x44),
                ab_high = _mm512_shuffle_i32x4(a.v, b.v, 0xee), cd_high = _mm512_shuffle_i32x4(c.v, d.v, 0xee);
  to[0].v = _mm512_shuffle_i32x4(ab, cd, 0x88);
  to[1].v = _mm512_shuffle_i32x4(ab, cd, 0xdd);
  to[2].v = _mm512_shuffle_i32x4(ab_high, cd_high, 0x88);
  to[3].v = _mm512_shuffle_i32x4(ab_high, cd_high, 0xdd);
}
template <Dot kDot>
ORKNN_SIMD I32 dot(I32 sum, I32 a, I32 b) {
#if defined(ORKNN_INT_VNNI)
  if constexpr (kDot == Dot::BytesBUnsigned) return {_mm512_dpbusd_epi32(sum.v, b.v, a.v)};
  if constexpr (kDot == Dot::BytesAUnsigned) return {_mm512_dpbusd_epi32(sum.v, a.v, b.v)};
  return {_mm512_dpwssd_epi32(sum.v, a.v, b.v)};
#else
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(a.v, b.v))};
#endif
}
ORKNN_SIMD I32 add(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 subtract(I32 a, I32 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 multiply(I32 a, I32 b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 clamp(I32 v, I32 low, I32 high) { return {_mm512_min_epi32(_mm512_max_epi32(v.v, low.v), high.v)}; }
ORKNN_SIMD F32 to_float(I32 v) { return {_mm512_cvtepi32_ps(v.v)}; }
ORKNN_SIMD F32 multiply(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
ORKNN_SIMD F32 multiply_add(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
ORKNN_SIMD F32 largest(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
ORKNN_SIMD F32 smallest(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
// Lane by lane `below` where v is below zero, else `other`.
ORKNN_SIMD F32 by_sign(I32 v, F32 below, F32 other) {
  return {_mm512_mask_blend_ps(_mm512_movepi32_mask(v.v), other.v, below.v)};
}
// To the nearest integer; false when a lane is further than `margin` from it.
ORKNN_SIMD bool round_surely(F32 x, F32 margin, I32& to) {
  const __m512 near = _mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  to.v = _mm512_cvtps_epi32(x.v);
  return _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(x.v, near)), margin.v, _CMP_GT_OQ) == 0;
}

// To the nearest integer; returns the distance to it.
ORKNN_SIMD F32 round_to(F32 x, I32& to) {
  to.v = _mm512_cvtps_epi32(x.v);
  return {_mm512_abs_ps(_mm512_reduce_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
}
ORKNN_SIMD bool any_above(F32 v, F32 limit) { return _mm512_cmp_ps_mask(v.v, limit.v, _CMP_GT_OQ) != 0; }
// Sixteen unsigned bytes.
ORKNN_SIMD I32 widen_whole(const uint8_t* from) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
// Pixels of a block that are `step` bytes apart as dwords: four of bytes, two of words.
template <Dot kDot>
ORKNN_SIMD void load_taps(const uint8_t* from, int64_t step, I32 (&to)[1]) {
  const auto pixel = [&](int64_t i) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step));
  };
  if constexpr (kDot == Dot::Words) {
    const __m128i a = pixel(0), b = pixel(1);
    to[0].v = _mm512_cvtepu8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)));
    return;
  }
  const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i pixels = step == kBlock ? _mm512_loadu_si512(from)
                                        : _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(pixel(1), pixel(0))),
                                                             _mm256_set_m128i(pixel(3), pixel(2)), 1);
  to[0].v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, pixels), bytes);
}

// Indices as their upper eight and lower four bits, in the order in which packing leaves them.
ORKNN_SIMD void split_indices(const I32 (&v)[4], int32_t low, int32_t high, uint8_t* upper, uint8_t* lower) {
  const __m512i least = _mm512_set1_epi16(static_cast<int16_t>(low)), most = _mm512_set1_epi16(static_cast<int16_t>(high)),
                four = _mm512_set1_epi16(15);
  const auto words = [&](__m512i a, __m512i b) __attribute__((always_inline)) {
    return _mm512_min_epu16(_mm512_max_epu16(_mm512_packus_epi32(a, b), least), most);
  };
  const __m512i a = words(v[0].v, v[1].v), b = words(v[2].v, v[3].v);
  _mm512_storeu_si512(upper, _mm512_packus_epi16(_mm512_srli_epi16(a, 4), _mm512_srli_epi16(b, 4)));
  _mm512_storeu_si512(lower, _mm512_packus_epi16(_mm512_and_si512(a, four), _mm512_and_si512(b, four)));
}

// Half a vector of doubles, in which the stages of the converter are exact.
struct F64 {
  __m512d v;
};
ORKNN_SIMD F64 all_double(double value) { return {_mm512_set1_pd(value)}; }
ORKNN_SIMD F64 low_doubles(I32 v) { return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(v.v))}; }
ORKNN_SIMD F64 high_doubles(I32 v) { return {_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v.v, 1))}; }
ORKNN_SIMD F64 add(F64 a, F64 b) { return {_mm512_add_pd(a.v, b.v)}; }
ORKNN_SIMD F64 multiply(F64 a, F64 b) { return {_mm512_mul_pd(a.v, b.v)}; }
ORKNN_SIMD F64 largest(F64 a, F64 b) { return {_mm512_max_pd(a.v, b.v)}; }
ORKNN_SIMD F64 smallest(F64 a, F64 b) { return {_mm512_min_pd(a.v, b.v)}; }
ORKNN_SIMD F64 round_even(F64 v) { return {_mm512_roundscale_pd(v.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD F64 by_sign(F64 v, F64 below, F64 other) {
  return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(v.v, _mm512_setzero_pd(), _CMP_LT_OQ), other.v, below.v)};
}
ORKNN_SIMD I32 to_ints(F64 low, F64 high) {
  return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epi32(low.v)), _mm512_cvtpd_epi32(high.v), 1)};
}

ORKNN_SIMD __mmask16 first(int64_t count) {
  return count >= kLanes ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << count) - 1);
}
ORKNN_SIMD I32 widen(const void* from, Int type, int64_t i, int64_t count) {
  const __mmask16 mask = first(count);
  if (type == Int::Signed16)
    return {_mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, static_cast<const int16_t*>(from) + i))};
  const __m128i bytes = _mm_maskz_loadu_epi8(mask, static_cast<const uint8_t*>(from) + i);
  return {type == Int::Signed8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes)};
}
ORKNN_SIMD void store_words(int16_t* to, I32 value, int64_t count) {
  _mm256_mask_storeu_epi16(to, first(count), _mm512_cvtepi32_epi16(value.v));
}
// Four vectors as bytes, saturated.
struct Bytes {
  __m512i v;
};
ORKNN_SIMD Bytes all_bytes(int32_t value) { return {_mm512_set1_epi8(static_cast<char>(value))}; }
ORKNN_SIMD Bytes pack(I32 a, I32 b, I32 c, I32 d, Int type) {
  const __m512i low = _mm512_packs_epi32(a.v, b.v), high = _mm512_packs_epi32(c.v, d.v);
  const __m512i bytes = type == Int::Signed8 ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  return {_mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes)};
}
ORKNN_SIMD Bytes clamp_bytes(Bytes v, Bytes low, Bytes high, Int type) {
  if (type == Int::Signed8) return {_mm512_min_epi8(_mm512_max_epi8(v.v, low.v), high.v)};
  return {_mm512_min_epu8(_mm512_max_epu8(v.v, low.v), high.v)};
}
ORKNN_SIMD void store_bytes(uint8_t* to, Bytes v, int64_t count) {
  if (count >= 64)
    _mm512_storeu_si512(to, v.v);
  else
    _mm512_mask_storeu_epi8(to, (uint64_t{1} << count) - 1, v.v);
}

// The columns of a tile that belong somewhere; a segment is at its place without moving it when the address is that of column 0.
ORKNN_SIMD __mmask64 columns_of(const IntSegment& s) { return ((uint64_t{1} << s.count) - 1) << s.column; }
ORKNN_SIMD void store_segments(uint8_t* y, Bytes v, const IntSegment* segments, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    _mm512_mask_storeu_epi8(y + segments[i].place - segments[i].column, columns_of(segments[i]), v.v);
}
ORKNN_SIMD void load_segments(const uint8_t* x, const IntSegment* segments, int64_t count, uint8_t* to) {
  __m512i v = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; ++i)
    v = _mm512_mask_loadu_epi8(v, columns_of(segments[i]), x + segments[i].place - segments[i].column);
  _mm512_store_si512(to, v);
}

// Up to sixteen bytes, zeros after them; four vectors, of which `count` dwords are stored.
ORKNN_SIMD __m128i load_bytes(const uint8_t* from, int64_t count) { return _mm_maskz_loadu_epi8(first(count), from); }
ORKNN_SIMD void store_dwords(int32_t* to, const __m128i (&v)[4], int64_t count) {
  const __m512i low = _mm512_inserti32x4(_mm512_castsi128_si512(v[0]), v[1], 1),
                all = _mm512_inserti32x4(_mm512_inserti32x4(low, v[2], 2), v[3], 3);
  _mm512_mask_storeu_epi32(to, first(count), all);
}

// Four neighbours of every `stride`th byte, stride 1 or 2; `pick` says where those of the first four dwords are.
ORKNN_SIMD void expand_bytes(const uint8_t* x, int64_t stride, int64_t count, __m128i pick, int32_t* y) {
  const __m512i lanes = stride == 1 ? _mm512_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6)
                                    : _mm512_setr_epi32(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9);
  const __m512i picks = _mm512_broadcast_i32x4(pick);
  for (int64_t i = 0; i < count; i += 16)
    _mm512_storeu_si512(y + i, _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, _mm512_loadu_si512(x + i * stride)), picks));
}

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
