// Integer vectors of NEON on 64-bit ARM: four int32 lanes. The file that includes this names the form: as every machine has it,
// with dot products of signed bytes (ORKNN_INT_SDOT), or of unsigned by signed ones (ORKNN_INT_USDOT).
#pragma once

#include <arm_neon.h>

#include <cstring>

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels::ORKNN_INT_FORM {

struct I32 {
  int32x4_t v;
};
struct F32 {
  float32x4_t v;
};
constexpr int64_t kLanes = 4;
constexpr int kTileRows = 8, kTileVectors = 3;
constexpr int kProductBlocks = 1, kBlockPixels = 5;  // 20 sums, 5 pixels, 4 of weights of 32 registers
#define ORKNN_INT_NEON
#if defined(ORKNN_INT_SDOT) || defined(ORKNN_INT_USDOT)
#define ORKNN_INT_BYTES
constexpr bool kHasBytes = true;
#else
constexpr bool kHasBytes = false;
#endif
#if defined(ORKNN_INT_SDOT)
constexpr uint8_t kDataFlip = 0x80;  // data are made signed
#else
constexpr uint8_t kDataFlip = 0;
#endif

ORKNN_SIMD I32 zero32() { return {vdupq_n_s32(0)}; }
ORKNN_SIMD I32 load32(const void* from) { return {vreinterpretq_s32_u8(vld1q_u8(static_cast<const uint8_t*>(from)))}; }
ORKNN_SIMD void store32(int32_t* to, I32 value) { vst1q_s32(to, value.v); }
ORKNN_SIMD I32 all32(int32_t value) { return {vdupq_n_s32(value)}; }
ORKNN_SIMD F32 all_float(float value) { return {vdupq_n_f32(value)}; }
ORKNN_SIMD F32 load_float(const float* from) { return {vld1q_f32(from)}; }

// Dwords as their bytes and words.
ORKNN_SIMD int8x16_t bytes_of(I32 v) { return vreinterpretq_s8_s32(v.v); }
ORKNN_SIMD int16x8_t words_of(I32 v) { return vreinterpretq_s16_s32(v.v); }

template <Dot kDot>
ORKNN_SIMD I32 dot(I32 sum, I32 a, I32 b) {
#if defined(ORKNN_INT_USDOT)
  if constexpr (kDot == Dot::BytesBUnsigned) return {vusdotq_s32(sum.v, vreinterpretq_u8_s32(b.v), bytes_of(a))};
  if constexpr (kDot == Dot::BytesAUnsigned) return {vusdotq_s32(sum.v, vreinterpretq_u8_s32(a.v), bytes_of(b))};
#elif defined(ORKNN_INT_SDOT)
  if constexpr (kDot != Dot::Words) return {vdotq_s32(sum.v, bytes_of(a), bytes_of(b))};
#endif
  const int32x4_t low = vmull_s16(vget_low_s16(words_of(a)), vget_low_s16(words_of(b))),
                  high = vmull_high_s16(words_of(a), words_of(b));
  return {vaddq_s32(sum.v, vpaddq_s32(low, high))};
}
#if defined(ORKNN_INT_BYTES)
// The dword of one lane meets all dwords of a vector; one of both is unsigned where the form has it so.
template <int kLane, bool kLaneIsUnsigned>
ORKNN_SIMD I32 dot_lane(I32 sum, I32 vector, I32 lanes) {
#if defined(ORKNN_INT_USDOT)
  if constexpr (kLaneIsUnsigned) return {vsudotq_laneq_s32(sum.v, bytes_of(vector), vreinterpretq_u8_s32(lanes.v), kLane)};
  return {vusdotq_laneq_s32(sum.v, vreinterpretq_u8_s32(vector.v), bytes_of(lanes), kLane)};
#else
  return {vdotq_laneq_s32(sum.v, bytes_of(vector), bytes_of(lanes), kLane)};
#endif
}
#endif

ORKNN_SIMD I32 add(I32 a, I32 b) { return {vaddq_s32(a.v, b.v)}; }
ORKNN_SIMD I32 subtract(I32 a, I32 b) { return {vsubq_s32(a.v, b.v)}; }
ORKNN_SIMD I32 multiply(I32 a, I32 b) { return {vmulq_s32(a.v, b.v)}; }
ORKNN_SIMD I32 clamp(I32 v, I32 low, I32 high) { return {vminq_s32(vmaxq_s32(v.v, low.v), high.v)}; }
ORKNN_SIMD F32 to_float(I32 v) { return {vcvtq_f32_s32(v.v)}; }
ORKNN_SIMD F32 multiply(F32 a, F32 b) { return {vmulq_f32(a.v, b.v)}; }
ORKNN_SIMD F32 multiply_add(F32 a, F32 b, F32 c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
ORKNN_SIMD F32 largest(F32 a, F32 b) { return {vmaxq_f32(a.v, b.v)}; }
ORKNN_SIMD F32 smallest(F32 a, F32 b) { return {vminq_f32(a.v, b.v)}; }
// Lane by lane `below` where v is below zero, else `other`.
ORKNN_SIMD F32 by_sign(I32 v, F32 below, F32 other) { return {vbslq_f32(vcltzq_s32(v.v), below.v, other.v)}; }
ORKNN_SIMD bool any_above(F32 v, F32 limit) { return vmaxvq_u32(vcgtq_f32(v.v, limit.v)) != 0; }
// To the nearest integer; returns the distance to it.
ORKNN_SIMD F32 round_to(F32 x, I32& to) {
  to.v = vcvtnq_s32_f32(x.v);
  return {vabdq_f32(x.v, vrndnq_f32(x.v))};
}
// To the nearest integer; false when a lane is further than `margin` from it.
ORKNN_SIMD bool round_surely(F32 x, F32 margin, I32& to) { return !any_above(round_to(x, to), margin); }

// Four bytes.
ORKNN_SIMD uint8x8_t load_four(const void* from) {
  uint32_t four;
  std::memcpy(&four, from, 4);
  return vreinterpret_u8_u32(vdup_n_u32(four));
}
// Four unsigned bytes as lanes.
ORKNN_SIMD I32 widen_whole(const uint8_t* from) {
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_four(from)))))};
}
// Pixels of a block that are `step` bytes apart as dwords: four of bytes, which get the form's sign, or two of words.
template <Dot kDot>
ORKNN_SIMD void load_taps(const uint8_t* from, int64_t step, I32 (&to)[4]) {
  if constexpr (kDot == Dot::Words) {
    const uint8x16_t a = vld1q_u8(from), b = vld1q_u8(from + step), low = vzip1q_u8(a, b), high = vzip2q_u8(a, b);
    to[0].v = vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(low)));
    to[1].v = vreinterpretq_s32_u16(vmovl_high_u8(low));
    to[2].v = vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(high)));
    to[3].v = vreinterpretq_s32_u16(vmovl_high_u8(high));
    return;
  }
  uint8x16_t pixel[4];
  ORKNN_UNROLL for (int i = 0; i < 4; ++i) pixel[i] = veorq_u8(vld1q_u8(from + i * step), vdupq_n_u8(kDataFlip));
  ORKNN_UNROLL for (int half = 0; half < 2; ++half) {
    const uint8x16_t first = half == 0 ? vzip1q_u8(pixel[0], pixel[1]) : vzip2q_u8(pixel[0], pixel[1]),
                     last = half == 0 ? vzip1q_u8(pixel[2], pixel[3]) : vzip2q_u8(pixel[2], pixel[3]);
    to[2 * half].v = vreinterpretq_s32_u16(vzip1q_u16(vreinterpretq_u16_u8(first), vreinterpretq_u16_u8(last)));
    to[2 * half + 1].v = vreinterpretq_s32_u16(vzip2q_u16(vreinterpretq_u16_u8(first), vreinterpretq_u16_u8(last)));
  }
}

