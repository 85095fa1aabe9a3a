#include "import/zip/inflate.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace orknn::importer::zip {
namespace {
constexpr size_t kMaxCodeBits = 15;
constexpr size_t kMaxSymbols = 288;

// Bits come from the low end of each byte. Reading past the end yields zeros and is noticed by `overrun()`.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint32_t bits(unsigned count) {
    while (held_ < count) {
      const uint32_t next = position_ < bytes_.size() ? static_cast<uint32_t>(bytes_[position_]) : 0;
      ++position_;
      buffer_ |= next << held_;
      held_ += 8;
    }
    const uint32_t value = buffer_ & ((1u << count) - 1);
    buffer_ >>= count;
    held_ -= count;
    return value;
  }
  // Drops the rest of the current byte and returns the bytes that follow.
  std::span<const std::byte> take_bytes(size_t count) {
    position_ -= held_ / 8;
    buffer_ = 0;
    held_ = 0;
    if (position_ > bytes_.size() || count > bytes_.size() - position_) {
      position_ = bytes_.size() + 1;
      return {};
    }
    const auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }
  bool overrun() const { return position_ - held_ / 8 > bytes_.size(); }
  size_t position() const { return position_; }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  uint32_t buffer_ = 0;
  unsigned held_ = 0;
};

// Canonical Huffman code: how many codes there are of each length, and the symbols in the order of their codes.
struct Code {
  std::array<uint16_t, kMaxCodeBits + 1> count{};
  std::array<uint16_t, kMaxSymbols> symbol{};

  // False when the lengths describe more codes than there is room for.
  bool assign(std::span<const uint8_t> lengths) {
    count.fill(0);
    for (uint8_t l : lengths) ++count[l];
    count[0] = 0;
    int32_t left = 1;
    std::array<uint16_t, kMaxCodeBits + 2> offset{};
    for (size_t bits = 1; bits <= kMaxCodeBits; ++bits) {
      left = left * 2 - count[bits];
      if (left < 0) return false;
      offset[bits + 1] = static_cast<uint16_t>(offset[bits] + count[bits]);
    }
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] != 0) symbol[offset[lengths[i]]++] = static_cast<uint16_t>(i);
    return true;
  }

  // -1 when the bits are no code.
  int decode(BitReader& reader) const {
    int32_t code = 0, first = 0, index = 0;
    for (size_t bits = 1; bits <= kMaxCodeBits; ++bits) {
      code |= static_cast<int32_t>(reader.bits(1));
      const int32_t n = count[bits];
      if (code - n < first) return symbol[static_cast<size_t>(index + code - first)];
      index += n;
      first = (first + n) << 1;
      code <<= 1;
    }
    return -1;
  }
};

struct Extra {
  uint16_t base;
  uint8_t bits;
};
constexpr std::array<Extra, 29> kLengths{{{3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},  {9, 0},  {10, 0},
                                          {11, 1},  {13, 1},  {15, 1},  {17, 1},  {19, 2}, {23, 2}, {27, 2}, {31, 2},
                                          {35, 3},  {43, 3},  {51, 3},  {59, 3},  {67, 4}, {83, 4}, {99, 4}, {115, 4},
                                          {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}}};
constexpr std::array<Extra, 30> kDistances{
    {{1, 0},    {2, 0},    {3, 0},     {4, 0},     {5, 1},     {7, 1},     {9, 2},     {13, 2},     {17, 3},     {25, 3},
     {33, 4},   {49, 4},   {65, 5},    {97, 5},    {129, 6},   {193, 6},   {257, 7},   {385, 7},    {513, 8},    {769, 8},
     {1025, 9}, {1537, 9}, {2049, 10}, {3073, 10}, {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}}};

Status damaged(const BitReader& reader, const char* what) {
  return invalid_model(std::string("compressed data is damaged: ") + what + " at byte " + std::to_string(reader.position()));
}

struct Block {
  Code literals, distances;
};

void use_fixed_codes(Block& block) {
  std::array<uint8_t, kMaxSymbols> lengths;
  std::fill(lengths.begin(), lengths.begin() + 144, uint8_t{8});
  std::fill(lengths.begin() + 144, lengths.begin() + 256, uint8_t{9});
  std::fill(lengths.begin() + 256, lengths.begin() + 280, uint8_t{7});
  std::fill(lengths.begin() + 280, lengths.end(), uint8_t{8});
  block.literals.assign(lengths);
  std::array<uint8_t, 30> five;
  five.fill(5);
  block.distances.assign(five);
}

