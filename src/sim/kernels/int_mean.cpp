// Means of integers: of windows, whose rows are summed down before they are summed across, and over neighbouring axes.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "ops/support/pooling.h"
#include "ops/support/requantize.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/int_scalar.h"
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kMaxFactor = int64_t{1} << 28;  // as the op allows
constexpr int64_t kGrain = 1 << 15;               // elements per piece of work

// How the sums of a row of windows become results; every window has its own number of elements.
struct RowStage {
  std::vector<int32_t> bias, factor, shift;
};

// The pooling unit's own mean.
struct SameScale {
  int64_t zero = 0, taps = 1;
  bool ties_to_even = false;
};

struct WindowState : KernelState {
  Int type = Int::Signed8;
  Window window;
  std::optional<SameScale> same_scale;  // otherwise by the output converter:
  OutputPlan output;
  std::vector<RowStage> stages;
  std::vector<size_t> stage_of;  // per row of the result
};

struct Counts {
  int64_t inside = 0, padded = 0;
  auto operator<=>(const Counts&) const = default;
};
Counts counts_of(const Window& v, size_t axis, int64_t output) {
  Counts n;
  for (int64_t k = 0; k < v.kernel[axis]; ++k) {
    const int64_t at = output * v.stride[axis] + k * v.dilation[axis];
    n.inside += at >= v.pad_begin[axis] && at < v.pad_begin[axis] + v.in[axis];
    n.padded += at >= 0 && at < v.pad_begin[axis] + v.in[axis] + v.pad_end[axis];
  }
  return n;
}

std::unique_ptr<WindowState> plan_window(const KernelQuery& q) {
  const std::optional<Int> type = q.node.op == "int:AveragePool" ? int_of(q.inputs[0].dtype) : std::nullopt;
  if (!type || q.inputs[0].dims.size() < 3 || q.inputs[0].dims.size() > 4) return nullptr;
  const auto shape = ops::pool_shape(q.attributes(), q.inputs[0].dims);
  if (!shape || shape->output_dims() != q.outputs[0].dims || ir::element_count(q.outputs[0].dims) == 0) return nullptr;
  const int64_t taps = shape->window.taps();
  const auto zero = ops::read_zero_point(q.attributes(), "x_zero_point");
  if (taps > int64_t{1} << 14) return nullptr;
  auto s = std::make_unique<WindowState>();
  s->window = window_of(shape->window, shape->input, shape->output);
  const Window& v = s->window;
  // A window far larger than the plane would need a buffer out of proportion to the data.
  if (!zero || !v.fits_int32() || v.cuts_input() || v.kernel[2] * v.dilation[2] > 4 * (v.in[2] + v.out[2] + 64)) return nullptr;
  s->type = *type;
  if (q.attributes().get_int("same_scale") != 0) {
    s->same_scale = SameScale{*zero, taps, ops::is_power_of_two_window(shape->window.kernel)};
    return q.outputs[0].dtype == q.inputs[0].dtype ? std::move(s) : nullptr;
  }
  auto output = OutputPlan::create(q, {kNoSlot, kNoSlot, 1}, {.multipliers = taps, .max_factor = kMaxFactor});
  if (!output) return nullptr;
  s->output = std::move(*output);
  const bool include_pad = q.attributes().get_int("count_include_pad") != 0;
  std::vector<Counts> columns;
  for (int64_t x = 0; x < v.out[2]; ++x) columns.push_back(counts_of(v, 2, x));
  std::map<Counts, size_t> known;
  for (int64_t y = 0; y < v.out[1]; ++y) {
    const Counts rows = counts_of(v, 1, y);
    const auto [at, is_new] = known.try_emplace(rows, s->stages.size());
    s->stage_of.push_back(at->second);
    if (!is_new) continue;
    RowStage& stage = s->stages.emplace_back();
    for (const Counts& n : columns) {
      const int64_t inside = rows.inside * n.inside, count = std::max<int64_t>(include_pad ? rows.padded * n.padded : inside, 1);
      stage.bias.push_back(static_cast<int32_t>(-*zero * inside));
      stage.factor.push_back(s->output.factor[static_cast<size_t>(count - 1)]);
      stage.shift.push_back(s->output.shift[static_cast<size_t>(count - 1)]);
    }
  }
  return s;
}