// Half a vector of doubles, in which the stages of the converter are exact.
struct F64 {
  float64x2_t v;
};
ORKNN_SIMD F64 all_double(double value) { return {vdupq_n_f64(value)}; }
ORKNN_SIMD F64 low_doubles(I32 v) { return {vcvtq_f64_s64(vmovl_s32(vget_low_s32(v.v)))}; }
ORKNN_SIMD F64 high_doubles(I32 v) { return {vcvtq_f64_s64(vmovl_high_s32(v.v))}; }
ORKNN_SIMD F64 add(F64 a, F64 b) { return {vaddq_f64(a.v, b.v)}; }
ORKNN_SIMD F64 multiply(F64 a, F64 b) { return {vmulq_f64(a.v, b.v)}; }
ORKNN_SIMD F64 largest(F64 a, F64 b) { return {vmaxq_f64(a.v, b.v)}; }
ORKNN_SIMD F64 smallest(F64 a, F64 b) { return {vminq_f64(a.v, b.v)}; }
ORKNN_SIMD F64 round_even(F64 v) { return {vrndnq_f64(v.v)}; }
ORKNN_SIMD F64 by_sign(F64 v, F64 below, F64 other) { return {vbslq_f64(vcltzq_f64(v.v), below.v, other.v)}; }
ORKNN_SIMD I32 to_ints(F64 low, F64 high) {
  return {vcombine_s32(vmovn_s64(vcvtnq_s64_f64(low.v)), vmovn_s64(vcvtnq_s64_f64(high.v)))};
}

