// The integer cores, written against the vectors of int_simd_*.h. Included once by each int_forms_*.cpp, after int_cores_neon.h
// where that has some of them.
#pragma once

#include <cstring>

namespace orknn::sim::kernels::ORKNN_INT_FORM {

// Rows of B.
struct OffsetRows {
  const std::byte* b;
  const int64_t* offsets;
  __attribute__((always_inline)) const std::byte* operator()(int64_t k) const { return b + offsets[k]; }
};
struct EvenRows {
  const std::byte* b;
  int64_t stride;
  __attribute__((always_inline)) const std::byte* operator()(int64_t k) const { return b + k * stride; }
};

#if !defined(ORKNN_INT_NEON)
// Adds to `sum`.
template <Dot kDot, int kRows, int kVectors, class RightRows>
ORKNN_SIMD void sum_tile(const int32_t* a, const RightRows& right, int64_t depth, I32 (&sum)[kRows][kVectors]) {
  for (int64_t k = 0; k < depth; ++k) {
    const std::byte* from = right(k);
    I32 column[kVectors];
    ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) column[j] = load32(from + j * kLanes * 4);
    ORKNN_UNROLL for (int r = 0; r < kRows; ++r) {
      const I32 row = all32(a[k * kIntRows + r]);
      ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) sum[r][j] = dot<kDot>(sum[r][j], row, column[j]);
    }
  }
}
#endif

#if !defined(ORKNN_INT_STREAMS)
ORKNN_SIMD void stream32(int32_t* to, I32 value) { store32(to, value); }
ORKNN_SIMD void finish_streams() {}
#endif

// Sums to where the tile has them; past the caches if they stream.
template <bool kStreams, int kRows, int kVectors>
ORKNN_SIMD void store_sums(const I32 (&sum)[kRows][kVectors], int32_t* to, int64_t row_stride, int64_t quad_stride) {
  const auto put = [](int32_t * at, I32 value) __attribute__((always_inline)) {
    kStreams ? stream32(at, value) : store32(at, value);
  };
  if (quad_stride == 4) {
    ORKNN_UNROLL for (int r = 0; r < kRows; ++r) ORKNN_UNROLL for (int j = 0; j < kVectors; ++j)
        put(to + r * row_stride + j * kLanes, sum[r][j]);
    return;
  }
  // Rows are neighbours, fours of columns are far apart: one four after the other fills whole lines.
  if constexpr (kLanes == 16 && kRows % 4 == 0) {
    ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) ORKNN_UNROLL for (int r = 0; r < kRows; r += 4) {
      I32 fours[4];
      transpose_fours(sum[r][j], sum[r + 1][j], sum[r + 2][j], sum[r + 3][j], fours);
      ORKNN_UNROLL for (int q = 0; q < 4; ++q) put(to + (4 * j + q) * quad_stride + 4 * r, fours[q]);
    }
    return;
  }
  alignas(64) int32_t rows[kRows][kVectors * kLanes];
  ORKNN_UNROLL for (int r = 0; r < kRows; ++r) ORKNN_UNROLL for (int j = 0; j < kVectors; ++j)
      store32(rows[r] + j * kLanes, sum[r][j]);
  for (int64_t c = 0; c < kVectors * kLanes; c += 4, to += quad_stride)
    ORKNN_UNROLL for (int r = 0; r < kRows; ++r) std::memcpy(to + r * row_stride, rows[r] + c, 16);
}

// Rows from `row` and vectors from `vector` on.
template <Dot kDot, int kRows, int kVectors, class RightRows>
ORKNN_SIMD void sub_tile(const IntTile& t, RightRows right, int64_t row, int64_t vector) {
  const int64_t column = vector * kLanes;
  I32 sum[kRows][kVectors];
  right.b += column * 4;
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) {
    const I32 start = t.start ? load32(t.start + column + j * kLanes) : zero32();
    ORKNN_UNROLL for (int r = 0; r < kRows; ++r) sum[r][j] = start;
  }
  sum_tile<kDot>(t.a + row / kIntRows * t.panel_step + row % kIntRows, right, t.depth, sum);
  int32_t* to = t.sums + row * t.row_stride + column / 4 * t.quad_stride;
  if (t.streams)
    store_sums<true>(sum, to, t.row_stride, t.quad_stride);
  else
    store_sums<false>(sum, to, t.row_stride, t.quad_stride);
}

template <Dot kDot, class RightRows>
__attribute__((noinline)) void tile_of(const IntTile& t, RightRows right) {
  const int64_t vectors = (t.columns + kLanes - 1) / kLanes;
  for (int64_t r = 0; r < t.rows; r += kTileRows) {
    int64_t j = 0;
    for (; j + kTileVectors <= vectors; j += kTileVectors) sub_tile<kDot, kTileRows, kTileVectors>(t, right, r, j);
    if constexpr (kTileVectors > 2)
      if (j + 2 <= vectors) {
        sub_tile<kDot, kTileRows, 2>(t, right, r, j);
        j += 2;
      }
    if (j < vectors) sub_tile<kDot, kTileRows, 1>(t, right, r, j);
  }
  if (t.streams) finish_streams();
}

