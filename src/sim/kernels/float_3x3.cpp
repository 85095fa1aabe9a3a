// 3x3 convolution of float maps in blocks by Winograd's F(4x4, 3x3): a quarter of the products. The points (0, +-3/4, +-3/2,
// infinity) keep results within a few units of the error that direct sums have. What spreads over a tile there - an infinity, a
// NaN, an overflow - and what must be the same on every machine is computed by direct sums.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "sim/kernels/support/float_maps.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kTaps = 9;
constexpr int64_t kTileBytes = 448 << 10;  // of transformed tiles that all weights pass by
constexpr int64_t kLeastTiles = 14;        // of a part, so that weights are worth their way

struct State : KernelState {
  FloatConv conv;
  int64_t down = 0, across = 0;
  // A session needs one of the two, nearly always: each is packed when it is needed first.
  mutable std::once_flag by_tiles, directly;
  mutable AlignedFloats points;  // [block][point][channel][kBlock]
  mutable AlignedFloats direct;  // as in FloatConv

  int64_t tiles() const { return down * across; }
};

// Tiles save products and cost transforms, weights of four times the size, and results beyond the edges.
bool pays(const FloatConv& c) {
  const Window& w = c.window;
  const int64_t tiles = divide_up(w.out[1], kFloatTile) * divide_up(w.out[2], kFloatTile);
  // In steps of kBlock products; the transforms of a block's tile, and a line of weights from afar.
  constexpr int64_t kTransform = 240, kLine = 3;
  const int64_t direct = w.out_size() * kTaps * c.channels * c.y_blocks;
  const int64_t weights = kFloatTilePoints * c.channels * c.y_blocks;
  const int64_t by_tiles = tiles * (weights + kTransform * (c.x_blocks + c.y_blocks)) + kLine * weights;
  return by_tiles < direct * 9 / 10;
}

std::optional<FloatConv> plan(const KernelQuery& q) {
  std::optional<FloatConv> c = FloatConv::create(q);
  using Axes = Window::Axes;
  if (!c || c->from_rows || c->window.kernel != Axes{1, 3, 3} || c->window.stride != Axes{1, 1, 1} ||
      c->window.dilation != Axes{1, 1, 1} || !pays(*c))
    return std::nullopt;
  return c;
}

bool accepts(const KernelQuery& q) { return plan(q).has_value(); }

// Values of the polynomial a + b x + c x^2 at the points, divided by what the data's side is multiplied by.
std::array<double, kFloatTileReads> weight_line(double a, double b, double c) {
  constexpr double near2 = kNearPoint * kNearPoint, far2 = kFarPoint * kFarPoint;
  constexpr double at_zero = near2 * far2, at_near = 2 * near2 * (near2 - far2), at_far = 2 * far2 * (far2 - near2);
  return {a / at_zero,
          (a + kNearPoint * b + near2 * c) / at_near,
          (a - kNearPoint * b + near2 * c) / at_near,
          (a + kFarPoint * b + far2 * c) / at_far,
          (a - kFarPoint * b + far2 * c) / at_far,
          c};
}

void transform_weights(const float (&w)[kTaps], float* points, int64_t point_step) {
  std::array<double, kFloatTileReads> rows[3];
  for (int r = 0; r < 3; ++r) {
    const float* row = w + r * 3;
    rows[r] = weight_line(static_cast<double>(row[0]), static_cast<double>(row[1]), static_cast<double>(row[2]));
  }
  for (size_t x = 0; x < kFloatTileReads; ++x) {
    const auto column = weight_line(rows[0][x], rows[1][x], rows[2][x]);
    for (size_t y = 0; y < kFloatTileReads; ++y)
      points[static_cast<int64_t>(y * kFloatTileReads + x) * point_step] = static_cast<float>(column[y]);
  }
}

// Packs the weights of direct sums, or those of tiles.
void pack_direct(const State& s, const ir::TensorView& w, ThreadPool& pool) {
  std::call_once(s.directly, [&] {
    if (!s.conv.pack_weights(w, pool, s.direct)) throw std::bad_alloc();  // the next run tries again
    s.direct.share(w.data);
  });
}

