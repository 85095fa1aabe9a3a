// Depthwise convolution of feature maps in blocks, a band of one block at a time. Each padded row becomes dwords of the
// neighbours that a row of the kernel multiplies, which all rows of the result that meet it read; or, where a form has strips, a
// copy of its pixels that stays in the first-level cache.
#include <algorithm>
#include <cstring>

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandBytes = 64 << 10;
constexpr int64_t kStripBandBytes = 24 << 10;
constexpr int64_t kMoreResults = 3;  // beyond the last of a row, that strips read for
constexpr int64_t kPlanesPerThread = 8;
constexpr int64_t kSlackPixels = 8;  // that cores may read beyond the last

struct State : KernelState {
  BlockedConv conv;
  bool strips = false;     // by IntForms::depthwise_strips, which takes no more than the weights and converters
  int64_t row_pieces = 0;  // of depth per row of the kernel
  // A row of dwords: those that results begin with, and where pieces of depth are strides apart, those that begin later pieces.
  // Else each piece has columns of its own.
  int64_t columns = 0, own_columns = 1;
  std::vector<int32_t> offsets;
  AlignedDwords weights;  // [block][piece][kBlock]
  std::vector<IntConvert> converters;
};

std::optional<BlockedConv> plan(const KernelQuery& q) {
  std::optional<BlockedConv> c = BlockedConv::create(q, true);
  if (!c) return std::nullopt;
  if (!in_blocks(q.inputs[0]) || !in_blocks(q.outputs[0]) ||
      (q.inputs.size() > 3 && q.inputs[3].exists() && !in_blocks(q.inputs[3])))
    return std::nullopt;
  return c;
}

bool accepts(const KernelQuery& q) { return plan(q).has_value(); }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->conv = *plan(q);
  BlockedConv& c = s->conv;
  const Window& v = c.window;
  const int64_t per = c.per_dword(), piece_pixels = per * v.dilation[2];
  s->strips = c.dot != Dot::Words && v.kernel[2] <= kDepthwiseTaps && int_forms(c.isa).depthwise_strips;
  s->row_pieces = divide_up(v.kernel[2], per);
  const bool shares = piece_pixels % v.stride[2] == 0;
  s->columns = v.out[2] + (shares ? (s->row_pieces - 1) * piece_pixels / v.stride[2] : 0);
  s->own_columns = shares ? 1 : s->row_pieces;
  const int64_t depth = v.kernel[1] * s->row_pieces;
  for (int64_t y = 0; y < v.kernel[1]; ++y)
    for (int64_t piece = 0; piece < s->row_pieces; ++piece) {
      const int64_t row = y * v.dilation[1] * s->own_columns * s->columns;
      s->offsets.push_back(
          static_cast<int32_t>((row + (shares ? piece * piece_pixels / v.stride[2] : piece * s->columns)) * kBlock));
    }
  if (!s->weights.allocate(c.out_blocks * depth * kBlock)) return out_of_scratch(c.out_blocks * depth * kBlock * 4);
  std::vector<int64_t> sums(static_cast<size_t>(c.outputs));
  const Weights weights(q);
  int32_t* to = s->weights.data();
  for (int64_t block = 0; block < c.out_blocks; ++block)
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t piece = 0; piece < s->row_pieces; ++piece)
        for (int64_t channel = block * kBlock; channel < (block + 1) * kBlock; ++channel) {
          uint32_t packed = 0;
          for (int64_t j = 0; j < per && channel < c.outputs && piece * per + j < v.kernel[2]; ++j) {
            const int64_t value = weights.at(channel, 0, y * v.kernel[2] + piece * per + j);
            sums[static_cast<size_t>(channel)] += value;
            packed |= per == 2 ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                               : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
          }
          *to++ = static_cast<int32_t>(packed);
        }
  c.fold_zero_point(sums);
  for (int64_t block = 0; block < c.out_blocks; ++block) s->converters.push_back(c.converter(block));
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Columns [begin, end) of a row of dwords, where a piece of depth begins with pixel `first` of the row for column 0: those inside
// of the row from the row itself, others from a copy with its padding.
struct RowTaps {
  const State& s;
  const IntForms& f;
  const uint8_t* row;
  int64_t first;
  int32_t* to;