template <Dot kDot>
void tile_of(const IntTile& t) {
  t.offsets ? tile_of<kDot>(t, OffsetRows{t.b, t.offsets}) : tile_of<kDot>(t, EvenRows{t.b, t.b_stride});
}
static void tile(const IntTile& t) {
  if constexpr (kHasBytes) {
    if (t.dot == Dot::BytesBUnsigned) return tile_of<Dot::BytesBUnsigned>(t);
    if (t.dot == Dot::BytesAUnsigned) return tile_of<Dot::BytesAUnsigned>(t);
  }
  tile_of<Dot::Words>(t);
}

template <Dot kDot, int kVectors>
ORKNN_SIMD void row_part(const IntRow& p, int64_t c) {
  I32 sum[kVectors];
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) sum[j] = p.start ? load32(p.start + c + j * kLanes) : zero32();
  for (int64_t k = 0; k < p.depth; ++k) {
    const std::byte* from = p.b + (p.offsets ? p.offsets[k] : k * p.b_stride) + c * 4;
    const I32 weight = all32(p.weights[k]);
    ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) sum[j] = dot<kDot>(sum[j], weight, load32(from + j * kLanes * 4));
  }
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) store32(p.sums + c + j * kLanes, sum[j]);
}

template <Dot kDot>
void row_of(const IntRow& p) {
  int64_t c = 0;
  for (; c + 3 * kLanes < p.columns; c += 4 * kLanes) row_part<kDot, 4>(p, c);
  for (; c < p.columns; c += kLanes) row_part<kDot, 1>(p, c);
}

static void row(const IntRow& p) {
  if constexpr (kHasBytes) {
    if (p.dot == Dot::BytesBUnsigned) return row_of<Dot::BytesBUnsigned>(p);
    if (p.dot == Dot::BytesAUnsigned) return row_of<Dot::BytesAUnsigned>(p);
  }
  row_of<Dot::Words>(p);
}

#if defined(ORKNN_INT_PORTABLE)
static void convert(const IntConvert& p, const int32_t* sums, int64_t count) { convert_scalar(p, sums, count); }
static void binary(const IntBinary& p, int64_t count) { binary_scalar(p, count); }
#else
// Two indices are read at a time, four results are in flight.
template <class T>
ORKNN_SIMD void look_up(const T* __restrict table, const int32_t* __restrict index, int64_t count, T* __restrict y) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t pair[4];
    std::memcpy(pair, index + i, sizeof pair);
    T result[8];
    ORKNN_UNROLL for (int j = 0; j < 4; ++j) {
      result[2 * j] = table[static_cast<uint32_t>(pair[j])];
      result[2 * j + 1] = table[pair[j] >> 32];
    }
    ORKNN_UNROLL for (int j = 0; j < 8; ++j) y[i + j] = result[j];
  }
  for (; i < count; ++i) y[i] = table[index[i]];
}

// Stores value(i, count - i), vectors of converted values, for i = 0, kLanes, ...; the values are not clamped yet.
template <class Value>
ORKNN_SIMD void emit(void* __restrict y, Int type, const void* table, int32_t low, int32_t high, int64_t count, Value value) {
  if (table) {
    // Indices first, of a long run: reading them back at once would wait for the stores.
    constexpr int64_t kChunk = 256;
    alignas(64) int32_t index[kChunk];
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t n = count - i < kChunk ? count - i : kChunk;
      for (int64_t j = 0; j < n; j += kLanes) store32(index + j, clamp(value(i + j, count - i - j), all32(low), all32(high)));
      if (type == Int::Signed16)
        look_up(static_cast<const int16_t*>(table), index, n, static_cast<int16_t*>(y) + i);
      else
        look_up(static_cast<const uint8_t*>(table), index, n, static_cast<uint8_t*>(y) + i);
    }
    return;
  }
  if (type == Int::Signed16) {
    for (int64_t i = 0; i < count; i += kLanes)
      store_words(static_cast<int16_t*>(y) + i, clamp(value(i, count - i), all32(low), all32(high)), count - i);
    return;
  }
  const Bytes least = all_bytes(low), most = all_bytes(high);
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    const I32 a = value(i, kLanes), b = value(i + kLanes, kLanes), c = value(i + 2 * kLanes, kLanes),
              d = value(i + 3 * kLanes, kLanes);
    store_bytes(static_cast<uint8_t*>(y) + i, clamp_bytes(pack(a, b, c, d, type), least, most, type), 4 * kLanes);
  }
  if (i == count) return;
  I32 rest[4] = {zero32(), zero32(), zero32(), zero32()};
  const int64_t left = count - i;
  rest[0] = value(i, left);
  if (left > kLanes) rest[1] = value(i + kLanes, left - kLanes);
  if (left > 2 * kLanes) rest[2] = value(i + 2 * kLanes, left - 2 * kLanes);
  if (left > 3 * kLanes) rest[3] = value(i + 3 * kLanes, left - 3 * kLanes);
  store_bytes(static_cast<uint8_t*>(y) + i, clamp_bytes(pack(rest[0], rest[1], rest[2], rest[3], type), least, most, type), left);
}

