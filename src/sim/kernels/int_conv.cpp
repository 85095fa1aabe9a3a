// Convolution and transposed convolution as a matrix product: weights times the input, whose planes are first interleaved by
// channels and padded with the zero point. The columns of the product are the positions of a padded plane, so a tap of the kernel
// is nothing but an offset into it; strided planes are divided by remainders, transposed convolutions into one convolution per
// remainder.
#include <algorithm>

#include "ops/support/convolution.h"
#include "ops/support/requantize.h"
#include "sim/kernels/support/int_scalar.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kWeightBlock = 512 << 10;   // bytes of weights that stay in the second-level cache
constexpr int64_t kInterleaveRows = 1 << 14;  // dwords per piece of work

// The input of one group of four (or two) channels: [remainder of y][remainder of x][row][column] of dwords.
struct Layout {
  bool flat = false;              // no window: tiles of 48 positions, [tile][group][48]
  int64_t rows = 0, columns = 0;  // of the padded input
  int64_t pad_top = 0, pad_left = 0;
  int64_t stride_y = 1, stride_x = 1;
  std::vector<int64_t> slot_y, slot_x;  // per remainder: its place, or -1 when no tap reads it
  int64_t slots_x = 0;
  int64_t height = 0, pitch = 0;  // rows and columns of one remainder
  int64_t plane = 0;              // dwords of one group of channels

  int64_t place(int64_t y, int64_t x) const {  // of a padded position
    const int64_t slot = slot_y[static_cast<size_t>(y % stride_y)] * slots_x + slot_x[static_cast<size_t>(x % stride_x)];
    return (slot * height + y / stride_y) * pitch + x / stride_x;
  }
};

struct ReadTap {
  int64_t kernel = 0;    // index into the weights' taps
  int64_t y = 0, x = 0;  // padded position read by the first output
};

// Outputs at (start + i * step), a stride 1 walk over positions of the layout.
struct Part {
  std::vector<ReadTap> taps;
  int64_t start_y = 0, start_x = 0, step_y = 1, step_x = 1, rows = 0, columns = 0;
  std::vector<int64_t> offsets;  // bytes, per dword of depth
  AlignedDwords weights;         // [conv group][panel][depth][8]
  AlignedDwords high_weights;    // of wide sums; then the others are low halves
  std::vector<int32_t> bias;     // per channel, with what zero points add
  std::vector<int64_t> start;    // per channel, what the zero point of 16-bit data adds; empty = nothing
};

struct State : KernelState {
  Isa isa = Isa::Portable;
  bool words = false;
  bool wide = false;  // a 16-bit operand: sums of 64 bits
  uint8_t flip = 0;   // IntForms::data_flip of bytes
  Layout layout;
  std::vector<Part> parts;
  int64_t groups = 1, channels = 0 /* in, per group */, outputs = 0 /* per group */, channel_groups = 0 /* per group */;
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t zero = 0;
  OutputPlan output;
};

struct Geometry {
  Window window;
  int64_t groups = 1, channels = 0, outputs = 0;
  bool transposed = false;
};

bool is_wide(const KernelQuery& q) { return ops::has_wide_sums(q.inputs[0].dtype, q.inputs[1].dtype); }

std::optional<Geometry> geometry_of(const KernelQuery& q) {
  Geometry g;
  g.transposed = q.node.op == "int:ConvTranspose";
  if ((!g.transposed && q.node.op != "int:Conv") || !int_of(q.inputs[0].dtype) || !int_of(q.inputs[1].dtype) ||
      !q.inputs[1].constant)
    return std::nullopt;
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims, &y = q.outputs[0].dims;
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size()) return std::nullopt;
  const auto shape = g.transposed ? ops::conv_transpose_shape(q.attributes(), x, w) : ops::conv_shape(q.attributes(), x, w);
  if (!shape || shape->output_dims() != y) return std::nullopt;
  g.window = window_of(shape->window, shape->input, shape->output);
  g.groups = shape->groups;
  g.channels = shape->channels_per_group();
  g.outputs = shape->outputs_per_group();
  const Window& v = g.window;
  if (!g.transposed && g.groups > 1 && g.channels == 1 && !is_wide(q)) return std::nullopt;  // depthwise has a kernel of its own
  if (!g.transposed && v.cuts_input()) return std::nullopt;
  if (!v.fits_int32() || v.in[0] != 1 || v.out[0] != 1 || v.kernel[0] != 1 || v.pad_begin[0] != 0) return std::nullopt;
  return g;
}

