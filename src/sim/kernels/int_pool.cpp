// MaxPool of 8-bit data: the largest of the rows of each window, then of its columns.
#include <algorithm>
#include <cstring>

#include "ops/support/pooling.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kSlack = 64;       // bytes the cores may touch beyond the last
constexpr int64_t kGrain = 1 << 16;  // element operations per piece of work

struct MaxState : KernelState {
  Window window;
};

// Every window has a value inside the input, on each axis.
bool windows_meet_input(const Window& v) {
  for (size_t a = 1; a < 3; ++a)
    for (int64_t o = 0; o < v.out[a]; ++o) {
      bool inside = false;
      for (int64_t k = 0; k < v.kernel[a] && !inside; ++k) {
        const int64_t at = o * v.stride[a] - v.pad_begin[a] + k * v.dilation[a];
        inside = at >= 0 && at < v.in[a];
      }
      if (!inside) return false;
    }
  return true;
}

std::optional<Window> max_window(const KernelQuery& q) {
  if (q.node.op != "MaxPool" || !q.node.tail.empty() || !is_byte(q.inputs[0].dtype) || q.outputs[0].dtype != q.inputs[0].dtype)
    return std::nullopt;
  if ((q.outputs.size() > 1 && q.outputs[1].exists()) || q.inputs[0].dims.size() > 4) return std::nullopt;
  const auto shape = ops::pool_shape(q.attributes(), q.inputs[0].dims);
  if (!shape || shape->output_dims() != q.outputs[0].dims) return std::nullopt;
  const Window v = window_of(shape->window, shape->input, shape->output);
  if (!v.fits_int32() || v.cuts_input() || v.kernel[2] * v.dilation[2] > 4 * (v.in[2] + v.out[2] + 64) ||
      padded_rows(v, 1) > 4 * (v.in[1] + 64))
    return std::nullopt;
  if (v.kernel[1] > 256 || v.kernel[2] > 256 || !windows_meet_input(v)) return std::nullopt;
  return v;
}