  void run(int64_t begin, int64_t end) const {
    f.blocked_taps(s.conv.dot, row + (first + begin * stride()) * kBlock, stride(), dilation(), end - begin, to + begin * kBlock);
  }
  void run_padded(int64_t begin, int64_t end) const {
    alignas(64) uint8_t pixels[4 * kBlock];
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t i = 0; i < s.conv.per_dword(); ++i) {
        const int64_t at = first + column * stride() + i * dilation();
        const bool inside = at >= 0 && at < s.conv.window.in[2];
        store_pixel(pixels + i * kBlock, inside ? load_pixel(row + at * kBlock) : Pixel{} + static_cast<uint8_t>(s.conv.x_zero));
      }
      f.blocked_taps(s.conv.dot, pixels, 1, 1, 1, to + column * kBlock);
    }
  }
  void run_all() const {
    const int64_t width = s.conv.window.in[2], per = s.conv.per_dword();
    const int64_t begin = std::clamp<int64_t>(first < 0 ? divide_up(-first, stride()) : 0, 0, s.columns);
    const int64_t room = width - (per - 1) * dilation() - 1 - first;  // of the last column inside
    const int64_t end = std::clamp<int64_t>(room < 0 ? 0 : room / stride() + 1, begin, s.columns);
    run_padded(0, begin);
    if (begin < end) run(begin, end);
    run_padded(end, s.columns);
  }
  int64_t stride() const { return s.conv.window.stride[2]; }
  int64_t dilation() const { return s.conv.window.dilation[2]; }
};

// Bands of rows of the result: several threads divide the planes, which costs nothing, or the rows of each where planes are too
// few to be shared evenly. `row_bytes`: of the copy of an input row, of which `bytes` are to be held at once.
int64_t choose_band(const Window& v, int64_t planes, int64_t threads, int64_t row_bytes, int64_t bytes) {
  const int64_t most = planes < kPlanesPerThread * threads && threads > 1 ? divide_up(v.out[1], threads) : v.out[1],
                fitting = (bytes / row_bytes - (v.kernel[1] - 1) * v.dilation[1]) / v.stride[1];
  return std::clamp<int64_t>(fitting, std::min<int64_t>(4, most), most);
}

Status run_strips(KernelContext& context, const State& s) {
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const IntForms& f = int_forms(c.isa);
  const int64_t threads = context.pool.threads(), planes = context.outputs[0].dims[0] * c.out_blocks;
  const int64_t read = (v.out[2] - 1) * v.stride[2] + (v.kernel[2] - 1) * v.dilation[2] + 1,
                pitch = (v.out[2] - 1 + kMoreResults) * v.stride[2] + (kDepthwiseTaps - 1) * v.dilation[2] + 1,
                row_bytes = pitch * kBlock;
  const int64_t left = std::min(v.pad_begin[2], read), inside = std::clamp<int64_t>(read - left, 0, v.in[2]);
  const int64_t band = choose_band(v, planes, threads, row_bytes, kStripBandBytes), bands = divide_up(v.out[1], band),
                worker_bytes = divide_up(padded_rows(v, band) * row_bytes, int64_t{64}) * 64;
  std::byte* scratch = context.scratch(static_cast<size_t>(worker_bytes * threads));
  if (!scratch) return out_of_scratch(worker_bytes * threads);
  const auto* x = static_cast<const uint8_t*>(context.inputs[0].data);
  const auto* addend = c.output.has_addend ? static_cast<const uint8_t*>(context.inputs[c.output.addend_slot].data) : nullptr;
  auto* y = static_cast<uint8_t*>(context.outputs[0].data);
  const auto outside = static_cast<int>(c.x_zero);
  for_each_job(context.pool, planes * bands, [&](int64_t job, int64_t worker) {
    const int64_t plane = job % planes, block = plane % c.out_blocks, first = job / planes * band,
                  count = std::min(band, v.out[1] - first);
    auto* const copy = reinterpret_cast<uint8_t*>(scratch + worker * worker_bytes);
    for (int64_t row = 0; row < padded_rows(v, count); ++row) {
      const int64_t at = first * v.stride[1] - v.pad_begin[1] + row;
      uint8_t* const to = copy + row * row_bytes;
      if (at < 0 || at >= v.in[1]) {
        std::memset(to, outside, static_cast<size_t>(read * kBlock));
        continue;
      }
      std::memset(to, outside, static_cast<size_t>(left * kBlock));
      std::memcpy(to + left * kBlock, x + (plane * v.in[1] + at) * v.in[2] * kBlock, static_cast<size_t>(inside * kBlock));
      std::memset(to + (left + inside) * kBlock, outside, static_cast<size_t>((read - left - inside) * kBlock));
    }
    const int64_t place = (plane * v.out[1] + first) * v.out[2] * kBlock;
    DepthwiseStrips p;
    p.x = copy;
    p.row_bytes = v.stride[1] * row_bytes;
    p.tap_row_bytes = v.dilation[1] * row_bytes;
    p.pixel_bytes = v.stride[2] * kBlock;
    p.tap_bytes = v.dilation[2] * kBlock;
    p.kernel_rows = v.kernel[1];
    p.weights = s.weights.data() + block * v.kernel[1] * kBlock;
    p.to = &s.converters[static_cast<size_t>(block)];
    p.is_float_enough = c.output.is_float_enough;
    p.rows = count;
    p.columns = v.out[2];
    p.y = y + place;
    p.addend = addend ? addend + place : nullptr;
    f.depthwise_strips(p);
  });
  return {};
}

