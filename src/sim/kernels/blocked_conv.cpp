// Convolution of feature maps in blocks: the channels of a pixel lie next to each other, so a tap of the kernel reads them where
// they are. Only padding, strides and, where sums are made of words, bytes need a copy of the input.
#include <algorithm>
#include <cstring>

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kInputBytes = 384 << 10;  // of the input that all weights pass by
constexpr int64_t kLinePixels = 112;        // of a line, where rows have no ends
constexpr int64_t kTwoRowPixels = 14;       // of two rows that a form computes at once, if it does
constexpr int64_t kStageBytes = 1 << 15;    // per piece of work
constexpr int64_t kLineSlack = 16;          // pixels that vectors may write beyond a row of a picture

// The input as the product reads it: rows of every block, whose columns are divided by their remainders modulo the stride.
struct Staged {
  bool copies = false;
  bool narrow = false;            // four channels per pixel, from rows
  int64_t rows = 0, columns = 0;  // padded
  int64_t pitch = 0;              // pixels of one remainder of a row
  int64_t pixel_bytes = kBlock;
  int64_t row_bytes = 0, block_bytes = 0;
};

struct State : KernelState {
  BlockedConv conv;
  Staged staged;
  bool flat = false;      // the rows of the result are one
  bool two_rows = false;  // short rows are computed two at a time
  std::vector<int32_t> offsets;
  int64_t whole = 0, partial = 0, partial_dwords = 0;
  int64_t depth = 0;            // dwords of an output channel
  int64_t together = 1;         // blocks of the result that are computed at once
  std::vector<int64_t> starts;  // of the weights of as many blocks, in dwords
  AlignedDwords weights;
  std::vector<IntConvert> converters;  // per block
};

// For convolutions.
bool forms_fit(const KernelQuery& q) {
  const bool from_rows = !in_blocks(q.inputs[0]);
  const bool has_addend = q.inputs.size() > 3 && q.inputs[3].exists();
  return in_blocks(q.outputs[0]) && (!has_addend || in_blocks(q.inputs[3])) && (!from_rows || q.inputs[0].dims[1] <= 4);
}

Staged stage(const BlockedConv& c, bool from_rows) {
  const Window& v = c.window;
  Staged s;
  s.narrow = from_rows;
  s.copies = from_rows || v.padded() || v.stride[2] != 1 || c.dot == Dot::Words;
  s.pixel_bytes = (s.narrow ? 4 : kBlock) * (c.dot == Dot::Words ? 2 : 1);
  s.rows = std::max(padded_rows(v, v.out[1]), v.in[1] * (s.copies ? 0 : 1));
  s.columns = (v.out[2] - 1) * v.stride[2] + (v.kernel[2] - 1) * v.dilation[2] + 1;
  s.pitch = s.copies ? divide_up(s.columns, v.stride[2]) : v.in[2];
  s.row_bytes = s.pitch * v.stride[2] * s.pixel_bytes;
  s.block_bytes = s.rows * s.row_bytes;
  return s;
}

// Where a tap of the kernel reads for the first pixel.
int64_t tap_offset(const BlockedConv& c, const Staged& s, int64_t y, int64_t x) {
  const Window& v = c.window;
  const int64_t column = x * v.dilation[2];
  return y * v.dilation[1] * s.row_bytes + (column % v.stride[2] * s.pitch + column / v.stride[2]) * s.pixel_bytes;
}

bool accepts(const KernelQuery& q) {
  const std::optional<BlockedConv> c = BlockedConv::create(q, false);
  if (!c || !forms_fit(q) || (in_blocks(q.inputs[0]) && c->multiplies_pairs())) return false;
  return c->in_blocks * stage(*c, !in_blocks(q.inputs[0])).block_bytes <= INT32_MAX;
}

