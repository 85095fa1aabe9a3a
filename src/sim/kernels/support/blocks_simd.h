// Feature maps in blocks (sim/form.h): the channels of a pixel are the lanes. Convolution holds pixels x blocks of output
// channels in registers and broadcasts the input's channels.
#pragma once

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

#if defined(ORKNN_FORM_AVX512)
constexpr int kConvPixels = 14, kConvBlocks = 2;  // 28 sums, 2 of weights, 1 of data of 32 registers
#elif defined(ORKNN_FORM_32_REGISTERS)
constexpr int kConvPixels = 6, kConvBlocks = 1;  // 24 sums of four lanes, 4 of weights, 1 of data of 32 registers
#elif defined(ORKNN_FORM_AVX2)
constexpr int kConvPixels = 6, kConvBlocks = 1;  // 12 sums, 2 of weights, 1 of data of 16 registers
#else
constexpr int kConvPixels = 2, kConvBlocks = 1;
#endif
constexpr int kLaneVecs = static_cast<int>(kLaneChannels) / Vec::kWidth;

// `Step` is the pixel step where it is known here, else 0.
template <int Pixels, int Blocks, int Step>
static void conv_micro(const ConvPixels& c, const float* x, const float* w, const float* bias, float* y, const float* ahead,
                       int64_t ahead_step) {
  constexpr int kVecs = Blocks * kLaneVecs;
  Vec s[Pixels][kVecs];
  ORKNN_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    const Vec start = bias ? load(bias + v * Vec::kWidth) : splat(0.0f);
    ORKNN_UNROLL
    for (int p = 0; p < Pixels; ++p) s[p][v] = start;
  }
  const int64_t step = Step ? Step : c.pixel_step, weights_step = c.weights_step;
  for (int64_t t = 0; t < c.taps; ++t) {
    const float* from = x + c.offsets[t];
    for (int64_t left = c.channels; left > 0; left -= c.lanes, from += c.block_step) {
      const int64_t some = smaller(left, c.lanes);
      for (int64_t k = 0; k < some; ++k, w += kLaneChannels) {
        // Weights come from far away: those of the next blocks are fetched in the course of all tiles.
        __builtin_prefetch(ahead, 0, 2);
        if (Blocks > 1) __builtin_prefetch(ahead + weights_step, 0, 2);
        ahead += ahead_step;
        Vec weights[kVecs];
        ORKNN_UNROLL
        for (int v = 0; v < kVecs; ++v) weights[v] = load(w + v / kLaneVecs * weights_step + v % kLaneVecs * Vec::kWidth);
        ORKNN_UNROLL
        for (int p = 0; p < Pixels; ++p) {
          const Vec one = splat(from[p * step + k]);
          ORKNN_UNROLL
          for (int v = 0; v < kVecs; ++v) s[p][v] = fma(weights[v], one, s[p][v]);
        }
      }
    }
  }
  const Vec low = splat(c.low), high = splat(c.high);
  ORKNN_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    float* to = y + v / kLaneVecs * c.y_block_step + v % kLaneVecs * Vec::kWidth;
    ORKNN_UNROLL
    for (int p = 0; p < Pixels; ++p) store(to + p * kLaneChannels, c.clamp ? min(high, max(low, s[p][v])) : s[p][v]);
  }
}

using ConvMicro = void (*)(const ConvPixels&, const float*, const float*, const float*, float*, const float*, int64_t);
// For `pixels` of at most Pixels and `blocks` of at most Blocks.
template <int Step, int Blocks = kConvBlocks, int Pixels = kConvPixels>
static ConvMicro conv_micro_for(int64_t blocks, int64_t pixels) {
  if constexpr (Blocks > 1) {
    if (blocks < Blocks) return conv_micro_for<Step, Blocks - 1, Pixels>(blocks, pixels);
  }
  if constexpr (Pixels > 1) {
    if (pixels < Pixels) return conv_micro_for<Step, Blocks, Pixels - 1>(blocks, pixels);
  }
  return conv_micro<Pixels, Blocks, Step>;
}
ORKNN_SIMD ConvMicro choose_conv_micro(int64_t pixel_step, int64_t blocks, int64_t pixels) {
  if (pixel_step == kLaneChannels) return conv_micro_for<kLaneChannels>(blocks, pixels);
  if (pixel_step == 2 * kLaneChannels) return conv_micro_for<2 * kLaneChannels>(blocks, pixels);
  return conv_micro_for<0>(blocks, pixels);
}

static void conv_pixels(const ConvPixels& c) {
  // Tiles as even as possible: the first `longer` of them have a pixel more.
  const int64_t tiles = divide_up(c.columns, kConvPixels), least = c.columns / tiles, longer = c.columns % tiles;
  for (int64_t block = 0; block < c.blocks; block += kConvBlocks) {
    const float* w = c.weights + block * c.weights_step;
    const float* bias = c.bias ? c.bias + block * kLaneChannels : nullptr;
    const int64_t blocks = smaller(kConvBlocks, c.blocks - block);
    const ConvMicro usual = choose_conv_micro(c.pixel_step, blocks, least),
                    first = longer ? choose_conv_micro(c.pixel_step, blocks, least + 1) : usual;
    const int64_t ahead_step = divide_up(kLaneChannels, c.rows * tiles);
    const float* ahead = w + c.ahead;
    for (int64_t row = 0; row < c.rows; ++row) {
      const float* x = c.x + row * c.row_step;
      float* y = c.y + block * c.y_block_step + row * c.y_row_step;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t pixels = least + (tile < longer ? 1 : 0);
        (tile < longer ? first : usual)(c, x, w, bias, y, ahead, ahead_step);
        ahead += c.taps * c.channels * ahead_step;
        x += pixels * c.pixel_step;
        y += pixels * kLaneChannels;
      }
    }
  }
}

