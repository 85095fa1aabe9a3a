#include "silicon/sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orknn::silicon {
namespace {
void windows_plain(const ProductRow& row, const int16_t* first, int64_t windows, int32_t* sums) {
  for (int64_t p = 0; p < windows; ++p, first += row.step, sums += kSumLanes) {
    uint32_t total[kSumLanes] = {};
    const int16_t* w = row.weights;
    for (const int64_t tap : row.taps)
      for (int64_t c = 0; c < row.channels; c += 2, w += 2 * kSumLanes) {
        const int32_t a = first[tap + c], b = first[tap + c + 1];
        for (int64_t k = 0; k < kSumLanes; ++k) total[k] += static_cast<uint32_t>(a * w[2 * k] + b * w[2 * k + 1]);
      }
    std::memcpy(sums, total, sizeof total);
  }
}

#if defined(__x86_64__)
// kWindows windows at once; the sums of 32 kernels each stay in registers.
template <int kWindows>
__attribute__((target("avx2"))) void windows_avx2(const ProductRow& row, const int16_t* first, int32_t* sums) {
  __m256i total[kWindows][4];
  for (auto& window : total)
    for (__m256i& t : window) t = _mm256_setzero_si256();
  const auto* w = reinterpret_cast<const __m256i*>(row.weights);
  for (const int64_t tap : row.taps)
    for (int64_t c = 0; c < row.channels; c += 2, w += 4) {
      const __m256i w0 = _mm256_loadu_si256(w), w1 = _mm256_loadu_si256(w + 1), w2 = _mm256_loadu_si256(w + 2),
                    w3 = _mm256_loadu_si256(w + 3);
      for (int p = 0; p < kWindows; ++p) {
        int32_t pair;
        std::memcpy(&pair, first + p * row.step + tap + c, sizeof pair);
        const __m256i x = _mm256_set1_epi32(pair);
        total[p][0] = _mm256_add_epi32(total[p][0], _mm256_madd_epi16(x, w0));
        total[p][1] = _mm256_add_epi32(total[p][1], _mm256_madd_epi16(x, w1));
        total[p][2] = _mm256_add_epi32(total[p][2], _mm256_madd_epi16(x, w2));
        total[p][3] = _mm256_add_epi32(total[p][3], _mm256_madd_epi16(x, w3));
      }
    }
  for (int p = 0; p < kWindows; ++p)
    for (int i = 0; i < 4; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + p * kSumLanes) + i, total[p][i]);
}

bool has_avx2() {
  static const bool yes = __builtin_cpu_supports("avx2");
  return yes;
}
#endif

// Rounds to the neighbour whose last bit is one unless `high` is exact: rounding once more to float is then correct.
double to_odd(double high, double rest) {
  if (rest == 0 || (std::bit_cast<uint64_t>(high) & 1)) return high;
  return std::nextafter(high, rest > 0 ? INFINITY : -INFINITY);
}

// Errors of additions are kept in a second sum. Both are exact: products have 22 bits from 2^-48 on, at most 32 are added.
[[gnu::always_inline]] inline void half_window_body(const HalfWindow& window, float* sums) {
  for (int64_t k = 0; k < kHalfLanes; ++k) sums[k] = 0;
  const float* w = window.weights;
  for (int64_t slice = 0; slice < window.channels; slice += kHalfSlice) {
    const int64_t count = std::min(kHalfSlice, window.channels - slice);
    for (const int64_t tap : window.taps) {
      double sum[kHalfLanes] = {}, rest[kHalfLanes] = {};
      const float* x = window.first + tap + slice;
      for (int64_t c = 0; c < count; ++c, w += kHalfLanes) {
        const double value = x[c];
        for (int64_t k = 0; k < kHalfLanes; ++k) {
          const double product = value * static_cast<double>(w[k]), next = sum[k] + product, part = next - sum[k];
          rest[k] += (sum[k] - (next - part)) + (product - part);
          sum[k] = next;
        }
      }
      for (int64_t k = 0; k < kHalfLanes; ++k) {
        const double high = sum[k] + rest[k], low = rest[k] - (high - sum[k]);
        sums[k] += static_cast<float>(std::isfinite(sum[k]) ? to_odd(high, low) : sum[k]);
      }
    }
  }
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) void half_window_avx2(const HalfWindow& window, float* sums) { half_window_body(window, sums); }
#endif
}  // namespace

void product_row(const ProductRow& row, int64_t windows, int32_t* sums) {
#if defined(__x86_64__)
  if (has_avx2()) {
    int64_t p = 0;
    for (; p + 2 <= windows; p += 2) windows_avx2<2>(row, row.first + p * row.step, sums + p * kSumLanes);
    if (p < windows) windows_avx2<1>(row, row.first + p * row.step, sums + p * kSumLanes);
    return;
  }
#endif
  windows_plain(row, row.first, windows, sums);
}

void half_window(const HalfWindow& window, float* sums) {
#if defined(__x86_64__)
  if (has_avx2()) return half_window_avx2(window, sums);
#endif
  half_window_body(window, sums);
}

}  // namespace orknn::silicon
