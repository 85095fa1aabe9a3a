// Depthwise convolution of float maps in blocks. Columns whose window leaves the plane have weights of their own, without the
// taps outside; where these are many, the input is padded instead.
#include <algorithm>

#include "sim/kernels/support/depthwise_lanes.h"
#include "sim/kernels/support/float_maps.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 64 << 10;  // of padded pixels
constexpr int64_t kMostEdges = 8;         // columns that are computed by themselves, at most a quarter of all

// A column of the result that has columns [first, first + width) of its window inside the plane.
struct Edge {
  int64_t column = 0, first = 0, width = 0;
  std::vector<int64_t> offsets;  // per tap, in floats
  AlignedFloats weights;         // [block][tap][kBlock]
};

struct State : KernelState {
  DepthwiseLanes layer;
  bool copies = false;         // the input is padded
  int64_t begin = 0, end = 0;  // columns whose window lies inside
  std::vector<Edge> edges;     // the others
  BlockedSteps tail;
};

bool accepts(const KernelQuery& q) {
  return in_blocks(q.inputs[0]) && in_blocks(q.outputs[0]) && q.inputs[0].dtype == DType::Float32 && DepthwiseLanes::accepts(q) &&
         BlockedSteps::of_tail(q);
}

Status make_edge(const DepthwiseLanes& layer, Edge& e) {
  const Window& v = layer.window;
  const int64_t start = e.column * v.stride[2] - v.pad_begin[2];
  while (e.first < v.kernel[2] && start + e.first * v.dilation[2] < 0) ++e.first;
  while (e.first + e.width < v.kernel[2] && start + (e.first + e.width) * v.dilation[2] < v.in[2]) ++e.width;
  const int64_t size = std::max<int64_t>(layer.blocks * kBlock * v.kernel[1] * e.width, 1);
  if (!e.weights.allocate(size)) return out_of_scratch(size * 4);
  float* to = e.weights.data();
  for (int64_t row = 0; row < layer.blocks * v.kernel[1]; ++row, to += e.width * kBlock)
    std::copy_n(layer.weights.data() + (row * v.kernel[2] + e.first) * kBlock, e.width * kBlock, to);
  e.offsets = tap_offsets(v, e.width, layer.pitch);
  return {};
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->tail = std::move(*BlockedSteps::of_tail(q));
  const Window v = *depthwise_window(q);
  const int64_t reach = (v.kernel[2] - 1) * v.dilation[2];
  s->begin = std::min(divide_up(v.pad_begin[2], v.stride[2]), v.out[2]);
  s->end = std::clamp((v.in[2] - 1 - reach + v.pad_begin[2] + v.stride[2]) / v.stride[2], s->begin, v.out[2]);
  if (v.in[2] + v.pad_begin[2] <= reach) s->end = s->begin;
  const int64_t edges = v.out[2] - (s->end - s->begin);
  s->copies = edges > kMostEdges || edges * 4 > v.out[2];
  ORKNN_TRY(s->layer.take(q, s->copies ? 0 : v.in[2]));
  for (int64_t column = 0; column < v.out[2] && !s->copies; ++column) {
    if (column >= s->begin && column < s->end) continue;
    Edge& e = s->edges.emplace_back();
    e.column = column;
    ORKNN_TRY(make_edge(s->layer, e));
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Rows [row, row + rows) of the result of one block, where the input lies.
void run_in_place(const State& s, const Forms& f, DepthwisePixels d, const float* x, int64_t block, int64_t row, int64_t rows) {
  const Window& w = s.layer.window;
  float* y = d.y;
  const float* weights = d.weights;
  const int64_t x_begin = s.begin * w.stride[2] - w.pad_begin[2];
  for (int64_t r = row; r < row + rows; ++r, y += w.out[2] * kBlock) {
    const int64_t start = r * w.stride[1] - w.pad_begin[1];
    const int64_t first = std::clamp<int64_t>(divide_up(std::max<int64_t>(-start, 0), w.dilation[1]), 0, w.kernel[1]),
                  last = std::clamp<int64_t>(divide_up(std::max<int64_t>(w.in[1] - start, 0), w.dilation[1]), first, w.kernel[1]);
    const float* line = x + (last > first ? (start + first * w.dilation[1]) * s.layer.pitch * kBlock : 0);
    d.rows = 1;
    if (s.end > s.begin) {
      d.x = line + x_begin * kBlock;
      d.offsets = s.layer.offsets.data();
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
  const DepthwiseLanes& layer = s.layer;
  const Window& w = layer.window;
  const Forms& f = forms();
  const int64_t band = layer.band_rows(kBandBytes), bands = divide_up(w.out[1], band);
  const int64_t copy_size = s.copies ? padded_rows(w, band) * layer.pitch * kBlock : 0, bytes = c.pool.threads() * copy_size * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);

  for_each_job(c.pool, c.outputs[0].dims[0] * layer.blocks * bands, [&](int64_t job, int64_t worker) {
    const int64_t plane = job / bands, image = plane / layer.blocks, block = plane % layer.blocks, row = job % bands * band,
                  rows = std::min(band, w.out[1] - row);
    const float* x = c.inputs[0].as<float>() + plane * w.in_size() * kBlock;
    StepList steps = s.tail.bind(c.inputs, image);
    const Clamp clamp = take_clamp(steps);
    DepthwisePixels d = layer.pixels(block, rows, clamp);
    d.y = c.outputs[0].as<float>() + (plane * w.out_size() + row * w.out[2]) * kBlock;
    if (s.copies) {
      float* copy = scratch + worker * copy_size;
      pad_pixels(w, x, 0, kBlock, layer.pitch, row * w.stride[1], padded_rows(w, rows), copy);
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
