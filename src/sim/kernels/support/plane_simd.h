// Cores that slide a window over one channel's plane: depthwise convolution and pooling. The plane is first copied into
// a padded one, its columns split by their remainder modulo the stride, so that every tap reads neighbouring floats.
#pragma once

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

// Copies rows [row, row + rows) of the padded plane. Padded column p holds x[p - pad_left] or `fill`; column p lies at
// (p % stride) * phase_size + p / stride of its row.
template <class T> static void pad_rows_of(const PadRows& a) {
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
      for (int64_t i = 0; i < begin; ++i) to[i] = a.fill;
      for (int64_t i = end; i < a.phase_size; ++i) to[i] = a.fill;
      int64_t i = begin;
      if (a.stride == 1)
        for (; i + Vec::kWidth <= end; i += Vec::kWidth) store(to + i, load(p + offset + i));
      else if (a.stride == 2)
        for (; i + Vec::kWidth <= end; i += Vec::kWidth) store(to + i, load_even(p + offset + 2 * i));
      alignas(64) float one[Vec::kWidth];
      for (; i < end; ++i) {
        store(one, load_part(p + offset + i * a.stride, 1));
        to[i] = one[0];
      }
    }
  }
}
static void pad_rows(const PadRows& a) {
  if (a.storage == Storage::Half) pad_rows_of<Half>(a);
  else pad_rows_of<float>(a);
}

// Rows x Vecs results at a time; Taps known for the usual windows so that weights stay in registers.
template <int Taps, int Vecs> static void depthwise_part(const DepthwiseRow& d, int64_t column, int64_t columns) {
  const int64_t taps = Taps ? Taps : d.taps;
  Vec s[Vecs];
  ORKNN_UNROLL
  for (int v = 0; v < Vecs; ++v) s[v] = splat(d.bias);
  const float* x = d.x + column;
  ORKNN_UNROLL
  for (int64_t t = 0; t < taps; ++t) {
    const Vec w = splat(d.weights[t]);
    const float* p = x + d.offsets[t];
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) s[v] = fma(w, load(p + v * Vec::kWidth), s[v]);
  }
  const Vec low = splat(d.low), high = splat(d.high);
  ORKNN_UNROLL
  for (int v = 0; v < Vecs; ++v) {
    const Vec y = d.clamp ? min(high, max(low, s[v])) : s[v];
    store_up_to(d.y + column + v * Vec::kWidth, y, columns - v * Vec::kWidth);
  }
}

template <int Taps> ORKNN_SIMD void depthwise_columns(const DepthwiseRow& d) {
  int64_t c = 0;
  for (; c + 4 * Vec::kWidth <= d.columns; c += 4 * Vec::kWidth) depthwise_part<Taps, 4>(d, c, d.columns - c);
  const int64_t rest = divide_up(d.columns - c, Vec::kWidth);
  if (rest == 4) depthwise_part<Taps, 4>(d, c, d.columns - c);
  if (rest == 3) depthwise_part<Taps, 3>(d, c, d.columns - c);
  if (rest == 2) depthwise_part<Taps, 2>(d, c, d.columns - c);
  if (rest == 1) depthwise_part<Taps, 1>(d, c, d.columns - c);
}

static void depthwise_row(const DepthwiseRow& d) {
  if (d.taps == 9) depthwise_columns<9>(d);
  else if (d.taps == 25) depthwise_columns<25>(d);
  else depthwise_columns<0>(d);
}

template <bool Max> ORKNN_SIMD void pool_row_of(const PoolRow& p) {
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
  if (p.counts) pool_row_of<false>(p);
  else pool_row_of<true>(p);
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
