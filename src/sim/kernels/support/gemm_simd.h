// Matrix product of packed panels, and the packing. The micro-kernel holds rows x columns of C in registers over the
// whole depth, broadcasts A and reads vectors of B; every element of C is summed in order of depth, whatever its block.
#pragma once

#include <cstring>

#include "sim/kernels/support/steps_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

#if defined(ORKNN_FORM_32_REGISTERS)
constexpr int kMicroRows = 8, kMicroVecs = 3;  // 24 sums, 3 of B, 1 of A of 32 registers
#elif defined(ORKNN_FORM_AVX2)
constexpr int kMicroRows = 4, kMicroVecs = 3;  // 12 sums, 3 of B, 1 of A of 16 registers
#else
constexpr int kMicroRows = 4, kMicroVecs = 2;
#endif
constexpr int kPrefetch = 2048;  // floats of A ahead, where B is at hand
constexpr int kMicroColumns = kMicroVecs * Vec::kWidth;
static_assert(kPanelColumns % kMicroColumns == 0 && kPanelRows % kMicroRows == 0);

struct MicroArguments {
  const float* a;
  const float* b;
  int64_t b_row_stride, depth;
  const float* ahead;  // of A or B, whatever comes from far away: asked for while these are computed
  int64_t ahead_step;  // floats per step of depth
  float* c;
  int64_t c_row_stride, c_quad_stride;  // see GemmBlock
  int last_columns;                     // valid columns of the last vector
  const float* bias;
  bool accumulate, clamp, streams;
  float low, high;
};

// A column of a panel of A; value r for all lanes.
struct ColumnOfA {
#if defined(ORKNN_FORM_NEON)
  float32x4_t half[2];  // products take a lane of a register
  explicit ColumnOfA(const float* a) : half{vld1q_f32(a), vld1q_f32(a + 4)} {}
  Vec operator[](int r) const { return splat(half[r / 4][r % 4]); }
#else
  const float* a;
  explicit ColumnOfA(const float* from) : a(from) {}
  Vec operator[](int r) const { return splat(a[r]); }
#endif
};

#if !defined(ORKNN_FORM_AVX512)
ORKNN_SIMD void stream(float* to, Vec v) { store(to, v); }
ORKNN_SIMD void finish_streams() {}
#endif

// Rows are neighbours, fours of columns are far apart: one four after the other fills whole lines.
template <int Rows, int Vecs>
ORKNN_SIMD void store_quads(const Vec (&sums)[Rows][Vecs], float* to, int64_t quad_stride) {
#if defined(ORKNN_FORM_AVX512)
  if constexpr (Rows % 4 == 0) {
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) {
      ORKNN_UNROLL
      for (int r = 0; r < Rows; r += 4) {
        Vec fours[4];
        transpose_fours(sums[r][v], sums[r + 1][v], sums[r + 2][v], sums[r + 3][v], fours);
        ORKNN_UNROLL
        for (int q = 0; q < 4; ++q) store(to + (4 * v + q) * quad_stride + 4 * r, fours[q]);
      }
    }
    return;
  }
#endif
  alignas(64) float rows[Rows][Vecs * Vec::kWidth];
  ORKNN_UNROLL
  for (int r = 0; r < Rows; ++r) {
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) store(rows[r] + v * Vec::kWidth, sums[r][v]);
  }
  for (int c = 0; c < Vecs * Vec::kWidth; c += 4, to += quad_stride)
    for (int r = 0; r < Rows; ++r) std::memcpy(to + 4 * r, rows[r] + c, 16);
}