// Layout and taps, without addresses and weights. Nothing for windows that would need a buffer out of proportion to the data.
std::optional<std::pair<Layout, std::vector<Part>>> plan(const Geometry& g) {
  const Window& v = g.window;
  Layout l;
  std::vector<Part> parts;
  if (!g.transposed) {
    Part& part = parts.emplace_back();
    part.rows = v.out[1];
    part.columns = v.out[2];
    l.stride_y = v.stride[1];
    l.stride_x = v.stride[2];
    l.pad_top = v.pad_begin[1];
    l.pad_left = v.pad_begin[2];
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t x = 0; x < v.kernel[2]; ++x) part.taps.push_back({y * v.kernel[2] + x, y * v.dilation[1], x * v.dilation[2]});
    l.flat = v.taps() == 1 && v.stride == Window::Axes{1, 1, 1} && !v.padded();
  } else {
    if (v.stride[1] * v.stride[2] > 64) return std::nullopt;
    // Output o reads input (o + pad - k * dilation) / stride for every k that divides.
    for (int64_t py = 0; py < std::min(v.stride[1], v.out[1]); ++py)
      for (int64_t px = 0; px < std::min(v.stride[2], v.out[2]); ++px) {
        Part& part = parts.emplace_back();
        part.start_y = py;
        part.start_x = px;
        part.step_y = v.stride[1];
        part.step_x = v.stride[2];
        part.rows = divide_up(v.out[1] - py, v.stride[1]);
        part.columns = divide_up(v.out[2] - px, v.stride[2]);
        for (int64_t y = 0; y < v.kernel[1]; ++y)
          for (int64_t x = 0; x < v.kernel[2]; ++x) {
            const int64_t at_y = py + v.pad_begin[1] - y * v.dilation[1], at_x = px + v.pad_begin[2] - x * v.dilation[2];
            if (at_y % v.stride[1] == 0 && at_x % v.stride[2] == 0)
              part.taps.push_back({y * v.kernel[2] + x, at_y / v.stride[1], at_x / v.stride[2]});
          }
      }
    for (const Part& part : parts)
      for (const ReadTap& t : part.taps) {
        l.pad_top = std::max(l.pad_top, -t.y);
        l.pad_left = std::max(l.pad_left, -t.x);
      }
    for (Part& part : parts)
      for (ReadTap& t : part.taps) {
        t.y += l.pad_top;
        t.x += l.pad_left;
      }
  }
  l.slot_y.assign(static_cast<size_t>(std::max<int64_t>(l.stride_y, 1)), -1);
  l.slot_x.assign(static_cast<size_t>(std::max<int64_t>(l.stride_x, 1)), -1);
  l.rows = l.columns = 1;
  for (const Part& part : parts) {
    // Also results that no tap reaches have a position.
    l.rows = std::max(l.rows, (part.rows - 1) * l.stride_y + 1);
    l.columns = std::max(l.columns, (part.columns - 1) * l.stride_x + 1);
    for (const ReadTap& t : part.taps) {
      l.rows = std::max(l.rows, (part.rows - 1) * l.stride_y + t.y + 1);
      l.columns = std::max(l.columns, (part.columns - 1) * l.stride_x + t.x + 1);
      l.slot_y[static_cast<size_t>(t.y % l.stride_y)] = 0;
      l.slot_x[static_cast<size_t>(t.x % l.stride_x)] = 0;
    }
  }
  if (l.rows > 4 * (v.in[1] + v.out[1] + 64) || l.columns > 4 * (v.in[2] + v.out[2] + 64) || l.stride_y > 64 || l.stride_x > 64)
    return std::nullopt;
  int64_t slots_y = 0;
  for (int64_t& slot : l.slot_y)
    if (slot == 0) slot = slots_y++;
  for (int64_t& slot : l.slot_x)
    if (slot == 0) slot = l.slots_x++;
  l.height = divide_up(l.rows, l.stride_y);
  l.pitch = divide_up(l.columns, l.stride_x);
  // An odd number of cache lines: planes must not all fall on the same few places of the cache.
  l.plane = (divide_up(slots_y * l.slots_x * l.height * l.pitch, 16) | 1) * 16;
  if (l.flat) {
    l.pitch = v.in_size();
    l.height = 1;
    parts[0].rows = 1;
    parts[0].columns = v.in_size();
  }
  return std::pair(std::move(l), std::move(parts));
}

