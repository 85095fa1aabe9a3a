// What moves feature maps in blocks: Concat and Split of channels where no block is divided, and nearest Resize.
#include <algorithm>
#include <cstring>

#include "ops/support/resampling.h"
#include "sim/kernels/support/blocked.h"
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
void copy_part(const std::byte* from, std::byte* to, std::span<const int64_t> part, std::span<const int64_t> whole, int64_t first,
               bool joins, ThreadPool& pool) {
  const int64_t plane = whole[2] * whole[3] * kBlock, bytes = blocks_of(part[1]) * plane;
  for (int64_t image = 0; image < whole[0]; ++image) {
    const int64_t of_whole = (image * blocks_of(whole[1]) + first) * plane, of_part = image * bytes;
    const std::byte* source = from + (joins ? of_part : of_whole);
    std::byte* target = to + (joins ? of_whole : of_part);
    pool.parallel_for(bytes, 8 * kGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
    });
  }
}

Status run_concat(KernelContext& c, const KernelState*) {
  int64_t first = 0;
  for (const ir::TensorView& x : c.inputs) {
    copy_part(static_cast<const std::byte*>(x.data), static_cast<std::byte*>(c.outputs[0].data), x.dims, c.outputs[0].dims, first,
              true, c.pool);
    first += blocks_of(x.dims[1]);
  }
  return {};
}

Status run_split(KernelContext& c, const KernelState*) {
  int64_t first = 0;
  for (const ir::MutableTensorView& y : c.outputs) {
    copy_part(static_cast<const std::byte*>(c.inputs[0].data), static_cast<std::byte*>(y.data), y.dims, c.inputs[0].dims, first,
              false, c.pool);
    first += blocks_of(y.dims[1]);
  }
  return {};
}

struct NearestState : KernelState {
  std::vector<int64_t> rows, columns;  // source of each one of the result
};

std::unique_ptr<NearestState> plan_nearest(const KernelQuery& q) {
  if (q.node.op != "Resize" || !q.node.tail.empty() || !in_blocks(q.inputs[0]) || q.outputs[0].dtype != q.inputs[0].dtype)
    return nullptr;
  ops::ResizeInputs inputs;
  for (size_t i = 1; i < q.inputs.size(); ++i) {
    if (!q.inputs[i].exists()) continue;
    if (!q.inputs[i].constant) return nullptr;
    (i == 1 ? inputs.roi : i == 2 ? inputs.scales : inputs.sizes) = q.inputs[i].constant->view();
  }
  const ir::Dims &x = q.inputs[0].dims, &y = q.outputs[0].dims;
  const auto resize = ops::plan_resize(q.attributes(), x, inputs);
  if (!resize || resize->mode != ops::ResizeMode::Nearest || resize->coordinates == ops::ResizeCoordinates::CropAndResize ||
      resize->dims != y || x[0] != y[0] || x[1] != y[1])
    return nullptr;
  auto s = std::make_unique<NearestState>();
  for (int64_t i = 0; i < y[2]; ++i) s->rows.push_back(i);
  for (int64_t i = 0; i < y[3]; ++i) s->columns.push_back(i);
  const std::string& mode = q.attributes().get_string("nearest_mode");
  for (const ops::ResizeAxis& axis : resize->axes) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < axis.to; ++i)
      positions.push_back(ops::nearest_position(mode, ops::source_coordinate(resize->coordinates, axis, i), axis.from));
    if (axis.axis >= 2)
      (axis.axis == 2 ? s->rows : s->columns) = std::move(positions);
    else if (!std::ranges::is_sorted(positions, std::ranges::less_equal{}))  // some element twice
      return nullptr;
  }
  return s;
}

bool accepts_nearest(const KernelQuery& q) { return plan_nearest(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_nearest(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_nearest(q));
}

Status run_nearest(KernelContext& c, const KernelState* state) {
  const auto& s = *static_cast<const NearestState*>(state);
  const ir::TensorView& x = c.inputs[0];
  const ir::MutableTensorView& y = c.outputs[0];
  const int64_t width = y.dims[3] * kBlock, in_width = x.dims[3] * kBlock, rows = blocked_bytes(y.dims) / width;
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
        std::memcpy(to + static_cast<int64_t>(i) * kBlock, from + s.columns[i] * kBlock, kBlock);
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