void pack_weights(const KernelQuery& q, State& s, ThreadPool& pool) {
  BlockedConv& c = s.conv;
  const Weights weights(q);
  const int64_t per = c.per_dword(), taps = c.window.taps(), in_blocks = s.staged.narrow ? 1 : c.in_blocks,
                pixel_dwords = s.staged.pixel_bytes / 4, last = in_blocks - 1;
  std::vector<int64_t> sums(static_cast<size_t>(c.outputs));
  pool.parallel_for(static_cast<int64_t>(s.starts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * s.together, blocks = std::min(s.together, c.out_blocks - first);
      int32_t* to = s.weights.data() + s.starts[static_cast<size_t>(group)];
      const auto pack = [&](int64_t tap, int64_t block, int64_t dwords) {
        for (int64_t d = 0; d < dwords; ++d)
          for (int64_t o = 0; o < blocks * kBlock; ++o) {
            uint32_t packed = 0;
            const int64_t output = first * kBlock + o;
            for (int64_t j = 0; j < per; ++j) {
              const int64_t channel = block * kBlock + d * per + j;
              if (output >= c.outputs || channel >= c.channels) continue;
              const int64_t value = weights.at(output, channel, tap);
              sums[static_cast<size_t>(output)] += value;
              packed |= per == 2 ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                                 : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
            }
            *to++ = static_cast<int32_t>(packed);
          }
      };
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t block = 0; block < in_blocks; ++block)
          if (s.partial == 0 || block < last) pack(tap, block, pixel_dwords);
      for (int64_t tap = 0; tap < taps && s.partial > 0; ++tap) pack(tap, last, s.partial_dwords);
    }
  });
  c.fold_zero_point(sums);
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->conv = *BlockedConv::create(q, false);
  const BlockedConv& c = s->conv;
  const Window& v = c.window;
  s->staged = stage(c, !in_blocks(q.inputs[0]));
  s->flat = v.kernel[1] == 1 && v.kernel[2] == 1 && v.stride[1] == 1 && v.stride[2] == 1 && !v.padded();
  s->two_rows = !s->flat && !s->staged.narrow && 2 * v.out[2] <= kTwoRowPixels && v.out[1] > 1 &&
                int_forms(c.isa).blocked_pixels == kTwoRowPixels;
  const int64_t in_blocks = s->staged.narrow ? 1 : c.in_blocks, pixel_dwords = s->staged.pixel_bytes / 4, taps = v.taps();
  const int64_t last_dwords = divide_up(c.channels - (in_blocks - 1) * kBlock, c.per_dword());
  if (last_dwords < pixel_dwords) {
    s->partial = taps;
    s->partial_dwords = last_dwords;
  }
  s->whole = taps * in_blocks - s->partial;
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t x = 0; x < v.kernel[2]; ++x)
        for (int64_t block = 0; block < in_blocks; ++block)
          if ((s->partial > 0 && block == in_blocks - 1) == (pass == 1))
            s->offsets.push_back(static_cast<int32_t>(block * s->staged.block_bytes + tap_offset(c, s->staged, y, x)));
  s->depth = s->whole * pixel_dwords + s->partial * s->partial_dwords;
  s->together = int_forms(c.isa).blocked_blocks;
  for (int64_t block = 0; block < c.out_blocks; block += s->together) s->starts.push_back(block * kBlock * s->depth);
  const int64_t size = c.out_blocks * kBlock * s->depth;
  if (!s->weights.allocate(size)) return out_of_scratch(size * 4);
  pack_weights(q, *s, pool);
  s->weights.share(q.inputs[1].constant->data());
  for (int64_t block = 0; block < c.out_blocks; ++block) s->converters.push_back(c.converter(block));
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Whether a tap of the kernel reads columns with this remainder modulo the stride, or this row.
bool reads_remainder(const Window& v, int64_t remainder) {
  for (int64_t k = 0; k < v.kernel[2]; ++k)
    if (k * v.dilation[2] % v.stride[2] == remainder) return true;
  return false;
}
bool is_read(const Window& v, int64_t row) {
  for (int64_t k = 0; k < v.kernel[1]; ++k)
    if ((row - k * v.dilation[1]) % v.stride[1] == 0) return true;
  return false;
}

// One padded row of a picture, whose pixels are four bytes, or as many words. `line` has room for two such rows of bytes.
void stage_picture_row(const State& s, const IntForms& f, const uint8_t* x, uint8_t flip, int64_t row, std::byte* to,
                       int32_t* line) {
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const Staged& g = s.staged;
  const int64_t at = row - v.pad_begin[1], left = std::min(v.pad_begin[2], g.columns),
                inside = at >= 0 && at < v.in[1] ? std::clamp<int64_t>(g.columns - left, 0, v.in[2]) : 0;
  const auto fill = static_cast<int32_t>((static_cast<uint32_t>(c.x_zero) ^ c.flip) * 0x01010101u);
  const bool words = c.dot == Dot::Words;
  int32_t* out = v.stride[2] == 1 && !words ? reinterpret_cast<int32_t*>(to) : line;
  std::fill_n(out, left, fill);
  if (inside > 0) {
    IntInterleave p;
    for (int64_t j = 0; j < c.channels; ++j) p.rows[j] = x + (j * v.in[1] + at) * v.in[2];
    p.flip = flip ^ c.flip;
    p.count = inside;
    p.y = out + left;
    f.interleave(p);
  }
  std::fill(out + left + inside, out + g.columns, fill);
  for (int64_t r = 0; r < v.stride[2] && out == line; ++r) {
    const int64_t count = divide_up(g.columns - r, v.stride[2]);
    int32_t* part = words ? line + g.columns + kLineSlack : reinterpret_cast<int32_t*>(to) + r * g.pitch;
    f.every(line + r, v.stride[2], count, part);
    if (words) f.widen_bytes(reinterpret_cast<const uint8_t*>(part), count * 4, reinterpret_cast<int16_t*>(to) + r * g.pitch * 4);
  }
}

