// Weighted sums that make a resampled axis: of neighbours picked out of a row, and of whole rows.
#pragma once

#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

static void resample_row(const ResampleRow& r) {
  for (int64_t c = 0; c < r.columns; c += Vec::kWidth) {
    Vec sum = load(r.weights + c) * gather(r.x, r.positions + c);
    for (int64_t k = 1; k < r.width; ++k)
      sum = fma(load(r.weights + k * r.columns + c), gather(r.x, r.positions + k * r.columns + c), sum);
    store(r.y + c, sum);
  }
}

template <class T>
ORKNN_SIMD void weigh_rows_to(const float* x, const int64_t* offsets, const float* weights, int64_t count, T* y,
                              int64_t columns) {
  for (int64_t c = 0; c < columns; c += Vec::kWidth) {
    Vec sum = splat(weights[0]) * load(x + offsets[0] + c);
    for (int64_t k = 1; k < count; ++k) sum = fma(splat(weights[k]), load(x + offsets[k] + c), sum);
    store_up_to(y + c, sum, columns - c);
  }
}
static void weigh_rows(const float* x, const int64_t* offsets, const float* weights, int64_t count, void* y, Storage storage,
                       int64_t columns) {
  if (storage == Storage::Half)
    weigh_rows_to(x, offsets, weights, count, static_cast<Half*>(y), columns);
  else
    weigh_rows_to(x, offsets, weights, count, static_cast<float*>(y), columns);
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
