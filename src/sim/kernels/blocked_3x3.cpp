// 3x3 convolutions of feature maps in blocks, exactly, with a quarter of the multiplications: Winograd's F(4x4, 3x3) in integers.
// Tiles of 6x6 pixels become 36 points of every channel, each point is a product of its own over the channels, and 36 sums
// become 4x4 results (support/blocked_3x3_body.h).
#include <algorithm>
#include <cstring>

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kPointBytes = 512 << 10;                    // of the transformed pixels that all weights pass by, per thread
constexpr int64_t kRunTiles = 42;                             // whose sums stay in the cache; whole products of every form
constexpr int64_t kTilesOfBytes = 40, kChannelsOfBytes = 32;  // from which on this is faster than sums of bytes
constexpr int64_t kTapCount = 9;
constexpr int64_t kLargestSum = int64_t{1} << 25;  // that tile_output gets right
constexpr int64_t kPixelWords = kBlock;

// Blocks of channels whose sums a result can hold; results of several parts are added.
struct Depth {
  int64_t first = 0, whole = 0, partial_dwords = 0;
  int64_t weights = 0;  // where they begin among those of a group of output blocks, in dwords
  int64_t dwords() const { return whole * kBlock / 2 + partial_dwords; }
};

struct State : KernelState {
  BlockedConv conv;
  int64_t rows = 0, columns = 0;  // of tiles
  int64_t together = 1;           // blocks of the result that are computed at once
  std::vector<Depth> depths;
  int64_t group_dwords = 0;  // weights of one block of the result
  AlignedDwords weights;     // [group of blocks][depth][point][dword][block][kBlock]
  std::vector<IntConvert> converters;
};

// Few results per tile are not worth it, nor are few tiles for weights that are four times as many as words, eight times as
// bytes. Where bytes are multiplied four at a time, what is left to win must also pay for the transforms, whose share falls with
// the channels.
bool pays(const BlockedConv& c) {
  const Window& v = c.window;
  const int64_t tiles = divide_up(v.out[1], int64_t{kTileResults}) * divide_up(v.out[2], int64_t{kTileResults});
  if (tiles < 4 || v.out_size() < 8 * tiles || c.channels < kBlock || c.outputs < kBlock) return false;
  return c.dot == Dot::Words || (tiles >= kTilesOfBytes && std::min(c.channels, c.outputs) >= kChannelsOfBytes);
}

bool accepts(const KernelQuery& q) {
  const bool has_addend = q.inputs.size() > 3 && q.inputs[3].exists();
  if (!in_blocks(q.inputs[0]) || !in_blocks(q.outputs[0]) || (has_addend && !in_blocks(q.inputs[3]))) return false;
  const std::optional<BlockedConv> c = BlockedConv::create(q, false);
  if (!c) return false;
  const Window& v = c->window;
  const bool is_3x3 = v.kernel[1] == 3 && v.kernel[2] == 3 && v.stride[1] == 1 && v.stride[2] == 1 && v.dilation[1] == 1 &&
                      v.dilation[2] == 1 && v.pad_begin[1] <= 2 && v.pad_begin[2] <= 2 && v.pad_end[1] <= 2 && v.pad_end[2] <= 2;
  const int64_t row_bytes = divide_up(v.out[2], int64_t{kTileResults}) * kPixelWords * 2;  // of the points of a block
  return is_3x3 && pays(*c) && c->in_blocks * row_bytes <= INT32_MAX;
}

// The largest sum that bytes can make with the weights of an output channel and a block of channels.
int64_t largest_sum(const BlockedConv& c, const Weights& weights, int64_t output, int64_t block) {
  int64_t above = 0, below = 0;
  for (int64_t channel = block * kBlock; channel < std::min((block + 1) * kBlock, c.channels); ++channel)
    for (int64_t tap = 0; tap < kTapCount; ++tap) {
      const int64_t value = weights.at(output, channel, tap);
      (value > 0 ? above : below) += value;
    }
  return 255 * std::max(above, -below);
}

