// The integer cores in plain C++, for the portable form and for parameters that vectors of 32 bits do not hold.
#pragma once

#include "sim/kernels/support/int_forms.h"
#include "sim/kernels/support/simd_names.h"

namespace orknn::sim::kernels {

ORKNN_SIMD int64_t int_at(const void* data, Int type, int64_t i) {
  if (type == Int::Signed8) return static_cast<const int8_t*>(data)[i];
  if (type == Int::Unsigned8) return static_cast<const uint8_t*>(data)[i];
  return static_cast<const int16_t*>(data)[i];
}

ORKNN_SIMD void store_int(void* data, Int type, int64_t i, int64_t value) {
  if (type == Int::Signed16)
    static_cast<int16_t*>(data)[i] = static_cast<int16_t>(value);
  else
    static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
}

// As ops::round_shift and ops::saturate, without branches, so that loops over them become vectors.
ORKNN_SIMD int64_t round_shift_int(int64_t value, int64_t shift) {
  const int64_t almost_half = ((int64_t{1} << shift) - 1) >> 1, some = shift > 0 ? 1 : 0;
  return (value + almost_half + ((value >> shift) & some)) >> shift;
}
ORKNN_SIMD int64_t clamp_int(int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; }
ORKNN_SIMD int64_t saturate_int(int64_t value, int64_t limit) { return clamp_int(value, -limit - 1, limit); }

ORKNN_SIMD const void* advance_int(const void* data, Int type, int64_t count) {
  return data ? static_cast<const uint8_t*>(data) + count * (type == Int::Signed16 ? 2 : 1) : nullptr;
}

// The stages for parameter `k`, up to where a table begins. `addend` holds the operand at index i, or is nullptr.
ORKNN_SIMD int32_t convert_one(const IntConvert& p, int64_t k, int64_t total, const void* addend, int64_t i) {
  int64_t v = total;
  if (p.channel_factor) v = saturate_int(round_shift_int(v * p.channel_factor[k], p.channel_shift), INT32_MAX);
  if (p.slope_factor && v < 0) v = saturate_int(round_shift_int(v * p.slope_factor[k], p.slope_shift), p.limit);
  if (addend)
    v = saturate_int(v + round_shift_int((int_at(addend, p.addend_type, i) - p.add_zero) * p.add_factor, p.add_shift), p.limit);
  return static_cast<int32_t>(clamp_int(round_shift_int(v * p.factor[k], p.shift[k]) + p.zero, p.low, p.high));
}

// Sums and biases wrap at 32 bits.
ORKNN_SIMD int64_t biased(const IntConvert& p, int64_t k, int32_t sum) {
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(p.bias[k]));
}

ORKNN_SIMD void convert_scalar(const IntConvert& p, const int32_t* sums, int64_t count) {
  for (int64_t row = 0; row < p.rows; ++row, sums += p.sums_stride) {
    const void* addend = advance_int(p.addend, p.addend_type, row * p.addend_stride);
    void* y = const_cast<void*>(advance_int(p.y, p.type, row * p.y_stride));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t k = p.per_column ? i : row;
      const int32_t q = convert_one(p, k, biased(p, k, sums[i]), addend, i);
      store_int(y, p.type, i, p.table ? int_at(p.table, p.type, q) : q);
    }
  }
}

// Pixels of a block, whose sums have their bias.
ORKNN_SIMD void convert_block_scalar(const IntConvert& p, const int32_t* sums, int64_t pixels, const uint8_t* addend,
                                     uint8_t* y) {
  for (int64_t i = 0; i < pixels * kBlock; ++i) {
    const int32_t q = convert_one(p, i % kBlock, sums[i], p.addend ? addend : nullptr, i);
    y[i] = static_cast<uint8_t>(p.table ? int_at(p.table, p.type, q) : q);
  }
}

