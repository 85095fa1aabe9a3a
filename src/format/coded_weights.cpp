#include "format/coded_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <queue>

#include "format/bytes.h"

namespace orknn::format {
namespace {

constexpr int kLongestCode = 15;
constexpr size_t kSymbols = 256, kLengthBytes = kSymbols / 2;  // two lengths share a byte
constexpr uint8_t kPlain = 0;                                  // instead of a number of planes: stored as it is

using Counts = std::array<uint64_t, kSymbols>;
using Lengths = std::array<uint8_t, kSymbols>;  // of codes, in bits; 0 = the symbol does not occur

// Every `planes`th byte, from number `first` on.
struct Plane {
  size_t first, planes;
  size_t count(size_t bytes) const { return bytes <= first ? 0 : (bytes - first + planes - 1) / planes; }
};

Counts count_symbols(std::span<const std::byte> bytes, Plane plane) {
  Counts counts{};
  for (size_t i = plane.first; i < bytes.size(); i += plane.planes) ++counts[static_cast<size_t>(bytes[i])];
  return counts;
}

// Bits that an ideal code needs.
double entropy(const Counts& counts) {
  double total = 0, bits = 0;
  for (uint64_t c : counts) total += static_cast<double>(c);
  for (uint64_t c : counts)
    if (c > 0) bits -= static_cast<double>(c) * std::log2(static_cast<double>(c) / total);
  return bits;
}

// Code lengths by Huffman's method; empty when some code would be too long.
bool huffman(const Counts& counts, Lengths& lengths) {
  struct Tree {
    uint64_t count;
    int number;  // in the order of making, so that the result does not depend on the library
    int left, right;
  };
  std::vector<Tree> trees;
  const auto later = [&](int a, int b) {
    const Tree &x = trees[static_cast<size_t>(a)], &y = trees[static_cast<size_t>(b)];
    return x.count != y.count ? x.count > y.count : x.number > y.number;
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> open(later);
  std::vector<int> symbol_of;
  for (size_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    trees.push_back({counts[s], static_cast<int>(trees.size()), -1, -1});
    symbol_of.push_back(static_cast<int>(s));
  }
  lengths.fill(0);
  if (trees.size() == 1) {
    lengths[static_cast<size_t>(symbol_of[0])] = 1;
    return true;
  }
  for (size_t i = 0; i < trees.size(); ++i) open.push(static_cast<int>(i));
  while (open.size() > 1) {
    const int a = open.top();
    open.pop();
    const int b = open.top();
    open.pop();
    const int number = static_cast<int>(trees.size());
    trees.push_back({trees[static_cast<size_t>(a)].count + trees[static_cast<size_t>(b)].count, number, a, b});
    open.push(number);
  }
  std::vector<int> depth(trees.size(), 0);
  for (size_t i = trees.size(); i-- > 0;) {
    const Tree& t = trees[i];
    if (t.left < 0) {
      if (depth[i] > kLongestCode) return false;
      lengths[static_cast<size_t>(symbol_of[i])] = static_cast<uint8_t>(depth[i]);
      continue;
    }
    depth[static_cast<size_t>(t.left)] = depth[static_cast<size_t>(t.right)] = depth[i] + 1;
  }
  return true;
}

Lengths choose_lengths(Counts counts) {
  Lengths lengths{};
  while (!huffman(counts, lengths))
    for (uint64_t& c : counts) c = (c + 1) / 2;  // rare symbols become less rare
  return lengths;
}

// Codes count upwards with length and symbol.
std::array<uint16_t, kSymbols> codes_of(const Lengths& lengths) {
  std::array<uint16_t, kSymbols> codes{};
  uint32_t next = 0;
  for (int length = 1; length <= kLongestCode; ++length) {
    for (size_t s = 0; s < kSymbols; ++s)
      if (lengths[s] == length) codes[s] = static_cast<uint16_t>(next++);
    next <<= 1;
  }
  return codes;
}

void write_plane(std::span<const std::byte> bytes, Plane plane, ByteWriter& out) {
  const Lengths lengths = choose_lengths(count_symbols(bytes, plane));
  const auto codes = codes_of(lengths);
  for (size_t s = 0; s < kSymbols; s += 2) out.put(static_cast<uint8_t>(lengths[s] | lengths[s + 1] << 4));
  uint64_t bits = 0;
  for (size_t i = plane.first; i < bytes.size(); i += plane.planes) bits += lengths[static_cast<size_t>(bytes[i])];
  out.put(bits);
  uint64_t waiting = 0;
  int held = 0;
  for (size_t i = plane.first; i < bytes.size(); i += plane.planes) {
    const auto s = static_cast<size_t>(bytes[i]);
    waiting = waiting << lengths[s] | codes[s];
    held += lengths[s];
    for (; held >= 8; held -= 8) out.put(static_cast<uint8_t>(waiting >> (held - 8)));
  }
  if (held > 0) out.put(static_cast<uint8_t>(waiting << (8 - held)));
}

// How many planes make the shortest code; kPlain where none is worth it.
uint8_t best_planes(std::span<const std::byte> bytes) {
  constexpr double kWorthIt = 0.98;
  uint8_t best = kPlain;
  double least = kWorthIt * static_cast<double>(bytes.size());
  for (const uint8_t planes : {uint8_t{1}, uint8_t{2}, uint8_t{4}}) {
    double size = planes * static_cast<double>(kLengthBytes + sizeof(uint64_t));
    for (size_t p = 0; p < planes; ++p) size += entropy(count_symbols(bytes, {p, planes})) / 8;
    if (size < least) {
      least = size;
      best = planes;
    }
  }
  return best;
}

Status damaged() { return invalid_model("the coded weights of the file are damaged").hint("export the model again"); }

struct CodedPiece {
  uint64_t bytes = 0, stored = 0;
  uint8_t planes = kPlain;
};

// By the next bits, which code begins there.
struct Entry {
  uint8_t symbol = 0, length = 0;  // 0 = no code begins like this
};
using Table = std::vector<Entry>;

Result<Table> table_of(const Lengths& lengths) {
  uint64_t used = 0;  // of the code space
  for (uint8_t l : lengths) used += l ? uint64_t{1} << (kLongestCode - l) : 0;
  if (used > (uint64_t{1} << kLongestCode)) return damaged();
  Table table(size_t{1} << kLongestCode);
  const auto codes = codes_of(lengths);
  for (size_t s = 0; s < kSymbols; ++s) {
    if (lengths[s] == 0) continue;
    const int rest = kLongestCode - lengths[s];
    std::fill_n(table.begin() + (static_cast<ptrdiff_t>(codes[s]) << rest), size_t{1} << rest,
                Entry{static_cast<uint8_t>(s), lengths[s]});
  }
  return table;
}

Status read_plane(ByteReader& in, Plane plane, std::span<std::byte> to) {
  Lengths lengths{};
  for (size_t s = 0; s < kSymbols; s += 2) {
    const auto both = in.get<uint8_t>();
    lengths[s] = both & 15;
    lengths[s + 1] = both >> 4;
  }
  const auto bits = in.get<uint64_t>();
  const uint64_t bytes = bits / 8 + (bits % 8 != 0);
  if (in.failed() || bytes > in.left()) return damaged();
  ORKNN_TRY_ASSIGN(const Table table, table_of(lengths));
  const std::span<const std::byte> stream = in.rest().first(static_cast<size_t>(bytes));
  uint64_t waiting = 0, read = 0, left = bits;
  int held = 0;
  for (size_t i = plane.first; i < to.size(); i += plane.planes) {
    for (; held < kLongestCode && read < bytes; ++read, held += 8) waiting = waiting << 8 | static_cast<uint64_t>(stream[read]);
    const uint64_t window = held >= kLongestCode ? waiting >> (held - kLongestCode) : waiting << (kLongestCode - held);
    const Entry e = table[window & ((size_t{1} << kLongestCode) - 1)];
    if (e.length == 0 || e.length > left) return damaged();
    to[i] = static_cast<std::byte>(e.symbol);
    left -= e.length;
    held -= e.length;
  }
  if (left != 0) return damaged();
  in.skip(static_cast<size_t>(bytes));
  return {};
}

Status read_piece(std::span<const std::byte> stored, const CodedPiece& piece, std::span<std::byte> to) {
  if (piece.planes == kPlain) {
    std::copy(stored.begin(), stored.end(), to.begin());
    return {};
  }
  ByteReader in(stored);
  for (size_t p = 0; p < piece.planes; ++p) ORKNN_TRY(read_plane(in, {p, piece.planes}, to));
  return in.left() == 0 ? Status() : damaged();
}
}  // namespace

std::vector<std::byte> code_weights(const WeightCollector& weights) {
  ByteWriter table, streams;
  table.count(weights.pieces().size());
  for (const WeightCollector::Piece& piece : weights.pieces()) {
    uint8_t planes = best_planes(piece.bytes);
    ByteWriter coded;
    for (size_t p = 0; p < planes; ++p) write_plane(piece.bytes, {p, planes}, coded);
    if (coded.bytes().size() >= piece.bytes.size()) planes = kPlain;
    const std::span<const std::byte> stored = planes == kPlain ? piece.bytes : std::span<const std::byte>(coded.bytes());
    table.put(static_cast<uint64_t>(piece.bytes.size()));
    table.put(planes);
    table.put(static_cast<uint64_t>(stored.size()));
    streams.raw(stored.data(), stored.size());
  }
  table.raw(streams.bytes().data(), streams.bytes().size());
  table.pad();
  return std::move(table.bytes());
}

Result<WeightSection> decode_weights(std::span<const std::byte> coded) {
  ByteReader in(coded);
  constexpr size_t kEntryBytes = 2 * sizeof(uint64_t) + 1;
  std::vector<CodedPiece> pieces(in.count(kEntryBytes));
  uint64_t total = 0, stored = 0;
  for (CodedPiece& p : pieces) {
    p.bytes = in.get<uint64_t>();
    p.planes = in.get<uint8_t>();
    p.stored = in.get<uint64_t>();
    // A coded byte takes at least one bit, so nothing is larger than eight times what is there.
    const bool fits = p.planes == kPlain ? p.bytes == p.stored : p.bytes / 8 <= p.stored && p.planes <= 4;
    if (in.failed() || p.stored > coded.size() || !fits) return damaged();
    total += aligned(p.bytes);
    stored += p.stored;
  }
  if (in.failed() || stored > in.left()) return damaged();
  constexpr std::align_val_t kAlignment{kFileAlignment};
  std::shared_ptr<std::byte> memory(
      static_cast<std::byte*>(::operator new(std::max<uint64_t>(total, 1), kAlignment, std::nothrow)),
      [](std::byte* p) { ::operator delete(p, kAlignment); });
  if (!memory) return Status::error(Code::OutOfMemory, "no memory for the weights (" + std::to_string(total) + " bytes)");
  std::fill_n(memory.get(), total, std::byte{0});
  const std::span<std::byte> section(memory.get(), total);
  std::span<const std::byte> streams = in.rest();
  uint64_t offset = 0;
  for (const CodedPiece& p : pieces) {
    ORKNN_TRY(read_piece(streams.first(p.stored), p, section.subspan(offset, p.bytes)));
    streams = streams.subspan(p.stored);
    offset += aligned(p.bytes);
  }
  return WeightSection{section, std::move(memory)};
}

}  // namespace orknn::format
