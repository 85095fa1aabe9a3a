// Deterministic random numbers: a counter-based generator, so that element i of a tensor depends on the seed and on i alone.
#pragma once

#include <cmath>
#include <cstdint>

namespace orknn::ops {

class Random {
 public:
  explicit Random(uint64_t seed) : key_(mix(seed + 0x9e3779b97f4a7c15u)) {}

  // 64 uniform bits for place `index`.
  uint64_t bits(uint64_t index) const { return mix(key_ ^ mix(index * 0xbf58476d1ce4e5b9u + 0x94d049bb133111ebu)); }
  // Uniform in [0, 1).
  double uniform(uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }
  // Standard normal (Box-Muller).
  double normal(uint64_t index) const {
    const double u = 1 - uniform(2 * index), v = uniform(2 * index + 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586476925 * v);
  }

 private:
  // Two rounds of xor-shift and multiply with odd constants: every input bit reaches every output bit.
  static constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t key_;
};

}  // namespace orknn::ops
