// Four floats with the NEON of 64-bit ARM, which every such machine has.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "base/half.h"
#include "sim/kernels/support/simd_names.h"

namespace orknn::sim::kernels::neon {

struct Mask {
  uint32x4_t m;
};
struct Vec {
  static constexpr int kWidth = 4;
  float32x4_t v;
};

ORKNN_SIMD float32x4_t halves(uint16x4_t bits) { return vcvt_f32_f16(vreinterpret_f16_u16(bits)); }
ORKNN_SIMD uint16x4_t half_bits(Vec a) { return vreinterpret_u16_f16(vcvt_f16_f32(a.v)); }
ORKNN_SIMD const uint16_t* bits_of(const Half* p) { return &p->bits; }
ORKNN_SIMD uint16_t* bits_of(Half* p) { return &p->bits; }

ORKNN_SIMD Vec splat(float x) { return {vdupq_n_f32(x)}; }
ORKNN_SIMD Vec load(const float* p) { return {vld1q_f32(p)}; }
ORKNN_SIMD Vec load(const Half* p) { return {halves(vld1_u16(bits_of(p)))}; }
ORKNN_SIMD void store(float* p, Vec a) { vst1q_f32(p, a.v); }
ORKNN_SIMD void store(Half* p, Vec a) { vst1_u16(bits_of(p), half_bits(a)); }

// Elements [begin, end) of p[0], p[1], ... (or p[0], p[2], ...), 0 elsewhere; touches no other memory.
ORKNN_SIMD Vec load_every(const float* p, int step, int begin, int end) {
  alignas(16) float values[4] = {};
  for (int i = begin; i < end; ++i) values[i] = p[step * i];
  return {vld1q_f32(values)};
}
ORKNN_SIMD Vec load_every(const Half* p, int step, int begin, int end) {
  alignas(8) uint16_t bits[4] = {};
  for (int i = begin; i < end; ++i) bits[i] = p[step * i].bits;
  return {halves(vld1_u16(bits))};
}
template <class T>
ORKNN_SIMD Vec load_window(const T* p, int begin, int end) {
  return load_every(p, 1, begin, end);
}
template <class T>
ORKNN_SIMD Vec load_even_window(const T* p, int begin, int end) {
  return load_every(p, 2, begin, end);
}
template <class T>
ORKNN_SIMD Vec load_part(const T* p, int n) {
  return load_every(p, 1, 0, n);
}
ORKNN_SIMD void store_part(float* p, Vec a, int n) {
  alignas(16) float values[4];
  vst1q_f32(values, a.v);
  for (int i = 0; i < n; ++i) p[i] = values[i];
}
ORKNN_SIMD void store_part(Half* p, Vec a, int n) {
  alignas(8) uint16_t bits[4];
  vst1_u16(bits, half_bits(a));
  for (int i = 0; i < n; ++i) p[i].bits = bits[i];
}
// p[at[0]], p[at[1]], ...
ORKNN_SIMD Vec gather(const float* p, const int32_t* at) {
  const float values[4] = {p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
  return {vld1q_f32(values)};
}
// Elements p[0], p[2], p[4], ...; reads nothing after the last one.
ORKNN_SIMD Vec load_even(const float* p) { return {vuzp1q_f32(vld1q_f32(p), vextq_f32(vld1q_f32(p + 3), vld1q_f32(p + 3), 1))}; }
ORKNN_SIMD Vec load_even(const Half* p) {
  const uint16x4_t low = vld1_u16(bits_of(p)), high = vld1_u16(bits_of(p + 3));
  return {halves(vuzp1_u16(low, vext_u16(high, high, 1)))};
}

ORKNN_SIMD Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.v, b.v)}; }
ORKNN_SIMD Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.v, b.v)}; }
ORKNN_SIMD Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.v, b.v)}; }
ORKNN_SIMD Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.v, b.v)}; }
ORKNN_SIMD Vec fma(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.v, a.v, b.v)}; }