// The values of the polynomial with coefficients d at 0, near, -near, far, -far and infinity, times what the weights' side
// divides by (kernels/float_3x3.cpp).
ORKNN_SIMD void tile_line(const Vec (&d)[6], Vec (&y)[6]) {
  constexpr auto a = static_cast<float>(kNearPoint), b = static_cast<float>(kFarPoint);
  const Vec a2 = splat(-a * a), b2 = splat(-b * b), both = splat(-(a * a + b * b)), product = splat(a * a * b * b);
  const Vec near_even = fma(b2, d[2], d[4]), near_odd = splat(a) * fma(b2, d[1], d[3]);
  const Vec far_even = fma(a2, d[2], d[4]), far_odd = splat(b) * fma(a2, d[1], d[3]);
  y[0] = fma(product, d[0], fma(both, d[2], d[4]));
  y[1] = near_even + near_odd;
  y[2] = near_even - near_odd;
  y[3] = far_even + far_odd;
  y[4] = far_even - far_odd;
  y[5] = fma(product, d[1], fma(both, d[3], d[5]));
}

static void tile_points(const float* x, int64_t row_step, float* y, int64_t point_step) {
  for (int64_t part = 0; part < kLaneChannels; part += Vec::kWidth) {
    Vec down[6][6];
    ORKNN_UNROLL
    for (int c = 0; c < 6; ++c) {
      Vec column[6], points[6];
      ORKNN_UNROLL
      for (int r = 0; r < 6; ++r) column[r] = load(x + r * row_step + c * kLaneChannels + part);
      tile_line(column, points);
      ORKNN_UNROLL
      for (int r = 0; r < 6; ++r) down[r][c] = points[r];
    }
    ORKNN_UNROLL
    for (int r = 0; r < 6; ++r) {
      Vec points[6];
      tile_line(down[r], points);
      ORKNN_UNROLL
      for (int c = 0; c < 6; ++c) store(y + (r * 6 + c) * point_step + part, points[c]);
    }
  }
}

// Four coefficients from the values at the six points.
ORKNN_SIMD void tile_back(const Vec (&m)[6], Vec (&y)[4]) {
  constexpr auto a = static_cast<float>(kNearPoint), b = static_cast<float>(kFarPoint);
  const Vec near_sum = m[1] + m[2], near_difference = m[1] - m[2], far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  y[0] = m[0] + (near_sum + far_sum);
  y[1] = fma(splat(a), near_difference, splat(b) * far_difference);
  y[2] = fma(splat(a * a), near_sum, splat(b * b) * far_sum);
  y[3] = fma(splat(a * a * a), near_difference, fma(splat(b * b * b), far_difference, m[5]));
}

static bool tile_results(const TileResult& t) {
  const Vec low = splat(t.low), high = splat(t.high);
  Vec odd = splat(0.0f);  // NaN where a result is infinite or NaN
  for (int64_t part = 0; part < kLaneChannels; part += Vec::kWidth) {
    Vec down[4][6];
    ORKNN_UNROLL
    for (int c = 0; c < 6; ++c) {
      Vec column[6], results[4];
      ORKNN_UNROLL
      for (int r = 0; r < 6; ++r) column[r] = load(t.x + (r * 6 + c) * t.point_step + part);
      tile_back(column, results);
      ORKNN_UNROLL
      for (int r = 0; r < 4; ++r) down[r][c] = results[r];
    }
    const Vec bias = load(t.bias + part);
    ORKNN_UNROLL
    for (int r = 0; r < 4; ++r) {
      if (r >= t.rows) break;
      Vec results[4];
      tile_back(down[r], results);
      float* y = t.y + r * t.y_row_step + part;
      ORKNN_UNROLL
      for (int c = 0; c < 4; ++c) {
        const Vec v = results[c] + bias;
        odd = odd + (v - v);
        if (c < t.columns) store(y + c * kLaneChannels, t.clamp ? min(high, max(low, v)) : v);
      }
    }
  }
  return sum(odd) == 0.0f;
}

template <bool Average>
ORKNN_SIMD void pool_pixel_of(const PoolPixel& p) {
  ORKNN_UNROLL
  for (int64_t part = 0; part < kLaneChannels; part += Vec::kWidth) {
    Vec v = splat(Average ? 0.0f : -__builtin_inff());
    if (!Average && p.begins) v = load(p.x + part);
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t c = 0; c < p.columns; ++c) {
        const Vec w = load(p.x + r * p.row_step + c * p.column_step + part);
        v = Average ? v + w : max(w, v);  // a NaN is treated as by pool_row
      }
    store(p.y + part, Average ? v / splat(p.count) : v);
  }
}
static void pool_pixel(const PoolPixel& p) {
  if (p.average)
    pool_pixel_of<true>(p);
  else
    pool_pixel_of<false>(p);
}

// In blocks, so that the sum of a large plane loses little.
static void sum_pixels(const float* x, int64_t count, float* y) {
  constexpr int64_t kSome = 256;
  for (int64_t part = 0; part < kLaneChannels; part += Vec::kWidth) {
    Vec total = splat(0.0f);
    for (int64_t first = 0; first < count; first += kSome) {
      const int64_t end = smaller(count, first + kSome);
      Vec s[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
      int64_t i = first;
      for (; i + 4 <= end; i += 4) {
        ORKNN_UNROLL
        for (int k = 0; k < 4; ++k) s[k] = s[k] + load(x + (i + k) * kLaneChannels + part);
      }
      for (; i < end; ++i) s[0] = s[0] + load(x + i * kLaneChannels + part);
      total = total + ((s[0] + s[1]) + (s[2] + s[3]));
    }
    store(y + part, total);
  }
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