std::optional<OutputPlan> output_plan(const KernelQuery& q, int64_t outputs) {
  return OutputPlan::create(q, {2, 3, 4}, ops::product_limits(q.inputs[0].dtype, q.inputs[1].dtype, outputs));
}

bool accepts(const KernelQuery& q) {
  const std::optional<Geometry> g = geometry_of(q);
  if (!g || !plan(*g)) return false;
  const int64_t outputs = g->groups * g->outputs;
  return (is_wide(q) ? wide_zero_points_fit(q, outputs, 0) : zero_points_fit(q, outputs)) && output_plan(q, outputs).has_value();
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  const Geometry g = *geometry_of(q);
  std::tie(s->layout, s->parts) = *plan(g);
  s->output = *output_plan(q, g.groups * g.outputs);
  s->wide = is_wide(q);
  s->isa = current_isa();
  s->groups = g.groups;
  s->channels = g.channels;
  s->outputs = g.outputs;
  s->in_height = s->layout.flat ? 1 : g.window.in[1];
  s->in_width = s->layout.flat ? g.window.in_size() : g.window.in[2];
  s->out_height = s->layout.flat ? 1 : g.window.out[1];
  s->out_width = s->layout.flat ? g.window.in_size() : g.window.out[2];
  s->zero = q.attributes().get_int("x_zero_point");
  const std::vector<int64_t>& w_zero = q.attributes().get_ints("w_zero_point");
  const Int w_type = *int_of(q.inputs[1].dtype);
  const bool is_signed = w_type == Int::Signed8;
  const void* w = q.inputs[1].constant->data();
  const auto zero_of = [&](int64_t channel) { return w_zero[w_zero.size() == 1 ? 0 : static_cast<size_t>(channel)]; };
  // Signed bytes hold weights whose zero point is the middle of their range.
  s->words = s->wide || !int_forms(s->isa).has_bytes;
  for (int64_t z : w_zero) s->words |= z != (is_signed ? 0 : 128);
  const int64_t per = s->words ? 2 : 4, taps = g.window.taps(), panels = divide_up(g.outputs, kIntRows);
  s->channel_groups = divide_up(g.channels, per);
  s->flip = s->words ? 0 : int_forms(s->isa).data_flip;
  const int64_t x_zero = s->zero + byte_offset(q.inputs[0].dtype) - s->flip;  // of bytes as they are multiplied

  for (Part& part : s->parts) {
    const int64_t depth = static_cast<int64_t>(part.taps.size()) * s->channel_groups;
    for (const ReadTap& t : part.taps)
      for (int64_t c = 0; c < s->channel_groups; ++c)
        part.offsets.push_back(4 * (s->layout.flat ? c * kIntColumns : c * s->layout.plane + s->layout.place(t.y, t.x)));
    const int64_t size = g.groups * panels * depth * kIntRows;
    if (!part.weights.allocate(size) || (s->wide && !part.high_weights.allocate(size))) return out_of_scratch(size * 4);
    part.bias.assign(s->output.bias.begin(), s->output.bias.end());
    if (q.inputs[0].dtype == DType::Int16 && s->zero != 0) part.start.assign(static_cast<size_t>(g.groups * g.outputs), 0);
    pool.parallel_for(g.groups * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / panels, first = i % panels * kIntRows;
        int32_t* to = part.weights.data() + i * depth * kIntRows;
        int32_t* high_to = s->wide ? part.high_weights.data() + i * depth * kIntRows : nullptr;
        uint32_t total[kIntRows] = {};
        int64_t wide_total[kIntRows] = {};
        for (const ReadTap& t : part.taps)
          for (int64_t c = 0; c < s->channel_groups * per; c += per)
            for (int64_t r = 0; r < kIntRows; ++r, ++to) {
              uint32_t packed = 0, high = 0;
              for (int64_t j = 0; j < per && first + r < g.outputs && c + j < g.channels; ++j) {
                const int64_t m = first + r;
                const int64_t at = g.transposed ? ((group * g.channels + c + j) * g.outputs + m) * taps + t.kernel
                                                : ((group * g.outputs + m) * g.channels + c + j) * taps + t.kernel;
                const int64_t value = int_at(w, w_type, at) - zero_of(group * g.outputs + m);
                total[r] += static_cast<uint32_t>(value);
                if (s->wide) {
                  wide_total[r] += value;
                  packed |= static_cast<uint32_t>(low_half(value)) << (16 * j);
                  high |= static_cast<uint32_t>(static_cast<uint16_t>(high_half(value))) << (16 * j);
                  continue;
                }
                packed |= s->words ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                                   : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
              }
              *to = static_cast<int32_t>(packed);
              if (high_to) *high_to++ = static_cast<int32_t>(high);
            }
        for (int64_t r = 0; r < std::min(kIntRows, g.outputs - first) && !part.start.empty(); ++r)
          part.start[static_cast<size_t>(group * g.outputs + first + r)] = -s->zero * wide_total[r];
        if (s->words) continue;
        for (int64_t r = 0; r < std::min(kIntRows, g.outputs - first); ++r) {
          int32_t& bias = part.bias[static_cast<size_t>(group * g.outputs + first + r)];
          bias = static_cast<int32_t>(static_cast<uint32_t>(bias) - static_cast<uint32_t>(x_zero) * total[r]);
        }
      }
    });
    part.weights.share(w);
    if (s->wide) part.high_weights.share(w);
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