// As few parts as the sums of these weights allow.
std::vector<Depth> divide_depth(const BlockedConv& c, const Weights& weights, ThreadPool& pool) {
  std::vector<int64_t> sums(static_cast<size_t>(c.outputs * c.in_blocks));
  pool.parallel_for(c.outputs, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * c.in_blocks; i < end * c.in_blocks; ++i)
      sums[static_cast<size_t>(i)] = largest_sum(c, weights, i / c.in_blocks, i % c.in_blocks);
  });
  const auto fits = [&](int64_t blocks) {
    for (int64_t output = 0; output < c.outputs; ++output)
      for (int64_t first = 0; first < c.in_blocks; first += blocks) {
        int64_t sum = 0;
        for (int64_t b = first; b < std::min(first + blocks, c.in_blocks); ++b)
          sum += sums[static_cast<size_t>(output * c.in_blocks + b)];
        if (sum >= kLargestSum) return false;
      }
    return true;
  };
  int64_t parts = 1;
  while (!fits(divide_up(c.in_blocks, parts))) ++parts;  // one block always does
  std::vector<Depth> depths;
  const int64_t blocks = divide_up(c.in_blocks, parts), last_channels = c.channels - (c.in_blocks - 1) * kBlock;
  for (int64_t first = 0; first < c.in_blocks; first += blocks) {
    Depth d;
    d.first = first;
    d.whole = std::min(blocks, c.in_blocks - first);
    if (first + d.whole == c.in_blocks && last_channels < kBlock) {
      --d.whole;
      d.partial_dwords = divide_up(last_channels, 2);
    }
    if (!depths.empty()) d.weights = depths.back().weights + depths.back().dwords() * kTilePoints * kBlock;
    depths.push_back(d);
  }
  return depths;
}

// The points of a 3x3 kernel: 4, 6, 6, 24, 24 and 1 times what the transform has, which are integers.
void transform_weights(const int32_t (&w)[kTapCount], int32_t (&points)[kTilePoints]) {
  const auto transform = [](const int32_t* x, int64_t step, int32_t* y, int64_t to_step) {
    const int32_t a = x[0], b = x[step], c = x[2 * step];
    const int32_t y_values[kTileEdge] = {a, -a - b - c, -a + b - c, a + 2 * b + 4 * c, a - 2 * b + 4 * c, c};
    for (int i = 0; i < kTileEdge; ++i) y[i * to_step] = y_values[i];
  };
  int32_t rows[3 * kTileEdge];
  for (int64_t r = 0; r < 3; ++r) transform(w + 3 * r, 1, rows + r * kTileEdge, 1);
  for (int64_t c = 0; c < kTileEdge; ++c) transform(rows + c, kTileEdge, points + c, kTileEdge);
}

void pack_weights(State& s, const Weights& weights, ThreadPool& pool) {
  BlockedConv& c = s.conv;
  std::vector<int64_t> sums(static_cast<size_t>(c.outputs));
  pool.parallel_for(c.outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t output = begin; output < end; ++output) {
      const int64_t block = output / kBlock, group = block / s.together,
                    blocks = std::min(s.together, c.out_blocks - group * s.together);
      int32_t* to = s.weights.data() + group * s.together * s.group_dwords;
      for (const Depth& d : s.depths) {
        const int64_t point_dwords = d.dwords() * blocks * kBlock;
        for (int64_t i = 0; i < 2 * d.dwords(); ++i) {
          const int64_t channel = d.first * kBlock + i;
          int32_t taps[kTapCount] = {}, points[kTilePoints];
          for (int64_t tap = 0; tap < kTapCount && channel < c.channels; ++tap) {
            taps[tap] = static_cast<int32_t>(weights.at(output, channel, tap));
            sums[static_cast<size_t>(output)] += taps[tap];
          }
          transform_weights(taps, points);
          int32_t* place = to + d.weights * blocks + i / 2 * blocks * kBlock + block % s.together * kBlock + output % kBlock;
          for (int64_t p = 0; p < kTilePoints; ++p) {
            const auto word = static_cast<int16_t>(points[p]);
            std::memcpy(reinterpret_cast<int16_t*>(place + p * point_dwords) + i % 2, &word, sizeof word);
          }
        }
      }
    }
  });
  c.fold_zero_point(sums);
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->conv = *BlockedConv::create(q, false);
  s->conv.flip = 0;  // tiles make words of the bytes as they are
  const BlockedConv& c = s->conv;
  s->rows = divide_up(c.window.out[1], kTileResults);
  s->columns = divide_up(c.window.out[2], kTileResults);
  s->together = int_forms(c.isa).blocked_blocks;
  const Weights weights(q);
  s->depths = divide_depth(c, weights, pool);
  s->group_dwords = s->depths.back().weights + s->depths.back().dwords() * kTilePoints * kBlock;
  const int64_t size = c.out_blocks * s->group_dwords;
  if (!s->weights.allocate(size)) return out_of_scratch(size * 4);
  std::memset(s->weights.data(), 0, static_cast<size_t>(size) * 4);
  pack_weights(*s, weights, pool);
  s->weights.share(q.inputs[1].constant->data());
  for (int64_t block = 0; block < c.out_blocks; ++block) s->converters.push_back(c.converter(block));
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Some rows of tiles, whose points are in memory at once, and how that is divided.
struct Band {
  int64_t rows = 0, tiles = 0;
  int64_t block_words = 0, point_words = 0;  // odd numbers of cache lines, so that they do not meet in the same sets
  int64_t run = 0;                           // tiles whose sums are computed at once
  int64_t points_bytes = 0, offsets_bytes = 0, sums_bytes = 0, results_bytes = 0;
  int64_t worker_bytes() const { return sums_bytes + results_bytes; }
};

