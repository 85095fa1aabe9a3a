// The integer cores that NEON computes in its own way; the others are those of int_forms_body.h. Its products take one lane of a
// register for all lanes of another, so that no value is broadcast, and its stores interleave.
#pragma once

#include "sim/kernels/support/int_simd_neon.h"

namespace orknn::sim::kernels::ORKNN_INT_FORM {

// sum += the values of two lanes of words times those of a vector's dwords, divided into low and high words.
template <int kLane>
ORKNN_SIMD I32 dot_words(I32 sum, int16x4_t low, int16x4_t high, I32 lanes) {
  sum.v = vmlal_laneq_s16(sum.v, low, words_of(lanes), 2 * kLane);
  return {vmlal_laneq_s16(sum.v, high, words_of(lanes), 2 * kLane + 1)};
}

template <Dot kDot, int kLane, int kVectors>
ORKNN_SIMD void add_row_of_tile([[maybe_unused]] const I32 (&column)[kVectors], const int16x4_t (&low)[kVectors],
                                const int16x4_t (&high)[kVectors], I32 rows, I32 (&sum)[kVectors]) {
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) {
    if constexpr (kDot == Dot::Words) sum[j] = dot_words<kLane>(sum[j], low[j], high[j], rows);
#if defined(ORKNN_INT_BYTES)
    else
      sum[j] = dot_lane<kLane, kDot == Dot::BytesAUnsigned>(sum[j], column[j], rows);
#endif
  }
}

template <Dot kDot, int kRows, int kVectors, class RightRows>
ORKNN_SIMD void sum_tile(const int32_t* a, const RightRows& right, int64_t depth, I32 (&sum)[kRows][kVectors]) {
  for (int64_t k = 0; k < depth; ++k) {
    const std::byte* from = right(k);
    I32 column[kVectors];
    int16x4_t low[kVectors] = {}, high[kVectors] = {};
    ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) {
      column[j] = load32(from + j * kLanes * 4);
      if constexpr (kDot == Dot::Words) {
        low[j] = vmovn_s32(column[j].v);
        high[j] = vshrn_n_s32(column[j].v, 16);
      }
    }
    ORKNN_UNROLL for (int r = 0; r < kRows; r += 4) {
      const I32 rows = load32(a + k * kIntRows + r);
      add_row_of_tile<kDot, 0>(column, low, high, rows, sum[r]);
      add_row_of_tile<kDot, 1>(column, low, high, rows, sum[r + 1]);
      add_row_of_tile<kDot, 2>(column, low, high, rows, sum[r + 2]);
      add_row_of_tile<kDot, 3>(column, low, high, rows, sum[r + 3]);
    }
  }
}

constexpr int kBlockVectors = static_cast<int>(kBlock / kLanes);

// The dword of lane kLane of every pixel meets its weights for all channels of a block.
template <Dot kDot, int kLane, int kPixels>
ORKNN_SIMD void add_dword(const int32_t* weights, const I32 (&pixel)[kPixels], I32 (&sum)[kBlockVectors][kPixels]) {
  if constexpr (kDot == Dot::Words) {
    ORKNN_UNROLL for (int v = 0; v < kBlockVectors; v += 2) {
      const int16x8x2_t w = vld2q_s16(reinterpret_cast<const int16_t*>(weights + v * kLanes));
      ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) {
        sum[v][i] = dot_words<kLane>(sum[v][i], vget_low_s16(w.val[0]), vget_low_s16(w.val[1]), pixel[i]);
        sum[v + 1][i].v = vmlal_high_laneq_s16(sum[v + 1][i].v, w.val[0], words_of(pixel[i]), 2 * kLane);
        sum[v + 1][i].v = vmlal_high_laneq_s16(sum[v + 1][i].v, w.val[1], words_of(pixel[i]), 2 * kLane + 1);
      }
    }
  }
#if defined(ORKNN_INT_BYTES)
  else {
    I32 weight[kBlockVectors];
    ORKNN_UNROLL for (int v = 0; v < kBlockVectors; ++v) weight[v] = load32(weights + v * kLanes);
    ORKNN_UNROLL for (int v = 0; v < kBlockVectors; ++v) ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) sum[v][i] =
        dot_lane<kLane, true>(sum[v][i], weight[v], pixel[i]);
  }
#endif
}