Status run(KernelContext& context, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  if (s.strips) return run_strips(context, s);
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const IntForms& f = int_forms(c.isa);
  const int64_t depth = static_cast<int64_t>(s.offsets.size()), per = c.per_dword();
  const int64_t row_dwords = s.own_columns * s.columns * kBlock;
  const int64_t threads = context.pool.threads(), planes = context.outputs[0].dims[0] * c.out_blocks;
  const int64_t band = choose_band(v, planes, threads, row_dwords * 4, kBandBytes), bands = divide_up(v.out[1], band);
  const int64_t band_dwords = padded_rows(v, band) * row_dwords + kSlackPixels * kBlock;
  const int64_t worker_bytes = divide_up(band_dwords * 4, 64) * 64;
  std::byte* scratch = context.scratch(static_cast<size_t>(worker_bytes * threads));
  if (!scratch) return out_of_scratch(worker_bytes * threads);
  const auto* x = static_cast<const uint8_t*>(context.inputs[0].data);
  const auto* addend = c.output.has_addend ? static_cast<const uint8_t*>(context.inputs[c.output.addend_slot].data) : nullptr;
  auto* y = static_cast<uint8_t*>(context.outputs[0].data);
  const uint32_t outside = (static_cast<uint32_t>(c.x_zero) ^ c.flip) * (per == 2 ? 0x00010001u : 0x01010101u);
  for_each_job(context.pool, planes * bands, [&](int64_t job, int64_t worker) {
    const int64_t plane = job % planes, block = plane % c.out_blocks, first = job / planes * band,
                  count = std::min(band, v.out[1] - first);
    auto* dwords = reinterpret_cast<int32_t*>(scratch + worker * worker_bytes);
    for (int64_t row = 0; row < padded_rows(v, count); ++row) {
      const int64_t at = first * v.stride[1] - v.pad_begin[1] + row;
      int32_t* to = dwords + row * row_dwords;
      if (at < 0 || at >= v.in[1]) {
        std::fill_n(to, row_dwords, static_cast<int32_t>(outside));
        continue;
      }
      const uint8_t* from = x + (plane * v.in[1] + at) * v.in[2] * kBlock;
      for (int64_t piece = 0; piece < s.own_columns; ++piece)
        RowTaps{s, f, from, piece * per * v.dilation[2] - v.pad_begin[2], to + piece * s.columns * kBlock}.run_all();
    }
    const int64_t place = (plane * v.out[1] + first) * v.out[2] * kBlock;
    BlockedDepthwise p;
    p.dot = c.dot;
    p.x = dwords;
    p.row_stride = v.stride[1] * row_dwords;
    p.offsets = s.offsets.data();
    p.depth = depth;
    p.weights = s.weights.data() + block * depth * kBlock;
    p.to = &s.converters[static_cast<size_t>(block)];
    p.is_float_enough = c.output.is_float_enough;
    p.rows = count;
    p.columns = v.out[2];
    p.y = y + place;
    p.addend = addend ? addend + place : nullptr;
    f.blocked_depthwise(p);
  });
  return {};
}
}  // namespace

std::span<const Kernel> blocked_depthwise() {
  static const Kernel kernels[] = {{"blocked_depthwise", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