template <int Rows, int Vecs>
static void micro(const MicroArguments& m) {
  Vec sums[Rows][Vecs];
  if (m.accumulate) {
    ORKNN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const float* c = m.c + r * m.c_row_stride;
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v)
        sums[r][v] = v + 1 < Vecs ? load(c + v * Vec::kWidth) : load_part(c + v * Vec::kWidth, m.last_columns);
    }
  } else {
    ORKNN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vec start = splat(m.bias ? m.bias[r] : 0.0f);
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v) sums[r][v] = start;
    }
  }
  const float* a = m.a;
  const float* b = m.b;
  const float* ahead = m.ahead;
  const int64_t b_row_stride = m.b_row_stride, ahead_step = m.ahead_step;
  for (int64_t k = m.depth; k > 0; --k) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    Vec columns[Vecs];
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) columns[v] = load(b + v * Vec::kWidth);
    const ColumnOfA weights(a);
    ORKNN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vec weight = weights[r];
      ORKNN_UNROLL
      for (int v = 0; v < Vecs; ++v) sums[r][v] = fma(weight, columns[v], sums[r][v]);
    }
    a += kPanelRows;
    b += b_row_stride;
  }
  if (m.c_quad_stride != 0) return store_quads(sums, m.c, m.c_quad_stride);
  const bool whole = m.last_columns == Vec::kWidth;
  const Vec low = splat(m.low), high = splat(m.high);
  ORKNN_UNROLL
  for (int r = 0; r < Rows; ++r) {
    float* c = m.c + r * m.c_row_stride;
    ORKNN_UNROLL
    for (int v = 0; v < Vecs; ++v) {
      const Vec y = m.clamp ? min(high, max(low, sums[r][v])) : sums[r][v];
      if (m.streams)
        stream(c + v * Vec::kWidth, y);
      else if (v + 1 < Vecs || whole)
        store(c + v * Vec::kWidth, y);
      else
        store_part(c + v * Vec::kWidth, y, m.last_columns);
    }
  }
}

using Micro = void (*)(const MicroArguments&);
// kMicro[rows - 1][vectors - 1]
#if defined(ORKNN_FORM_32_REGISTERS)
static constexpr Micro kMicro[8][3] = {{micro<1, 1>, micro<1, 2>, micro<1, 3>}, {micro<2, 1>, micro<2, 2>, micro<2, 3>},
                                       {micro<3, 1>, micro<3, 2>, micro<3, 3>}, {micro<4, 1>, micro<4, 2>, micro<4, 3>},
                                       {micro<5, 1>, micro<5, 2>, micro<5, 3>}, {micro<6, 1>, micro<6, 2>, micro<6, 3>},
                                       {micro<7, 1>, micro<7, 2>, micro<7, 3>}, {micro<8, 1>, micro<8, 2>, micro<8, 3>}};
#elif defined(ORKNN_FORM_AVX2)
static constexpr Micro kMicro[4][3] = {{micro<1, 1>, micro<1, 2>, micro<1, 3>},
                                       {micro<2, 1>, micro<2, 2>, micro<2, 3>},
                                       {micro<3, 1>, micro<3, 2>, micro<3, 3>},
                                       {micro<4, 1>, micro<4, 2>, micro<4, 3>}};
#else
static constexpr Micro kMicro[4][2] = {
    {micro<1, 1>, micro<1, 2>}, {micro<2, 1>, micro<2, 2>}, {micro<3, 1>, micro<3, 2>}, {micro<4, 1>, micro<4, 2>}};
#endif

