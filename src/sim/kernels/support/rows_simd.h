// Cores that reduce or normalize rows: softmax, layer normalization, sums and maxima. Long sums run in blocks whose totals
// are added in double.
#pragma once

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

// Calls body(first, vector, valid) over a row, the last vector being partial.
template <class T, class Body>
ORKNN_SIMD void for_each_vec(const T* x, int64_t count, Body body) {
  int64_t i = 0;
  for (; i + Vec::kWidth <= count; i += Vec::kWidth) body(i, load(x + i), Vec::kWidth);
  if (i < count) body(i, load_part(x + i, static_cast<int>(count - i)), static_cast<int>(count - i));
}

ORKNN_SIMD float biggest(Vec v, int valid) {
  alignas(64) float values[Vec::kWidth];
  store(values, v);
  float m = values[0];
  for (int i = 1; i < valid; ++i) m = values[i] > m || values[i] != values[i] ? values[i] : m;
  return m;
}

// The largest element; NaN if there is one.
template <class T>
ORKNN_SIMD float row_max(const T* x, int64_t count) {
  const float lowest = -__builtin_inff();
  if (count < Vec::kWidth) return count == 0 ? lowest : biggest(load_part(x, static_cast<int>(count)), static_cast<int>(count));
  const auto join = [](Vec a, Vec b) { return select(is_nan(a), a, max(a, b)); };
  Vec m = load(x);
  int64_t i = Vec::kWidth;
  for (; i + Vec::kWidth <= count; i += Vec::kWidth) m = join(m, load(x + i));
  if (i < count) m = join(m, load(x + count - Vec::kWidth));  // overlapping is harmless
  return biggest(m, Vec::kWidth);
}

// Sum of f(x[i]) as double, in blocks. Whatever the width of a vector, four rows of 16 lanes take the same elements and are added
// in the same order, so that all forms give one result.
template <class T, class F>
ORKNN_SIMD double row_sum(const T* x, int64_t count, F f) {
  constexpr int64_t kBlock = 4096;
  constexpr int kLanes = 16, kVecs = kLanes / Vec::kWidth;
  double total = 0;
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t n = smaller(kBlock, count - start);
    const T* p = x + start;
    Vec s[4][kVecs];
    ORKNN_UNROLL
    for (int k = 0; k < 4 * kVecs; ++k) s[k / kVecs][k % kVecs] = splat(0.0f);
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      ORKNN_UNROLL
      for (int k = 0; k < 4 * kVecs; ++k) s[k / kVecs][k % kVecs] = s[k / kVecs][k % kVecs] + f(load(p + i + k * Vec::kWidth));
    }
    for (; i + kLanes <= n; i += kLanes) {
      ORKNN_UNROLL
      for (int v = 0; v < kVecs; ++v) s[0][v] = s[0][v] + f(load(p + i + v * Vec::kWidth));
    }
    ORKNN_UNROLL
    for (int v = 0; v < kVecs; ++v, i += Vec::kWidth) {
      if (i >= n) break;
      const int rest = static_cast<int>(smaller(n - i, Vec::kWidth));
      alignas(64) float values[Vec::kWidth];
      store(values, f(load_part(p + i, rest)));
      s[1][v] = s[1][v] + load_part(values, rest);
    }
    ORKNN_UNROLL
    for (int v = 0; v < kVecs; ++v) s[0][v] = (s[0][v] + s[1][v]) + (s[2][v] + s[3][v]);
    ORKNN_UNROLL
    for (int w = kVecs / 2; w > 0; w /= 2) {
      ORKNN_UNROLL
      for (int v = 0; v < w; ++v) s[0][v] = s[0][v] + s[0][v + w];
    }
    total += static_cast<double>(sum(s[0][0]));
  }
  return total;
}