void pack_points(const State& s, const ir::TensorView& w, ThreadPool& pool) {
  const FloatConv& c = s.conv;
  const int64_t point_step = c.channels * kBlock, block_step = kFloatTilePoints * point_step, size = c.y_blocks * block_step;
  std::call_once(s.by_tiles, [&] {
    if (!s.points.allocate(size)) throw std::bad_alloc();
    visit_dtype(w.dtype, [&]<class T>(TypeTag<T>) {
      pool.parallel_for(c.y_blocks * c.channels, 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t lane = 0; lane < kBlock; ++lane) {
            const int64_t block = i / c.channels, channel = i % c.channels, output = block * kBlock + lane;
            float taps[kTaps] = {};
            for (int64_t t = 0; t < kTaps && output < c.outputs; ++t)
              taps[t] = static_cast<float>(w.as<T>()[(output * c.channels + channel) * kTaps + t]);
            transform_weights(taps, s.points.data() + block * block_step + channel * kBlock + lane, point_step);
          }
      });
    });
    s.points.share(w.data);
  });
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->conv = std::move(*plan(q));
  ORKNN_TRY(s->conv.take_bias(q));
  s->down = divide_up(s->conv.window.out[1], kFloatTile);
  s->across = divide_up(s->conv.window.out[2], kFloatTile);
  const ir::TensorView w = q.inputs[1].constant->view();
  if (reproducible_floats())
    pack_direct(*s, w, pool);
  else
    pack_points(*s, w, pool);
  return std::unique_ptr<const KernelState>(std::move(s));
}

// One tile of a block, from its place or, at the edges, from a padded copy.
void load_tile(const Forms& f, const Window& w, const float* plane, int64_t tile_y, int64_t tile_x, float* to,
               int64_t point_step) {
  const int64_t y = tile_y * kFloatTile - w.pad_begin[1], x = tile_x * kFloatTile - w.pad_begin[2], width = w.in[2];
  if (y >= 0 && x >= 0 && y + kFloatTileReads <= w.in[1] && x + kFloatTileReads <= width) {
    f.tile_points(plane + (y * width + x) * kBlock, width * kBlock, to, point_step);
    return;
  }
  alignas(64) float copy[kFloatTilePoints * kBlock] = {};
  const int64_t left = std::clamp<int64_t>(-x, 0, kFloatTileReads), right = std::clamp<int64_t>(width - x, left, kFloatTileReads);
  for (int64_t r = 0; r < kFloatTileReads; ++r)
    if (y + r >= 0 && y + r < w.in[1] && left < right)
      std::memcpy(copy + (r * kFloatTileReads + left) * kBlock, plane + ((y + r) * width + x + left) * kBlock,
                  static_cast<size_t>((right - left) * kBlock) * sizeof(float));
  f.tile_points(copy, kFloatTileReads * kBlock, to, point_step);
}

// Applies steps to the results of tiles [begin, end) of one block.
void finish_tiles(const Forms& f, const State& s, const StepList& steps, int64_t block, int64_t begin, int64_t end,
                  float* plane) {
  const Window& w = s.conv.window;
  for (int64_t tile = begin; tile < end;) {
    const int64_t tile_y = tile / s.across, tile_x = tile % s.across, some = std::min(end - tile, s.across - tile_x);
    const int64_t x = tile_x * kFloatTile, columns = std::min(some * kFloatTile, w.out[2] - x);
    for (int64_t y = tile_y * kFloatTile; y < std::min((tile_y + 1) * kFloatTile, w.out[1]); ++y) {
      const int64_t pixel = y * w.out[2] + x;
      f.apply_steps(plane + pixel * kBlock, kBlock, columns, kBlock, steps.data(), static_cast<int64_t>(steps.size()), block,
                    pixel, 0);
    }
    tile += some;
  }
}

