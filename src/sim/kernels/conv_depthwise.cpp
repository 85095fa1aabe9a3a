// Depthwise convolution of many channels: sixteen planes at a time become pixels, in bands that fit the cache, and their results
// become planes again.
#include <algorithm>

#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 128 << 10;  // of padded pixels
constexpr int64_t kFewChannels = 8;        // fewer than these leave most lanes empty

struct State : KernelState {
  Window window;
  int64_t pitch = 0;             // pixels from row to row
  std::vector<int64_t> offsets;  // per tap, in floats
  AlignedFloats weights;         // [group of channels][tap][kLaneChannels]
  AlignedFloats bias;            // [group of channels][kLaneChannels]
  TailPlan tail;
};

bool accepts(const KernelQuery& q) {
  const std::optional<Window> w = depthwise_window(q);
  if (!w || q.outputs[0].dims[1] != q.inputs[0].dims[1] || q.inputs[0].dims[1] < kFewChannels) return false;
  // A window far larger than the plane would need a buffer out of proportion to the data.
  return w->fits_int32() && !w->cuts_input() && w->kernel[2] * w->dilation[2] <= 2 * (w->in[2] + 16) &&
         padded_rows(*w, 1) <= 2 * (w->in[1] + 16) && TailPlan::create(q, {1, 2});
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *depthwise_window(q);
  const Window& v = s->window;
  s->tail = *TailPlan::create(q, {1, 2});
  s->pitch = v.padded() ? padded_columns(v) : v.in[2];
  for (int64_t y = 0; y < v.kernel[1]; ++y)
    for (int64_t x = 0; x < v.kernel[2]; ++x)
      s->offsets.push_back((y * v.dilation[1] * s->pitch + x * v.dilation[2]) * kLaneChannels);
  const int64_t channels = q.outputs[0].dims[1], groups = divide_up(channels, kLaneChannels), taps = v.taps();
  const int64_t size = groups * kLaneChannels * (taps + 1);
  if (!s->weights.allocate(size - groups * kLaneChannels) || !s->bias.allocate(groups * kLaneChannels))
    return out_of_scratch(size * 4);
  std::fill_n(s->weights.data(), groups * kLaneChannels * taps, 0.0f);
  std::fill_n(s->bias.data(), groups * kLaneChannels, 0.0f);
  const ir::TensorData w = ir::convert(q.inputs[1].constant->view(), DType::Float32);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      s->weights.data()[(c / kLaneChannels * taps + t) * kLaneChannels + c % kLaneChannels] = w.as<float>()[c * taps + t];
  if (q.node.has_input(2)) {
    const ir::TensorData b = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    std::copy_n(b.as<float>(), channels, s->bias.data());
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

// A band of rows of results, and the working memory of one thread, in floats.
struct Band {
  int64_t rows = 0;
  int64_t raw = 0, padded = 0, results = 0, planes = 0;
  int64_t total() const { return raw + padded + results + planes; }
};
Band choose_band(const State& s, bool half) {
  const Window& w = s.window;
  const int64_t fitting = kBandBytes / (s.pitch * kLaneChannels * 4) - (w.kernel[1] - 1) * w.dilation[1];
  Band b;
  b.rows = std::clamp<int64_t>(fitting / w.stride[1], std::min<int64_t>(4, w.out[1]), w.out[1]);
  b.rows = divide_up(w.out[1], divide_up(w.out[1], b.rows));
  const int64_t in_rows = padded_rows(w, b.rows);
  b.raw = std::min(in_rows, w.in[1]) * w.in[2] * kLaneChannels;
  b.padded = w.padded() ? in_rows * s.pitch * kLaneChannels : 0;
  b.results = b.rows * w.out[2] * kLaneChannels;
  b.planes = half ? b.results : 0;
  return b;
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  const Forms& f = forms();
  const int64_t batch = c.outputs[0].dims[0], channels = c.outputs[0].dims[1];
  if (c.outputs[0].count() == 0) return {};
  const bool half = c.outputs[0].dtype == DType::Float16;
  const Storage storage = *storage_of(c.inputs[0].dtype);
  const auto element = static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
  StepList steps = s.tail.bind(c.inputs);
  const Clamp clamp = take_clamp(steps);
  const Band b = choose_band(s, half);
  const int64_t bytes = c.pool.threads() * b.total() * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);

  const int64_t groups = divide_up(channels, kLaneChannels), bands = divide_up(w.out[1], b.rows);
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
    if (w.padded()) pad_pixels(w, raw, begin, kLaneChannels, s.pitch, first, in_rows, padded);
    DepthwisePixels d;
    d.x = w.padded() ? padded : raw;
    d.row_step = w.stride[1] * s.pitch * kLaneChannels;
    d.column_step = w.stride[2] * kLaneChannels;
    d.offsets = s.offsets.data();
    d.taps = w.taps();
    d.weights = s.weights.data() + group * d.taps * kLaneChannels;
    d.bias = s.bias.data() + channel;
    d.rows = rows;
    d.columns = w.out[2];
    d.clamp = clamp.active;
    d.low = clamp.low;
    d.high = clamp.high;
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