// One padded row of a block: of every remainder of its columns that is read, padding, pixels, padding.
void stage_row(const State& s, const IntForms& f, const uint8_t* x, int64_t block, int64_t row, std::byte* to) {
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const Staged& g = s.staged;
  const int64_t at = row - v.pad_begin[1], stride = v.stride[2], left = v.pad_begin[2];
  const bool is_inside = at >= 0 && at < v.in[1], words = c.dot == Dot::Words;
  const uint8_t* from = x + (block * v.in[1] + at) * v.in[2] * kBlock;
  const auto fill = [&](std::byte* place, int64_t pixels) {
    if (words)
      std::fill_n(reinterpret_cast<int16_t*>(place), pixels * kBlock, static_cast<int16_t>(c.x_zero));
    else
      std::memset(place, static_cast<int>(c.x_zero) ^ c.flip, static_cast<size_t>(pixels * kBlock));
  };
  for (int64_t r = 0; r < stride; ++r) {
    if (!reads_remainder(v, r)) continue;
    std::byte* part = to + r * g.pitch * g.pixel_bytes;
    const int64_t count = divide_up(g.columns - r, stride);
    const int64_t begin = std::clamp<int64_t>(left > r ? divide_up(left - r, stride) : 0, 0, count),
                  end = is_inside ? std::clamp<int64_t>(divide_up(v.in[2] + left - r, stride), begin, count) : begin;
    fill(part, begin);
    const uint8_t* source = from + (begin * stride + r - left) * kBlock;
    std::byte* target = part + begin * g.pixel_bytes;
    if (stride == 1 && !words && c.flip == 0)
      std::memcpy(target, source, static_cast<size_t>((end - begin) * kBlock));
    else if (stride == 1 && words)
      f.widen_bytes(source, (end - begin) * kBlock, reinterpret_cast<int16_t*>(target));
    else if (words)
      for (int64_t i = 0; i < end - begin; ++i)
        f.widen_bytes(source + i * stride * kBlock, kBlock, reinterpret_cast<int16_t*>(target) + i * kBlock);
    else
      for (int64_t i = 0; i < end - begin; ++i)
        store_pixel(target + i * kBlock, load_pixel(source + i * stride * kBlock) ^ c.flip);
    fill(part + end * g.pixel_bytes, count - end);
  }
}