Status run_direct(const State& s, KernelContext& c) {
  pack_direct(s, c.inputs[1], c.pool);
  return s.conv.run(c, s.direct.data());
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  if (reproducible_floats() || c.outputs[0].count() == 0) return run_direct(s, c);
  pack_points(s, c.inputs[1], c.pool);
  const FloatConv& conv = s.conv;
  const Window& w = conv.window;
  const Forms& f = forms();
  const int64_t images = c.outputs[0].dims[0], threads = c.pool.threads();
  int64_t part = std::max(kLeastTiles, kTileBytes / (kFloatTilePoints * conv.x_blocks * kBlock * 4));
  if (threads > 1) part = std::min(part, std::max(kLeastTiles, divide_up(s.tiles() * images, kJobsPerThread * threads)));
  part = std::min(part, s.tiles());
  part = divide_up(s.tiles(), divide_up(s.tiles(), part));
  const int64_t parts = divide_up(s.tiles(), part);
  // A block more than needed between points, so that these do not meet in the same lines of the cache.
  const int64_t x_step = (conv.x_blocks * part + 1) * kBlock, m_step = (kTogether * part + 1) * kBlock;
  const int64_t per_worker = kFloatTilePoints * (x_step + m_step), bytes = threads * per_worker * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  std::atomic<bool> finite{true};
  for_each_job(c.pool, images * parts, [&](int64_t job, int64_t worker) {
    const int64_t image = job / parts, begin = job % parts * part, end = std::min(begin + part, s.tiles()), count = end - begin;
    float *points = scratch + worker * per_worker, *products = points + kFloatTilePoints * x_step;
    for (int64_t block = 0; block < conv.x_blocks; ++block) {
      const float* plane = c.inputs[0].as<float>() + (image * conv.x_blocks + block) * w.in_size() * kBlock;
      for (int64_t i = 0; i < count; ++i)
        load_tile(f, w, plane, (begin + i) / s.across, (begin + i) % s.across, points + (block * count + i) * kBlock, x_step);
    }
    StepList steps = conv.tail.bind(c.inputs, image);
    const Clamp clamp = take_clamp(steps);
    constexpr int64_t kNoOffset = 0;
    ConvPixels core;
    core.channels = conv.channels;
    core.block_step = count * kBlock;
    core.pixel_step = kBlock;
    core.offsets = &kNoOffset;
    core.taps = 1;
    core.weights_step = kFloatTilePoints * conv.channels * kBlock;
    core.ahead = conv.channels * kBlock;
    core.rows = 1;
    core.columns = count;
    core.y_block_step = count * kBlock;
    TileResult result;
    result.point_step = m_step;
    result.clamp = clamp.active;
    result.low = clamp.low;
    result.high = clamp.high;
    result.y_row_step = w.out[2] * kBlock;
    for (int64_t block = 0; block < conv.y_blocks; block += kTogether) {
      core.blocks = std::min(kTogether, conv.y_blocks - block);
      for (int64_t point = 0; point < kFloatTilePoints; ++point) {
        core.x = points + point * x_step;
        core.weights = s.points.data() + (block * kFloatTilePoints + point) * conv.channels * kBlock;
        core.y = products + point * m_step;
        f.conv_pixels(core);
      }
      for (int64_t k = 0; k < core.blocks; ++k) {
        float* plane = c.outputs[0].as<float>() + (image * conv.y_blocks + block + k) * w.out_size() * kBlock;
        result.bias = conv.bias.data() + (block + k) * kBlock;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t y = (begin + i) / s.across * kFloatTile, x = (begin + i) % s.across * kFloatTile;
          result.x = products + (k * count + i) * kBlock;
          result.y = plane + (y * w.out[2] + x) * kBlock;
          result.rows = std::min(kFloatTile, w.out[1] - y);
          result.columns = std::min(kFloatTile, w.out[2] - x);
          if (!f.tile_results(result)) finite.store(false, std::memory_order_relaxed);
        }
        if (!steps.empty()) finish_tiles(f, s, steps, block + k, begin, end, plane);
      }
    }
  });
  return finite.load(std::memory_order_relaxed) ? Status() : run_direct(s, c);
}
}  // namespace

std::span<const Kernel> float_3x3() {
  static const Kernel kernels[] = {{"blocked_float_3x3", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
