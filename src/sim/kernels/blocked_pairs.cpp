// Convolution of feature maps in blocks where sums are made of words, two products at a time (IntForms::blocked_pairs). The
// pixels that a result reads are gathered first, with all their taps, so that strides, padding and the ends of rows cost nothing
// later.
#include <algorithm>

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGatheredBytes = 480 << 10;  // of the pixels that all weights pass by

// The dwords of depth: blocks of all channels at every tap, then what is left of the channels at every tap.
struct State : KernelState {
  BlockedConv conv;
  int64_t whole_blocks = 0, partial_dwords = 0;  // per tap
  AlignedDwords weights;                         // [block of results][dword][kBlock]
  std::vector<IntConvert> converters;

  int64_t taps() const { return conv.window.taps(); }
  int64_t pieces() const { return taps() * (whole_blocks + (partial_dwords > 0 ? 1 : 0)); }
  int64_t dwords() const { return taps() * (whole_blocks * kBlock / 2 + partial_dwords); }
};

bool accepts(const KernelQuery& q) {
  const bool has_addend = q.inputs.size() > 3 && q.inputs[3].exists();
  if (!in_blocks(q.inputs[0]) || !in_blocks(q.outputs[0]) || (has_addend && !in_blocks(q.inputs[3]))) return false;
  const std::optional<BlockedConv> c = BlockedConv::create(q, false);
  return c && c->multiplies_pairs();
}

void pack_weights(State& s, const Weights& weights, ThreadPool& pool) {
  BlockedConv& c = s.conv;
  std::vector<int64_t> sums(static_cast<size_t>(c.outputs)), products(sums.size());
  pool.parallel_for(c.outputs, 8, [&](int64_t begin, int64_t end) {
    for (int64_t output = begin; output < end; ++output) {
      int32_t* to = s.weights.data() + output / kBlock * s.dwords() * kBlock + output % kBlock;
      // Dwords of channels from `first` on; the second of a pair is multiplied with the first.
      const auto pack = [&](int64_t tap, int64_t first, int64_t dwords) {
        int64_t before[2] = {};
        for (int64_t d = 0; d < dwords; ++d, to += kBlock) {
          int64_t value[2] = {};
          for (int64_t j = 0; j < 2 && first + 2 * d + j < c.channels; ++j) value[j] = weights.at(output, first + 2 * d + j, tap);
          sums[static_cast<size_t>(output)] += value[0] + value[1];
          if (d % 2 == 1) products[static_cast<size_t>(output)] += value[0] * before[0] + value[1] * before[1];
          std::copy_n(value, 2, before);
          *to = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(value[0])) |
                                     static_cast<uint32_t>(static_cast<uint16_t>(value[1])) << 16);
        }
      };
      for (int64_t tap = 0; tap < s.taps(); ++tap) pack(tap, 0, s.whole_blocks * kBlock / 2);
      for (int64_t tap = 0; tap < s.taps(); ++tap) pack(tap, s.whole_blocks * kBlock, s.partial_dwords);
    }
  });
  c.fold_zero_point(sums);
  c.subtract_from_bias(products);
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->conv = *BlockedConv::create(q, false);
  const BlockedConv& c = s->conv;
  s->partial_dwords = divide_up(c.channels % kBlock, int64_t{2}) % (kBlock / 2);
  s->whole_blocks = c.in_blocks - (s->partial_dwords > 0 ? 1 : 0);
  const int64_t size = c.out_blocks * s->dwords() * kBlock;
  if (!s->weights.allocate(size)) return out_of_scratch(size * 4);
  std::fill_n(s->weights.data(), size, 0);
  pack_weights(*s, Weights(q), pool);
  s->weights.share(q.inputs[1].constant->data());
  for (int64_t block = 0; block < c.out_blocks; ++block) s->converters.push_back(c.converter(block));
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Pixels [first, first + count) of the result of one image: what they read, kPairPixels at a time with all pieces of depth, and
// the products of that.
void gather(const State& s, const IntForms& f, const uint8_t* x, int64_t first, int64_t count, std::byte* to, int32_t* products) {
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  alignas(16) uint8_t fill[kBlock];
  std::fill_n(fill, kBlock, static_cast<uint8_t>(c.x_zero));
  BlockedPanel p;
  p.whole = s.whole_blocks;
  p.partial_dwords = s.partial_dwords;
  for (int64_t at = 0; at < count; at += kPairPixels) {
    int64_t row[kPairPixels], column[kPairPixels];
    for (int64_t i = 0; i < kPairPixels; ++i) {
      const int64_t pixel = std::min(first + at + i, v.out_size() - 1);
      row[i] = pixel / v.out[2] * v.stride[1] - v.pad_begin[1];
      column[i] = pixel % v.out[2] * v.stride[2] - v.pad_begin[2];
      products[at + i] = 0;
    }
    auto* words = reinterpret_cast<int16_t*>(to + at / kPairPixels * s.pieces() * kPanelPieceBytes);
    int16_t* partial_words = words + s.taps() * s.whole_blocks * kPairPixels * kBlock;
    for (int64_t ky = 0; ky < v.kernel[1]; ++ky)
      for (int64_t kx = 0; kx < v.kernel[2]; ++kx) {
        for (int64_t i = 0; i < kPairPixels; ++i) {
          const int64_t y = row[i] + ky * v.dilation[1], z = column[i] + kx * v.dilation[2];
          const bool inside = y >= 0 && y < v.in[1] && z >= 0 && z < v.in[2];
          p.x[i] = inside ? x + (y * v.in[2] + z) * kBlock : fill;
          p.block_bytes[i] = inside ? v.in_size() * kBlock : 0;
        }
        p.y = words;
        p.partial_y = partial_words;
        p.products = products + at;
        f.blocked_panel(p);
        words += s.whole_blocks * kPairPixels * kBlock;
        partial_words += kPairPixels * kBlock;
      }
  }
}