Status read_codes(BitReader& reader, Block& block) {
  const size_t literal_count = reader.bits(5) + 257, distance_count = reader.bits(5) + 1, length_count = reader.bits(4) + 4;
  if (literal_count > 286 || distance_count > 30) return damaged(reader, "too many codes");
  static constexpr std::array<uint8_t, 19> kOrder{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  std::array<uint8_t, 19> code_lengths{};
  for (size_t i = 0; i < length_count; ++i) code_lengths[kOrder[i]] = static_cast<uint8_t>(reader.bits(3));
  Code code;
  if (!code.assign(code_lengths)) return damaged(reader, "impossible code lengths");
  std::array<uint8_t, 286 + 30> lengths{};
  for (size_t i = 0; i < literal_count + distance_count;) {
    const int symbol = code.decode(reader);
    if (symbol < 0 || reader.overrun()) return damaged(reader, "a code length is missing");
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) return damaged(reader, "nothing to repeat");
    const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t{0};
    const size_t repeat = symbol == 16 ? 3 + reader.bits(2) : symbol == 17 ? 3 + reader.bits(3) : 11 + reader.bits(7);
    if (repeat > literal_count + distance_count - i) return damaged(reader, "too many code lengths");
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(i), repeat, value);
    i += repeat;
  }
  if (!block.literals.assign(std::span(lengths).first(literal_count)) ||
      !block.distances.assign(std::span(lengths).subspan(literal_count, distance_count)))
    return damaged(reader, "impossible code lengths");
  return {};
}

Status read_compressed(BitReader& reader, const Block& block, size_t size, std::vector<std::byte>& out) {
  while (true) {
    const int symbol = block.literals.decode(reader);
    if (symbol < 0 || reader.overrun()) return damaged(reader, "it ends too early or holds an unknown code");
    if (symbol == 256) return {};
    if (symbol < 256) {
      if (out.size() == size) return damaged(reader, "it is longer than stated");
      out.push_back(static_cast<std::byte>(symbol));
      continue;
    }
    if (symbol > 285) return damaged(reader, "an unknown length");
    const Extra length_code = kLengths[static_cast<size_t>(symbol - 257)];
    const size_t length = length_code.base + reader.bits(length_code.bits);
    const int distance_symbol = block.distances.decode(reader);
    if (distance_symbol < 0 || distance_symbol > 29) return damaged(reader, "an unknown distance");
    const Extra distance_code = kDistances[static_cast<size_t>(distance_symbol)];
    const size_t distance = distance_code.base + reader.bits(distance_code.bits);
    if (distance > out.size()) return damaged(reader, "it refers to bytes before its start");
    if (length > size - out.size()) return damaged(reader, "it is longer than stated");
    for (size_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
  }
}
}  // namespace

Result<std::vector<std::byte>> inflate(std::span<const std::byte> compressed, size_t size) {
  // No stream expands more than 1032 times (a two-bit length of 258).
  if (size / 1032 > compressed.size())
    return invalid_model("compressed data states an impossible size")
        .found(std::to_string(size) + " bytes out of " + std::to_string(compressed.size()));
  BitReader reader(compressed);
  std::vector<std::byte> out;
  Block block;
  for (bool last = false; !last;) {
    last = reader.bits(1) != 0;
    const uint32_t kind = reader.bits(2);
    if (reader.overrun()) return damaged(reader, "it ends too early");
    if (kind == 0) {
      const auto header = reader.take_bytes(4);
      if (header.size() != 4) return damaged(reader, "it ends too early");
      const size_t length = static_cast<size_t>(header[0]) | static_cast<size_t>(header[1]) << 8;
      const size_t inverse = static_cast<size_t>(header[2]) | static_cast<size_t>(header[3]) << 8;
      const auto part = reader.take_bytes(length);
      if ((length ^ inverse) != 0xffff || part.size() != length) return damaged(reader, "a stored block does not fit");
      if (length > size - out.size()) return damaged(reader, "it is longer than stated");
      out.insert(out.end(), part.begin(), part.end());
    } else if (kind == 3) {
      return damaged(reader, "an unknown block type");
    } else {
      if (kind == 1)
        use_fixed_codes(block);
      else
        ORKNN_TRY(read_codes(reader, block));
      ORKNN_TRY(read_compressed(reader, block, size, out));
    }
  }
  if (out.size() != size) return damaged(reader, "it is shorter than stated");
  return out;
}

}  // namespace orknn::importer::zip
