// Depthwise convolution with the channels of a pixel next to each other: kLaneChannels planes are transposed, so that rows may be
// as short as they like and strides cost nothing.
#pragma once

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

template <class T>
static void to_pixels_of(const T* x, int64_t plane, int64_t channels, int64_t count, float* y) {
  int64_t done = 0;  // channels
#if defined(ORKNN_FORM_AVX512) || defined(ORKNN_FORM_AVX2) || defined(ORKNN_FORM_NEON)
  for (; done + 8 <= channels; done += 8) {
    const T* from = x + done * plane;
    float* to = y + done;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) transpose8(from + i, plane, to + i * kLaneChannels, kLaneChannels);
    for (; i < count; ++i)
      for (int64_t c = 0; c < 8; ++c) to[i * kLaneChannels + c] = static_cast<float>(from[c * plane + i]);
  }
#endif
  for (; done < kLaneChannels; ++done)
    for (int64_t i = 0; i < count; ++i)
      y[i * kLaneChannels + done] = done < channels ? static_cast<float>(x[done * plane + i]) : 0.0f;
}
static void to_pixels(const void* x, Storage storage, int64_t plane, int64_t channels, int64_t count, float* y) {
  if (storage == Storage::Half)
    to_pixels_of(static_cast<const Half*>(x), plane, channels, count, y);
  else
    to_pixels_of(static_cast<const float*>(x), plane, channels, count, y);
}

static void from_pixels(const float* x, int64_t channels, int64_t count, float* y, int64_t plane) {
  int64_t done = 0;  // channels
#if defined(ORKNN_FORM_AVX512) || defined(ORKNN_FORM_AVX2) || defined(ORKNN_FORM_NEON)
  for (; done + 8 <= channels; done += 8) {
    const float* from = x + done;
    float* to = y + done * plane;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) transpose8(from + i * kLaneChannels, kLaneChannels, to + i, plane);
    for (; i < count; ++i)
      for (int64_t c = 0; c < 8; ++c) to[c * plane + i] = from[i * kLaneChannels + c];
  }
#endif
  for (; done < channels; ++done)
    for (int64_t i = 0; i < count; ++i) y[done * plane + i] = x[i * kLaneChannels + done];
}

template <int Pixels>
ORKNN_SIMD void depthwise_some_pixels(const DepthwisePixels& d, const float* x, float* y) {
  const Vec low = splat(d.low), high = splat(d.high);
  ORKNN_UNROLL
  for (int64_t part = 0; part < kLaneChannels; part += Vec::kWidth) {
    Vec s[Pixels];
    ORKNN_UNROLL
    for (int i = 0; i < Pixels; ++i) s[i] = load(d.bias + part);
    for (int64_t t = 0; t < d.taps; ++t) {
      const Vec w = load(d.weights + t * kLaneChannels + part);
      const float* p = x + d.offsets[t] + part;
      ORKNN_UNROLL
      for (int i = 0; i < Pixels; ++i) s[i] = fma(w, load(p + i * d.column_step), s[i]);
    }
    ORKNN_UNROLL
    for (int i = 0; i < Pixels; ++i) store(y + i * kLaneChannels + part, d.clamp ? min(high, max(low, s[i])) : s[i]);
  }
}

template <int Pixels>
ORKNN_SIMD void depthwise_while(const DepthwisePixels& d, const float*& x, float*& y, int64_t& left) {
  for (; left >= Pixels; left -= Pixels, x += Pixels * d.column_step, y += Pixels * kLaneChannels)
    depthwise_some_pixels<Pixels>(d, x, y);
}
static void depthwise_pixels(const DepthwisePixels& d) {
  float* y = d.y;
  for (int64_t row = 0; row < d.rows; ++row) {
    const float* x = d.x + row * d.row_step;
    int64_t left = d.columns;
    depthwise_while<8>(d, x, y, left);
    depthwise_while<4>(d, x, y, left);
    depthwise_while<2>(d, x, y, left);
    depthwise_while<1>(d, x, y, left);
  }
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