IntInterleave interleave_of(const State& s, DType dtype) {
  IntInterleave p;
  p.words = s.words;
  p.wide = dtype == DType::Int16;
  p.is_signed = dtype == DType::Int8;
  p.flip = s.flip ^ (dtype == DType::Int8 ? 0x80 : 0);
  p.zero = static_cast<int32_t>(s.zero);
  return p;
}

// Rows [begin, end) of the padded plane of one group of channels, or tiles of a flat one.
void interleave_rows(const State& s, const IntForms& f, DType dtype, const uint8_t* const (&planes)[4], int64_t begin,
                     int64_t end, int32_t* to, int32_t* line) {
  IntInterleave p = interleave_of(s, dtype);
  const Layout& l = s.layout;
  const auto rows_from = [&](int64_t at) {
    for (size_t j = 0; j < 4; ++j) p.rows[j] = planes[j] ? planes[j] + at * (p.wide ? 2 : 1) : nullptr;
  };
  if (l.flat) {
    for (int64_t tile = begin; tile < end; ++tile) {
      rows_from(tile * kIntColumns);
      p.count = std::min(kIntColumns, l.pitch - tile * kIntColumns);
      p.y = to + tile * s.channel_groups * kIntColumns;
      f.interleave(p);
    }
    return;
  }
  uint32_t fill = 0;
  if (!s.words) fill = (static_cast<uint32_t>(s.zero + byte_offset(dtype)) ^ s.flip) * 0x01010101u;
  if (p.wide) fill = static_cast<uint32_t>(static_cast<uint16_t>(s.zero)) * 0x00010001u;
  const int64_t left = std::min(l.pad_left, l.columns), inside = std::clamp<int64_t>(l.columns - left, 0, s.in_width);
  for (int64_t y = begin; y < end; ++y) {
    if (l.slot_y[static_cast<size_t>(y % l.stride_y)] < 0) continue;
    const bool outside = y < l.pad_top || y - l.pad_top >= s.in_height;
    int32_t* row = l.stride_x == 1 ? to + l.place(y, 0) : line;
    if (outside) {
      std::fill_n(row, l.columns, static_cast<int32_t>(fill));
    } else {
      std::fill_n(row, left, static_cast<int32_t>(fill));
      rows_from((y - l.pad_top) * s.in_width);
      p.count = inside;
      p.y = row + left;
      f.interleave(p);
      std::fill(row + left + inside, row + l.columns, static_cast<int32_t>(fill));
    }
    if (l.stride_x == 1) continue;
    for (int64_t x = 0; x < l.stride_x; ++x) {
      if (l.slot_x[static_cast<size_t>(x)] < 0) continue;
      f.every(line + x, l.stride_x, divide_up(l.columns - x, l.stride_x), to + l.place(y, x));
    }
  }
}

