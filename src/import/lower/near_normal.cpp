#include "import/lower/near_normal.h"

#include <cmath>

namespace orknn::importer {

ir::TensorData near_normal(uint64_t seed, double mean, double deviation, ir::Dims dims) {
  uint64_t state = seed;
  const auto next = [&state] {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  ir::TensorData data = ir::TensorData::allocate(DType::Float32, std::move(dims));
  float* values = static_cast<float*>(data.mutable_data());
  // Four 16-bit uniforms add up to a near normal of variance 1/3: exact in every libm, unlike Box-Muller.
  const float scale = static_cast<float>(deviation * std::sqrt(3.0) / 65536.0), shift = static_cast<float>(mean);
  for (int64_t i = 0, n = data.count(); i < n; ++i) {
    const uint64_t bits = next();
    const int64_t sum = static_cast<int64_t>(bits & 0xffff) + static_cast<int64_t>((bits >> 16) & 0xffff) +
                        static_cast<int64_t>((bits >> 32) & 0xffff) + static_cast<int64_t>(bits >> 48);
    values[i] = static_cast<float>(sum - 2 * 65535) * scale + shift;
  }
  return data;
}

}  // namespace orknn::importer