template <class T>
static void softmax_rows_of(const T* x, T* y, int64_t rows, int64_t count, bool logarithm, float* buffer) {
  for (int64_t r = 0; r < rows; ++r, x += count, y += count) {
    const float m = row_max(x, count);
    const Vec top = splat(m);
    if (logarithm) {
      const auto total = static_cast<float>(row_sum(x, count, [=](Vec v) { return exp(v - top); }));
      alignas(64) float one[Vec::kWidth];
      store(one, log(splat(total)));
      const Vec shift = splat(one[0]);
      for_each_vec(x, count, [&](int64_t i, Vec v, int valid) { store_up_to(y + i, (v - top) - shift, valid); });
      continue;
    }
    for_each_vec(x, count, [&](int64_t i, Vec v, int valid) { store_up_to(buffer + i, exp(v - top), valid); });
    const Vec scale = splat(static_cast<float>(1.0 / row_sum(buffer, count, [](Vec v) { return v; })));
    for_each_vec(buffer, count, [&](int64_t i, Vec v, int valid) { store_up_to(y + i, v * scale, valid); });
  }
}

static void softmax_rows(const void* x, void* y, Storage storage, int64_t rows, int64_t count, bool logarithm, float* buffer) {
  if (storage == Storage::Half)
    softmax_rows_of(static_cast<const Half*>(x), static_cast<Half*>(y), rows, count, logarithm, buffer);
  else
    softmax_rows_of(static_cast<const float*>(x), static_cast<float*>(y), rows, count, logarithm, buffer);
}

// Softmax down `count` rows of `columns` neighbouring values, row_stride apart.
template <class T>
static void softmax_columns_of(const T* x, T* y, int64_t count, int64_t row_stride, int64_t columns, bool logarithm) {
  for (int64_t c = 0; c < columns; c += Vec::kWidth) {
    const int64_t valid = columns - c;
    Vec top = load_up_to(x + c, valid);
    for (int64_t k = 1; k < count; ++k) {
      const Vec v = load_up_to(x + c + k * row_stride, valid);
      top = select(is_nan(top), top, max(top, v));
    }
    Vec total = splat(0.0f);
    for (int64_t k = 0; k < count; ++k) total = total + exp(load_up_to(x + c + k * row_stride, valid) - top);
    if (logarithm) {
      const Vec shift = log(total);
      for (int64_t k = 0; k < count; ++k)
        store_up_to(y + c + k * row_stride, (load_up_to(x + c + k * row_stride, valid) - top) - shift, valid);
    } else {
      const Vec scale = splat(1.0f) / total;
      for (int64_t k = 0; k < count; ++k)
        store_up_to(y + c + k * row_stride, exp(load_up_to(x + c + k * row_stride, valid) - top) * scale, valid);
    }
  }
}

static void softmax_columns(const void* x, void* y, Storage storage, int64_t count, int64_t row_stride, int64_t columns,
                            bool logarithm) {
  if (storage == Storage::Half)
    softmax_columns_of(static_cast<const Half*>(x), static_cast<Half*>(y), count, row_stride, columns, logarithm);
  else
    softmax_columns_of(static_cast<const float*>(x), static_cast<float*>(y), count, row_stride, columns, logarithm);
}

template <class T>
ORKNN_SIMD Moments moments_of(const T* x, int64_t count, bool centered) {
  const auto n = static_cast<double>(count);
  Moments m;
  if (centered) m.mean = row_sum(x, count, [](Vec v) { return v; }) / n;
  const Vec middle = splat(static_cast<float>(m.mean));
  m.variance = row_sum(x, count, [=](Vec v) { return (v - middle) * (v - middle); }) / n;
  return m;
}
static Moments moments(const void* x, Storage storage, int64_t count) {
  return storage == Storage::Half ? moments_of(static_cast<const Half*>(x), count, true)
                                  : moments_of(static_cast<const float*>(x), count, true);
}

template <class T>
static void shift_scale_of(const T* x, T* y, int64_t count, float shift, float scale, float bias) {
  const Vec middle = splat(shift), factor = splat(scale), offset = splat(bias);
  for_each_vec(x, count, [&](int64_t i, Vec v, int valid) { store_up_to(y + i, fma(v - middle, factor, offset), valid); });
}
static void shift_scale(const void* x, void* y, Storage storage, int64_t count, float shift, float scale, float bias) {
  if (storage == Storage::Half)
    shift_scale_of(static_cast<const Half*>(x), static_cast<Half*>(y), count, shift, scale, bias);
  else
    shift_scale_of(static_cast<const float*>(x), static_cast<float*>(y), count, shift, scale, bias);
}

