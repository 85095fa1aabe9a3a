// What else float maps in blocks meet between convolutions: element-wise functions, pools and means of planes.
#include "sim/kernels/support/float_maps.h"

#include <algorithm>
#include <cstring>

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kChunk = 64;       // pixels that go through all steps while in the first-level cache
constexpr int64_t kGrain = 1 << 11;  // pixels per piece of work

bool is_map(const OperandFacts& o) { return o.dtype == DType::Float32 && in_blocks(o); }

// --- element-wise

struct ElementState : KernelState {
  size_t mapped = 0;  // the input that has the result's shape
  BlockedSteps steps;
};

std::unique_ptr<ElementState> plan_elements(const KernelQuery& q) {
  const size_t count = q.node.own_input_count();
  if (count < 1 || count > 2 || !is_map(q.outputs[0]) || q.outputs.size() != 1) return nullptr;
  auto s = std::make_unique<ElementState>();
  const auto whole = [&](size_t i) {
    return is_map(q.inputs[i]) && !q.inputs[i].constant && q.inputs[i].dims == q.outputs[0].dims;
  };
  if (!whole(0)) s->mapped = count - 1;
  if (!whole(s->mapped)) return nullptr;
  if (count == 1) {
    const std::optional<Step> function = unary_step(q.node.op, q.node.attributes);
    if (!function) return nullptr;
    s->steps.append(*function);
  } else {
    const std::optional<Fn> fn = binary_function(q.node.op, s->mapped == 1);
    if (!fn || !s->steps.append(q, *fn, 1 - s->mapped)) return nullptr;
  }
  return s->steps.append_tail(q) ? std::move(s) : nullptr;
}

bool accepts_elements(const KernelQuery& q) { return plan_elements(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_elements(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_elements(q));
}

Status run_elements(KernelContext& c, const KernelState* state) {
  const auto& s = *static_cast<const ElementState*>(state);
  const Forms& f = forms();
  const std::span<const int64_t> dims = c.outputs[0].dims;
  const int64_t area = dims[2] * dims[3], blocks = blocks_of(dims[1]), parts = divide_up(area, kChunk);
  const auto* x = c.inputs[s.mapped].as<float>();
  auto* y = c.outputs[0].as<float>();
  c.pool.parallel_for(dims[0] * blocks * parts, std::max<int64_t>(1, kGrain / std::min(area, kChunk)),
                      [&](int64_t begin, int64_t end) {
                        // The result may lie where an operand does.
                        alignas(64) float values[kChunk * kBlock];
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t plane = i / parts, pixel = i % parts * kChunk, pixels = std::min(kChunk, area - pixel);
                          const auto bytes = static_cast<size_t>(pixels * kBlock) * sizeof(float);
                          const StepList steps = s.steps.bind(c.inputs, plane / blocks);
                          std::memcpy(values, x + (plane * area + pixel) * kBlock, bytes);
                          f.apply_steps(values, kBlock, pixels, kBlock, steps.data(), static_cast<int64_t>(steps.size()),
                                        plane % blocks, pixel, 0);
                          std::memcpy(y + (plane * area + pixel) * kBlock, values, bytes);
                        }
                      });
  return {};
}

// --- pools

struct PoolState : KernelState {
  Window window;
  bool average = false, with_padding = false;
};

std::optional<Window> pool_window(const KernelQuery& q) {
  if ((q.node.op != "MaxPool" && q.node.op != "AveragePool") || !q.node.tail.empty() || !is_map(q.inputs[0]) ||
      !is_map(q.outputs[0]) || (q.outputs.size() > 1 && q.outputs[1].exists()))
    return std::nullopt;
  const std::optional<Window> w = window_of(q.attributes(), q.inputs[0].dims, q.outputs[0].dims, {});
  return w && w->fits_int32() && !w->cuts_input() ? w : std::nullopt;
}