static void gemm(const GemmBlock& g) {
  // Half results are computed in a small float tile that stays in the first-level cache.
  alignas(64) float tile[kPanelRows * kPanelColumns];
  MicroArguments m;
  m.b_row_stride = g.b_row_stride;
  m.depth = g.depth;
  m.accumulate = g.accumulate;
  m.clamp = g.finish && g.clamp;
  m.streams = g.streams;
  m.low = g.low;
  m.high = g.high;
  const bool narrow = g.storage == Storage::Half;
  // What follows B is fetched in the course of all passes over B.
  const int64_t passes = divide_up(g.rows, kPanelRows) * (kPanelRows / kMicroRows) * (kPanelColumns / kMicroColumns);
  const int64_t b_ahead_step = divide_up(kPanelColumns, passes);
  const float* b_ahead = g.b + panels_b(g.columns) * g.b_panel_stride;
  for (int64_t row = 0; row < g.rows; row += kPanelRows) {
    const float* a = g.a + row / kPanelRows * g.a_panel_stride;
    const int64_t rows = smaller(kPanelRows, g.rows - row);
    for (int64_t column = 0; column < g.columns; column += kPanelColumns) {
      const float* b = g.b + column / kPanelColumns * g.b_panel_stride;
      const int64_t columns = smaller(kPanelColumns, g.columns - column);
      // With one pass over the depth a half result needs no memory for its sums but the tile.
      const bool in_tile = narrow && g.sum == nullptr;
      const int64_t c_row_stride = in_tile ? kPanelColumns : g.sum_row_stride;
      const int64_t c_column_stride = g.sum_quad_stride == 0 ? 1 : g.sum_quad_stride / 4;  // of whole fours
      float* c = in_tile ? tile : g.sum + row * g.sum_row_stride + column * c_column_stride;
      m.c_row_stride = c_row_stride;
      m.c_quad_stride = g.sum_quad_stride;
      for (int64_t j = 0; j < columns; j += kMicroColumns) {
        const int64_t part = smaller(kMicroColumns, columns - j);
        const int64_t vecs = divide_up(part, Vec::kWidth);
        m.b = b + j;
        m.last_columns = static_cast<int>(part - (vecs - 1) * Vec::kWidth);
        for (int64_t i = 0; i < rows; i += kMicroRows) {
          m.a = a + i;
          m.ahead = g.b_goes_on ? b_ahead : m.a + kPrefetch;
          m.ahead_step = g.b_goes_on ? b_ahead_step : kPanelRows;
          b_ahead += g.depth * b_ahead_step;
          m.bias = g.row_bias ? g.row_bias + row + i : nullptr;
          m.c = c + i * c_row_stride + j * c_column_stride;
          kMicro[smaller(kMicroRows, rows - i) - 1][vecs - 1](m);
        }
      }
      if (!g.finish) continue;
      if (g.step_count > 0)
        apply_steps(c, c_row_stride, rows, columns, g.steps, g.step_count, g.batch, g.row + row, g.column + column);
      if (narrow)
        for (int64_t i = 0; i < rows; ++i)
          to_half(c + i * c_row_stride, static_cast<Half*>(g.c) + (row + i) * g.c_row_stride + column, columns);
    }
  }
  if (g.streams) finish_streams();
}

template <class T>
static void pack_a_of(const LeftRows& p, float* dst) {
  const int64_t block = p.block > 0 ? p.block : p.depth;
  for (int64_t row = 0; row < p.rows; row += kPanelRows) {
    const T* from = static_cast<const T*>(p.x) + row * p.row_stride;
    const int64_t valid = smaller(kPanelRows, p.rows - row);
    for (int64_t left = p.depth; left > 0; left -= block, from += p.block_stride) {
      const int64_t depth = smaller(block, left);
      int64_t k = 0;
      if (valid == kPanelRows && p.depth_stride == 1)
        for (; k + 8 <= depth; k += 8) transpose8(from + k, p.row_stride, dst + k * kPanelRows, kPanelRows);
      float one[Vec::kWidth];
      for (; k < depth; ++k)
        for (int64_t r = 0; r < kPanelRows; ++r) {
          if (r < valid) store(one, load_part(from + r * p.row_stride + k * p.depth_stride, 1));
          dst[k * kPanelRows + r] = r < valid ? one[0] : 0.0f;
        }
      dst += kPanelRows * depth;
    }
  }
}

static void pack_a(const LeftRows& rows, float* dst) {
  if (rows.storage == Storage::Half)
    pack_a_of<Half>(rows, dst);
  else
    pack_a_of<float>(rows, dst);
}