ORKNN_SIMD F64 saturated(F64 v) { return smallest(largest(v, all_double(INT32_MIN)), all_double(INT32_MAX)); }
// Before it becomes an int32.
ORKNN_SIMD F64 within_ints(F64 v) { return smallest(largest(v, all_double(-(1 << 30))), all_double(1 << 30)); }

// Half a vector by the stages themselves. A product of integers with a factor of 16 bits and a power of two is exact.
template <bool kAddend, bool kSlopes>
ORKNN_SIMD F64 staged(const IntConvert& p, F64 total, F64 channel_factor, F64 slope_factor, F64 operand) {
  F64 v = total;
  if (p.channel_factor) v = saturated(round_even(multiply(multiply(v, channel_factor), all_double(p.channel_unit))));
  if constexpr (kSlopes) v = by_sign(v, saturated(round_even(multiply(multiply(v, slope_factor), all_double(p.slope_unit)))), v);
  if constexpr (kAddend) v = saturated(add(v, round_even(multiply(operand, all_double(p.add_gain)))));
  return within_ints(add(round_even(multiply(v, all_double(p.gain))), all_double(p.zero)));
}

// What is the same for all columns of a row, or for all rows of parameters by column.
template <bool kAddend, bool kSlopes, bool kPerColumn>
struct Converter {
  const IntConvert& p;
  int64_t row;
  const void* addend;
  F32 scale, slope_scale, add_scale, margin;
  I32 bias, zero, add_zero;

  __attribute__((always_inline)) Converter(const IntConvert& given, int64_t at)
      : p(given),
        row(at),
        addend(kAddend ? advance_int(given.addend, given.addend_type, at * given.addend_stride) : nullptr),
        scale(all_float(kPerColumn ? 0 : given.scale[at])),
        slope_scale(all_float(kSlopes && !kPerColumn ? given.slope_scale[at] : 0)),
        add_scale(all_float(given.add_scale)),
        margin(all_float(given.margin)),
        bias(all32(kPerColumn ? 0 : given.bias[at])),
        zero(all32(given.zero)),
        add_zero(all32(given.add_zero)) {}

  // Sums of columns from i on, of which `left` are there; not clamped.
  __attribute__((always_inline)) I32 operator()(I32 sums, int64_t i, int64_t left, const void* operands) const {
    const I32 total = add(sums, kPerColumn ? load32(p.bias + i) : bias);
    F32 by = kPerColumn ? load_float(p.scale + i) : scale;
    if constexpr (kSlopes) by = by_sign(total, kPerColumn ? load_float(p.slope_scale + i) : slope_scale, by);
    F32 x = multiply(to_float(total), by);
    I32 operand = zero32();
    if constexpr (kAddend) {
      operand = subtract(widen(operands, p.addend_type, i, left), add_zero);
      x = multiply_add(to_float(operand), add_scale, x);
    }
    I32 rounded;
    if (__builtin_expect(!round_surely(x, margin, rounded), 0)) return exactly(total, operand, i);
    return add(rounded, zero);
  }

  __attribute__((always_inline)) I32 exactly(I32 total, I32 operand, int64_t i) const {
    I32 channel_factor = zero32(), slope_factor = zero32();
    if (p.channel_factor) channel_factor = kPerColumn ? load32(p.channel_factor + i) : all32(p.channel_factor[row]);
    if constexpr (kSlopes) slope_factor = kPerColumn ? load32(p.slope_factor + i) : all32(p.slope_factor[row]);
    return to_ints(staged<kAddend, kSlopes>(p, low_doubles(total), low_doubles(channel_factor), low_doubles(slope_factor),
                                            low_doubles(operand)),
                   staged<kAddend, kSlopes>(p, high_doubles(total), high_doubles(channel_factor), high_doubles(slope_factor),
                                            high_doubles(operand)));
  }
};

template <bool kAddend, bool kSlopes, bool kPerColumn>
__attribute__((noinline)) static void convert_row(const IntConvert& given, int64_t row, const int32_t* sums, int64_t count) {
  const IntConvert p = given;
  const Converter<kAddend, kSlopes, kPerColumn> convert(p, row);
  emit(
      const_cast<void*>(advance_int(p.y, p.type, row * p.y_stride)), p.type, p.table, p.low, p.high,
      count, [&](int64_t i, int64_t left) __attribute__((always_inline)) {
        return convert(load32(sums + i), i, left, convert.addend);
      });
}