bool accepts_pool(const KernelQuery& q) { return pool_window(q).has_value(); }
Result<std::unique_ptr<const KernelState>> prepare_pool(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<PoolState>();
  s->window = *pool_window(q);
  s->average = q.node.op == "AveragePool";
  s->with_padding = q.node.attributes.int_or("count_include_pad", 0) != 0;
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Positions of a window along an axis: of all, the first and the number of those inside the input; and how many count.
struct Positions {
  int64_t first = 0, inside = 0, counted = 0;
};
Positions positions(const PoolState& s, size_t axis, int64_t at) {
  const Window& w = s.window;
  const int64_t start = at * w.stride[axis] - w.pad_begin[axis], step = w.dilation[axis];
  const auto before = [&](int64_t limit) {  // positions below the limit
    return std::clamp<int64_t>(divide_up(std::max<int64_t>(limit - start, 0), step), 0, w.kernel[axis]);
  };
  Positions p;
  p.first = before(0);
  p.inside = before(w.in[axis]) - p.first;
  p.counted = s.with_padding ? before(w.in[axis] + w.pad_end[axis]) : p.inside;
  return p;
}

Status run_pool(KernelContext& c, const KernelState* state) {
  const auto& s = *static_cast<const PoolState*>(state);
  const Window& w = s.window;
  const Forms& f = forms();
  const int64_t planes = c.outputs[0].dims[0] * blocks_of(c.outputs[0].dims[1]);
  c.pool.parallel_for(planes * w.out[1], std::max<int64_t>(1, kGrain / (w.out[2] * w.taps())), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / w.out[1], row = i % w.out[1];
      const Positions down = positions(s, 1, row);
      const float* x = c.inputs[0].as<float>() +
                       (plane * w.in[1] + row * w.stride[1] - w.pad_begin[1] + down.first * w.dilation[1]) * w.in[2] * kBlock;
      PoolPixel p;
      p.average = s.average;
      p.row_step = w.dilation[1] * w.in[2] * kBlock;
      p.column_step = w.dilation[2] * kBlock;
      p.rows = down.inside;
      p.y = c.outputs[0].as<float>() + i * w.out[2] * kBlock;
      for (int64_t column = 0; column < w.out[2]; ++column, p.y += kBlock) {
        const Positions across = positions(s, 2, column);
        p.x = x + (column * w.stride[2] - w.pad_begin[2] + across.first * w.dilation[2]) * kBlock;
        p.columns = across.inside;
        p.begins = down.first == 0 && across.first == 0 && down.inside > 0 && across.inside > 0;
        p.count = static_cast<float>(down.counted) * static_cast<float>(across.counted);
        f.pool_pixel(p);
      }
    }
  });
  return {};
}

// --- means of planes

bool accepts_mean(const KernelQuery& q) {
  if ((q.node.op != "GlobalAveragePool" && q.node.op != "ReduceMean") || !q.node.tail.empty() || !is_map(q.inputs[0]) ||
      !is_map(q.outputs[0]))
    return false;
  const ir::Dims &x = q.inputs[0].dims, &y = q.outputs[0].dims;
  if (q.node.op == "ReduceMean") {
    if (!q.node.has_input(1) || !q.inputs[1].constant) return false;
    std::vector<int64_t> axes = ir::to_ints(q.inputs[1].constant->view());
    for (int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
    std::ranges::sort(axes);
    if (axes != std::vector<int64_t>{2, 3}) return false;
  }
  return y == ir::Dims{x[0], x[1], 1, 1};
}

Status run_mean(KernelContext& c, const KernelState*) {
  const Forms& f = forms();
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const int64_t area = dims[2] * dims[3], blocks = blocks_of(dims[1]);
  const bool as_rows = reproducible_floats();  // then in the order that rows have
  const int64_t per_worker = as_rows ? area * kBlock : 0, bytes = c.pool.threads() * per_worker * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  for_each_job(c.pool, dims[0] * blocks, [&](int64_t plane, int64_t worker) {
    const float* x = c.inputs[0].as<float>() + plane * area * kBlock;
    float* y = c.outputs[0].as<float>() + plane * kBlock;
    if (!as_rows) {
      f.sum_pixels(x, area, y);
      for (int64_t lane = 0; lane < kBlock; ++lane) y[lane] /= static_cast<float>(area);
      return;
    }
    const int64_t channels = std::min(kBlock, dims[1] - plane % blocks * kBlock);
    float* rows = scratch + worker * per_worker;
    f.from_pixels(x, channels, area, rows, area);
    for (int64_t lane = 0; lane < channels; ++lane)
      y[lane] =
          static_cast<float>(f.reduce_row(Reduction::Sum, rows + lane * area, Storage::Float, area) / static_cast<double>(area));
  });
  return {};
}
}  // namespace

std::span<const Kernel> float_maps() {
  static const Kernel kernels[] = {{"blocked_float_elements", accepts_elements, prepare_elements, run_elements, Blocks::Continue},
                                   {"blocked_float_pool", accepts_pool, prepare_pool, run_pool, Blocks::Continue},
                                   {"blocked_float_mean", accepts_mean, nullptr, run_mean, Blocks::Continue}};
  return kernels;
}

}  // namespace orknn::sim
