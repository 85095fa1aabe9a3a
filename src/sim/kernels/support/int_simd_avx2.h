// Integer vectors of AVX2: eight int32 lanes.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels::int_avx2 {

struct I32 {
  __m256i v;
};
struct F32 {
  __m256 v;
};
constexpr int64_t kLanes = 8;
constexpr int kTileRows = 4, kTileVectors = 2;
constexpr int kProductBlocks = 1, kBlockPixels = 6;
constexpr bool kHasBytes = false;

ORKNN_SIMD I32 zero32() { return {_mm256_setzero_si256()}; }
ORKNN_SIMD I32 load32(const void* from) { return {_mm256_loadu_si256(static_cast<const __m256i*>(from))}; }
ORKNN_SIMD void store32(int32_t* to, I32 value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value.v); }
ORKNN_SIMD I32 all32(int32_t value) { return {_mm256_set1_epi32(value)}; }
ORKNN_SIMD F32 all_float(float value) { return {_mm256_set1_ps(value)}; }
ORKNN_SIMD F32 load_float(const float* from) { return {_mm256_loadu_ps(from)}; }
// The saturating product of bytes, vpmaddubsw, is not exact; that of words is. Sums are added to one by one: the compiler would
// add products first, and has no registers for them.
template <Dot kDot>
ORKNN_SIMD I32 dot(I32 sum, I32 a, I32 b) {
  __m256i total = _mm256_add_epi32(sum.v, _mm256_madd_epi16(a.v, b.v));
  asm("" : "+x"(total));
  return {total};
}
ORKNN_SIMD I32 add(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 subtract(I32 a, I32 b) { return {_mm256_sub_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 multiply(I32 a, I32 b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
ORKNN_SIMD I32 clamp(I32 v, I32 low, I32 high) { return {_mm256_min_epi32(_mm256_max_epi32(v.v, low.v), high.v)}; }
ORKNN_SIMD F32 to_float(I32 v) { return {_mm256_cvtepi32_ps(v.v)}; }
ORKNN_SIMD F32 multiply(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
ORKNN_SIMD F32 multiply_add(F32 a, F32 b, F32 c) { return {_mm256_add_ps(_mm256_mul_ps(a.v, b.v), c.v)}; }
ORKNN_SIMD F32 largest(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
ORKNN_SIMD F32 smallest(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
// Lane by lane `below` where v is below zero, else `other`.
ORKNN_SIMD F32 by_sign(I32 v, F32 below, F32 other) { return {_mm256_blendv_ps(other.v, below.v, _mm256_castsi256_ps(v.v))}; }
// To the nearest integer; false when a lane is further than `margin` from it.
ORKNN_SIMD bool round_surely(F32 x, F32 margin, I32& to) {
  const __m256 near = _mm256_round_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 distance = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(x.v, near));
  to.v = _mm256_cvtps_epi32(x.v);
  return _mm256_movemask_ps(_mm256_cmp_ps(distance, margin.v, _CMP_GT_OQ)) == 0;
}

// To the nearest integer; returns the distance to it.
ORKNN_SIMD F32 round_to(F32 x, I32& to) {
  to.v = _mm256_cvtps_epi32(x.v);
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(x.v, _mm256_cvtepi32_ps(to.v)))};
}
ORKNN_SIMD bool any_above(F32 v, F32 limit) { return _mm256_movemask_ps(_mm256_cmp_ps(v.v, limit.v, _CMP_GT_OQ)) != 0; }
// Eight unsigned bytes.
ORKNN_SIMD I32 widen_whole(const uint8_t* from) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
}
// Two pixels of a block that are `step` bytes apart as dwords of words.
template <Dot kDot>
ORKNN_SIMD void load_taps(const uint8_t* from, int64_t step, I32 (&to)[2]) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)),
                b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + step));
  to[0].v = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
  to[1].v = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
}

// Four pixels by two vectors of sums, as IntForms::blocked_panel says: (x[i] + w[j]) * (x[j] + w[i]) where i and j are the dwords
// of a pair. Pixels and weights are read on from one piece to the next. Two additions in the place of a product: all four vector
// pipes of a core are busy, where products alone would wait for two of them. The registers are full, and compilers move sums to
// memory rather than keep the loads where they are used: hence the instructions themselves.
#define ORKNN_INT_PAIRS
static_assert(kPairPixels == 4);
#define ORKNN_PAIR_PIXEL(at, first, second) \
  "vpbroadcastd " at                        \
  "(%[x]), %%ymm8\n"                        \
  "vpbroadcastd 4+" at                      \
  "(%[x]), %%ymm9\n"                        \
  "vpaddw %%ymm12, %%ymm8, %%ymm10\n"       \
  "vpaddw %%ymm14, %%ymm9, %%ymm11\n"       \
  "vpmaddwd %%ymm11, %%ymm10, %%ymm10\n"    \
  "vpaddd %%ymm10, %[" first "], %[" first  \
  "]\n"                                     \
  "vpaddw %%ymm13, %%ymm8, %%ymm8\n"        \
  "vpaddw %%ymm15, %%ymm9, %%ymm9\n"        \
  "vpmaddwd %%ymm9, %%ymm8, %%ymm8\n"       \
  "vpaddd %%ymm8, %[" second "], %[" second "]\n"
