#include "silicon/pooling.h"

#include <array>
#include <limits>

#include "base/half.h"
#include "ops/support/requantize.h"
#include "silicon/geometry.h"

namespace orknn::silicon {
namespace {
struct Window {
  int64_t top, bottom, left, right;  // in the input, not yet cut at its borders
  int64_t padded(const PoolTask& p) const {
    const int64_t inside =
        (std::min(bottom, p.height) - std::max<int64_t>(top, 0)) * (std::min(right, p.width) - std::max<int64_t>(left, 0));
    return p.kernel_width * p.kernel_height - inside;
  }
};

template <class Visit>
void for_each_inside(const PoolTask& p, const Window& w, const std::byte* plane, Visit&& visit) {
  for (int64_t y = std::max<int64_t>(w.top, 0); y < std::min(w.bottom, p.height); ++y)
    for (int64_t x = std::max<int64_t>(w.left, 0); x < std::min(w.right, p.width); ++x)
      visit(plane + y * p.line_bytes + x * kAtomBytes);
}

void pool_int8(const PoolTask& p, const Window& w, const std::byte* plane, std::byte* out) {
  const auto pad = static_cast<int8_t>(p.pad_value);
  const int64_t padded = w.padded(p);
  auto* result = reinterpret_cast<int8_t*>(out);
  if (p.method == PoolTask::Method::Average) {
    std::array<int32_t, 16> sum;
    sum.fill(static_cast<int32_t>(padded * pad));
    for_each_inside(p, w, plane, [&](const std::byte* atom) {
      for (size_t i = 0; i < 16; ++i) sum[i] += reinterpret_cast<const int8_t*>(atom)[i];
    });
    const std::array extents{p.kernel_width, p.kernel_height};
    const bool even = ops::is_power_of_two_window(extents);
    for (size_t i = 0; i < 16; ++i)
      result[i] = static_cast<int8_t>(ops::window_mean(sum[i], p.kernel_width * p.kernel_height, even));
    return;
  }
  const bool max = p.method == PoolTask::Method::Max;
  std::array<int8_t, 16> best;
  best.fill(padded > 0 ? pad : max ? INT8_MIN : INT8_MAX);
  for_each_inside(p, w, plane, [&](const std::byte* atom) {
    const auto* v = reinterpret_cast<const int8_t*>(atom);
    for (size_t i = 0; i < 16; ++i) best[i] = max ? std::max(best[i], v[i]) : std::min(best[i], v[i]);
  });
  std::copy(best.begin(), best.end(), result);
}

void pool_half(const PoolTask& p, const Window& w, const std::byte* plane, std::byte* out) {
  const float pad = half_to_float(static_cast<uint16_t>(p.pad_value));
  const int64_t padded = w.padded(p);
  const bool average = p.method == PoolTask::Method::Average, max = p.method == PoolTask::Method::Max;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::array<float, 8> value;
  value.fill(average ? static_cast<float>(padded) * pad : padded > 0 ? pad : max ? -kInfinity : kInfinity);
  for_each_inside(p, w, plane, [&](const std::byte* atom) {
    const auto* v = reinterpret_cast<const uint16_t*>(atom);
    for (size_t i = 0; i < 8; ++i) {
      const float x = half_to_float(v[i]);
      value[i] = average ? value[i] + x : max ? std::max(value[i], x) : std::min(value[i], x);
    }
  });
  const float scale = average ? half_to_float(static_cast<uint16_t>(p.reciprocal_width)) / 65536.0f *
                                    (half_to_float(static_cast<uint16_t>(p.reciprocal_height)) / 65536.0f)
                              : 1.0f;
  for (size_t i = 0; i < 8; ++i) reinterpret_cast<uint16_t*>(out)[i] = float_to_half(value[i] * scale);
}
}  // namespace

Status run_pooling(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool) {
  const PoolTask p = pool_task(task.registers);
  ORKNN_TRY_ASSIGN(const std::byte* from, memory.at(p.source, static_cast<uint64_t>(p.source_bytes()), "the input"));
  ORKNN_TRY_ASSIGN(std::byte * to, memory.writable_at(p.destination, static_cast<uint64_t>(p.destination_bytes()), "the output"));
  pool.parallel_for(p.planes() * p.out_height, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / p.out_height, y = row % p.out_height;
      for (int64_t x = 0; x < p.out_width; ++x) {
        const int64_t top = y * p.stride_y - p.top, left = x * p.stride_x - p.left;
        const Window w{top, top + p.kernel_height, left, left + p.kernel_width};
        std::byte* out = to + plane * p.out_plane_bytes + (y * p.out_width + x) * kAtomBytes;
        (p.precision == Precision::Half ? pool_half : pool_int8)(p, w, from + plane * p.plane_bytes, out);
      }
    }
  });
  return {};
}

}  // namespace orknn::silicon
