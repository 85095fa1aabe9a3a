#include "peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace orknn::bench {
namespace {
using sim::kernels::Isa;

// Sums that are independent of each other: as many as hide the time an instruction takes.
constexpr int kSums = 12;

// A loop and what one of its rounds multiplies.
struct Loop {
  void (*run)(int64_t rounds) = nullptr;
  double macs = 0;
};

// The statement adds to `sum` from `x` and `y`, which the compiler takes for
// changed every time.
#define ORKNN_PEAK_LOOP(name, attributes, type, constraint, statement)                                   \
  attributes void name(int64_t rounds) {                                                                 \
    type sums[kSums] = {}, x = {}, y = {};                                                               \
    for (; rounds > 0; --rounds) {                                                                       \
      _Pragma("GCC unroll 16") for (int i = 0; i < kSums; ++i) {                                         \
        type& sum = sums[i];                                                                             \
        asm volatile("" : "+" constraint(sum), "+" constraint(x), "+" constraint(y));                    \
        statement;                                                                                       \
      }                                                                                                  \
    }                                                                                                    \
    _Pragma("GCC unroll 16") for (int i = 0; i < kSums; ++i) asm volatile("" : "+" constraint(sums[i])); \
  }

#if defined(__x86_64__)
#define ORKNN_PEAK_TARGET(text) __attribute__((target(text)))
ORKNN_PEAK_LOOP(floats_avx2, ORKNN_PEAK_TARGET("avx2,fma"), __m256, "x", sum = _mm256_fmadd_ps(x, y, sum))
ORKNN_PEAK_LOOP(floats_avx512, ORKNN_PEAK_TARGET("avx512f"), __m512, "v", sum = _mm512_fmadd_ps(x, y, sum))
// As IntForms::blocked_pairs has it: two additions and a product for two of words.
ORKNN_PEAK_LOOP(pairs_avx2, ORKNN_PEAK_TARGET("avx2"), __m256i, "x",
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(x, y), _mm256_sub_epi16(x, y))))
ORKNN_PEAK_LOOP(words_avx512, ORKNN_PEAK_TARGET("avx512f,avx512bw"), __m512i, "v",
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(x, y)))
ORKNN_PEAK_LOOP(bytes_vnni, ORKNN_PEAK_TARGET("avx512f,avx512vnni"), __m512i, "v", sum = _mm512_dpbusd_epi32(sum, x, y))

Loop find_loop(Isa isa, bool integer) {
  switch (isa) {
    case Isa::Avx2: return integer ? Loop{pairs_avx2, 32} : Loop{floats_avx2, 8};
    case Isa::Avx512: return integer ? Loop{words_avx512, 32} : Loop{floats_avx512, 16};
    case Isa::Avx512Vnni: return integer ? Loop{bytes_vnni, 64} : Loop{floats_avx512, 16};
    default: return {};
  }
}
#elif defined(__aarch64__)
#define ORKNN_PEAK_TARGET(text) __attribute__((target(text)))
ORKNN_PEAK_LOOP(floats_neon, , float32x4_t, "w", sum = vfmaq_f32(sum, x, y))
ORKNN_PEAK_LOOP(words_neon, , int32x4_t, "w",
                sum = vmlal_s16(sum, vget_low_s16(vreinterpretq_s16_s32(x)), vget_low_s16(vreinterpretq_s16_s32(y))))
ORKNN_PEAK_LOOP(bytes_dot, ORKNN_PEAK_TARGET("arch=armv8.2-a+dotprod"), int32x4_t, "w",
                sum = vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y)))
ORKNN_PEAK_LOOP(bytes_i8mm, ORKNN_PEAK_TARGET("arch=armv8.2-a+i8mm"), int32x4_t, "w",
                sum = vusmmlaq_s32(sum, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(y)))

Loop find_loop(Isa isa, bool integer) {
  if (!integer) return isa == Isa::Portable ? Loop{} : Loop{floats_neon, 4};
  switch (isa) {
    case Isa::Neon: return {words_neon, 4};
    case Isa::NeonDot: return {bytes_dot, 16};
    case Isa::NeonI8mm: return {bytes_i8mm, 32};
    default: return {};
  }
}
#else
Loop find_loop(Isa, bool) { return {}; }
#endif
}  // namespace

double register_peak(Isa isa, bool integer) {
  const Loop loop = find_loop(isa, integer);
  if (!loop.run) return 0;
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kRounds = 20'000;
  double best = 0;
  for (int i = 0; i < 30; ++i) {
    const Clock::time_point start = Clock::now();
    loop.run(kRounds);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, static_cast<double>(kRounds * kSums) * loop.macs / seconds.count());
  }
  return best;
}

}  // namespace orknn::bench