ORKNN_SIMD I32 widen(const void* from, Int type, int64_t i, int64_t count) {
  alignas(8) uint8_t buffer[8] = {};
  const size_t bytes = type == Int::Signed16 ? 2 : 1;
  const void* at = static_cast<const uint8_t*>(from) + static_cast<size_t>(i) * bytes;
  if (count < kLanes) {
    std::memcpy(buffer, at, static_cast<size_t>(count) * bytes);
    at = buffer;
  }
  if (type == Int::Signed16) return {vmovl_s16(vreinterpret_s16_u8(vld1_u8(static_cast<const uint8_t*>(at))))};
  const uint8x8_t four = load_four(at);
  if (type == Int::Signed8) return {vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(four))))};
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(four))))};
}
ORKNN_SIMD void store_words(int16_t* to, I32 value, int64_t count) {
  const int16x4_t words = vqmovn_s32(value.v);
  if (count >= kLanes) {
    vst1_s16(to, words);
    return;
  }
  alignas(8) int16_t buffer[4];
  vst1_s16(buffer, words);
  std::memcpy(to, buffer, static_cast<size_t>(count) * 2);
}
// Four vectors as bytes, saturated.
struct Bytes {
  uint8x16_t v;
};
ORKNN_SIMD Bytes all_bytes(int32_t value) { return {vdupq_n_u8(static_cast<uint8_t>(value))}; }
ORKNN_SIMD Bytes pack(I32 a, I32 b, I32 c, I32 d, Int type) {
  const int16x8_t low = vqmovn_high_s32(vqmovn_s32(a.v), b.v), high = vqmovn_high_s32(vqmovn_s32(c.v), d.v);
  if (type == Int::Signed8) return {vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(low), high))};
  return {vqmovun_high_s16(vqmovun_s16(low), high)};
}
ORKNN_SIMD Bytes clamp_bytes(Bytes v, Bytes low, Bytes high, Int type) {
  if (type == Int::Signed8)
    return {vreinterpretq_u8_s8(
        vminq_s8(vmaxq_s8(vreinterpretq_s8_u8(v.v), vreinterpretq_s8_u8(low.v)), vreinterpretq_s8_u8(high.v)))};
  return {vminq_u8(vmaxq_u8(v.v, low.v), high.v)};
}
ORKNN_SIMD void store_bytes(uint8_t* to, Bytes v, int64_t count) {
  if (count >= 16) {
    vst1q_u8(to, v.v);
    return;
  }
  alignas(16) uint8_t buffer[16];
  vst1q_u8(buffer, v.v);
  std::memcpy(to, buffer, static_cast<size_t>(count));
}

// Up to sixteen bytes, zeros after them.
ORKNN_SIMD uint8x16_t load_bytes(const uint8_t* from, int64_t count) {
  if (count >= 16) return vld1q_u8(from);
  alignas(16) uint8_t buffer[16] = {};
  std::memcpy(buffer, from, static_cast<size_t>(count));
  return vld1q_u8(buffer);
}

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
