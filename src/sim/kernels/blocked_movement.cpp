// What moves feature maps in blocks: Concat and Split of channels where no block is divided, and nearest Resize.
#include <algorithm>
#include <cstring>

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/nearest.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 15;  // bytes per piece of work

// The channels of `parts` one after the other are those of `whole`, and all but the last part end where a block ends.
bool divides_channels(const KernelQuery& q, std::span<const OperandFacts> parts, const OperandFacts& whole) {
  if (!q.node.tail.empty() || whole.dims.size() != 4 || !in_blocks(whole)) return false;
  const auto axis = ir::normalize_axis(q.attributes().get_int("axis"), 4);
  if (!axis || *axis != 1) return false;
  int64_t channels = 0;
  for (const OperandFacts& o : parts) {
    if (!o.exists() || !in_blocks(o) || o.dtype != whole.dtype || channels % kBlock != 0) return false;
    channels += o.dims[1];
  }
  return channels == whole.dims[1];
}

bool accepts_concat(const KernelQuery& q) { return q.node.op == "Concat" && divides_channels(q, q.inputs, q.outputs[0]); }
bool accepts_split(const KernelQuery& q) { return q.node.op == "Split" && divides_channels(q, q.outputs, q.inputs[0]); }

// Copies between `whole` and a part whose first block is `first`.
void copy_part(const std::byte* from, std::byte* to, DType dtype, std::span<const int64_t> part, std::span<const int64_t> whole,
               int64_t first, bool joins, ThreadPool& pool) {
  const int64_t area = whole[2] * whole[3], blocks = blocks_of(part[1]);
  const int64_t pixel_bytes = kBlock * static_cast<int64_t>(dtype_bytes(dtype));
  for_each_part(part, pool, [&](int64_t plane, int64_t pixel, int64_t pixels) {
    const int64_t other = plane / blocks * blocks_of(whole[1]) + first + plane % blocks;
    const int64_t of_whole = (other * area + pixel) * pixel_bytes, of_part = (plane * area + pixel) * pixel_bytes;
    std::memcpy(to + (joins ? of_whole : of_part), from + (joins ? of_part : of_whole),
                static_cast<size_t>(pixels * pixel_bytes));
  });
}

Status run_concat(KernelContext& c, const KernelState*) {
  int64_t first = 0;
  for (const ir::TensorView& x : c.inputs) {
    copy_part(static_cast<const std::byte*>(x.data), static_cast<std::byte*>(c.outputs[0].data), x.dtype, x.dims,
              c.outputs[0].dims, first, true, c.pool);
    first += blocks_of(x.dims[1]);
  }
  return {};
}

Status run_split(KernelContext& c, const KernelState*) {
  int64_t first = 0;
  for (const ir::MutableTensorView& y : c.outputs) {
    copy_part(static_cast<const std::byte*>(c.inputs[0].data), static_cast<std::byte*>(y.data), y.dtype, y.dims, c.inputs[0].dims,
              first, false, c.pool);
    first += blocks_of(y.dims[1]);
  }
  return {};
}

struct NearestState : KernelState {
  NearestPixels pixels;
};

bool accepts_nearest(const KernelQuery& q) { return nearest_pixels(q).has_value() && in_blocks(q.inputs[0]); }
Result<std::unique_ptr<const KernelState>> prepare_nearest(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<NearestState>();
  s->pixels = *nearest_pixels(q);
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run_nearest(KernelContext& c, const KernelState* state) {
  const NearestPixels& s = static_cast<const NearestState*>(state)->pixels;
  const ir::TensorView& x = c.inputs[0];
  const ir::MutableTensorView& y = c.outputs[0];
  const int64_t pixel = kBlock * static_cast<int64_t>(dtype_bytes(y.dtype)), width = y.dims[3] * pixel,
                in_width = x.dims[3] * pixel, rows = blocked_bytes(y.dtype, y.dims) / width;
  c.pool.parallel_for(rows, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / y.dims[2], at = row % y.dims[2];
      const auto* from = static_cast<const std::byte*>(x.data) + (plane * x.dims[2] + s.rows[static_cast<size_t>(at)]) * in_width;
      auto* to = static_cast<std::byte*>(y.data) + row * width;
      if (row > begin && at > 0 && s.rows[static_cast<size_t>(at)] == s.rows[static_cast<size_t>(at - 1)]) {
        std::memcpy(to, to - width, static_cast<size_t>(width));
        continue;
      }
      for (size_t i = 0; i < s.columns.size(); ++i)
        std::memcpy(to + static_cast<int64_t>(i) * pixel, from + s.columns[i] * pixel, static_cast<size_t>(pixel));
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> blocked_movement() {
  static const Kernel kernels[] = {{"blocked_concat", accepts_concat, nullptr, run_concat, Blocks::Continue},
                                   {"blocked_split", accepts_split, nullptr, run_split, Blocks::Continue},
                                   {"blocked_nearest", accepts_nearest, prepare_nearest, run_nearest, Blocks::Continue}};
  return kernels;
}

}  // namespace orknn::sim
