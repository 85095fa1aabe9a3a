// Where the elements of the matrices of a product are: plain rows, and the blocks that the chips' arrays read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orknn::sim {

constexpr int64_t blocks_of(int64_t extent, int64_t block) { return (extent + block - 1) / block; }

// The left operand and the result: element (row, column) at ((column / block) * rows + row) * block + column % block. Plain
// rows are one block as long as a row.
struct RowLayout {
  int64_t rows = 0, columns = 0, block = 0;

  // Padding of the last block included.
  int64_t elements() const { return blocks_of(columns, block) * rows * block; }
  int64_t place(int64_t row, int64_t column) const { return (column / block * rows + row) * block + column % block; }
};

// The right operand of `depth` rows: row-major, or in blocks of [block_columns][block_depth] that are ordered by column, then
// depth. A matrix stored by columns is one such block. Where `segment` is not 0, each run of so many rows is stored apart.
struct RightLayout {
  int64_t depth = 0, columns = 0;
  bool row_major = true;
  int64_t block_columns = 0, block_depth = 0, segment = 0;
  bool high_nibble_first = false;  // of the two 4-bit values in a byte

  int64_t elements() const;
  int64_t place(int64_t k, int64_t column) const;
  // Elements from `k` on that follow each other in the same column.
  int64_t run(int64_t k) const;

 private:
  int64_t segment_rows() const { return segment > 0 ? segment : depth; }
  int64_t segment_elements(int64_t rows) const;
};

// 4-bit values, two per byte, in two's complement.
constexpr int8_t nibble(const uint8_t* data, int64_t index, bool high_first) {
  const uint8_t byte = data[index / 2];
  const bool high = (index % 2 != 0) != high_first;
  return static_cast<int8_t>(static_cast<int8_t>(high ? byte & 0xf0 : byte << 4) >> 4);
}
// Sets one of the two and keeps the other.
constexpr void set_nibble(uint8_t* data, int64_t index, bool high_first, int8_t value) {
  uint8_t& byte = data[index / 2];
  const bool high = (index % 2 != 0) != high_first;
  byte = static_cast<uint8_t>(high ? (byte & 0x0f) | value << 4 : (byte & 0xf0) | (value & 0x0f));
}

}  // namespace orknn::sim
