// Depthwise convolution of float maps in blocks. Columns whose window leaves the plane have weights of their own, without the
// taps outside; where these are many, the input is padded instead.
#include <algorithm>

#include "sim/kernels/support/float_maps.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 64 << 10;  // of padded pixels
constexpr int64_t kFewChannels = 8;       // fewer than these leave most lanes empty

constexpr int64_t kMostEdges = 8;  // columns that are computed by themselves, at most a quarter of all

// A column of the result that has columns [first, first + width) of its window inside the plane.
struct Edge {
  int64_t column = 0, first = 0, width = 0;
  std::vector<int64_t> offsets;  // per tap, in floats
  AlignedFloats weights;         // [block][tap][kBlock]
};

struct State : KernelState {
  Window window;
  int64_t channels = 0, blocks = 0;
  bool copies = false;           // the input is padded
  int64_t begin = 0, end = 0;    // columns whose window lies inside
  std::vector<Edge> edges;       // the others
  int64_t pitch = 0;             // pixels from row to row
  std::vector<int64_t> offsets;  // per tap, in floats
  AlignedFloats weights;         // [block][tap][kBlock]
  AlignedFloats bias;            // [block][kBlock]
  BlockedSteps tail;
};

bool accepts(const KernelQuery& q) {
  const std::optional<Window> w = depthwise_window(q);
  if (!w || !in_blocks(q.inputs[0]) || !in_blocks(q.outputs[0]) || q.inputs[0].dtype != DType::Float32 ||
      q.outputs[0].dims[1] != q.inputs[0].dims[1] || q.inputs[0].dims[1] < kFewChannels)
    return false;
  // A window far larger than the plane would need a buffer out of proportion to the data.
  return w->fits_int32() && !w->cuts_input() && w->kernel[2] * w->dilation[2] <= 2 * (w->in[2] + 16) &&
         padded_rows(*w, 1) <= 2 * (w->in[1] + 16) && BlockedSteps::of_tail(q);
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *depthwise_window(q);
  s->tail = std::move(*BlockedSteps::of_tail(q));
  const Window& v = s->window;
  s->channels = q.outputs[0].dims[1];
  s->blocks = blocks_of(s->channels);
  const int64_t reach = (v.kernel[2] - 1) * v.dilation[2];
  s->begin = std::min(divide_up(v.pad_begin[2], v.stride[2]), v.out[2]);
  s->end = std::clamp((v.in[2] - 1 - reach + v.pad_begin[2] + v.stride[2]) / v.stride[2], s->begin, v.out[2]);
  if (v.in[2] + v.pad_begin[2] <= reach) s->end = s->begin;
  const int64_t edges = v.out[2] - (s->end - s->begin);
  s->copies = edges > kMostEdges || edges * 4 > v.out[2];
  s->pitch = s->copies ? padded_columns(v) : v.in[2];
  for (int64_t y = 0; y < v.kernel[1]; ++y)
    for (int64_t x = 0; x < v.kernel[2]; ++x) s->offsets.push_back((y * v.dilation[1] * s->pitch + x * v.dilation[2]) * kBlock);
  const int64_t taps = v.taps(), lanes = s->blocks * kBlock;
  if (!s->weights.allocate(lanes * taps) || !s->bias.allocate(lanes)) return out_of_scratch(lanes * (taps + 1) * 4);
  std::fill_n(s->weights.data(), lanes * taps, 0.0f);
  std::fill_n(s->bias.data(), lanes, 0.0f);
  const ir::TensorData w = ir::convert(q.inputs[1].constant->view(), DType::Float32);
  for (int64_t c = 0; c < s->channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      s->weights.data()[(c / kBlock * taps + t) * kBlock + c % kBlock] = w.as<float>()[c * taps + t];
  for (int64_t column = 0; column < v.out[2] && !s->copies; ++column) {
    if (column >= s->begin && column < s->end) continue;
    Edge e;
    e.column = column;
    const int64_t start = column * v.stride[2] - v.pad_begin[2];
    while (e.first < v.kernel[2] && start + e.first * v.dilation[2] < 0) ++e.first;
    while (e.first + e.width < v.kernel[2] && start + (e.first + e.width) * v.dilation[2] < v.in[2]) ++e.width;
    if (!e.weights.allocate(std::max<int64_t>(lanes * v.kernel[1] * e.width, 1))) return out_of_scratch(lanes * taps * 4);
    float* to = e.weights.data();
    for (int64_t row = 0; row < s->blocks * v.kernel[1]; ++row, to += e.width * kBlock)
      std::copy_n(s->weights.data() + (row * v.kernel[2] + e.first) * kBlock, e.width * kBlock, to);
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t x = 0; x < e.width; ++x) e.offsets.push_back((y * v.dilation[1] * s->pitch + x * v.dilation[2]) * kBlock);
    s->edges.push_back(std::move(e));
  }
  if (q.node.has_input(2)) {
    const ir::TensorData b = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    std::copy_n(b.as<float>(), s->channels, s->bias.data());
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Rows [row, row + rows) of the result of one block, where the input lies.
void run_in_place(const State& s, const Forms& f, DepthwisePixels d, const float* x, int64_t block, int64_t row, int64_t rows) {
  const Window& w = s.window;
  float* y = d.y;
  const float* weights = d.weights;
  const int64_t x_begin = s.begin * w.stride[2] - w.pad_begin[2];
  for (int64_t r = row; r < row + rows; ++r, y += w.out[2] * kBlock) {
    const int64_t start = r * w.stride[1] - w.pad_begin[1];
    const int64_t first = std::clamp<int64_t>(divide_up(std::max<int64_t>(-start, 0), w.dilation[1]), 0, w.kernel[1]),
                  last = std::clamp<int64_t>(divide_up(std::max<int64_t>(w.in[1] - start, 0), w.dilation[1]), first, w.kernel[1]);
    const float* line = x + (last > first ? (start + first * w.dilation[1]) * s.pitch * kBlock : 0);
    d.rows = 1;
    if (s.end > s.begin) {
      d.x = line + x_begin * kBlock;
      d.offsets = s.offsets.data();
      d.taps = (last - first) * w.kernel[2];
      d.weights = weights + first * w.kernel[2] * kBlock;
      d.columns = s.end - s.begin;
      d.y = y + s.begin * kBlock;
      f.depthwise_pixels(d);
    }
    for (const Edge& e : s.edges) {
      d.x = line + (e.width ? e.column * w.stride[2] - w.pad_begin[2] + e.first * w.dilation[2] : 0) * kBlock;
      d.offsets = e.offsets.data();
      d.taps = (last - first) * e.width;
      d.weights = e.weights.data() + (block * w.kernel[1] + first) * e.width * kBlock;
      d.columns = 1;
      d.y = y + e.column * kBlock;
      f.depthwise_pixels(d);
    }
  }
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  const Forms& f = forms();
  const int64_t fitting = kBandBytes / (s.pitch * kBlock * 4) - (w.kernel[1] - 1) * w.dilation[1];
  int64_t band = std::clamp<int64_t>(fitting / w.stride[1], std::min<int64_t>(4, w.out[1]), w.out[1]);
  band = divide_up(w.out[1], divide_up(w.out[1], band));
  const int64_t bands = divide_up(w.out[1], band);
  const int64_t copy_size = s.copies ? padded_rows(w, band) * s.pitch * kBlock : 0, bytes = c.pool.threads() * copy_size * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);

  for_each_job(c.pool, c.outputs[0].dims[0] * s.blocks * bands, [&](int64_t job, int64_t worker) {
    const int64_t plane = job / bands, image = plane / s.blocks, block = plane % s.blocks, row = job % bands * band,
                  rows = std::min(band, w.out[1] - row);
    const float* x = c.inputs[0].as<float>() + plane * w.in_size() * kBlock;
    StepList steps = s.tail.bind(c.inputs, image);
    const Clamp clamp = take_clamp(steps);
    DepthwisePixels d;
    d.row_step = w.stride[1] * s.pitch * kBlock;
    d.column_step = w.stride[2] * kBlock;
    d.offsets = s.offsets.data();
    d.taps = w.taps();
    d.weights = s.weights.data() + block * d.taps * kBlock;
    d.bias = s.bias.data() + block * kBlock;
    d.rows = rows;
    d.columns = w.out[2];
    d.clamp = clamp.active;
    d.low = clamp.low;
    d.high = clamp.high;
    d.y = c.outputs[0].as<float>() + (plane * w.out_size() + row * w.out[2]) * kBlock;
    if (s.copies) {
      float* copy = scratch + worker * copy_size;
      pad_pixels(w, x, 0, kBlock, s.pitch, row * w.stride[1], padded_rows(w, rows), copy);
      d.x = copy;
      f.depthwise_pixels(d);
    } else {
      run_in_place(s, f, d, x, block, row, rows);
    }
    if (!steps.empty())
      f.apply_steps(d.y, kBlock, rows * w.out[2], kBlock, steps.data(), static_cast<int64_t>(steps.size()), block, row * w.out[2],
                    0);
  });
  return {};
}
}  // namespace

std::span<const Kernel> float_depthwise() {
  static const Kernel kernels[] = {{"blocked_float_depthwise", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