Status run(KernelContext& context, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const BlockedConv& c = s.conv;
  const Window& v = c.window;
  const Staged& g = s.staged;
  const IntForms& f = int_forms(c.isa);
  const uint8_t flip = context.inputs[0].dtype == DType::Int8 ? 0x80 : 0;
  const int64_t threads = context.pool.threads(), in_blocks = g.narrow ? 1 : c.in_blocks;
  // Of pictures, a row before it is divided.
  const int64_t line_bytes = g.narrow ? divide_up(2 * (g.columns + kLineSlack) * 4, int64_t{64}) * 64 : 0, slack = 128;
  const int64_t staged_bytes = g.copies ? divide_up(in_blocks * g.block_bytes + slack, 64) * 64 : 0;
  const int64_t out_size = v.out_size(), out_image = c.out_blocks * kBlock * out_size;
  const int64_t in_image = (g.narrow ? c.channels : c.in_blocks * kBlock) * v.in_size();
  const auto* addend = c.output.has_addend ? static_cast<const uint8_t*>(context.inputs[c.output.addend_slot].data) : nullptr;

  // Lines of pixels; some of them, whose input stays in the cache, pass by all weights.
  const int64_t line_rows = s.two_rows ? 2 : 1, line = s.flat ? std::min(out_size, kLinePixels) : line_rows * v.out[2],
                lines = s.flat ? divide_up(out_size, line) : divide_up(v.out[1], line_rows);
  const int64_t input_bytes = in_blocks * line * (s.flat ? 1 : v.stride[1] * v.stride[2]) * g.pixel_bytes;
  const int64_t groups = static_cast<int64_t>(s.starts.size());
  int64_t chunk = std::clamp<int64_t>(kInputBytes / std::max<int64_t>(input_bytes, 1), 1, lines), group_chunk = groups;
  if (threads > 1) {
    // By pixels a thread finds what it computed in the layer before, but all weights pass by every part of them. Where these are
    // far more than the pixels, each thread gets its own weights instead.
    const int64_t wanted = 4 * threads, weight_bytes = s.depth * c.out_blocks * kBlock * 4;
    if (groups >= wanted && weight_bytes > 2 * input_bytes * lines) {
      group_chunk = groups / wanted;
    } else {
      chunk = std::clamp<int64_t>(lines / wanted, 1, chunk);
      if (divide_up(lines, chunk) < wanted) group_chunk = std::max<int64_t>(1, groups * divide_up(lines, chunk) / wanted);
    }
  }
  const int64_t chunks = divide_up(lines, chunk), group_chunks = divide_up(groups, group_chunk);
  const int64_t bytes = staged_bytes + threads * line_bytes;
  std::byte* scratch = g.copies ? context.scratch(static_cast<size_t>(bytes)) : nullptr;
  if (g.copies && !scratch) return out_of_scratch(bytes);
  const int64_t rows_per_job = std::clamp<int64_t>(kStageBytes / std::max<int64_t>(g.row_bytes, 1), 1,
                                                   threads > 1 ? divide_up(g.rows, 2 * threads) : g.rows),
                row_jobs = divide_up(g.rows, rows_per_job);

  for (int64_t image = 0; image < context.outputs[0].dims[0]; ++image) {
    const uint8_t* x = static_cast<const uint8_t*>(context.inputs[0].data) + image * in_image;
    if (g.copies) {
      for_each_job(context.pool, in_blocks * row_jobs, [&](int64_t job, int64_t worker) {
        const int64_t block = job % in_blocks, first = job / in_blocks * rows_per_job;
        auto* line = reinterpret_cast<int32_t*>(scratch + staged_bytes + worker * line_bytes);
        for (int64_t row = first; row < std::min(first + rows_per_job, g.rows); ++row) {
          std::byte* to = scratch + block * g.block_bytes + row * g.row_bytes;
          if (!is_read(v, row)) continue;
          if (g.narrow)
            stage_picture_row(s, f, x, flip, row, to, line);
          else
            stage_row(s, f, x, block, row, to);
        }
      });
    }
    const auto* from = g.copies ? reinterpret_cast<const uint8_t*>(scratch) : x;
    for_each_job(context.pool, chunks * group_chunks, [&](int64_t job, int64_t) {
      const int64_t first_line = job / group_chunks * chunk, first_group = job % group_chunks * group_chunk,
                    last_line = std::min(first_line + chunk, lines);
      BlockedProduct p;
      p.dot = c.dot;
      p.narrow = g.narrow;
      p.flip = g.copies ? 0 : c.flip;
      p.offsets = s.offsets.data();
      p.whole = s.whole;
      p.partial = s.partial;
      p.partial_dwords = s.partial_dwords;
      p.is_float_enough = c.output.is_float_enough;
      p.y_block = out_size * kBlock;
      for (int64_t group = first_group; group < std::min(first_group + group_chunk, groups); ++group) {
        const int64_t block = group * s.together;
        p.blocks = std::min(s.together, c.out_blocks - block);
        p.weights = s.weights.data() + s.starts[static_cast<size_t>(group)];
        p.to = s.converters.data() + block;
        for (int64_t i = first_line; i < last_line; ++i) {
          const int64_t place = image * out_image + block * p.y_block + i * line * kBlock;
          p.x = from + (s.flat ? i * line * g.pixel_bytes : i * line_rows * v.stride[1] * g.row_bytes);
          p.pixels = std::min(line, out_size - i * line);
          p.row_bytes = s.two_rows && p.pixels == line ? v.stride[1] * g.row_bytes : 0;
          p.y = static_cast<uint8_t*>(context.outputs[0].data) + place;
          p.addend = addend ? addend + place : nullptr;
          f.blocked_product(p);
        }
      }
    });
  }
  return {};
}
}  // namespace

std::span<const Kernel> blocked_conv() {
  static const Kernel kernels[] = {{"blocked_conv", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