template <class T>
static void normalize_of(const NormalizeRow& n) {
  const T* x = static_cast<const T*>(n.x);
  T* y = static_cast<T*>(n.y);
  const Moments m = moments_of(x, n.count, n.centered);
  const Vec middle = splat(static_cast<float>(m.mean));
  const Vec factor = splat(static_cast<float>(1.0 / __builtin_sqrt(m.variance + static_cast<double>(n.epsilon))));
  for_each_vec(x, n.count, [&](int64_t i, Vec v, int valid) {
    const Vec offset = n.bias ? load_up_to(n.bias + i, valid) : splat(0.0f);
    store_up_to(y + i, fma((v - middle) * factor, load_up_to(n.scale + i, valid), offset), valid);
  });
}
static void normalize(const NormalizeRow& n) {
  if (n.storage == Storage::Half)
    normalize_of<Half>(n);
  else
    normalize_of<float>(n);
}

template <class T>
static double reduce_row_of(Reduction reduction, const T* x, int64_t count) {
  switch (reduction) {
    case Reduction::Max: return static_cast<double>(row_max(x, count));
    case Reduction::Min: {
      // Through negation, so that NaN is treated alike.
      const float lowest = -__builtin_inff();
      Vec m = splat(lowest);
      for_each_vec(x, count, [&](int64_t, Vec v, int valid) {
        alignas(64) float values[Vec::kWidth];
        store(values, splat(lowest));
        store_part(values, negate(v), valid);
        const Vec w = load(values);
        m = select(is_nan(m), m, max(m, w));
      });
      return -static_cast<double>(biggest(m, Vec::kWidth));
    }
    case Reduction::SumOfSquares: return row_sum(x, count, [](Vec v) { return v * v; });
    case Reduction::SumOfMagnitudes: return row_sum(x, count, [](Vec v) { return abs(v); });
    case Reduction::Sum: break;
  }
  return row_sum(x, count, [](Vec v) { return v; });
}

static double reduce_row(Reduction reduction, const void* x, Storage storage, int64_t count) {
  return storage == Storage::Half ? reduce_row_of(reduction, static_cast<const Half*>(x), count)
                                  : reduce_row_of(reduction, static_cast<const float*>(x), count);
}

template <class T>
static void reduce_columns_of(Reduction reduction, const T* x, int64_t rows, int64_t row_stride, int64_t columns, float* y) {
  const auto down = [&](auto first, auto join) {
    for (int64_t c = 0; c < columns; c += Vec::kWidth) {
      const int64_t valid = columns - c;
      Vec v = first(load_up_to(x + c, valid));
      for (int64_t r = 1; r < rows; ++r) v = join(v, load_up_to(x + c + r * row_stride, valid));
      store_up_to(y + c, v, valid);
    }
  };
  switch (reduction) {
    case Reduction::Max: return down([](Vec v) { return v; }, [](Vec a, Vec b) { return select(is_nan(a), a, max(a, b)); });
    case Reduction::Min: return down([](Vec v) { return v; }, [](Vec a, Vec b) { return select(is_nan(a), a, min(a, b)); });
    case Reduction::SumOfSquares: return down([](Vec v) { return v * v; }, [](Vec a, Vec b) { return fma(b, b, a); });
    case Reduction::SumOfMagnitudes: return down([](Vec v) { return abs(v); }, [](Vec a, Vec b) { return a + abs(b); });
    case Reduction::Sum: return down([](Vec v) { return v; }, [](Vec a, Vec b) { return a + b; });
  }
}

static void reduce_columns(Reduction reduction, const void* x, Storage storage, int64_t rows, int64_t row_stride, int64_t columns,
                           float* y) {
  if (storage == Storage::Half)
    reduce_columns_of(reduction, static_cast<const Half*>(x), rows, row_stride, columns, y);
  else
    reduce_columns_of(reduction, static_cast<const float*>(x), rows, row_stride, columns, y);
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