// How pixels and blocks of the result are divided into jobs.
struct Division {
  int64_t pixels = 0, parts = 0;  // of a part of an image
  int64_t blocks = 0, block_parts = 0;
};
Division divide(const State& s, int64_t threads) {
  const int64_t size = s.conv.window.out_size(), blocks = s.conv.out_blocks, wanted = threads > 1 ? 4 * threads : 1;
  const int64_t fitting = std::max(kGatheredBytes / (s.pieces() * kBlock * 2), kPairPixels);
  Division d;
  d.parts = std::min(std::max(divide_up(size, fitting), std::min(wanted, size / 32)), size);
  d.parts = std::max<int64_t>(d.parts, 1);
  d.pixels = divide_up(divide_up(size, d.parts), kPairPixels) * kPairPixels;
  d.parts = divide_up(size, d.pixels);
  d.blocks = d.parts >= wanted ? blocks : std::max<int64_t>(1, blocks * d.parts / wanted);
  d.block_parts = divide_up(blocks, d.blocks);
  return d;
}

Status run(KernelContext& context, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const BlockedConv& c = s.conv;
  const IntForms& f = int_forms(c.isa);
  const int64_t threads = context.pool.threads(), size = c.window.out_size();
  const Division d = divide(s, threads);
  const int64_t panel_bytes = s.pieces() * kPanelPieceBytes, gathered_bytes = d.pixels / kPairPixels * panel_bytes,
                worker_bytes = divide_up(gathered_bytes + d.pixels * 4, int64_t{64}) * 64;
  std::byte* scratch = context.scratch(static_cast<size_t>(threads * worker_bytes));
  if (!scratch) return out_of_scratch(threads * worker_bytes);
  const auto* x = static_cast<const uint8_t*>(context.inputs[0].data);
  const auto* addend = c.output.has_addend ? static_cast<const uint8_t*>(context.inputs[c.output.addend_slot].data) : nullptr;
  auto* y = static_cast<uint8_t*>(context.outputs[0].data);
  for_each_job(context.pool, context.outputs[0].dims[0] * d.parts * d.block_parts, [&](int64_t job, int64_t worker) {
    const int64_t image = job / (d.parts * d.block_parts), part = job / d.block_parts % d.parts,
                  first_block = job % d.block_parts * d.blocks, first = part * d.pixels;
    std::byte* panels = scratch + worker * worker_bytes;
    auto* products = reinterpret_cast<int32_t*>(panels + gathered_bytes);
    BlockedProduct p;
    p.dot = Dot::Words;
    p.pixels = std::min(d.pixels, size - first);
    gather(s, f, x + image * c.in_blocks * c.window.in_size() * kBlock, first, p.pixels, panels, products);
    p.x = reinterpret_cast<const uint8_t*>(panels);
    p.panel_bytes = panel_bytes;
    p.pairs = products;
    p.whole = s.taps() * s.whole_blocks;
    p.partial = s.partial_dwords > 0 ? s.taps() : 0;
    p.partial_dwords = s.partial_dwords;
    p.is_float_enough = c.output.is_float_enough;
    for (int64_t block = first_block; block < std::min(first_block + d.blocks, c.out_blocks); ++block) {
      const int64_t place = ((image * c.out_blocks + block) * size + first) * kBlock;
      p.weights = s.weights.data() + block * s.dwords() * kBlock;
      p.to = &s.converters[static_cast<size_t>(block)];
      p.y = y + place;
      p.addend = addend ? addend + place : nullptr;
      f.blocked_product(p);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> blocked_pairs() {
  static const Kernel kernels[] = {{"blocked_pairs", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