// `parts`: in how many bands the map is divided at least.
Band choose_band(const State& s, int64_t threads, int64_t parts) {
  const BlockedConv& c = s.conv;
  const auto round = [](int64_t bytes) { return divide_up(bytes, int64_t{64}) * 64; };
  const int64_t row_bytes = kTilePoints * c.in_blocks * s.columns * kPixelWords * 2;
  Band b;
  b.rows = std::clamp<int64_t>(threads * kPointBytes / row_bytes, 1, s.rows);
  b.rows = divide_up(s.rows, divide_up(divide_up(s.rows, b.rows), parts) * parts);
  b.tiles = b.rows * s.columns;
  b.block_words = b.tiles * kPixelWords;
  b.point_words = (divide_up(c.in_blocks * b.block_words, int64_t{32}) | 1) * 32;
  b.run = std::min(divide_up(b.tiles, divide_up(b.tiles, kRunTiles)), b.tiles);
  b.points_bytes = round(kTilePoints * b.point_words * 2);
  b.offsets_bytes = round(c.in_blocks * 4);
  b.sums_bytes = round(kTilePoints * s.together * b.run * kBlock * 4);
  b.results_bytes = round(kTileResults * kTileResults * s.together * b.run * kBlock * 4);
  return b;
}

// The points of one block and row of tiles; padding has the value of the zero point.
void transform_row(const State& s, const IntForms& f, const uint8_t* x, int64_t tile_row, int16_t* to, int64_t point_words) {
  const Window& v = s.conv.window;
  const int64_t row_bytes = v.in[2] * kBlock, top = tile_row * kTileResults - v.pad_begin[1];
  const int64_t first = std::clamp<int64_t>(-top, 0, kTileEdge), last = std::clamp<int64_t>(v.in[1] - top, first, kTileEdge);
  for (int64_t tile = 0; tile < s.columns; ++tile, to += kPixelWords) {
    const int64_t left = tile * kTileResults - v.pad_begin[2];
    const int64_t begin = std::clamp<int64_t>(-left, 0, kTileEdge), end = std::clamp<int64_t>(v.in[2] - left, begin, kTileEdge);
    if (last - first == kTileEdge && end - begin == kTileEdge) {
      f.tile_input(x + top * row_bytes + left * kBlock, row_bytes, to, point_words);
      continue;
    }
    uint8_t pixels[kTilePoints * kBlock];
    std::memset(pixels, static_cast<int>(s.conv.x_zero), sizeof pixels);
    for (int64_t r = first; r < last && end > begin; ++r)
      std::memcpy(pixels + (r * kTileEdge + begin) * kBlock, x + (top + r) * row_bytes + (left + begin) * kBlock,
                  static_cast<size_t>((end - begin) * kBlock));
    f.tile_input(pixels, kTileEdge * kBlock, to, point_words);
  }
}

// Where the results of a run of tiles go: all of the maps, of one image.
struct Maps {
  uint8_t* y = nullptr;
  const uint8_t* addend = nullptr;
};

// Converts the results [row][tile][column][kBlock] of tiles [first, first + count), counted over the image.
void convert_run(const State& s, const IntForms& f, const int32_t* results, int64_t first, int64_t count, int64_t block,
                 const Maps& maps) {
  const Window& v = s.conv.window;
  for (int64_t done = 0; done < count;) {
    const int64_t tile = first + done, tile_row = tile / s.columns, column = tile % s.columns;
    const int64_t some = std::min(count - done, s.columns - column), left = column * kTileResults;
    const int64_t pixels = std::min(some * kTileResults, v.out[2] - left);
    for (int64_t r = 0; r < std::min<int64_t>(kTileResults, v.out[1] - tile_row * kTileResults); ++r) {
      const int64_t place = ((block * v.out[1] + tile_row * kTileResults + r) * v.out[2] + left) * kBlock;
      f.blocked_convert(s.converters[static_cast<size_t>(block)], s.conv.output.is_float_enough,
                        results + (r * count + done) * kTileResults * kBlock, pixels, maps.addend ? maps.addend + place : nullptr,
                        maps.y + place);
    }
    done += some;
  }
}

// What all runs of a band share.
struct BandWork {
  const Band& band;
  const int16_t* points = nullptr;
  const int32_t* offsets = nullptr;
  int64_t origin = 0;  // its first tile, counted over the image
  Maps maps;
};

