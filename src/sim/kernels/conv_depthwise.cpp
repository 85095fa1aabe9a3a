// Depthwise convolution of many channels: sixteen planes at a time become pixels, in bands that fit the cache, and their results
// become planes again.
#include <algorithm>

#include "sim/kernels/support/depthwise_lanes.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 128 << 10;  // of padded pixels

struct State : KernelState {
  DepthwiseLanes layer;
  TailPlan tail;
};

bool accepts(const KernelQuery& q) { return DepthwiseLanes::accepts(q) && TailPlan::create(q, {1, 2}); }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->tail = *TailPlan::create(q, {1, 2});
  const Window w = *depthwise_window(q);
  ORKNN_TRY(s->layer.take(q, w.padded() ? 0 : w.in[2]));
  return std::unique_ptr<const KernelState>(std::move(s));
}

// A band of rows of results, and the working memory of one thread, in floats.
struct Band {
  int64_t rows = 0;
  int64_t raw = 0, padded = 0, results = 0, planes = 0;
  int64_t total() const { return raw + padded + results + planes; }
};
Band choose_band(const DepthwiseLanes& layer, bool half) {
  const Window& w = layer.window;
  Band b;
  b.rows = layer.band_rows(kBandBytes);
  const int64_t in_rows = padded_rows(w, b.rows);
  b.raw = std::min(in_rows, w.in[1]) * w.in[2] * kLaneChannels;
  b.padded = w.padded() ? in_rows * layer.pitch * kLaneChannels : 0;
  b.results = b.rows * w.out[2] * kLaneChannels;
  b.planes = half ? b.results : 0;
  return b;
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const DepthwiseLanes& layer = s.layer;
  const Window& w = layer.window;
  const Forms& f = forms();
  const int64_t batch = c.outputs[0].dims[0], channels = layer.channels;
  if (c.outputs[0].count() == 0) return {};
  const bool half = c.outputs[0].dtype == DType::Float16;
  const Storage storage = *storage_of(c.inputs[0].dtype);
  const auto element = static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
  StepList steps = s.tail.bind(c.inputs);
  const Clamp clamp = take_clamp(steps);
  const Band b = choose_band(layer, half);
  const int64_t bytes = c.pool.threads() * b.total() * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);

  const int64_t groups = layer.blocks, bands = divide_up(w.out[1], b.rows);
  for_each_job(c.pool, batch * groups * bands, [&](int64_t job, int64_t worker) {
    float* raw = scratch + worker * b.total();
    float *padded = raw + b.raw, *results = padded + b.padded, *planes = results + b.results;
    const int64_t n = job / bands / groups, group = job / bands % groups, channel = group * kLaneChannels,
                  some = std::min(kLaneChannels, channels - channel), row = job % bands * b.rows,
                  rows = std::min(b.rows, w.out[1] - row);
    const int64_t first = row * w.stride[1], in_rows = padded_rows(w, rows);
    const int64_t begin = std::clamp<int64_t>(first - w.pad_begin[1], 0, w.in[1]),
                  end = std::clamp<int64_t>(first + in_rows - w.pad_begin[1], begin, w.in[1]);
    f.to_pixels(
        static_cast<const std::byte*>(c.inputs[0].data) + ((n * channels + channel) * w.in_size() + begin * w.in[2]) * element,
        storage, w.in_size(), some, (end - begin) * w.in[2], raw);
    if (w.padded()) pad_pixels(w, raw, begin, kLaneChannels, layer.pitch, first, in_rows, padded);
    DepthwisePixels d = layer.pixels(group, rows, clamp);
    d.x = w.padded() ? padded : raw;
    d.y = results;
    f.depthwise_pixels(d);
    const int64_t count = rows * w.out[2], place = (n * channels + channel) * w.out_size() + row * w.out[2],
                  plane = half ? count : w.out_size();
    float* y = half ? planes : c.outputs[0].as<float>() + place;
    f.from_pixels(results, some, count, y, plane);
    if (!steps.empty())
      f.apply_steps(y, plane, some, count, steps.data(), static_cast<int64_t>(steps.size()), n, channel, row * w.out[2]);
    for (int64_t i = 0; i < some && half; ++i)
      f.to_half(planes + i * count, c.outputs[0].as<Half>() + place + i * w.out_size(), count);
  });
  return {};
}
}  // namespace

std::span<const Kernel> conv_depthwise() {
  static const Kernel kernels[] = {{"conv_depthwise_channels", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
