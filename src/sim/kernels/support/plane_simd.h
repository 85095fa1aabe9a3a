// Cores that slide a window over one channel's plane: depthwise convolution and pooling. The plane is first copied into
// a padded one, its columns split by their remainder modulo the stride, so that every tap reads neighbouring floats.
#pragma once

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

// Copies rows [row, row + rows) of the padded plane. Padded column p holds x[p - pad_left] or `fill`; column p lies at
// (p % stride) * phase_size + p / stride of its row. Whole vectors are written, what lies beyond is overwritten later.
template <class T>
static void pad_rows_of(const PadRows& a) {
  const T* x = static_cast<const T*>(a.x);
  const Vec fill = splat(a.fill);
  float* y = a.y;
  for (int64_t r = 0; r < a.rows; ++r, y += a.stride * a.phase_size) {
    const int64_t from_row = a.row + r - a.pad_top;
    if (from_row < 0 || from_row >= a.height) {
      for (int64_t i = 0; i < a.stride * a.phase_size; i += Vec::kWidth) store(y + i, fill);
      continue;
    }
    const T* p = x + from_row * a.width;
    for (int64_t phase = 0; phase < a.stride; ++phase) {
      float* to = y + phase * a.phase_size;
      // Columns phase + i * stride - pad_left inside [0, width).
      const int64_t offset = phase - a.pad_left;
      int64_t begin = offset >= 0 ? 0 : divide_up(-offset, a.stride);
      int64_t end = a.width <= offset ? 0 : divide_up(a.width - offset, a.stride);
      if (begin > a.phase_size) begin = a.phase_size;
      if (end > a.phase_size) end = a.phase_size;
      if (end < begin) end = begin;
      for (int64_t i = 0; i < begin; i += Vec::kWidth) store(to + i, fill);
      int64_t i = begin;
      if (a.stride == 1) {
        for (; i + Vec::kWidth <= end; i += Vec::kWidth) store(to + i, load(p + offset + i));
        if (i < end) store(to + i, load_part(p + offset + i, static_cast<int>(end - i)));
      } else if (a.stride == 2) {
        for (; i + Vec::kWidth <= end; i += Vec::kWidth) store(to + i, load_even(p + offset + 2 * i));
        if (i < end) store(to + i, load_even_window(p + offset + 2 * i, 0, static_cast<int>(end - i)));
      } else {
        alignas(64) float one[Vec::kWidth];
        for (; i < end; ++i) {
          store(one, load_part(p + offset + i * a.stride, 1));
          to[i] = one[0];
        }
      }
      for (i = end; i < a.phase_size; i += Vec::kWidth) store(to + i, fill);
    }
  }
}
static void pad_rows(const PadRows& a) {
  if (a.storage == Storage::Half)
    pad_rows_of<Half>(a);
  else
    pad_rows_of<float>(a);
}

ORKNN_SIMD void put_depthwise(const DepthwiseRows& d, float* y, Vec sum, int64_t columns) {
  store_up_to(y, d.clamp ? min(splat(d.high), max(splat(d.low), sum)) : sum, columns);
}

// 3x3 windows that move down one row at a time: every row of the input is loaded once and added to the three rows of
// results it belongs to. `Vecs` vectors of columns side by side keep enough sums in flight.
template <int Vecs>
static void depthwise_three(const DepthwiseRows& d, int64_t column) {
  Vec w[9];
  ORKNN_UNROLL
  for (int t = 0; t < 9; ++t) w[t] = splat(d.weights[t]);
  const Vec bias = splat(d.bias);
  Vec top[Vecs], middle[Vecs], bottom[Vecs];
  ORKNN_UNROLL
  for (int v = 0; v < Vecs; ++v) top[v] = middle[v] = bias;
  const float* x = d.x + column;
  float* y = d.y + column;
  const int64_t columns = d.columns - column;
  for (int64_t r = -2; r < d.rows; ++r, x += d.row_step) {
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) bottom[v] = bias;
    ORKNN_UNROLL
    for (int k = 0; k < 3; ++k) {
      const float* p = x + d.offsets[k];
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v) {
        const Vec value = load(p + v * Vec::kWidth);
        top[v] = fma(w[6 + k], value, top[v]);
        middle[v] = fma(w[3 + k], value, middle[v]);
        bottom[v] = fma(w[k], value, bottom[v]);
      }
    }
    if (r >= 0) {
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v) put_depthwise(d, y + r * d.columns + v * Vec::kWidth, top[v], columns - v * Vec::kWidth);
    }
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) {
      top[v] = middle[v];
      middle[v] = bottom[v];
    }
  }
}

// Any window: Rows x Vecs results at a time.
template <int Rows, int Vecs>
static void depthwise_block(const DepthwiseRows& d, int64_t row, int64_t column) {
  Vec s[Rows][Vecs];
  ORKNN_UNROLL
  for (int r = 0; r < Rows; ++r) {
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) s[r][v] = splat(d.bias);
  }
  const float* x = d.x + row * d.row_step + column;
  for (int64_t t = 0; t < d.taps; ++t) {
    const Vec w = splat(d.weights[t]);
    const float* p = x + d.offsets[t];
    ORKNN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v) s[r][v] = fma(w, load(p + r * d.row_step + v * Vec::kWidth), s[r][v]);
    }
  }
  ORKNN_UNROLL
  for (int r = 0; r < Rows; ++r) {
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v)
      put_depthwise(d, d.y + (row + r) * d.columns + column + v * Vec::kWidth, s[r][v], d.columns - column - v * Vec::kWidth);
  }
}

template <int Vecs>
ORKNN_SIMD void depthwise_down(const DepthwiseRows& d, int64_t column) {
  int64_t row = 0;
  for (; row + 4 <= d.rows; row += 4) depthwise_block<4, Vecs>(d, row, column);
  for (; row < d.rows; ++row) depthwise_block<1, Vecs>(d, row, column);
}

static void depthwise_rows(const DepthwiseRows& d) {
  int64_t vecs = divide_up(d.columns, Vec::kWidth);
  int64_t column = 0;
  if (d.three) {
#if defined(ORKNN_FORM_32_REGISTERS)
    for (; vecs >= 4; vecs -= 4, column += 4 * Vec::kWidth) depthwise_three<4>(d, column);
    if (vecs == 3)
      depthwise_three<3>(d, column);
    else if (vecs == 2)
      depthwise_three<2>(d, column);
    else if (vecs == 1)
      depthwise_three<1>(d, column);
#else
    for (; vecs >= 2; vecs -= 2, column += 2 * Vec::kWidth) depthwise_three<2>(d, column);
    if (vecs == 1) depthwise_three<1>(d, column);
#endif
    return;
  }
  for (; vecs >= 2; vecs -= 2, column += 2 * Vec::kWidth) depthwise_down<2>(d, column);
  if (vecs == 1) depthwise_down<1>(d, column);
}

template <bool Max>
ORKNN_SIMD void pool_row_of(const PoolRow& p) {
  for (int64_t c = 0; c < p.columns; c += Vec::kWidth) {
    Vec v = load(p.x + p.offsets[0] + c);
    for (int64_t t = 1; t < p.taps; ++t) {
      const Vec w = load(p.x + p.offsets[t] + c);
      v = Max ? max(w, v) : v + w;  // a NaN stays or is passed over like in the reference
    }
    if (!Max) v = v / (load_up_to(p.counts + c, p.columns - c) * splat(p.row_count));
    store_up_to(p.y + c, v, p.columns - c);
  }
}
static void pool_row(const PoolRow& p) {
  if (p.counts)
    pool_row_of<false>(p);
  else
    pool_row_of<true>(p);
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