#define ORKNN_PAIR(at, weights)                                                                                                \
  "vmovdqu 64+" weights                                                                                                        \
  "(%[weights]), %%ymm12\n"                                                                                                    \
  "vmovdqu 96+" weights                                                                                                        \
  "(%[weights]), %%ymm13\n"                                                                                                    \
  "vmovdqu " weights                                                                                                           \
  "(%[weights]), %%ymm14\n"                                                                                                    \
  "vmovdqu 32+" weights "(%[weights]), %%ymm15\n" ORKNN_PAIR_PIXEL("0+" at, "a0", "b0") ORKNN_PAIR_PIXEL("32+" at, "a1", "b1") \
      ORKNN_PAIR_PIXEL("64+" at, "a2", "b2") ORKNN_PAIR_PIXEL("96+" at, "a3", "b3")
#define ORKNN_PAIR_SUMS                                                                                                         \
  [a0] "+x"(sum[0].v), [b0] "+x"(sum[1].v), [a1] "+x"(sum[2].v), [b1] "+x"(sum[3].v), [a2] "+x"(sum[4].v), [b2] "+x"(sum[5].v), \
      [a3] "+x"(sum[6].v), [b3] "+x"(sum[7].v)
#define ORKNN_PAIR_CLOBBERS "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15", "cc", "memory"
// Pieces of four pairs. A line of weights per piece and the pixels that come next are brought nearer, so many bytes further on.
ORKNN_SIMD void add_whole_pairs(const uint8_t*& x, int64_t next, const int32_t*& weights, int64_t next_weights, int64_t pieces,
                                I32 (&sum)[2 * kPairPixels]) {
  asm volatile(
      "1:\n"
      "prefetcht1 (%[weights], %[next_weights])\n"
      "prefetcht0 (%[x], %[next])\n"
      "prefetcht0 64(%[x], %[next])\n"  //
      ORKNN_PAIR("0", "0") ORKNN_PAIR("8", "128") ORKNN_PAIR("16", "256") ORKNN_PAIR("24", "384")
      "sub $-128, %[x]\n"
      "add $512, %[weights]\n"
      "dec %[pieces]\n"
      "jnz 1b\n"
      : ORKNN_PAIR_SUMS, [x] "+r"(x), [weights] "+r"(weights), [pieces] "+r"(pieces)
      : [next] "r"(next), [next_weights] "r"(next_weights)
      : ORKNN_PAIR_CLOBBERS);
}
// The first pairs of one piece.
ORKNN_SIMD void add_pairs(const uint8_t*& x, const int32_t*& weights, int64_t pairs, I32 (&sum)[2 * kPairPixels]) {
  asm volatile(
      "1:\n"  //
      ORKNN_PAIR("0", "0")
      "add $8, %[x]\n"
      "sub $-128, %[weights]\n"
      "dec %[pairs]\n"
      "jnz 1b\n"
      : ORKNN_PAIR_SUMS, [x] "+r"(x), [weights] "+r"(weights), [pairs] "+r"(pairs)
      :
      : ORKNN_PAIR_CLOBBERS);
}
#undef ORKNN_PAIR_PIXEL
#undef ORKNN_PAIR
#undef ORKNN_PAIR_SUMS
#undef ORKNN_PAIR_CLOBBERS
// The channels of a pixel as words.
ORKNN_SIMD I32 words_of_pixel(const uint8_t* from) {
  return {_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
// The products of the pairs of eight dwords, in four lanes.
ORKNN_SIMD I32 products_of_pairs(I32 v) { return {_mm256_madd_epi16(v.v, _mm256_srli_epi64(v.v, 32))}; }
ORKNN_SIMD I32 first_lanes(I32 v, int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_and_si256(v.v, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)), lanes))};
}

// Adds the total of every vector to one number.
ORKNN_SIMD void add_totals(const I32 (&v)[4], int32_t* to) {
  const __m256i two = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0].v, v[1].v), _mm256_hadd_epi32(v[2].v, v[3].v));
  const __m128i total = _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
  auto* place = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(place, _mm_add_epi32(_mm_loadu_si128(place), total));
}

// Half a vector of doubles, in which the stages of the converter are exact.
struct F64 {
  __m256d v;
};
ORKNN_SIMD F64 all_double(double value) { return {_mm256_set1_pd(value)}; }
ORKNN_SIMD F64 low_doubles(I32 v) { return {_mm256_cvtepi32_pd(_mm256_castsi256_si128(v.v))}; }
ORKNN_SIMD F64 high_doubles(I32 v) { return {_mm256_cvtepi32_pd(_mm256_extracti128_si256(v.v, 1))}; }
ORKNN_SIMD F64 add(F64 a, F64 b) { return {_mm256_add_pd(a.v, b.v)}; }
ORKNN_SIMD F64 multiply(F64 a, F64 b) { return {_mm256_mul_pd(a.v, b.v)}; }
ORKNN_SIMD F64 largest(F64 a, F64 b) { return {_mm256_max_pd(a.v, b.v)}; }
ORKNN_SIMD F64 smallest(F64 a, F64 b) { return {_mm256_min_pd(a.v, b.v)}; }
ORKNN_SIMD F64 round_even(F64 v) { return {_mm256_round_pd(v.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
ORKNN_SIMD F64 by_sign(F64 v, F64 below, F64 other) { return {_mm256_blendv_pd(other.v, below.v, v.v)}; }
ORKNN_SIMD I32 to_ints(F64 low, F64 high) {
  return {_mm256_inserti128_si256(_mm256_castsi128_si256(_mm256_cvtpd_epi32(low.v)), _mm256_cvtpd_epi32(high.v), 1)};
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
