// Depthwise convolution: one plane at a time, copied into a padded buffer in bands that fit the cache.
#include <algorithm>

#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 64 << 10;
constexpr int64_t kGrain = 1 << 17;  // multiply-accumulates per piece of work

struct State : KernelState {
  Window window;
  PlaneLayout layout;
  std::vector<float> weights;  // [channel][tap]
  std::vector<float> bias;     // empty = none
  TailPlan tail;
};

bool accepts(const KernelQuery& q) {
  const std::optional<Window> w = depthwise_window(q);
  // A window far larger than the plane would need a buffer out of proportion to the data.
  if (!w || !w->fits_int32() || w->kernel[2] * w->dilation[2] > 4 * (w->in[2] + w->out[2] + 64)) return false;
  return padded_rows(*w, 1) <= 4 * (w->in[1] + 64) && TailPlan::create(q, {1, 2});
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *depthwise_window(q);
  s->layout = plane_layout(s->window);
  s->tail = *TailPlan::create(q, {1, 2});
  const ir::TensorData w = ir::convert(q.inputs[1].constant->view(), DType::Float32);
  s->weights.assign(w.as<float>(), w.as<float>() + w.count());
  if (q.node.has_input(2)) {
    const ir::TensorData b = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    s->bias.assign(b.as<float>(), b.as<float>() + b.count());
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  const Forms& f = forms();
  const int64_t batch = c.outputs[0].dims[0], channels = c.outputs[0].dims[1], in_channels = c.inputs[0].dims[1];
  if (c.outputs[0].count() == 0) return {};
  const bool half = c.outputs[0].dtype == DType::Float16;
  StepList steps = s.tail.bind(c.inputs);
  const Clamp clamp = take_clamp(steps);

  const int64_t fitting = kBandBytes / (s.layout.row_size * 4) - (w.kernel[1] - 1) * w.dilation[1];
  const int64_t band = std::clamp<int64_t>(fitting / w.stride[1], std::min<int64_t>(4, w.out[1]), w.out[1]),
                bands = divide_up(w.out[1], band);
  const int64_t plane_size = padded_rows(w, band) * s.layout.row_size + 16,
                band_size = half ? (band * w.out[2] + 15) / 16 * 16 : 0;
  const int64_t scratch_bytes = c.pool.threads() * (plane_size + band_size) * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(scratch_bytes)));
  if (!scratch) return out_of_scratch(scratch_bytes);

  const int64_t planes = batch * channels;
  const int64_t per_job = std::clamp<int64_t>(kGrain / (band * w.out[2] * w.taps()), 1, planes * bands);
  for_each_job(c.pool, divide_up(planes * bands, per_job), [&](int64_t job, int64_t worker) {
    float* plane = scratch + worker * (plane_size + band_size);
    for (int64_t i = job * per_job; i < std::min((job + 1) * per_job, planes * bands); ++i) {
      const int64_t n = i / bands / channels, channel = i / bands % channels, row = i % bands * band,
                    rows = std::min(band, w.out[1] - row);
      const int64_t in_plane = n * in_channels + channel / (channels / in_channels);
      PadRows pad;
      pad.storage = *storage_of(c.inputs[0].dtype);
      pad.x = static_cast<const std::byte*>(c.inputs[0].data) +
              in_plane * w.in_size() * static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
      pad.height = w.in[1];
      pad.width = w.in[2];
      pad.pad_top = w.pad_begin[1];
      pad.pad_left = w.pad_begin[2];
      pad.row = row * w.stride[1];
      pad.rows = padded_rows(w, rows);
      pad.stride = w.stride[2];
      pad.phase_size = s.layout.phase_size;
      pad.y = plane;
      f.pad_rows(pad);
      const int64_t place = (n * channels + channel) * w.out_size() + row * w.out[2];
      float* y = half ? plane + plane_size : c.outputs[0].as<float>() + place;
      DepthwiseRows d;
      d.x = plane;
      d.row_step = w.stride[1] * s.layout.row_size;
      d.offsets = s.layout.offsets.data();
      d.weights = s.weights.data() + channel * w.taps();
      d.taps = w.taps();
      d.rows = rows;
      d.columns = w.out[2];
      d.three = w.kernel[1] == 3 && w.kernel[2] == 3 && w.stride[1] == 1 && w.dilation[1] == 1;
      d.bias = s.bias.empty() ? 0.0f : s.bias[static_cast<size_t>(channel)];
      d.clamp = clamp.active;
      d.low = clamp.low;
      d.high = clamp.high;
      d.y = y;
      f.depthwise_rows(d);
      if (!steps.empty())
        f.apply_steps(y, 0, 1, rows * w.out[2], steps.data(), static_cast<int64_t>(steps.size()), n, channel, row * w.out[2]);
      if (half) f.to_half(y, c.outputs[0].as<Half>() + place, rows * w.out[2]);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> depthwise() {
  static const Kernel kernels[] = {{"conv_depthwise", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