bool accepts_max(const KernelQuery& q) { return max_window(q).has_value(); }
Result<std::unique_ptr<const KernelState>> prepare_max(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<MaxState>();
  s->window = *max_window(q);
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run_max(KernelContext& c, const KernelState* state) {
  const Window& v = static_cast<const MaxState*>(state)->window;
  const IntForms& f = int_forms();
  const bool is_signed = c.inputs[0].dtype == DType::Int8;
  const int64_t rows = padded_rows(v, v.out[1]),
                length = std::max((v.out[2] - 1) * v.stride[2] + (v.kernel[2] - 1) * v.dilation[2] + 1, v.pad_begin[2]);
  const int64_t pitch = length, padded_size = rows * pitch + kSlack, best_size = v.out[1] * pitch + kSlack;
  const int64_t worker_size = divide_up(padded_size + 2 * best_size, 64) * 64;
  auto* scratch = reinterpret_cast<uint8_t*>(c.scratch(static_cast<size_t>(worker_size * c.pool.threads())));
  if (!scratch) return out_of_scratch(worker_size * c.pool.threads());
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t planes = c.outputs[0].dims[0] * c.outputs[0].dims[1],
                per_job = std::clamp<int64_t>(kGrain / (rows * pitch), 1, planes);
  for_each_job(c.pool, divide_up(planes, per_job), [&](int64_t job, int64_t worker) {
    uint8_t *padded = scratch + worker * worker_size, *down = padded + padded_size, *across = down + best_size;
    for (int64_t plane = job * per_job; plane < std::min((job + 1) * per_job, planes); ++plane) {
      IntPad p;
      p.fill = is_signed ? 0x80 : 0;  // padding never wins
      p.x = x + plane * v.in_size();
      p.width = v.in[2];
      p.height = v.in[1];
      p.first = -v.pad_begin[1];
      p.rows = rows;
      p.left = v.pad_begin[2];
      p.inside = std::min(length - p.left, v.in[2]);
      p.length = length;
      p.y = padded;
      p.y_stride = pitch;
      f.pad(p);
      const int64_t size = v.out[1] * pitch;
      // The rows of a window; with stride 1 those of all windows at once.
      const int64_t runs = v.stride[1] == 1 ? 1 : v.out[1], run = size / runs;
      for (int64_t r = 0; r < runs; ++r) {
        const uint8_t* from = padded + r * v.stride[1] * pitch;
        std::memcpy(down + r * run, from, static_cast<size_t>(run));
        for (int64_t k = 1; k < v.kernel[1]; ++k) f.maximum(from + k * v.dilation[1] * pitch, is_signed, down + r * run, run);
      }
      std::memcpy(across, down, static_cast<size_t>(size));
      for (int64_t k = 1; k < v.kernel[2]; ++k) f.maximum(down + k * v.dilation[2], is_signed, across, size - k * v.dilation[2]);
      uint8_t* to = y + plane * v.out_size();
      for (int64_t r = 0; r < v.out[1]; ++r, to += v.out[2]) {
        const uint8_t* from = across + r * pitch;
        if (v.stride[2] == 1)
          std::memcpy(to, from, static_cast<size_t>(v.out[2]));
        else
          for (int64_t i = 0; i < v.out[2]; ++i) to[i] = from[i * v.stride[2]];
      }
    }
  });
  return {};
}

bool accepts_blocked_max(const KernelQuery& q) { return in_blocks(q.inputs[0]) && max_window(q).has_value(); }

Pixel largest(Pixel a, Pixel b) { return a > b ? a : b; }

// The same of maps in blocks, a row of one block at a time.
void keep_largest(const uint8_t* x, int64_t bytes, uint8_t* y) {
  for (int64_t i = 0; i < bytes; i += kBlock) store_pixel(y + i, largest(load_pixel(x + i), load_pixel(y + i)));
}

// Row `y` of the result from the largest of its rows of windows.
void largest_across(const Window& v, const uint8_t* down, uint8_t* y) {
  for (int64_t i = 0; i < v.out[2]; ++i) {
    const int64_t first = i * v.stride[2] - v.pad_begin[2];
    Pixel most{};
    for (int64_t at = first; at < first + v.kernel[2] * v.dilation[2]; at += v.dilation[2])
      if (at >= 0 && at < v.in[2]) most = largest(most, load_pixel(down + at * kBlock));
    store_pixel(y + i * kBlock, most);
  }
}

Status run_blocked_max(KernelContext& c, const KernelState* state) {
  const Window& v = static_cast<const MaxState*>(state)->window;
  const int64_t row_bytes = v.in[2] * kBlock, threads = c.pool.threads();
  auto* scratch = reinterpret_cast<uint8_t*>(c.scratch(static_cast<size_t>(row_bytes * threads)));
  if (!scratch) return out_of_scratch(row_bytes * threads);
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t planes = c.outputs[0].dims[0] * blocks_of(c.outputs[0].dims[1]), rows = planes * v.out[1],
                per_job = std::clamp<int64_t>(kGrain / (row_bytes * v.kernel[1]), 1, rows);
  for_each_job(c.pool, divide_up(rows, per_job), [&](int64_t job, int64_t worker) {
    uint8_t* down = scratch + worker * row_bytes;
    for (int64_t i = job * per_job; i < std::min((job + 1) * per_job, rows); ++i) {
      // The same row of all planes: threads keep to their pixels (for_each_part).
      const int64_t plane = i % planes, row = i / planes, first = row * v.stride[1] - v.pad_begin[1];
      std::memset(down, 0, static_cast<size_t>(row_bytes));
      for (int64_t k = 0; k < v.kernel[1]; ++k)
        if (const int64_t at = first + k * v.dilation[1]; at >= 0 && at < v.in[1])
          keep_largest(x + (plane * v.in[1] + at) * row_bytes, row_bytes, down);
      largest_across(v, down, y + (plane * v.out[1] + row) * v.out[2] * kBlock);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_pool() {
  static const Kernel kernels[] = {{"blocked_max_pool", accepts_blocked_max, prepare_max, run_blocked_max, Blocks::Continue},
                                   {"int_max_pool", accepts_max, prepare_max, run_max}};
  return kernels;
}

}  // namespace orknn::sim