// The usual case, 8-bit results of rows that are converted alike: nothing is decided anew from row to row.
template <Int kType, bool kSlopes>
ORKNN_SIMD void convert_bytes(const IntConvert& given, const int32_t* sums, int64_t count) {
  const IntConvert p = given;
  const Bytes least = all_bytes(p.low), most = all_bytes(p.high);
  const int64_t vectors = (count + kLanes - 1) / kLanes, whole = vectors / 4 * 4;
  for (int64_t row = 0; row < p.rows; ++row, sums += p.sums_stride) {
    const Converter<false, kSlopes, false> convert(p, row);
    uint8_t* y = static_cast<uint8_t*>(p.y) + row * p.y_stride;
    const auto value = [&](int64_t v) __attribute__((always_inline)) {
      return convert(load32(sums + v * kLanes), v * kLanes, count - v * kLanes, nullptr);
    };
    const auto store = [&](int64_t v, I32 a, I32 b, I32 c, I32 d) __attribute__((always_inline)) {
      store_bytes(y + v * kLanes, clamp_bytes(pack(a, b, c, d, kType), least, most, kType), count - v * kLanes);
    };
    for (int64_t v = 0; v < whole; v += 4) store(v, value(v), value(v + 1), value(v + 2), value(v + 3));
    if (vectors - whole == 3)
      store(whole, value(whole), value(whole + 1), value(whole + 2), zero32());
    else if (vectors - whole == 2)
      store(whole, value(whole), value(whole + 1), zero32(), zero32());
    else if (vectors - whole == 1)
      store(whole, value(whole), zero32(), zero32(), zero32());
  }
}

template <bool kSlopes>
ORKNN_SIMD void convert_to_bytes(const IntConvert& p, const int32_t* sums, int64_t count) {
  if (p.type == Int::Signed8)
    convert_bytes<Int::Signed8, kSlopes>(p, sums, count);
  else
    convert_bytes<Int::Unsigned8, kSlopes>(p, sums, count);
}

template <bool kAddend, bool kSlopes>
ORKNN_SIMD void convert_rows(const IntConvert& p, const int32_t* sums, int64_t count) {
  for (int64_t row = 0; row < p.rows; ++row, sums += p.sums_stride) {
    if (p.per_column)
      convert_row<kAddend, kSlopes, true>(p, row, sums, count);
    else
      convert_row<kAddend, kSlopes, false>(p, row, sums, count);
  }
}

static void convert(const IntConvert& p, const int32_t* sums, int64_t count) {
  const bool slopes = p.slope_factor != nullptr;
  if (!p.per_column && !p.addend && !p.table && p.type != Int::Signed16)
    slopes ? convert_to_bytes<true>(p, sums, count) : convert_to_bytes<false>(p, sums, count);
  else if (p.addend)
    slopes ? convert_rows<true, true>(p, sums, count) : convert_rows<true, false>(p, sums, count);
  else
    slopes ? convert_rows<false, true>(p, sums, count) : convert_rows<false, false>(p, sums, count);
}

#if defined(ORKNN_INT_PRODUCT)
template <Dot kDot, bool kAddend, bool kSlopes, int kVectors>
ORKNN_SIMD void product_rows(const IntProduct& p, int64_t first_row) {
  const IntConvert& to = p.to;
  const auto* table = static_cast<const uint8_t*>(to.table);
  const Bytes least = all_bytes(table ? 0 : to.low), most = all_bytes(table ? 0 : to.high);
  const bool whole = p.segment_count == 1 && p.segments[0].count == p.columns;
  alignas(64) int32_t indices[kIntRows][kIntColumns];
  alignas(64) int32_t sums[kIntRows * kIntColumns];
  IntTile tile;
  tile.a = p.a + first_row * p.depth;
  tile.depth = p.depth;
  tile.sums = sums;
  sub_tile<kDot, kIntRows, kVectors>(tile, OffsetRows{p.b, p.offsets}, 0, 0);
  const int64_t rows = to.rows - first_row < kIntRows ? to.rows - first_row : kIntRows;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = first_row + r;
    uint8_t* y = static_cast<uint8_t*>(to.y) + row * to.y_stride;
    alignas(64) uint8_t addend[64];
    if constexpr (kAddend)
      load_segments(static_cast<const uint8_t*>(to.addend) + row * to.addend_stride, p.segments, p.segment_count, addend);
    const Converter<kAddend, kSlopes, false> convert(to, row);
    I32 value[4] = {zero32(), zero32(), zero32(), zero32()};
    ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) value[j] =
        convert(load32(sums + r * kIntColumns + j * kLanes), j * kLanes, kLanes, addend);
    if (table) {
      ORKNN_UNROLL for (int j = 0; j < kVectors; ++j)
          store32(indices[r] + j * kLanes, clamp(value[j], all32(to.low), all32(to.high)));
      continue;
    }
    const Bytes bytes = clamp_bytes(pack(value[0], value[1], value[2], value[3], to.type), least, most, to.type);
    if (whole)
      store_bytes(y + p.segments[0].place, bytes, p.columns);
    else
      store_segments(y, bytes, p.segments, p.segment_count);
  }
  if (!table) return;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < p.segment_count; ++i) {
      const IntSegment& s = p.segments[i];
      look_up(table, indices[r] + s.column, s.count, static_cast<uint8_t*>(to.y) + (first_row + r) * to.y_stride + s.place);
    }
}