// One result, up to where a table begins.
ORKNN_SIMD int32_t binary_one(const IntBinary& p, int64_t a, int64_t b) {
  const int64_t left = a * p.a_factor, right = round_shift_int(b * p.b_factor, p.b_shift);
  const int64_t v = p.op == IntBinaryOp::Add        ? left + right
                    : p.op == IntBinaryOp::Multiply ? a * b
                    : p.op == IntBinaryOp::Max      ? (left > right ? left : right)
                                                    : (left < right ? left : right);
  return static_cast<int32_t>(clamp_int(round_shift_int(v * p.factor, p.shift) + p.zero, p.low, p.high));
}
ORKNN_SIMD int32_t binary_at(const IntBinary& p, int64_t i) {
  return binary_one(p, int_at(p.a, p.a_type, p.a_dense ? i : 0) - p.a_zero, int_at(p.b, p.b_type, p.b_dense ? i : 0) - p.b_zero);
}

ORKNN_SIMD void binary_scalar(const IntBinary& p, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t q = binary_at(p, i);
    store_int(p.y, p.type, i, p.table ? int_at(p.table, p.type, q) : q);
  }
}

ORKNN_SIMD void interleave_scalar(const IntInterleave& p, int64_t from) {
  for (int64_t i = from; i < p.count; ++i) {
    uint32_t value = 0;
    if (p.words) {
      for (int j = 0; j < 2; ++j)
        if (p.rows[j])
          value |= static_cast<uint32_t>(
                       static_cast<uint16_t>((p.is_signed ? static_cast<int8_t>(p.rows[j][i]) : p.rows[j][i]) - p.zero))
                   << (16 * j);
    } else {
      for (int j = 0; j < 4; ++j)
        if (p.rows[j]) value |= static_cast<uint32_t>(static_cast<uint8_t>(p.rows[j][i] ^ p.flip)) << (8 * j);
    }
    p.y[i] = static_cast<int32_t>(value);
  }
}

// Rows of a panel, `depth` bytes of each, from dword `first` on.
ORKNN_SIMD void panel_scalar(const IntPanel& p, const uint8_t* x, int64_t depth, int64_t first) {
  const int64_t per = p.words ? 2 : 4;
  for (int64_t r = 0; r < p.rows; ++r) {
    const uint8_t* from = x + r * p.row_stride;
    int32_t* to = p.y + first * p.pitch + r;
    for (int64_t k = 0; k < depth; k += per, to += p.pitch) {
      uint32_t value = 0;
      if (!p.words && k + 4 <= depth) {
        __builtin_memcpy(&value, from + k, 4);
        value ^= p.flip * 0x01010101u;
      } else {
        for (int64_t j = 0; j < per && k + j < depth; ++j) {
          const uint8_t v = from[k + j];
          value |= p.words ? static_cast<uint32_t>(static_cast<uint16_t>((p.is_signed ? static_cast<int8_t>(v) : v) - p.zero))
                                 << (16 * j)
                           : static_cast<uint32_t>(v ^ p.flip) << (8 * j);
        }
      }
      *to = static_cast<int32_t>(value);
    }
  }
}

ORKNN_SIMD int32_t* expanded_row(const IntExpand& p, int64_t row) {
  return p.y + row % p.row_stride * p.remainder_size + row / p.row_stride * p.count;
}

ORKNN_SIMD void expand_scalar(const IntExpand& p) {
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t from = row * p.x_stride;
    int32_t* y = expanded_row(p, row);
    for (int64_t i = 0; i < p.count; ++i) {
      uint32_t value = 0;
      if (p.words) {
        for (int64_t j = 0; j < 2; ++j)
          value |=
              static_cast<uint32_t>(static_cast<uint16_t>(static_cast<const int16_t*>(p.x)[from + i * p.stride + j * p.dilation]))
              << (16 * j);
      } else {
        for (int64_t j = 0; j < 4; ++j)
          value |= static_cast<uint32_t>(static_cast<const uint8_t*>(p.x)[from + i * p.stride + j * p.dilation]) << (8 * j);
      }
      y[i] = static_cast<int32_t>(value);
    }
  }
}

}  // namespace orknn::sim::kernels