// Finds the outputs among positions [begin, end) of a part's walk; returns how many segments.
int64_t segments_of(const State& s, const Part& part, int64_t begin, int64_t end, IntSegment* list) {
  int64_t found = 0;
  for (int64_t at = begin; at < end;) {
    const int64_t y = at / s.layout.pitch, x = at % s.layout.pitch, next = std::min(end, (y + 1) * s.layout.pitch);
    if (x < part.columns && y < part.rows)
      list[found++] = {at - begin, std::min(next, y * s.layout.pitch + part.columns) - at,
                       (part.start_y + y * part.step_y) * s.out_width + part.start_x + x * part.step_x};
    at = next;
  }
  return found;
}

// Results of some channels of a tile: `c` is the converter of the first, `y` and `addend` are its planes; finish(c, sums, count)
// runs it.
template <class Sum, class Finish>
void store_rows(const State& s, const Part& part, IntConvert c, const Sum* sums, const IntSegment* segments, int64_t count,
                const std::byte* addend, std::byte* y, Finish&& finish) {
  const int64_t bytes = int_bytes(s.output.type), addend_bytes = int_bytes(s.output.addend_type);
  if (part.step_x == 1) {
    for (int64_t i = 0; i < count; ++i) {
      c.y = y + segments[i].place * bytes;
      if (addend) c.addend = addend + segments[i].place * addend_bytes;
      finish(c, sums + segments[i].column, segments[i].count);
    }
    return;
  }
  alignas(64) std::byte results[kIntRows * kIntColumns * 2], operands[kIntRows * kIntColumns * 2];
  const int64_t y_stride = c.y_stride * bytes, addend_stride = c.addend_stride * addend_bytes;
  c.y_stride = c.addend_stride = kIntColumns;
  c.y = results;
  for (int64_t i = 0; i < count; ++i) {
    const IntSegment& g = segments[i];
    if (addend) {
      c.addend = operands;
      for (int64_t r = 0; r < c.rows; ++r)
        for (int64_t j = 0; j < g.count; ++j)
          std::copy_n(addend + r * addend_stride + (g.place + j * part.step_x) * addend_bytes, addend_bytes,
                      operands + (r * kIntColumns + j) * addend_bytes);
    }
    finish(c, sums + g.column, g.count);
    for (int64_t r = 0; r < c.rows; ++r)
      for (int64_t j = 0; j < g.count; ++j)
        std::copy_n(results + (r * kIntColumns + j) * bytes, bytes, y + r * y_stride + (g.place + j * part.step_x) * bytes);
  }
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms(s.isa);
  const Layout& l = s.layout;
  const DType dtype = c.inputs[0].dtype;
  const int64_t x_bytes = static_cast<int64_t>(dtype_bytes(dtype));
  const int64_t per = s.words ? 2 : 4, in_size = s.in_height * s.in_width, out_size = s.out_height * s.out_width;
  const int64_t flat_tiles = divide_up(l.pitch, kIntColumns);
  const int64_t group_size =
      l.flat ? flat_tiles * s.channel_groups * kIntColumns : s.channel_groups * l.plane;  // dwords of one group's input
  const int64_t line_size = l.stride_x == 1 ? 0 : divide_up(l.columns, 16) * 16;
  const int64_t dwords = s.groups * group_size + 2 * kIntColumns + c.pool.threads() * line_size;
  auto* planes = reinterpret_cast<int32_t*>(c.scratch(static_cast<size_t>(dwords * 4)));
  if (!planes) return out_of_scratch(dwords * 4);
  int32_t* lines = planes + s.groups * group_size + 2 * kIntColumns;
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  const auto* addend = s.output.has_addend ? static_cast<const std::byte*>(c.inputs[s.output.addend_slot].data) : nullptr;
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  const int64_t bytes = int_bytes(s.output.type), addend_bytes = int_bytes(s.output.addend_type);
  const int64_t threads = c.pool.threads(), outputs = s.groups * s.outputs, panels = divide_up(s.outputs, kIntRows);

  // The input, in pieces of some rows of four (or two) channels.
  const int64_t rows = l.flat ? flat_tiles : l.rows, row_dwords = l.flat ? kIntColumns : l.columns;
  const int64_t rows_per_piece = std::clamp<int64_t>(kInterleaveRows / row_dwords, 1, rows),
                pieces = divide_up(rows, rows_per_piece);
  // The product: blocks of weights that fit the cache, then enough blocks of columns for all threads.
  struct Cut {
    int64_t tiles, row_panels, column_tiles, row_blocks, column_blocks;
  };
  const auto cut_of = [&](const Part& part) {
    Cut cut;
    const int64_t depth = std::max<int64_t>(static_cast<int64_t>(part.offsets.size()), 1), wanted = 4 * threads;
    cut.tiles = divide_up((part.rows - 1) * l.pitch + part.columns, kIntColumns);
    cut.row_panels = std::clamp<int64_t>(kWeightBlock / (depth * kIntRows * 4), 1, panels);
    if (const int64_t jobs = cut.tiles * s.groups * divide_up(panels, cut.row_panels); jobs < wanted && threads > 1)
      cut.row_panels = std::clamp<int64_t>(panels * cut.tiles * s.groups / wanted, 1, cut.row_panels);
    cut.row_blocks = divide_up(panels, cut.row_panels);
    cut.column_tiles = std::clamp<int64_t>(cut.tiles * cut.row_blocks * s.groups / (2 * wanted), 1, cut.tiles);
    cut.column_blocks = divide_up(cut.tiles, cut.column_tiles);
    return cut;
  };
  struct Block {
    int64_t part, group, panel, panels, tile, tiles;
  };
  const auto jobs_of = [&](const Cut& cut) { return s.groups * cut.row_blocks * cut.column_blocks; };
  const auto block_of = [&](int64_t job) {
    size_t part = 0;
    Cut cut = cut_of(s.parts[part]);
    for (; job >= jobs_of(cut); cut = cut_of(s.parts[++part])) job -= jobs_of(cut);
    const int64_t tile = job % cut.column_blocks * cut.column_tiles,
                  panel = job / cut.column_blocks % cut.row_blocks * cut.row_panels;
    return Block{static_cast<int64_t>(part),
                 job / cut.column_blocks / cut.row_blocks,
                 panel,
                 std::min(cut.row_panels, panels - panel),
                 tile,
                 std::min(cut.column_tiles, cut.tiles - tile)};
  };
  int64_t block_count = 0;
  for (const Part& part : s.parts) block_count += jobs_of(cut_of(part));

  for (int64_t image = 0; image < c.outputs[0].dims[0]; ++image) {
    for_each_job(c.pool, s.groups * s.channel_groups * pieces, [&](int64_t job, int64_t worker) {
      const int64_t plane = job / pieces, group = plane / s.channel_groups, first = plane % s.channel_groups * per,
                    row = job % pieces * rows_per_piece;
      const uint8_t* from[4] = {};
      for (int64_t j = 0; j < per && first + j < s.channels; ++j)
        from[j] = x + ((image * s.groups + group) * s.channels + first + j) * in_size * x_bytes;
      int32_t* to = planes + group * group_size + plane % s.channel_groups * (l.flat ? kIntColumns : l.plane);
      interleave_rows(s, f, dtype, from, row, std::min(row + rows_per_piece, rows), to, lines + worker * line_size);
    });
    for_each_job(c.pool, block_count, [&](int64_t job, int64_t) {
      const Block b = block_of(job);
      const Part& part = s.parts[static_cast<size_t>(b.part)];
      const int64_t depth = static_cast<int64_t>(part.offsets.size()), positions = (part.rows - 1) * l.pitch + part.columns;
      // Converters read whole vectors, from the first column of a segment on: up to 15 sums after the last row.
      constexpr int64_t kSums = kIntRows * kIntColumns + 16;
      alignas(64) int32_t sums[kSums], high_sums[kSums];
      alignas(64) int64_t wide_sums[kSums];
      IntSegment segments[kIntColumns];
      IntTile t;
      const auto converter = [&](int64_t channel, int64_t at) {
        IntConvert to = s.output.channel(channel, addend ? addend + at * addend_bytes : nullptr, y + at * bytes);
        to.bias = part.bias.data() + channel;
        to.sums_stride = kIntColumns;
        to.y_stride = to.addend_stride = out_size;
        return to;
      };
      t.dot = s.words ? Dot::Words : Dot::BytesBUnsigned;
      t.offsets = part.offsets.data();
      t.depth = depth;
      t.sums = sums;
      for (int64_t tile = b.tile; tile < b.tile + b.tiles; ++tile) {
        const int64_t begin = tile * kIntColumns, end = std::min(begin + kIntColumns, positions);
        const int64_t found = segments_of(s, part, begin, end, segments);
        t.b = reinterpret_cast<const std::byte*>(planes + b.group * group_size +
                                                 (l.flat ? tile * s.channel_groups * kIntColumns : begin));
        t.columns = end - begin;
        if (f.product && s.output.is_float_enough && s.output.is_bytes() && !s.wide && part.step_x == 1) {
          const int64_t channel = b.group * s.outputs + b.panel * kIntRows, at = (image * outputs + channel) * out_size;
          IntProduct q;
          q.dot = t.dot;
          q.a = part.weights.data() + (b.group * panels + b.panel) * depth * kIntRows;
          q.b = t.b;
          q.offsets = t.offsets;
          q.depth = depth;
          q.columns = t.columns;
          q.to = converter(channel, at);
          q.to.rows = std::min(b.panels * kIntRows, s.outputs - b.panel * kIntRows);
          q.segments = segments;
          q.segment_count = found;
          f.product(q);
          continue;
        }
        for (int64_t panel = b.panel; panel < b.panel + b.panels; ++panel) {
          t.a = part.weights.data() + (b.group * panels + panel) * depth * kIntRows;
          t.rows = std::min(kIntRows, s.outputs - panel * kIntRows);
          const int64_t channel = b.group * s.outputs + panel * kIntRows, at = (image * outputs + channel) * out_size;
          IntConvert to = converter(channel, at);
          to.rows = t.rows;
          const std::byte* operand = addend ? addend + at * addend_bytes : nullptr;
          if (s.wide) {
            wide_tile(f, t, part.high_weights.data() + (b.group * panels + panel) * depth * kIntRows,
                      part.start.empty() ? nullptr : part.start.data() + channel, sums, high_sums, wide_sums);
            store_rows(s, part, to, wide_sums, segments, found, operand, y + at * bytes,
                       [&](const IntConvert& c64, const int64_t* from, int64_t n) { f.convert_wide(c64, from, n); });
            continue;
          }
          f.tile(t);
          store_rows(s, part, to, sums, segments, found, operand, y + at * bytes,
                     [&](const IntConvert& c32, const int32_t* from, int64_t n) { convert(f, s.output, c32, from, n); });
        }
      }
    });
  }
  return {};
}
}  // namespace

std::span<const Kernel> int_conv() {
  static const Kernel kernels[] = {{"int_conv", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