template <Dot kDot, bool kAddend, bool kSlopes>
void product_of(const IntProduct& given) {
  const IntProduct p = given;
  for (int64_t row = 0; row < p.to.rows; row += kIntRows) {
    if (p.columns > 2 * kLanes)
      product_rows<kDot, kAddend, kSlopes, 3>(p, row);
    else if (p.columns > kLanes)
      product_rows<kDot, kAddend, kSlopes, 2>(p, row);
    else
      product_rows<kDot, kAddend, kSlopes, 1>(p, row);
  }
}

template <Dot kDot>
void product_by_stages(const IntProduct& p) {
  if (p.to.addend)
    p.to.slope_factor ? product_of<kDot, true, true>(p) : product_of<kDot, true, false>(p);
  else
    p.to.slope_factor ? product_of<kDot, false, true>(p) : product_of<kDot, false, false>(p);
}

static void product(const IntProduct& p) {
  if constexpr (kHasBytes)
    if (p.dot == Dot::BytesBUnsigned) return product_by_stages<Dot::BytesBUnsigned>(p);
  product_by_stages<Dot::Words>(p);
}
#endif

template <IntBinaryOp kOp>
ORKNN_SIMD F64 binary_staged(const IntBinary& p, F64 a, F64 b) {
  F64 v;
  if constexpr (kOp == IntBinaryOp::Multiply) {
    v = multiply(a, b);
  } else {
    const F64 left = multiply(a, all_double(p.a_factor)), right = round_even(multiply(b, all_double(p.b_gain)));
    v = kOp == IntBinaryOp::Add ? add(left, right) : kOp == IntBinaryOp::Max ? largest(left, right) : smallest(left, right);
  }
  return within_ints(add(round_even(multiply(v, all_double(p.gain))), all_double(p.zero)));
}

template <IntBinaryOp kOp>
ORKNN_SIMD void binary_of(const IntBinary& p, int64_t count) {
  const I32 zero = all32(p.zero), a_zero = all32(p.a_zero), b_zero = all32(p.b_zero);
  const F32 a_scale = all_float(p.a_scale), b_scale = all_float(p.b_scale), margin = all_float(p.margin);
  const I32 one_a = all32(static_cast<int32_t>(int_at(p.a, p.a_type, 0)) - p.a_zero),
            one_b = all32(static_cast<int32_t>(int_at(p.b, p.b_type, 0)) - p.b_zero);
  emit(
      p.y, p.type, p.table, p.low, p.high, count, [&](int64_t i, int64_t left) __attribute__((always_inline)) {
        const I32 a = p.a_dense ? subtract(widen(p.a, p.a_type, i, left), a_zero) : one_a,
                  b = p.b_dense ? subtract(widen(p.b, p.b_type, i, left), b_zero) : one_b;
        F32 x;
        if constexpr (kOp == IntBinaryOp::Multiply) {
          x = multiply(to_float(multiply(a, b)), a_scale);
        } else {
          const F32 left_part = multiply(to_float(a), a_scale), right_part = multiply(to_float(b), b_scale);
          x = kOp == IntBinaryOp::Add   ? multiply_add(to_float(b), b_scale, left_part)
              : kOp == IntBinaryOp::Max ? largest(left_part, right_part)
                                        : smallest(left_part, right_part);
        }
        I32 rounded;
        if (__builtin_expect(!round_surely(x, margin, rounded), 0))
          return to_ints(binary_staged<kOp>(p, low_doubles(a), low_doubles(b)),
                         binary_staged<kOp>(p, high_doubles(a), high_doubles(b)));
        return add(rounded, zero);
      });
}

static void binary(const IntBinary& p, int64_t count) {
  switch (p.op) {
    case IntBinaryOp::Add: return binary_of<IntBinaryOp::Add>(p, count);
    case IntBinaryOp::Multiply: return binary_of<IntBinaryOp::Multiply>(p, count);
    case IntBinaryOp::Max: return binary_of<IntBinaryOp::Max>(p, count);
    case IntBinaryOp::Min: return binary_of<IntBinaryOp::Min>(p, count);
  }
}
#endif