// Up to four dwords of every pixel.
template <Dot kDot, bool kFlips, int kDwords, int kPixels>
ORKNN_SIMD void add_dwords(const uint8_t* x, int64_t dwords, const int32_t*& weights, I32 (&sum)[kBlockVectors][kPixels]) {
  I32 pixel[kPixels];
  ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) {
    const uint8_t* from = x + i * kDwords * 4;
    if constexpr (kDwords < 4)
      pixel[i].v = vreinterpretq_s32_u8(vcombine_u8(vld1_u8(from), vdup_n_u8(0)));
    else
      pixel[i] = load32(from);
    if constexpr (kFlips) pixel[i].v = veorq_s32(pixel[i].v, vreinterpretq_s32_u8(vdupq_n_u8(kDataFlip)));
  }
  add_dword<kDot, 0>(weights, pixel, sum);
  if (dwords > 1) add_dword<kDot, 1>(weights + kBlock, pixel, sum);
  if (dwords > 2) add_dword<kDot, 2>(weights + 2 * kBlock, pixel, sum);
  if (dwords > 3) add_dword<kDot, 3>(weights + 3 * kBlock, pixel, sum);
  weights += (dwords < 4 ? dwords : 4) * kBlock;
}

#if defined(ORKNN_INT_BYTES)
// Pixels of one dword: four of them are one vector.
template <int kPixels>
ORKNN_SIMD void add_narrow(const uint8_t* x, const int32_t* weights, I32 (&sum)[kBlockVectors][kPixels]) {
  I32 four[(kPixels + 3) / 4];
  ORKNN_UNROLL for (int i = 0; i < kPixels; i += 4) four[i / 4] = load32(x + i * 4);
  ORKNN_UNROLL for (int v = 0; v < kBlockVectors; ++v) {
    const I32 weight = load32(weights + v * kLanes);
    ORKNN_UNROLL for (int i = 0; i < kPixels; i += 4) {
      sum[v][i] = dot_lane<0, true>(sum[v][i], weight, four[i / 4]);
      if (i + 1 < kPixels) sum[v][i + 1] = dot_lane<1, true>(sum[v][i + 1], weight, four[i / 4]);
      if (i + 2 < kPixels) sum[v][i + 2] = dot_lane<2, true>(sum[v][i + 2], weight, four[i / 4]);
      if (i + 3 < kPixels) sum[v][i + 3] = dot_lane<3, true>(sum[v][i + 3], weight, four[i / 4]);
    }
  }
}
#endif

// As blocked_body.h has it; kFlips: the bytes of the data are still to be made signed.
template <Dot kDot, int kDwords, int kPixels, bool kFlips>
__attribute__((noinline)) static void sum_pixels_of(const BlockedProduct& p, const uint8_t* x, int32_t* sums) {
  I32 sum[kBlockVectors][kPixels];
  ORKNN_UNROLL for (int v = 0; v < kBlockVectors; ++v) {
    const I32 bias = load32(p.to[0].bias + v * kLanes);
    ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) sum[v][i] = bias;
  }
  const int32_t* weights = p.weights;
  for (int64_t k = 0; k < p.whole; ++k) {
    const uint8_t* from = x + p.offsets[k];
    if constexpr (kDot != Dot::Words && kDwords == 1) {
#if defined(ORKNN_INT_BYTES)
      add_narrow(from, weights, sum);
      weights += kBlock;
#endif
    } else {
      for (int d = 0; d < kDwords; d += 4) add_dwords<kDot, kFlips, kDwords>(from + d * 4, kDwords, weights, sum);
    }
  }
  if constexpr (kDwords > 1)
    for (int64_t k = p.whole; k < p.whole + p.partial; ++k)
      for (int64_t d = 0; d < p.partial_dwords; d += 4)
        add_dwords<kDot, kFlips, kDwords>(x + p.offsets[k] + d * 4, p.partial_dwords - d, weights, sum);
  ORKNN_UNROLL for (int v = 0; v < kBlockVectors; ++v) ORKNN_UNROLL for (int i = 0; i < kPixels; ++i)
      store32(sums + i * kBlock + v * kLanes, sum[v][i]);
}
template <Dot kDot, int kDwords, int kBlocks, int kPixels, int kRows>
ORKNN_SIMD void sum_pixels(const BlockedProduct& p, int64_t first, int32_t* sums, int64_t) {
  static_assert(kBlocks == 1 && kRows == 1);
  const uint8_t* const x = p.x + first * kDwords * 4;
  if constexpr (kDataFlip != 0 && kDot != Dot::Words && kDwords > 1) {
    if (p.flip != 0) return sum_pixels_of<kDot, kDwords, kPixels, true>(p, x, sums);
  }
  sum_pixels_of<kDot, kDwords, kPixels, false>(p, x, sums);
}