// Tiles [first, first + count) of a band, for one group of output blocks. `sums` and `results` are the worker's.
void compute_run(const State& s, const IntForms& f, const BandWork& w, int64_t first, int64_t count, int64_t group, int32_t* sums,
                 int32_t* results) {
  const int64_t block = group * s.together, blocks = std::min(s.together, s.conv.out_blocks - block);
  const int64_t block_results = count * kTileResults * kTileResults * kBlock;
  for (const Depth& d : s.depths) {
    TileSums t;
    t.x = w.points + d.first * w.band.block_words + first * kPixelWords;
    t.point_words = w.band.point_words;
    t.offsets = w.offsets;
    t.whole = d.whole;
    t.partial_dwords = d.partial_dwords;
    t.blocks = blocks;
    t.point_dwords = d.dwords() * blocks * kBlock;
    t.weights = s.weights.data() + block * s.group_dwords + d.weights * blocks;
    t.tiles = count;
    t.sums = sums;
    f.tile_sums(t);
    TileOutput o;
    o.point_stride = blocks * count * kBlock;
    o.row_stride = count * kTileResults * kBlock;
    for (int64_t i = 0; i < blocks * count; ++i) {
      const int64_t b = i / count, tile = i % count;
      o.bias = &d == s.depths.data() ? s.converters[static_cast<size_t>(block + b)].bias : nullptr;
      o.sums = sums + i * kBlock;
      o.y = results + b * block_results + tile * kTileResults * kBlock;
      f.tile_output(o);
    }
  }
  for (int64_t b = 0; b < blocks; ++b) convert_run(s, f, results + b * block_results, w.origin + first, count, block + b, w.maps);
}

Status run(KernelContext& context, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const IntForms& f = int_forms(c.isa);
  const int64_t threads = context.pool.threads();
  // With enough rows every thread has bands of its own, whose points stay in its cache; otherwise all share each band.
  const bool alone = s.rows >= 2 * threads;
  const Band b = alone ? choose_band(s, 1, threads) : choose_band(s, threads, 1);
  const int64_t own_points = alone ? threads : 1,
                bytes = own_points * b.points_bytes + b.offsets_bytes + threads * b.worker_bytes();
  std::byte* scratch = context.scratch(static_cast<size_t>(bytes));
  if (!scratch) return out_of_scratch(bytes);
  auto* offsets = reinterpret_cast<int32_t*>(scratch + own_points * b.points_bytes);
  for (int64_t i = 0; i < c.in_blocks; ++i) offsets[i] = static_cast<int32_t>(i * b.block_words * 2);
  const auto* addend = c.output.has_addend ? static_cast<const uint8_t*>(context.inputs[c.output.addend_slot].data) : nullptr;
  const int64_t in_plane = v.in_size() * kBlock, out_image = c.out_blocks * v.out_size() * kBlock;
  const int64_t groups = divide_up(c.out_blocks, s.together);

  for (int64_t image = 0; image < context.outputs[0].dims[0]; ++image) {
    const uint8_t* x = static_cast<const uint8_t*>(context.inputs[0].data) + image * c.in_blocks * in_plane;
    const auto compute_band = [&](int64_t band, std::byte* place, auto&& for_each) {
      const int64_t first_row = band * b.rows, rows = std::min(b.rows, s.rows - first_row), tiles = rows * s.columns,
                    runs = divide_up(tiles, b.run);
      auto* points = reinterpret_cast<int16_t*>(place);
      BandWork w{b, points, offsets, first_row * s.columns, {}};
      w.maps.y = static_cast<uint8_t*>(context.outputs[0].data) + image * out_image;
      w.maps.addend = addend ? addend + image * out_image : nullptr;
      for_each(c.in_blocks * rows, [&](int64_t job, int64_t) {
        const int64_t block = job / rows, row = job % rows;
        transform_row(s, f, x + block * in_plane, first_row + row, points + block * b.block_words + row * s.columns * kPixelWords,
                      b.point_words);
      });
      for_each(groups * runs, [&](int64_t job, int64_t worker) {
        const int64_t first = job % runs * b.run;
        std::byte* own = scratch + own_points * b.points_bytes + b.offsets_bytes + worker * b.worker_bytes();
        compute_run(s, f, w, first, std::min(b.run, tiles - first), job / runs, reinterpret_cast<int32_t*>(own),
                    reinterpret_cast<int32_t*>(own + b.sums_bytes));
      });
    };
    const int64_t bands = divide_up(s.rows, b.rows);
    if (alone) {
      for_each_job(context.pool, bands, [&](int64_t band, int64_t worker) {
        compute_band(band, scratch + worker * b.points_bytes, [&](int64_t jobs, auto&& body) {
          for (int64_t job = 0; job < jobs; ++job) body(job, worker);
        });
      });
      continue;
    }
    for (int64_t band = 0; band < bands; ++band)
      compute_band(band, scratch, [&](int64_t jobs, auto&& body) { for_each_job(context.pool, jobs, body); });
  }
  return {};
}
}  // namespace

std::span<const Kernel> blocked_3x3() {
  static const Kernel kernels[] = {{"blocked_3x3", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