template <class T>
static void pack_b_of(const T* src, int64_t depth_stride, int64_t column_stride, int64_t depth, int64_t columns, float* dst) {
  for (int64_t column = 0; column < columns; column += kPanelColumns, dst += kPanelColumns * depth) {
    const int64_t valid = smaller(kPanelColumns, columns - column);
    const T* from = src + column * column_stride;
    if (column_stride == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        float* to = dst + k * kPanelColumns;
        for (int64_t c = 0; c < kPanelColumns; c += Vec::kWidth)
          store(to + c, c >= valid ? splat(0.0f) : load_up_to(from + k * depth_stride + c, valid - c));
      }
      continue;
    }
    int64_t c = 0;
    if (depth_stride == 1)
      for (; c + 8 <= valid; c += 8) {
        int64_t k = 0;
        for (; k + 8 <= depth; k += 8)
          transpose8(from + c * column_stride + k, column_stride, dst + k * kPanelColumns + c, kPanelColumns);
        float one[Vec::kWidth];
        for (; k < depth; ++k)
          for (int64_t i = 0; i < 8; ++i) {
            store(one, load_part(from + (c + i) * column_stride + k, 1));
            dst[k * kPanelColumns + c + i] = one[0];
          }
      }
    float one[Vec::kWidth];
    for (; c < kPanelColumns; ++c)
      for (int64_t k = 0; k < depth; ++k) {
        if (c < valid) store(one, load_part(from + c * column_stride + k * depth_stride, 1));
        dst[k * kPanelColumns + c] = c < valid ? one[0] : 0.0f;
      }
  }
}

static void pack_b(const void* src, Storage storage, int64_t depth_stride, int64_t column_stride, int64_t depth, int64_t columns,
                   float* dst) {
  if (storage == Storage::Half)
    pack_b_of(static_cast<const Half*>(src), depth_stride, column_stride, depth, columns, dst);
  else
    pack_b_of(static_cast<const float*>(src), depth_stride, column_stride, depth, columns, dst);
}

// Up to one vector of neighbouring columns in one row of the output, all from one row of the input.
struct Chunk {
  int64_t from;       // element of the channel's plane the first column reads (may lie outside where not valid)
  int64_t to;         // place in the packed panels, without the depth
  int8_t begin, end;  // valid columns; the others are padding
  int8_t length;      // columns to write; less than a vector only where more would leave the panel
};

template <int StrideX, class T>
ORKNN_SIMD Vec load_chunk(const T* p, const Chunk& c, int64_t stride_x) {
  if constexpr (StrideX == 1) return c.end - c.begin == Vec::kWidth ? load(p) : load_window(p, c.begin, c.end);
  if constexpr (StrideX == 2) return c.end - c.begin == Vec::kWidth ? load_even(p) : load_even_window(p, c.begin, c.end);
  alignas(64) T values[Vec::kWidth] = {};
  for (int i = c.begin; i < c.end; ++i) values[i] = p[i * stride_x];
  return load(values);
}

template <int StrideX, class T>
static void copy_chunks(const T* plane, int64_t plane_size, int64_t channels, const Chunk* chunks, int64_t chunk_count,
                        int64_t stride_x, float* dst) {
  for (int64_t i = 0; i < chunk_count; ++i) {
    const Chunk c = chunks[i];
    const T* from = plane + c.from;
    float* to = dst + c.to;
    // One loop per kind of chunk: nearly all are whole vectors.
    const bool whole = c.end - c.begin == Vec::kWidth;
    if (whole && c.length == Vec::kWidth && StrideX == 1) {
      for (int64_t k = 0; k < channels; ++k, from += plane_size, to += kPanelColumns) store(to, load(from));
    } else if (whole && c.length == Vec::kWidth && StrideX == 2) {
      for (int64_t k = 0; k < channels; ++k, from += plane_size, to += kPanelColumns) store(to, load_even(from));
    } else if (c.begin == c.end) {
      for (int64_t k = 0; k < channels; ++k, to += kPanelColumns) store_up_to(to, splat(0.0f), c.length);
    } else if (c.length == Vec::kWidth) {
      for (int64_t k = 0; k < channels; ++k, from += plane_size, to += kPanelColumns)
        store(to, load_chunk<StrideX>(from, c, stride_x));
    } else {
      for (int64_t k = 0; k < channels; ++k, from += plane_size, to += kPanelColumns)
        store_part(to, load_chunk<StrideX>(from, c, stride_x), c.length);
    }
  }
}