bool accepts_window(const KernelQuery& q) { return plan_window(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_window(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_window(q));
}

// Elements outside of the data are zeros: they count with the zero point.
void store_means(const WindowState& s, int64_t row, const int64_t* sums, void* y) {
  const SameScale& same = *s.same_scale;
  const int64_t rows = counts_of(s.window, 1, row).inside;
  for (int64_t x = 0; x < s.window.out[2]; ++x) {
    const int64_t outside = same.taps - rows * counts_of(s.window, 2, x).inside;
    store_int(y, s.type, x, ops::window_mean(sums[x] + same.zero * outside, same.taps, same.ties_to_even));
  }
}

Status run_window(KernelContext& c, const KernelState* state) {
  const WindowState& s = *static_cast<const WindowState*>(state);
  const Window& v = s.window;
  const IntForms& f = int_forms();
  const int64_t length = std::max((v.out[2] - 1) * v.stride[2] + (v.kernel[2] - 1) * v.dilation[2] + 1, v.pad_begin[2] + v.in[2]);
  const int64_t down_bytes = divide_up(length * 4, 64) * 64, worker_bytes = down_bytes + divide_up(v.out[2] * 8, 64) * 64;
  std::byte* scratch = c.scratch(static_cast<size_t>(worker_bytes * c.pool.threads()));
  if (!scratch) return out_of_scratch(worker_bytes * c.pool.threads());
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  const int64_t rows = c.outputs[0].count() / v.out[2], per_job = std::clamp<int64_t>(kGrain / (v.in[2] * v.kernel[1]), 1, rows);
  for_each_job(c.pool, divide_up(rows, per_job), [&](int64_t job, int64_t worker) {
    auto* down = reinterpret_cast<int32_t*>(scratch + worker * worker_bytes);
    auto* sums = reinterpret_cast<int64_t*>(scratch + worker * worker_bytes + down_bytes);
    for (int64_t row = job * per_job; row < std::min((job + 1) * per_job, rows); ++row) {
      const int64_t plane = row / v.out[1], at = row % v.out[1];
      std::fill_n(down, length, 0);
      for (int64_t k = 0; k < v.kernel[1]; ++k) {
        const int64_t from = at * v.stride[1] - v.pad_begin[1] + k * v.dilation[1];
        if (from >= 0 && from < v.in[1])
          f.add_row(x + (plane * v.in[1] + from) * v.in[2] * int_bytes(s.type), s.type, v.in[2], down + v.pad_begin[2]);
      }
      std::fill_n(sums, v.out[2], 0);
      for (int64_t k = 0; k < v.kernel[2]; ++k) f.add_every(down + k * v.dilation[2], v.stride[2], v.out[2], sums);
      if (s.same_scale) {
        store_means(s, at, sums, y + row * v.out[2] * int_bytes(s.type));
        continue;
      }
      const RowStage& stage = s.stages[s.stage_of[static_cast<size_t>(at)]];
      IntConvert to = s.output.row(0, nullptr, y + row * v.out[2] * int_bytes(s.output.type));
      to.bias = stage.bias.data();
      to.factor = stage.factor.data();
      to.shift = stage.shift.data();
      f.convert_wide(to, sums, v.out[2]);
    }
  });
  return {};
}

// Windows of maps in blocks. The results of pixels whose windows have equally many elements are converted alike.
struct BlockedWindowState : KernelState {
  Window window;
  std::vector<OutputPlan> plans;                // [kind of row][kind of column]
  std::vector<IntConvert> converters;           // of the plans
  std::vector<size_t> row_kinds, column_kinds;  // of each row and column of the result
  size_t column_kind_count = 0;

  // Of the plans of a row, by kind of column.
  size_t first_kind(int64_t row) const { return row_kinds[static_cast<size_t>(row)] * column_kind_count; }
};

// The kinds of windows along an axis, by their elements.
std::vector<Counts> kinds_of(const Window& v, size_t axis, std::vector<size_t>& kind_of) {
  std::vector<Counts> kinds;
  for (int64_t i = 0; i < v.out[axis]; ++i) {
    const Counts n = counts_of(v, axis, i);
    const auto at = std::ranges::find(kinds, n);
    kind_of.push_back(static_cast<size_t>(at - kinds.begin()));
    if (at == kinds.end()) kinds.push_back(n);
  }
  return kinds;
}

// How sums of unsigned bytes become means; what they miss is the bias.
OutputPlan plan_of_kind(const WindowState& s, Counts rows, Counts columns, int64_t zero, bool include_pad) {
  const int64_t inside = rows.inside * columns.inside, offset = s.type == Int::Signed8 ? 128 : 0;
  OutputPlan p = s.output;
  int32_t factor = 0, shift = 0;
  int64_t bias = -offset * inside;
  if (s.same_scale) {
    // A reciprocal so exact that no sum of a window comes to the wrong side of the middle between two integers.
    constexpr int kBits = 26;
    p.type = s.type;
    p.low = -static_cast<int32_t>(offset);
    p.high = p.low + 255;
    shift = kBits + std::bit_width(static_cast<uint64_t>(s.same_scale->taps)) - 1;
    factor = static_cast<int32_t>(((int64_t{1} << shift) + s.same_scale->taps / 2) / s.same_scale->taps);
    bias += zero * (s.same_scale->taps - inside);
  } else {
    const auto count = static_cast<size_t>(std::max<int64_t>(include_pad ? rows.padded * columns.padded : inside, 1));
    factor = s.output.factor[count - 1];
    shift = s.output.shift[count - 1];
    bias -= zero * inside;
  }
  p.bias.assign(kBlock, static_cast<int32_t>(bias));
  p.factor.assign(kBlock, factor);
  p.shift.assign(kBlock, shift);
  p.most_in_doubles = kMaxFactor;  // sums have 23 bits
  p.measure_floats(kBlock);
  p.make_unsigned();
  return p;
}

std::unique_ptr<BlockedWindowState> plan_blocked_window(const KernelQuery& q) {
  constexpr size_t kMostKinds = 64;
  if (!in_blocks(q.inputs[0]) || !in_blocks(q.outputs[0])) return nullptr;
  const std::unique_ptr<WindowState> rows = plan_window(q);
  if (!rows || rows->type == Int::Signed16) return nullptr;
  // Of other windows, means in the middle between two integers exist and do not become even ones.
  if (rows->same_scale && !rows->same_scale->ties_to_even && rows->same_scale->taps % 2 == 0) return nullptr;
  auto s = std::make_unique<BlockedWindowState>();
  s->window = rows->window;
  const std::vector<Counts> of_rows = kinds_of(s->window, 1, s->row_kinds), of_columns = kinds_of(s->window, 2, s->column_kinds);
  s->column_kind_count = of_columns.size();
  if (of_rows.size() * of_columns.size() > kMostKinds) return nullptr;
  const int64_t zero = q.attributes().get_int("x_zero_point");
  const bool include_pad = q.attributes().get_int("count_include_pad") != 0;
  for (const Counts& row : of_rows)
    for (const Counts& column : of_columns) s->plans.push_back(plan_of_kind(*rows, row, column, zero, include_pad));
  for (const OutputPlan& plan : s->plans) s->converters.push_back(plan.row(0, nullptr, nullptr));
  return s;
}

bool accepts_blocked_window(const KernelQuery& q) { return plan_blocked_window(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_blocked_window(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_blocked_window(q));
}

// The sums of one pixel, with vectors that every machine has.
struct PixelSums {
  typedef int32_t Four __attribute__((vector_size(16)));
  Four part[kBlock / 4];

  explicit PixelSums(const int32_t* from) { std::memcpy(part, from, sizeof part); }
  void add(const int32_t* from) {
    const PixelSums other(from);
    for (int64_t i = 0; i < kBlock / 4; ++i) part[i] += other.part[i];
  }
};

// Sums of every column of a row of windows from those of its columns.
void sum_across(const BlockedWindowState& s, const OutputPlan* plans, const int32_t* down, int32_t* sums) {
  const Window& v = s.window;
  for (int64_t column = 0; column < v.out[2]; ++column) {
    PixelSums sum(plans[s.column_kinds[static_cast<size_t>(column)]].bias.data());
    const int64_t left = column * v.stride[2] - v.pad_begin[2];
    for (int64_t k = 0; k < v.kernel[2]; ++k)
      if (const int64_t at = left + k * v.dilation[2]; at >= 0 && at < v.in[2]) sum.add(down + at * kBlock);
    std::memcpy(sums + column * kBlock, sum.part, sizeof sum.part);
  }
}

Status run_blocked_window(KernelContext& c, const KernelState* state) {
  const BlockedWindowState& s = *static_cast<const BlockedWindowState*>(state);
  const Window& v = s.window;
  const IntForms& f = int_forms();
  const int64_t row_bytes = v.in[2] * kBlock, worker_sums = row_bytes + v.out[2] * kBlock;
  const int64_t bytes = c.pool.threads() * worker_sums * 4;
  auto* scratch = reinterpret_cast<int32_t*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t planes = c.outputs[0].dims[0] * blocks_of(c.outputs[0].dims[1]), rows = planes * v.out[1],
                per_job = std::clamp<int64_t>(kGrain / (row_bytes * v.kernel[1]), 1, rows);
  for_each_job(c.pool, divide_up(rows, per_job), [&](int64_t job, int64_t worker) {
    int32_t *down = scratch + worker * worker_sums, *sums = down + row_bytes;
    for (int64_t i = job * per_job; i < std::min((job + 1) * per_job, rows); ++i) {
      // The same row of all planes: threads keep to their pixels (for_each_part).
      const int64_t plane = i % planes, row = i / planes, top = row * v.stride[1] - v.pad_begin[1];
      std::fill_n(down, row_bytes, 0);
      for (int64_t k = 0; k < v.kernel[1]; ++k)
        if (const int64_t at = top + k * v.dilation[1]; at >= 0 && at < v.in[1])
          f.add_row(x + (plane * v.in[1] + at) * row_bytes, Int::Unsigned8, row_bytes, down);
      uint8_t* to = y + (plane * v.out[1] + row) * v.out[2] * kBlock;
      const size_t first = s.first_kind(row);
      sum_across(s, s.plans.data() + first, down, sums);
      for (int64_t column = 0; column < v.out[2];) {
        const size_t kind = s.column_kinds[static_cast<size_t>(column)];
        int64_t end = column + 1;
        while (end < v.out[2] && s.column_kinds[static_cast<size_t>(end)] == kind) ++end;
        f.blocked_convert(s.converters[first + kind], s.plans[first + kind].is_float_enough, sums + column * kBlock, end - column,
                          nullptr, to + column * kBlock);
        column = end;
      }
    }
  });
  return {};
}

struct AxesState : KernelState {
  Int type = Int::Signed8;
  int64_t outer = 1, reduced = 1, inner = 1, zero = 0;
  OutputPlan output;
};

std::unique_ptr<AxesState> plan_axes(const KernelQuery& q) {
  const std::optional<Int> type = q.node.op == "int:ReduceMean" ? int_of(q.inputs[0].dtype) : std::nullopt;
  if (!type) return nullptr;
  const ir::Dims& dims = q.inputs[0].dims;
  const int64_t rank = static_cast<int64_t>(dims.size()), first = q.attributes().get_int("first_axis"),
                last = q.attributes().get_int("end_axis");
  const auto zero = ops::read_zero_point(q.attributes(), "x_zero_point");
  auto output = OutputPlan::create(q, {kNoSlot, kNoSlot, 1}, {.max_factor = kMaxFactor});
  if (first < 0 || last <= first || last > rank || !zero || !output) return nullptr;
  auto s = std::make_unique<AxesState>();
  for (int64_t i = 0; i < rank; ++i) (i < first ? s->outer : i < last ? s->reduced : s->inner) *= dims[static_cast<size_t>(i)];
  if (s->reduced > int64_t{1} << 16 || s->outer * s->inner != ir::element_count(q.outputs[0].dims)) return nullptr;
  s->type = *type;
  s->zero = *zero;
  s->output = std::move(*output);
  return s;
}

bool accepts_axes(const KernelQuery& q) { return plan_axes(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_axes(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_axes(q));
}

Status run_axes(KernelContext& c, const KernelState* state) {
  const AxesState& s = *static_cast<const AxesState*>(state);
  const IntForms& f = int_forms();
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  constexpr int64_t kBlock = 256;
  const int64_t bytes = int_bytes(s.type), offset = s.zero * s.reduced;
  // A block is some rows, or some columns of one plane.
  const bool rows = s.inner == 1;
  const int64_t across = rows ? s.outer : s.inner, blocks = divide_up(across, kBlock), planes = rows ? 1 : s.outer;
  c.pool.parallel_for(
      planes * blocks, std::max<int64_t>(1, kGrain / (kBlock * std::max<int64_t>(s.reduced, 1))),
      [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block % blocks * kBlock, count = std::min(kBlock, across - first), plane = block / blocks;
          int64_t sums[kBlock];
          int32_t columns[kBlock] = {};
          if (rows) {
            for (int64_t i = 0; i < count; ++i) columns[i] = f.sum_row(x + (first + i) * s.reduced * bytes, s.type, s.reduced);
          } else {
            for (int64_t i = 0; i < s.reduced; ++i)
              f.add_row(x + ((plane * s.reduced + i) * s.inner + first) * bytes, s.type, count, columns);
          }
          for (int64_t i = 0; i < count; ++i) sums[i] = columns[i] - offset;
          f.convert_wide(s.output.channel(0, nullptr, y + (plane * across + first) * int_bytes(s.output.type)), sums, count);
        }
      });
  return {};
}

// The mean of whole planes in blocks.
std::unique_ptr<AxesState> plan_blocked_planes(const KernelQuery& q) {
  if (!in_blocks(q.inputs[0]) || q.outputs[0].dims.size() != 4) return nullptr;
  std::unique_ptr<AxesState> s = plan_axes(q);
  if (!s || s->inner != 1 || s->reduced != q.inputs[0].dims[2] * q.inputs[0].dims[3] || !s->output.is_bytes() ||
      s->outer != q.inputs[0].dims[0] * q.inputs[0].dims[1])
    return nullptr;
  s->zero += byte_offset(q.inputs[0].dtype);
  s->output.make_unsigned();
  return s;
}

bool accepts_blocked_planes(const KernelQuery& q) { return plan_blocked_planes(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_blocked_planes(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_blocked_planes(q));
}

Status run_blocked_planes(KernelContext& c, const KernelState* state) {
  const AxesState& s = *static_cast<const AxesState*>(state);
  const IntForms& f = int_forms();
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t bytes = s.reduced * kBlock, planes = blocked_bytes(c.outputs[0].dims) / kBlock;
  constexpr int64_t kTogether = 16 * kBlock;
  c.pool.parallel_for(planes, std::max<int64_t>(1, kGrain / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int32_t sums[kTogether] = {};
      for (int64_t at = 0; at < bytes; at += kTogether)
        f.add_row(x + plane * bytes + at, Int::Unsigned8, std::min(kTogether, bytes - at), sums);
      int64_t totals[kBlock] = {};
      for (int64_t i = 0; i < kTogether; ++i) totals[i % kBlock] += sums[i];
      for (int64_t& total : totals) total -= s.zero * s.reduced;
      f.convert_wide(s.output.channel(0, nullptr, y + plane * kBlock), totals, kBlock);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_mean() {
  static const Kernel kernels[] = {
      {"blocked_mean", accepts_blocked_planes, prepare_blocked_planes, run_blocked_planes, Blocks::Continue},
      {"blocked_average_pool", accepts_blocked_window, prepare_blocked_window, run_blocked_window, Blocks::Continue},
      {"int_average_pool", accepts_window, prepare_window, run_window},
      {"int_mean", accepts_axes, prepare_axes, run_axes}};
  return kernels;
}

}  // namespace orknn::sim