ORKNN_SIMD Mask less(Vec a, Vec b) { return {vcltq_f32(a.v, b.v)}; }
ORKNN_SIMD Mask is_nan(Vec a) { return {vmvnq_u32(vceqq_f32(a.v, a.v))}; }
ORKNN_SIMD Vec select(Mask m, Vec yes, Vec no) { return {vbslq_f32(m.m, yes.v, no.v)}; }
// min and max return `b` when the two do not compare, unlike the instructions: put what may be NaN second.
ORKNN_SIMD Vec min(Vec a, Vec b) { return select({vcltq_f32(a.v, b.v)}, a, b); }
ORKNN_SIMD Vec max(Vec a, Vec b) { return select({vcgtq_f32(a.v, b.v)}, a, b); }

ORKNN_SIMD Vec abs(Vec a) { return {vabsq_f32(a.v)}; }
ORKNN_SIMD Vec negate(Vec a) { return {vnegq_f32(a.v)}; }
ORKNN_SIMD Vec copy_sign(Vec magnitude, Vec sign) { return {vbslq_f32(vdupq_n_u32(0x80000000), sign.v, magnitude.v)}; }
ORKNN_SIMD Vec sqrt(Vec a) { return {vsqrtq_f32(a.v)}; }
ORKNN_SIMD Vec floor(Vec a) { return {vrndmq_f32(a.v)}; }
ORKNN_SIMD Vec ceil(Vec a) { return {vrndpq_f32(a.v)}; }
ORKNN_SIMD Vec round_even(Vec a) { return {vrndnq_f32(a.v)}; }
ORKNN_SIMD Vec round_small(Vec a) { return round_even(a); }

// 2^n for whole n in [-126, 127].
ORKNN_SIMD Vec power_of_two(Vec n) {
  return {vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n.v), vdupq_n_s32(127)), 23))};
}
// a * 2^n for whole n in [-252, 254], with overflow to infinity and gradual underflow; n of a NaN may be anything.
ORKNN_SIMD Vec scale_by_power(Vec a, Vec n) {
  const Vec first = {vrndq_f32(vmulq_n_f32(n.v, 0.5f))};
  return a * power_of_two(first) * power_of_two(n - first);
}
// Splits a positive normal number into mantissa in [0.5, 1) and exponent.
ORKNN_SIMD Vec split_exponent(Vec a, Vec& exponent) {
  const int32x4_t bits = vreinterpretq_s32_f32(a.v);
  exponent = {vcvtq_f32_s32(vsubq_s32(vandq_s32(vshrq_n_s32(bits, 23), vdupq_n_s32(0xff)), vdupq_n_s32(126)))};
  return {vreinterpretq_f32_s32(vorrq_s32(vandq_s32(bits, vdupq_n_s32(0x007fffff)), vdupq_n_s32(0x3f000000)))};
}

// Added as in the wider forms.
ORKNN_SIMD float sum(Vec a) {
  const float32x2_t two = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// dst[j * dst_stride + i] = src[i * src_stride + j] for i, j < 8.
template <class T>
ORKNN_SIMD void transpose8(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  ORKNN_UNROLL
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int i = quarter / 2 * 4, j = quarter % 2 * 4;
    float32x4_t r[4], s[4];
    ORKNN_UNROLL
    for (int k = 0; k < 4; ++k) r[k] = load(src + (i + k) * src_stride + j).v;
    ORKNN_UNROLL
    for (int k = 0; k < 2; ++k) {
      s[k] = vzip1q_f32(r[k], r[k + 2]);
      s[k + 2] = vzip2q_f32(r[k], r[k + 2]);
    }
    float* to = dst + j * dst_stride + i;
    ORKNN_UNROLL
    for (int k = 0; k < 2; ++k) {
      vst1q_f32(to + 2 * k * dst_stride, vzip1q_f32(s[2 * k], s[2 * k + 1]));
      vst1q_f32(to + (2 * k + 1) * dst_stride, vzip2q_f32(s[2 * k], s[2 * k + 1]));
    }
  }
}

}  // namespace orknn::sim::kernels::neon