// Plain loops, which the compiler turns into each form's vectors.
template <class T>
ORKNN_SIMD void add_operand(const IntConvert& p, const T* x, int64_t count, int64_t* v) {
  for (int64_t i = 0; i < count; ++i)
    v[i] = saturate_int(v[i] + round_shift_int((int64_t{x[i]} - p.add_zero) * p.add_factor, p.add_shift), p.limit);
}
template <class T>
ORKNN_SIMD void store_indices(const int32_t* index, const void* table, int64_t count, T* y) {
  if (table)
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<const T*>(table)[index[i]];
  else
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(index[i]);
}

template <bool kPerColumn>
ORKNN_SIMD void convert_wide_row(const IntConvert& p, int64_t row, const int64_t* sums, int64_t count) {
  constexpr int64_t kChunk = 64, kMax = int64_t{1} << 46, kStep = kPerColumn ? 1 : 0;
  const void* addend = advance_int(p.addend, p.addend_type, row * p.addend_stride);
  void* y = const_cast<void*>(advance_int(p.y, p.type, row * p.y_stride));
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t n = count - at < kChunk ? count - at : kChunk, k = kPerColumn ? at : row;
    int64_t v[kChunk];
    int32_t index[kChunk];
    for (int64_t i = 0; i < n; ++i) v[i] = clamp_int(sums[at + i] + p.bias[k + i * kStep], -kMax, kMax);
    if (p.channel_factor)
      for (int64_t i = 0; i < n; ++i)
        v[i] = saturate_int(round_shift_int(v[i] * p.channel_factor[k + i * kStep], p.channel_shift), INT32_MAX);
    if (p.slope_factor)
      for (int64_t i = 0; i < n; ++i) {
        const int64_t below = saturate_int(round_shift_int(v[i] * p.slope_factor[k + i * kStep], p.slope_shift), p.limit);
        v[i] = v[i] < 0 ? below : v[i];
      }
    if (addend) {
      const void* x = advance_int(addend, p.addend_type, at);
      if (p.addend_type == Int::Signed8)
        add_operand(p, static_cast<const int8_t*>(x), n, v);
      else if (p.addend_type == Int::Unsigned8)
        add_operand(p, static_cast<const uint8_t*>(x), n, v);
      else
        add_operand(p, static_cast<const int16_t*>(x), n, v);
    }
    for (int64_t i = 0; i < n; ++i)
      index[i] = static_cast<int32_t>(
          clamp_int(round_shift_int(v[i] * p.factor[k + i * kStep], p.shift[k + i * kStep]) + p.zero, p.low, p.high));
    if (p.type == Int::Signed16)
      store_indices(index, p.table, n, static_cast<int16_t*>(y) + at);
    else
      store_indices(index, p.table, n, static_cast<uint8_t*>(y) + at);
  }
}

static void convert_wide(const IntConvert& given, const int64_t* sums, int64_t count) {
  const IntConvert p = given;
  for (int64_t row = 0; row < p.rows; ++row, sums += p.sums_stride) {
    if (p.per_column)
      convert_wide_row<true>(p, row, sums, count);
    else
      convert_wide_row<false>(p, row, sums, count);
  }
}

static void widen_sums(const int32_t* __restrict low, const int32_t* __restrict high, int64_t* __restrict sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += low[i] + 256 * int64_t{high[i]};
}

template <class T>
ORKNN_SIMD void resize_columns_of(const T* __restrict x, const int32_t* __restrict columns, int32_t one, int64_t count,
                                  int32_t* __restrict y) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t at = columns[2 * i], share = columns[2 * i + 1];
    y[i] = x[at] * (one - share) + x[at + (share != 0 ? 1 : 0)] * share;
  }
}
static void resize_columns(const void* x, Int type, const int32_t* columns, int32_t one, int64_t count, int32_t* y) {
  if (type == Int::Signed8)
    resize_columns_of(static_cast<const int8_t*>(x), columns, one, count, y);
  else if (type == Int::Unsigned8)
    resize_columns_of(static_cast<const uint8_t*>(x), columns, one, count, y);
  else
    resize_columns_of(static_cast<const int16_t*>(x), columns, one, count, y);
}
static void resize_rows(const int32_t* __restrict upper, const int32_t* __restrict lower, int32_t one, int32_t share,
                        int64_t count, int32_t* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] = upper[i] * (one - share) + lower[i] * share;
}
static void resize_rows_wide(const int32_t* __restrict upper, const int32_t* __restrict lower, int32_t one, int32_t share,
                             int64_t zero, int64_t count, int64_t* __restrict y) {
  const int64_t offset = zero * one * one;
  for (int64_t i = 0; i < count; ++i) y[i] = int64_t{upper[i]} * (one - share) + int64_t{lower[i]} * share - offset;
}

