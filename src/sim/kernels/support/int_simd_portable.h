// Integer vectors of the portable form: four int32 lanes, by the compiler.
#pragma once

#define ORKNN_INT_FORM int_portable
#define ORKNN_INT_PORTABLE

#include <cstring>

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels::int_portable {

typedef int32_t Lanes4 __attribute__((vector_size(16)));
typedef uint32_t Unsigned4 __attribute__((vector_size(16)));
struct I32 {
  Lanes4 v;
};
constexpr int64_t kLanes = 4;
constexpr int kTileRows = 4, kTileVectors = 2;
constexpr int kProductBlocks = 1, kBlockPixels = 2;
constexpr bool kHasBytes = false;

ORKNN_SIMD I32 zero32() { return {Lanes4{}}; }
ORKNN_SIMD I32 load32(const void* from) {
  I32 r;
  std::memcpy(&r.v, from, sizeof r.v);
  return r;
}
ORKNN_SIMD void store32(int32_t* to, I32 value) { std::memcpy(to, &value.v, sizeof value.v); }
ORKNN_SIMD I32 all32(int32_t value) { return {Lanes4{value, value, value, value}}; }
ORKNN_SIMD I32 add(I32 a, I32 b) { return {(Lanes4)((Unsigned4)a.v + (Unsigned4)b.v)}; }
ORKNN_SIMD I32 multiply(I32 a, I32 b) { return {(Lanes4)((Unsigned4)a.v * (Unsigned4)b.v)}; }
// Products of the low and of the high words; sums of two fit 32 bits except for wrapping.
template <Dot kDot>
ORKNN_SIMD I32 dot(I32 sum, I32 a, I32 b) {
  const Lanes4 low_a = (a.v << 16) >> 16, high_a = a.v >> 16, low_b = (b.v << 16) >> 16, high_b = b.v >> 16;
  return {(Lanes4)((Unsigned4)sum.v + (Unsigned4)(low_a * low_b) + (Unsigned4)(high_a * high_b))};
}

// Two pixels of a block that are `step` bytes apart as dwords of words.
template <Dot kDot>
ORKNN_SIMD void load_taps(const uint8_t* from, int64_t step, I32 (&to)[4]) {
  for (int part = 0; part < 4; ++part, from += 4)
    to[part].v = Lanes4{from[0] | from[step] << 16, from[1] | from[step + 1] << 16, from[2] | from[step + 2] << 16,
                        from[3] | from[step + 3] << 16};
}

}  // namespace orknn::sim::kernels::int_portable
