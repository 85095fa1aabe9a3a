// MaxPool and AveragePool on up to three spatial axes. A window over several planes reads copies of them that lie one
// after the other.
#include <algorithm>
#include <limits>

#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 16;  // element operations per piece of work

struct State : KernelState {
  Window window;
  PlaneLayout layout;
  std::vector<int64_t> offsets;  // per tap, from the first column of an output row's first padded row
  int64_t plane_size = 0;        // floats of a padded plane
  bool average = false;
  std::vector<float> plane_counts, row_counts, column_counts;  // window positions that count, per output plane, row and column
  TailPlan tail;
};

std::optional<Window> window(const KernelQuery& q) {
  if (q.node.op != "MaxPool" && q.node.op != "AveragePool") return std::nullopt;
  if (q.outputs.size() > 1 && q.outputs[1].exists()) return std::nullopt;  // indices of maxima
  return window_of(q.attributes(), q.inputs[0].dims, q.outputs[0].dims, {});
}

bool accepts(const KernelQuery& q) {
  const std::optional<Window> w = window(q);
  if (!w || !w->fits_int32()) return false;
  if (!storage_of(q.inputs[0].dtype) || q.inputs[0].dtype != q.outputs[0].dtype) return false;
  if (w->kernel[0] > 4 * (w->in[0] + 64)) return false;
  if (w->kernel[2] * w->dilation[2] > 4 * (w->in[2] + w->out[2] + 64) || padded_rows(*w, 1) > 4 * (w->in[1] + 64)) return false;
  return TailPlan::create(q, {1, 2}).has_value();
}

// How many positions of each window along an axis lie inside the input, or inside input and padding.
std::vector<float> counts(const Window& w, size_t axis, bool with_padding) {
  std::vector<float> result;
  const int64_t low = with_padding ? -w.pad_begin[axis] : 0, high = w.in[axis] + (with_padding ? w.pad_end[axis] : 0);
  for (int64_t o = 0; o < w.out[axis]; ++o) {
    int64_t n = 0;
    for (int64_t k = 0; k < w.kernel[axis]; ++k) {
      const int64_t at = o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis];
      n += at >= low && at < high;
    }
    result.push_back(static_cast<float>(n));
  }
  return result;
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *window(q);
  s->layout = plane_layout(s->window);
  s->plane_size = padded_rows(s->window, s->window.out[1]) * s->layout.row_size;
  for (int64_t z = 0; z < s->window.kernel[0]; ++z)
    for (int64_t offset : s->layout.offsets) s->offsets.push_back(z * s->plane_size + offset);
  s->average = q.node.op == "AveragePool";
  if (s->average) {
    const bool with_padding = q.node.attributes.int_or("count_include_pad", 0) != 0;
    s->plane_counts = counts(s->window, 0, with_padding);
    s->row_counts = counts(s->window, 1, with_padding);
    s->column_counts = counts(s->window, 2, with_padding);
  }
  s->tail = *TailPlan::create(q, {1, 2});
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  const Forms& f = forms();
  if (c.outputs[0].count() == 0) return {};
  const int64_t channels = c.outputs[0].dims[1], planes = c.outputs[0].dims[0] * channels;
  const bool half = c.outputs[0].dtype == DType::Float16;
  const StepList steps = s.tail.bind(c.inputs);
  const int64_t rows = padded_rows(w, w.out[1]), out_plane = w.out[1] * w.out[2], in_plane = w.in[1] * w.in[2];
  const int64_t window_size = w.kernel[0] * s.plane_size + 16, out_size = half ? (out_plane + 15) / 16 * 16 : 0;
  const int64_t scratch_bytes = c.pool.threads() * (window_size + out_size) * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(scratch_bytes)));
  if (!scratch) return out_of_scratch(scratch_bytes);
  const int64_t slices = planes * w.out[0], per_job = std::clamp<int64_t>(kGrain / (out_plane * w.taps()), 1, slices);
  for_each_job(c.pool, divide_up(slices, per_job), [&](int64_t job, int64_t worker) {
    float* copies = scratch + worker * (window_size + out_size);
    for (int64_t i = job * per_job; i < std::min((job + 1) * per_job, slices); ++i) {
      const int64_t plane = i / w.out[0], out_z = i % w.out[0];
      for (int64_t k = 0; k < w.kernel[0]; ++k) {
        const int64_t z = out_z * w.stride[0] - w.pad_begin[0] + k * w.dilation[0];
        const bool exists = z >= 0 && z < w.in[0];
        PadRows pad;
        pad.storage = *storage_of(c.inputs[0].dtype);
        pad.x = static_cast<const std::byte*>(c.inputs[0].data) +
                (plane * w.in_size() + (exists ? z : 0) * in_plane) * static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
        pad.height = exists ? w.in[1] : 0;  // a plane without rows is all padding
        pad.width = w.in[2];
        pad.pad_top = w.pad_begin[1];
        pad.pad_left = w.pad_begin[2];
        pad.rows = rows;
        pad.stride = w.stride[2];
        pad.phase_size = s.layout.phase_size;
        pad.fill = s.average ? 0.0f : -std::numeric_limits<float>::infinity();
        pad.y = copies + k * s.plane_size;
        f.pad_rows(pad);
      }
      float* y = half ? copies + window_size : c.outputs[0].as<float>() + i * out_plane;
      PoolRow p;
      p.offsets = s.offsets.data();
      p.taps = w.taps();
      p.columns = w.out[2];
      p.counts = s.average ? s.column_counts.data() : nullptr;
      for (int64_t r = 0; r < w.out[1]; ++r) {
        p.x = copies + r * w.stride[1] * s.layout.row_size;
        p.row_count = s.average ? s.plane_counts[static_cast<size_t>(out_z)] * s.row_counts[static_cast<size_t>(r)] : 1.0f;
        p.y = y + r * w.out[2];
        f.pool_row(p);
      }
      if (!steps.empty())
        f.apply_steps(y, 0, 1, out_plane, steps.data(), static_cast<int64_t>(steps.size()), plane / channels, plane % channels,
                      out_z * out_plane);
      if (half) f.to_half(y, c.outputs[0].as<Half>() + i * out_plane, out_plane);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> pool() {
  static const Kernel kernels[] = {{"pool", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