template <class F>
ORKNN_SIMD void with_type(const void* x, Int type, F&& f) {
  if (type == Int::Signed8)
    f(static_cast<const int8_t*>(x));
  else if (type == Int::Unsigned8)
    f(static_cast<const uint8_t*>(x));
  else
    f(static_cast<const int16_t*>(x));
}
static void add_row(const void* x, Int type, int64_t count, int32_t* sums) {
  with_type(
      x, type, [&](const auto* from) __attribute__((always_inline)) {
        int32_t* __restrict to = sums;
        for (int64_t i = 0; i < count; ++i) to[i] += from[i];
      });
}
static void add_every(const int32_t* __restrict x, int64_t stride, int64_t count, int64_t* __restrict sums) {
  if (stride == 1)
    for (int64_t i = 0; i < count; ++i) sums[i] += x[i];
  else
    for (int64_t i = 0; i < count; ++i) sums[i] += x[i * stride];
}
static int32_t sum_row(const void* x, Int type, int64_t count) {
  uint32_t sum = 0;
  with_type(
      x, type, [&](const auto* from) __attribute__((always_inline)) {
        for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(from[i]);
      });
  return static_cast<int32_t>(sum);
}

template <class T>
ORKNN_SIMD void quantize_to(const float* __restrict x, float scale, int32_t zero, float low, float high, int64_t count,
                            T* __restrict y) {
  for (int64_t i = 0; i < count; ++i) {
    float q = __builtin_rintf(x[i] / scale);
    q = q == q ? q : 0.0f;
    q = q < low ? low : q > high ? high : q;
    y[i] = static_cast<T>(static_cast<int32_t>(q) + zero);
  }
}
static void quantize(const float* x, float scale, int32_t zero, Int type, int64_t count, void* y) {
  const int32_t low = type == Int::Signed8     ? -128
                      : type == Int::Unsigned8 ? 0
                                               : -32768,
                high = type == Int::Signed8     ? 127
                       : type == Int::Unsigned8 ? 255
                                                : 32767;
  const float least = static_cast<float>(low - zero), most = static_cast<float>(high - zero);
  if (type == Int::Signed16)
    quantize_to(x, scale, zero, least, most, count, static_cast<int16_t*>(y));
  else
    quantize_to(x, scale, zero, least, most, count, static_cast<uint8_t*>(y));
}
static void dequantize(const void* x, Int type, int32_t zero, float scale, int64_t count, float* y) {
  with_type(
      x, type, [&](const auto* from) __attribute__((always_inline)) {
        float* __restrict to = y;
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] - zero) * scale;
      });
}

template <class T>
ORKNN_SIMD void softmax_of(const IntSoftmax& p) {
  const T* x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
  int32_t top[64];
  int64_t sum[64];
  double denominator[64], half[64];
  for (int64_t c = 0; c < p.columns; ++c) {
    top[c] = p.low;
    sum[c] = 0;
  }
  for (int64_t i = 0; i < p.extent; ++i)
    for (int64_t c = 0; c < p.columns; ++c) {
      const int32_t v = x[i * p.stride + c * p.column_step];
      top[c] = v > top[c] ? v : top[c];
    }
  for (int64_t i = 0; i < p.extent; ++i)
    for (int64_t c = 0; c < p.columns; ++c) sum[c] += p.powers[top[c] - x[i * p.stride + c * p.column_step]];
  for (int64_t c = 0; c < p.columns; ++c) {
    half[c] = 256.0 * static_cast<double>(sum[c]);
    denominator[c] = 2 * half[c];
  }
  const double factor = 2.0 * static_cast<double>(p.factor);
  for (int64_t i = 0; i < p.extent; ++i)
    for (int64_t c = 0; c < p.columns; ++c) {
      const int64_t at = i * p.stride + c * p.column_step;
      // A quotient of integers whose product with the divisor is below 2^53 is never rounded up to the next integer.
      int32_t q = static_cast<int32_t>((factor * p.powers[top[c] - x[at]] + half[c]) / denominator[c]) + p.zero;
      q = q < p.low ? p.low : q > p.high ? p.high : q;
      y[at] = static_cast<T>(q);
    }
}
static void softmax(const IntSoftmax& given) {
  const IntSoftmax p = given;
  if (p.type == Int::Signed8)
    softmax_of<int8_t>(p);
  else if (p.type == Int::Unsigned8)
    softmax_of<uint8_t>(p);
  else
    softmax_of<int16_t>(p);
}

static void every(const int32_t* x, int64_t stride, int64_t count, int32_t* y) {
  if (stride == 2)
    for (int64_t i = 0; i < count; ++i) y[i] = x[2 * i];
  else
    for (int64_t i = 0; i < count; ++i) y[i] = x[stride * i];
}