template <class T>
static void pack_conv_of(const ConvSource& s, int64_t column, int64_t columns, int64_t k_begin, int64_t k_end, float* dst) {
  constexpr int64_t kChunks = 256;
  Chunk chunks[kChunks];
  const int64_t depth = k_end - k_begin, plane_size = s.depth * s.height * s.width;
  const int64_t out_plane = s.out_height * s.out_width;
  for (int64_t k = k_begin; k < k_end;) {
    const Tap tap = s.taps[k / s.channels];
    const int64_t channel = k % s.channels, channels = smaller(s.channels - channel, k_end - k);
    for (int64_t done = 0; done < columns;) {
      int64_t count = 0;
      while (done < columns && count < kChunks) {
        const int64_t position = column + done;
        const int64_t out_z = position / out_plane, out_y = position % out_plane / s.out_width, out_x = position % s.out_width;
        const int64_t z = out_z * s.stride_z + tap.z, y = out_y * s.stride_y + tap.y;
        const bool row_exists = z >= 0 && z < s.depth && y >= 0 && y < s.height;
        int64_t x = out_x * s.stride_x + tap.x;
        const int64_t run = smaller(s.out_width - out_x, columns - done);
        for (int64_t taken = 0; taken < run && count < kChunks;) {
          const int64_t place = (done + taken) % kPanelColumns;
          const int64_t length = smaller(smaller(Vec::kWidth, run - taken), kPanelColumns - place);
          Chunk& c = chunks[count++];
          c.to = (done + taken) / kPanelColumns * kPanelColumns * depth + place;
          c.from = (z * s.height + y) * s.width + x;
          // Columns whose x lies in [0, width): ceil and floor of the bounds, kept inside the chunk.
          const int64_t first = x >= 0 ? 0 : smaller(divide_up(-x, s.stride_x), length);
          const int64_t last = x >= s.width ? 0 : smaller(divide_up(s.width - x, s.stride_x), length);
          const bool some = row_exists && first < last;
          c.begin = static_cast<int8_t>(some ? first : 0);
          c.end = static_cast<int8_t>(some ? last : 0);
          // What a whole vector writes beyond the chunk is overwritten by the next one, chunks being written in order.
          c.length = static_cast<int8_t>(place + Vec::kWidth <= kPanelColumns ? Vec::kWidth : length);
          taken += length;
          x += length * s.stride_x;
          if (taken == run || count == kChunks) done += taken, taken = run;
        }
      }
      const T* plane = static_cast<const T*>(s.x) + channel * plane_size;
      float* to = dst + (k - k_begin) * kPanelColumns;
      if (s.stride_x == 1)
        copy_chunks<1>(plane, plane_size, channels, chunks, count, 1, to);
      else if (s.stride_x == 2)
        copy_chunks<2>(plane, plane_size, channels, chunks, count, 2, to);
      else
        copy_chunks<0>(plane, plane_size, channels, chunks, count, s.stride_x, to);
    }
    k += channels;
  }
}

static void pack_conv(const ConvSource& source, int64_t column, int64_t columns, int64_t k_begin, int64_t k_end, float* dst) {
  if (source.storage == Storage::Half)
    pack_conv_of<Half>(source, column, columns, k_begin, k_end, dst);
  else
    pack_conv_of<float>(source, column, columns, k_begin, k_end, dst);
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