static void interleave_bytes(const IntInterleave& p) {
  const uint8x16_t flip = vdupq_n_u8(p.flip);
  for (int64_t i = 0; i < p.count; i += 16) {
    const int64_t left = p.count - i;
    uint8x16x4_t rows;
    ORKNN_UNROLL for (int j = 0; j < 4; ++j) rows.val[j] =
        p.rows[j] ? veorq_u8(load_bytes(p.rows[j] + i, left), flip) : vdupq_n_u8(0);
    if (left >= 16) {
      vst4q_u8(reinterpret_cast<uint8_t*>(p.y + i), rows);
      continue;
    }
    alignas(16) uint8_t buffer[64];
    vst4q_u8(buffer, rows);
    std::memcpy(p.y + i, buffer, static_cast<size_t>(left) * 4);
  }
}
// Sixteen bytes as words without their zero point.
ORKNN_SIMD int16x8x2_t words_without_zero(uint8x16_t bytes, bool is_signed, int16_t zero) {
  const int16x8_t low = is_signed ? vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(bytes)))
                                  : vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
                  high = is_signed ? vmovl_high_s8(vreinterpretq_s8_u8(bytes)) : vreinterpretq_s16_u16(vmovl_high_u8(bytes));
  return {vsubq_s16(low, vdupq_n_s16(zero)), vsubq_s16(high, vdupq_n_s16(zero))};
}
static void interleave_words(const IntInterleave& p) {
  for (int64_t i = 0; i < p.count; i += 16) {
    const int64_t left = p.count - i;
    int16x8x2_t row[2] = {};
    ORKNN_UNROLL for (int j = 0; j < 2; ++j) if (p.rows[j]) row[j] =
        words_without_zero(load_bytes(p.rows[j] + i, left), p.is_signed, static_cast<int16_t>(p.zero));
    alignas(16) int16_t buffer[32];
    int16_t* to = left >= 16 ? reinterpret_cast<int16_t*>(p.y + i) : buffer;
    vst2q_s16(to, int16x8x2_t{row[0].val[0], row[1].val[0]});
    vst2q_s16(to + 16, int16x8x2_t{row[0].val[1], row[1].val[1]});
    if (left < 16) std::memcpy(p.y + i, buffer, static_cast<size_t>(left) * 4);
  }
}

static void expand(const IntExpand& given) {
  const IntExpand p = given;
  if (p.dilation != 1 || p.stride > 2) return expand_scalar(p);
  static constexpr uint8_t kPicks[2][16] = {{0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6},
                                            {0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9}};
  const uint8x16_t pick = vld1q_u8(kPicks[p.stride - 1]);
  for (int64_t row = 0; row < p.rows; ++row) {
    int32_t* y = expanded_row(p, row);
    const uint8_t* x = static_cast<const uint8_t*>(p.x) + row * p.x_stride * (p.words ? 2 : 1);
    for (int64_t i = 0; i < p.count; i += 4) {
      if (!p.words)
        vst1q_u8(reinterpret_cast<uint8_t*>(y + i), vqtbl1q_u8(vld1q_u8(x + i * p.stride), pick));
      else if (p.stride == 2)
        vst1q_u8(reinterpret_cast<uint8_t*>(y + i), vld1q_u8(x + 4 * i));
      else
        vst2_u16(reinterpret_cast<uint16_t*>(y + i),
                 uint16x4x2_t{vreinterpret_u16_u8(vld1_u8(x + 2 * i)), vreinterpret_u16_u8(vld1_u8(x + 2 * i + 2))});
    }
  }
}

template <class T>
ORKNN_SIMD void pad_fill(T* y, int64_t begin, int64_t end, T fill) {
  for (int64_t i = begin; i < end; i += 16) {
    if constexpr (sizeof(T) == 1)
      vst1q_u8(y + i, vdupq_n_u8(fill));
    else
      vst1q_s16_x2(y + i, int16x8x2_t{vdupq_n_s16(fill), vdupq_n_s16(fill)});
  }
}
template <class T>
ORKNN_SIMD void pad_sixteen(const IntPad& p, const uint8_t* x, int64_t count, T* y) {
  const uint8x16_t bytes = load_bytes(x, count);
  if constexpr (sizeof(T) == 1)
    vst1q_u8(y, veorq_u8(bytes, vdupq_n_u8(p.flip)));
  else
    vst1q_s16_x2(y, words_without_zero(bytes, p.is_signed, static_cast<int16_t>(p.zero)));
}

// y[i] = table[x[i]] of 256 entries: four tables of 64, of which the later ones take what is beyond the earlier ones.
static void lookup(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t count) {
  uint8x16x4_t part[4];
  ORKNN_UNROLL for (int j = 0; j < 16; ++j) part[j / 4].val[j % 4] = vld1q_u8(table + 16 * j);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t index = vld1q_u8(x + i);
    uint8x16_t result = vqtbl4q_u8(part[0], index);
    ORKNN_UNROLL for (int j = 1; j < 4; ++j) result =
        vqtbx4q_u8(result, part[j], vsubq_u8(index, vdupq_n_u8(static_cast<uint8_t>(64 * j))));
    vst1q_u8(y + i, result);
  }
  for (; i < count; ++i) y[i] = table[x[i]];
}

static void maximum(const uint8_t* x, bool is_signed, uint8_t* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const uint8x16_t a = vld1q_u8(x + i), b = vld1q_u8(y + i);
    vst1q_u8(y + i, is_signed ? vreinterpretq_u8_s8(vmaxq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b))) : vmaxq_u8(a, b));
  }
}

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