ORKNN_SIMD void lookup_scalar(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = table[x[i]];
}
#if defined(ORKNN_INT_VNNI)
// Most machines with VNNI look 128 bytes up at once, too.
__attribute__((target("avx512vbmi"))) static void lookup_permuted(const uint8_t* x, const uint8_t* table, uint8_t* y,
                                                                  int64_t count) {
  __m512i part[4];
  for (int j = 0; j < 4; ++j) part[j] = _mm512_loadu_si512(table + 64 * j);
  for (int64_t i = 0; i < count; i += 64) {
    const __mmask64 mask = count - i >= 64 ? ~uint64_t{0} : (uint64_t{1} << (count - i)) - 1;
    const __m512i v = _mm512_maskz_loadu_epi8(mask, x + i);
    const __m512i low = _mm512_permutex2var_epi8(part[0], v, part[1]), high = _mm512_permutex2var_epi8(part[2], v, part[3]);
    _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
  }
}
static void lookup(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t count) {
  static const bool permutes = __builtin_cpu_supports("avx512vbmi");
  if (permutes)
    lookup_permuted(x, table, y, count);
  else
    lookup_scalar(x, table, y, count);
}
#elif !defined(ORKNN_INT_NEON)
static void lookup(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t count) { lookup_scalar(x, table, y, count); }
#endif

#if defined(ORKNN_INT_PORTABLE)
static void maximum(const uint8_t* x, bool is_signed, uint8_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool larger = is_signed ? static_cast<int8_t>(x[i]) > static_cast<int8_t>(y[i]) : x[i] > y[i];
    y[i] = larger ? x[i] : y[i];
  }
}
#elif !defined(ORKNN_INT_NEON)
static void maximum(const uint8_t* x, bool is_signed, uint8_t* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)),
                  b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(y + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), is_signed ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b));
  }
}
#endif

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM

#include "sim/kernels/support/int_arrange_body.h"
// After the other integer cores.
#include "sim/kernels/support/blocked_body.h"
// After the other cores of blocks.
#include "sim/kernels/support/blocked_3x3_body.h"

namespace orknn::sim::kernels::ORKNN_INT_FORM {

// Polynomials of the dwords of each lane: whatever changes a single dword changes the result.
static uint64_t fingerprint(const void* data, int64_t bytes) {
  constexpr int64_t kVectors = 8, kStep = kVectors * kLanes * 4;
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto* from = static_cast<const uint8_t*>(data);
  const I32 factor = all32(static_cast<int32_t>(kOdd));
  I32 lanes[kVectors];
  ORKNN_UNROLL for (int64_t i = 0; i < kVectors; ++i) lanes[i] = zero32();
  const auto take = [&](const uint8_t* step) __attribute__((always_inline)) {
    ORKNN_UNROLL for (int64_t i = 0; i < kVectors; ++i) lanes[i] = add(multiply(lanes[i], factor), load32(step + i * kLanes * 4));
  };
  int64_t at = 0;
  for (; at + kStep <= bytes; at += kStep) take(from + at);
  uint8_t rest[kStep] = {};
  std::memcpy(rest, from + at, static_cast<size_t>(bytes - at));
  take(rest);
  uint64_t h = static_cast<uint64_t>(bytes);
  for (int64_t i = 0; i < kVectors; ++i) {
    int32_t values[kLanes];
    store32(values, lanes[i]);
    for (int64_t j = 0; j < kLanes; ++j) h = (h ^ static_cast<uint32_t>(values[j])) * kOdd;
  }
  return h ^ h >> 32;
}

extern const IntForms kIntForms;
const IntForms kIntForms = {
    .has_bytes = kHasBytes,
#if defined(ORKNN_INT_NEON)
    .data_flip = kDataFlip,
#endif
    .tile = tile,
    .row = row,
#if defined(ORKNN_INT_PRODUCT)
    .product = product,
#else
    .product = nullptr,
#endif
    .convert = convert,
    .convert_wide = convert_wide,
    .widen = widen_sums,
    .resize_columns = resize_columns,
    .resize_rows = resize_rows,
    .resize_rows_wide = resize_rows_wide,
    .add_row = add_row,
    .add_every = add_every,
    .sum_row = sum_row,
    .quantize = quantize,
    .dequantize = dequantize,
    .binary = binary,
    .interleave = interleave,
    .panel = panel,
    .expand = expand,
    .pad = pad,
    .softmax = softmax,
    .every = every,
    .lookup = lookup,
    .fingerprint = fingerprint,
    .blocked_blocks = kProductBlocks,
    .blocked_pixels = kBlockPixels,
    .blocked_product = blocked_product,
#if defined(ORKNN_INT_PAIRS)
    .blocked_panel = blocked_panel,
#else
    .blocked_panel = nullptr,
#endif
    .blocked_depthwise = blocked_depthwise,
    .blocked_taps = blocked_taps,
#if defined(ORKNN_INT_VNNI)
    .depthwise_strips = depthwise_strips,
#else
    .depthwise_strips = nullptr,
#endif
    .tile_input = tile_input,
    .tile_sums = tile_sums,
    .tile_output = tile_output,
    .blocked_convert = blocked_convert,
    .to_pixels = to_pixels,
    .from_pixels = from_pixels,
    .widen_bytes = widen_bytes,
    .maximum = maximum,
};

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
