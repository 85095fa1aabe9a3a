// The cores of tensors in blocks (sim/form.h), written against the vectors of int_simd_*.h. Included once by each
// int_forms_*.cpp, before the list of its cores.
#pragma once

namespace orknn::sim::kernels::ORKNN_INT_FORM {

constexpr int kParts = static_cast<int>(kBlock / kLanes);  // vectors of a block
typedef uint8_t PixelBytes __attribute__((vector_size(kBlock)));

#if defined(ORKNN_INT_PORTABLE)
static void blocked_convert(const IntConvert& to, bool, const int32_t* sums, int64_t pixels, const uint8_t* addend, uint8_t* y) {
  convert_block_scalar(to, sums, pixels, addend, y);
}
#else
// What becomes of converted values: bytes; indices of a table; indices divided into their upper bytes and lower four bits.
enum class Emit { Bytes, Indices, Split };

// `y` is what kEmit makes of the pixels; that and `lower` are written in whole vectors unless it is bytes.
template <Emit kEmit, bool kAddend, bool kSlopes>
__attribute__((noinline)) static void convert_pixels(const IntConvert& p, const int32_t* sums, int64_t pixels,
                                                     const uint8_t* addend, void* y, [[maybe_unused]] uint8_t* lower) {
  constexpr int kTogether = 4 / kParts;  // pixels of four vectors
  const Converter<kAddend, kSlopes, true> stages(p, 0);
  F32 scale[kParts], slope[kParts];
  ORKNN_UNROLL for (int j = 0; j < kParts; ++j) {
    scale[j] = load_float(p.scale + j * kLanes);
    slope[j] = kSlopes ? load_float(p.slope_scale + j * kLanes) : scale[j];
  }
  const F32 start = all_float(p.start), add_scale = all_float(p.add_scale), margin = all_float(p.blocked_margin);
  const I32 add_zero = all32(p.add_zero);
  const Bytes least = all_bytes(p.low), most = all_bytes(p.high);
  const auto some = [&](int64_t first, int64_t last) __attribute__((always_inline)) {
    I32 total[4], operand[4], value[4];
    F32 worst[4];
    ORKNN_UNROLL for (int j = 0; j < 4; ++j) {
      const int64_t at = first + j / kParts, pixel = at < last ? at : last, from = pixel * kBlock + j % kParts * kLanes;
      total[j] = load32(sums + from);
      F32 by = scale[j % kParts];
      if constexpr (kSlopes) by = by_sign(total[j], slope[j % kParts], by);
      F32 x = multiply_add(to_float(total[j]), by, start);
      operand[j] = zero32();
      if constexpr (kAddend) {
        operand[j] = widen_whole(addend + from);
        x = multiply_add(to_float(operand[j]), add_scale, x);
      }
      worst[j] = round_to(x, value[j]);
    }
    const F32 distance = largest(largest(worst[0], worst[1]), largest(worst[2], worst[3]));
    if (__builtin_expect(any_above(distance, margin), 0)) {
      ORKNN_UNROLL for (int j = 0; j < 4; ++j) if (any_above(worst[j], margin)) value[j] =
          stages.exactly(total[j], kAddend ? subtract(operand[j], add_zero) : operand[j], j % kParts * kLanes);
    }
    if constexpr (kEmit == Emit::Bytes) {
      const Bytes bytes = clamp_bytes(pack(value[0], value[1], value[2], value[3], Int::Unsigned8), least, most, Int::Unsigned8);
      store_bytes(static_cast<uint8_t*>(y) + first * kBlock, bytes,
                  last == INT64_MAX ? kTogether * kBlock : (last + 1 - first) * kBlock);
      return;
    }
    if constexpr (kEmit == Emit::Indices) {
      ORKNN_UNROLL for (int j = 0; j < 4; ++j)
          store32(static_cast<int32_t*>(y) + first * kBlock + j * kLanes, clamp(value[j], all32(p.low), all32(p.high)));
      return;
    }
#if defined(ORKNN_INT_VNNI)
    if constexpr (kEmit == Emit::Split)
      split_indices(value, p.low, p.high, static_cast<uint8_t*>(y) + first * kBlock, lower + first * kBlock);
#endif
  };
  int64_t i = 0;
  for (; i + kTogether <= pixels; i += kTogether) some(i, INT64_MAX);
  if (i < pixels) some(i, pixels - 1);
}

template <Emit kEmit>
ORKNN_SIMD void convert_by_stages(const IntConvert& p, const int32_t* sums, int64_t pixels, const uint8_t* addend, void* y,
                                  uint8_t* lower = nullptr) {
  if (p.addend)
    p.slope_factor ? convert_pixels<kEmit, true, true>(p, sums, pixels, addend, y, lower)
                   : convert_pixels<kEmit, true, false>(p, sums, pixels, addend, y, lower);
  else
    p.slope_factor ? convert_pixels<kEmit, false, true>(p, sums, pixels, addend, y, lower)
                   : convert_pixels<kEmit, false, false>(p, sums, pixels, addend, y, lower);
}

// The converter of the common case, with sums that are still in registers: what all pixels of a block share.
struct Direct {
  F32 scale[kParts], start, add_scale, margin;
  Bytes least, most;
  __attribute__((always_inline)) explicit Direct(const IntConvert& p)
      : start(all_float(p.start)),
        add_scale(all_float(p.add_scale)),
        margin(all_float(p.blocked_margin)),
        least(all_bytes(p.low)),
        most(all_bytes(p.high)) {
    ORKNN_UNROLL for (int j = 0; j < kParts; ++j) scale[j] = load_float(p.scale + j * kLanes);
  }
};

// Four vectors of sums, or the first kVectors of them: the pixels from `y` on, of which `bytes` are there. Where floats cannot
// decide, the sums go to `doubtful` and the result is false. A call here would take the registers of the other sums, so that
// comes later (settle).
template <int kVectors = 4>
ORKNN_SIMD bool convert_directly(const Direct& to, const I32 (&total)[4], int64_t bytes, const uint8_t* addend, uint8_t* y,
                                 int32_t* doubtful) {
  I32 value[4];
  ORKNN_UNROLL for (int j = kVectors; j < 4; ++j) value[j] = zero32();
  F32 worst;
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) {
    F32 x = multiply_add(to_float(total[j]), to.scale[j % kParts], to.start);
    if (addend) {
      const int64_t from = j * kLanes < bytes ? j * kLanes : bytes - kLanes;
      x = multiply_add(to_float(widen_whole(addend + from)), to.add_scale, x);
    }
    const F32 distance = round_to(x, value[j]);
    worst = j == 0 ? distance : largest(worst, distance);
  }
  store_bytes(y, clamp_bytes(pack(value[0], value[1], value[2], value[3], Int::Unsigned8), to.least, to.most, Int::Unsigned8),
              bytes);
  if (__builtin_expect(!any_above(worst, to.margin), 1)) return true;
  ORKNN_UNROLL for (int j = 0; j < kVectors; ++j) store32(doubtful + j * kLanes, total[j]);
  return false;
}

// Groups of pixels of one block, of which a bit says that convert_directly could not decide.
__attribute__((noinline, cold)) static void settle(const IntConvert& p, const int32_t* doubtful, uint32_t groups, int64_t pixels,
                                                   const uint8_t* addend, uint8_t* y) {
  constexpr int64_t kTogether = 4 / kParts;
  for (int64_t first = 0; groups != 0; groups >>= 1, first += kTogether) {
    if ((groups & 1) == 0) continue;
    const int64_t count = pixels - first < kTogether ? pixels - first : kTogether;
    convert_by_stages<Emit::Bytes>(p, doubtful + first * kBlock, count, addend ? addend + first * kBlock : nullptr,
                                   y + first * kBlock);
  }
}

// Whether convert_directly can be used.
ORKNN_SIMD bool converts_directly(const IntConvert& to, bool is_float_enough) {
  return is_float_enough && !to.table && !to.slope_factor;
}

#if defined(ORKNN_INT_VNNI)
// Tables of bytes as IntConvert::steps has them, sixty-four indices at a time.
__attribute__((target("avx512vbmi"))) static inline __m512i entry_of(const uint8_t* table, __m512i index) {
  const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), index, _mm512_loadu_si512(table + 64)),
                high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), index, _mm512_loadu_si512(table + 192));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}
__attribute__((target("avx512vbmi"))) static void look_up_steps(const IntConvert& p, const uint8_t* upper, const uint8_t* lower,
                                                                uint8_t* y, int64_t count) {
  const __m512i one = _mm512_set1_epi8(1), order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int64_t i = 0; i < count; i += 64) {
    const __m512i index = _mm512_loadu_si512(upper + i), rest = _mm512_loadu_si512(lower + i);
    __m512i value = entry_of(p.steps, index);
    const uint8_t* table = p.steps + 256;
    for (int k = 0; k < p.steps_up; ++k, table += 256)
      value = _mm512_mask_add_epi8(value, _mm512_cmpge_epu8_mask(rest, entry_of(table, index)), value, one);
    for (int k = 0; k < p.steps_down; ++k, table += 256)
      value = _mm512_mask_sub_epi8(value, _mm512_cmpge_epu8_mask(rest, entry_of(table, index)), value, one);
    store_bytes(y + i, {_mm512_permutexvar_epi32(order, value)}, count - i);
  }
}
#endif

// Results of tables with more entries than bytes have values.
static void convert_with_table(const IntConvert& to, const int32_t* sums, int64_t pixels, const uint8_t* addend, uint8_t* y) {
  constexpr int64_t kChunk = 32;
#if defined(ORKNN_INT_VNNI)
  static const bool permutes = __builtin_cpu_supports("avx512vbmi");
#endif
  for (int64_t i = 0; i < pixels; i += kChunk) {
    const int64_t n = pixels - i < kChunk ? pixels - i : kChunk, at = i * kBlock;
    const uint8_t* operands = addend ? addend + at : nullptr;
#if defined(ORKNN_INT_VNNI)
    if (to.steps && permutes) {
      alignas(64) uint8_t upper[kChunk * kBlock], lower[kChunk * kBlock];
      convert_by_stages<Emit::Split>(to, sums + at, n, operands, upper, lower);
      look_up_steps(to, upper, lower, y + at, n * kBlock);
      continue;
    }
#endif
    alignas(64) int32_t indices[kChunk * kBlock];
    convert_by_stages<Emit::Indices>(to, sums + at, n, operands, indices);
    look_up(static_cast<const uint8_t*>(to.table), indices, n * kBlock, y + at);
  }
}

static void blocked_convert(const IntConvert& to, bool is_float_enough, const int32_t* sums, int64_t pixels,
                            const uint8_t* addend, uint8_t* y) {
  if (!is_float_enough) return convert_block_scalar(to, sums, pixels, addend, y);
  if (to.table && to.high > 255) return convert_with_table(to, sums, pixels, addend, y);
  convert_by_stages<Emit::Bytes>(to, sums, pixels, addend, y);
  if (to.table) lookup(y, static_cast<const uint8_t*>(to.table), y, pixels * kBlock);
}
#endif

#if !defined(ORKNN_INT_NEON)
#if defined(ORKNN_INT_CONVERTS_SUMS)
static_assert(kParts == 1);
// The sums of a block's pixels become results where they are.
template <int kPixels>
ORKNN_SIMD void convert_sums(const IntConvert& to, const I32 (&sum)[kPixels], const uint8_t* addend, uint8_t* y) {
  constexpr int kRest = kPixels % 4, kWhole = kPixels - kRest;
  const Direct direct(to);
  const auto convert_all = [&](const uint8_t* operands) __attribute__((always_inline)) {
    alignas(64) int32_t doubtful[(kPixels + 3) / 4 * 4 * kBlock];
    uint32_t groups = 0;
    const auto at = [&](int pixel) __attribute__((always_inline)) { return operands ? operands + pixel * kBlock : nullptr; };
    ORKNN_UNROLL for (int i = 0; i < kWhole; i += 4) {
      const I32 total[4] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
      if (!convert_directly(direct, total, 4 * kBlock, at(i), y + i * kBlock, doubtful + i * kBlock)) groups |= 1u << (i / 4);
    }
    if constexpr (kRest > 0) {
      I32 total[4] = {};
      ORKNN_UNROLL for (int j = 0; j < kRest; ++j) total[j] = sum[kWhole + j];
      if (!convert_directly<kRest>(direct, total, kRest * kBlock, at(kWhole), y + kWhole * kBlock, doubtful + kWhole * kBlock))
        groups |= 1u << (kWhole / 4);
    }
    if (__builtin_expect(groups != 0, 0)) settle(to, doubtful, groups, kPixels, operands, y);
  };
  addend ? convert_all(addend) : convert_all(nullptr);
}
#endif

// kDwords: of a pixel. kRows: 2 = half of the pixels read a row further down. Sums go to [block][pixel][kBlock], a block being
// `sums_block` away from the next; without `sums` they become the results from pixel `first` on.
template <Dot kDot, int kDwords, int kBlocks, int kPixels, int kRows>
__attribute__((noinline)) static void sum_pixels(const BlockedProduct& p, int64_t first, int32_t* sums, int64_t sums_block) {
  constexpr int kVectors = kBlocks * kParts, kRowPixels = kPixels / kRows;
  I32 sum[kVectors][kPixels];
  ORKNN_UNROLL for (int v = 0; v < kVectors; ++v) {
    const I32 bias = load32(p.to[v / kParts].bias + v % kParts * kLanes);
    ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) sum[v][i] = bias;
  }
  const int32_t* weights = p.weights;
  const uint8_t* const x = p.x + first * kDwords * 4;
  const int64_t row = p.row_bytes;
  const auto add_dword = [&](const uint8_t* from) __attribute__((always_inline)) {
    I32 weight[kVectors];
    ORKNN_UNROLL for (int v = 0; v < kVectors; ++v) weight[v] = load32(weights + v * kLanes);
    weights += kBlocks * kBlock;
    ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) {
      int32_t dword;
      std::memcpy(&dword, from + i / kRowPixels * row + i % kRowPixels * kDwords * 4, 4);
      const I32 data = all32(dword);
      ORKNN_UNROLL for (int v = 0; v < kVectors; ++v) sum[v][i] = dot<kDot>(sum[v][i], weight[v], data);
    }
  };
  for (int64_t k = 0; k < p.whole; ++k) {
    const uint8_t* from = x + p.offsets[k];
    for (int d = 0; d < kDwords; ++d) add_dword(from + d * 4);
  }
  for (int64_t k = p.whole; k < p.whole + p.partial; ++k) {
    const uint8_t* from = x + p.offsets[k];
    for (int64_t d = 0; d < p.partial_dwords; ++d) add_dword(from + d * 4);
  }
#if defined(ORKNN_INT_CONVERTS_SUMS)
  if (!sums) {
    ORKNN_UNROLL for (int b = 0; b < kBlocks; ++b) {
      const int64_t at = b * p.y_block + first * kBlock;
      convert_sums<kPixels>(p.to[b], sum[b], p.addend ? p.addend + at : nullptr, p.y + at);
    }
    return;
  }
#endif
  ORKNN_UNROLL for (int v = 0; v < kVectors; ++v) ORKNN_UNROLL for (int i = 0; i < kPixels; ++i)
      store32(sums + (v / kParts) * sums_block + i * kBlock + v % kParts * kLanes, sum[v][i]);
}
#endif

template <Dot kDot, int kDwords, int kBlocks, int kPixels>
ORKNN_SIMD void sum_up_to(const BlockedProduct& p, int64_t first, int64_t count, int32_t* sums, int64_t sums_block) {
  if constexpr (kPixels > 1) {
    if (count < kPixels) return sum_up_to<kDot, kDwords, kBlocks, kPixels - 1>(p, first, count, sums, sums_block);
  }
  sum_pixels<kDot, kDwords, kBlocks, kPixels, 1>(p, first, sums, sums_block);
}
template <Dot kDot, int kDwords, int kBlocks, int kPixels>
ORKNN_SIMD void sum_two_rows(const BlockedProduct& p, int32_t* sums, int64_t sums_block) {
  if constexpr (kPixels > 2) {
    if (p.pixels < kPixels) return sum_two_rows<kDot, kDwords, kBlocks, kPixels - 2>(p, sums, sums_block);
  }
  sum_pixels<kDot, kDwords, kBlocks, kPixels, 2>(p, 0, sums, sums_block);
}

template <Dot kDot, int kDwords, int kBlocks>
ORKNN_SIMD void blocked_product_of(const BlockedProduct& p) {
  constexpr int64_t kMost = kBlockPixels, kTiles = 4;
#if defined(ORKNN_INT_CONVERTS_SUMS)
  bool directly = true;
  for (int b = 0; b < kBlocks; ++b) directly &= converts_directly(p.to[b], p.is_float_enough);
  if (directly) {
    if constexpr (kDwords > 2) {
      if (p.row_bytes != 0) return sum_two_rows<kDot, kDwords, kBlocks, kMost>(p, nullptr, 0);
    }
    int64_t tiles = (p.pixels + kMost - 1) / kMost;
    for (int64_t done = 0; tiles > 0; --tiles) {
      const int64_t count = (p.pixels - done + tiles - 1) / tiles;
      sum_up_to<kDot, kDwords, kBlocks, kMost>(p, done, count, nullptr, 0);
      done += count;
    }
    return;
  }
#endif
  alignas(64) int32_t sums[kBlocks * kTiles * kMost * kBlock];
  const auto convert = [&](int64_t first, int64_t count) {
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t at = b * p.y_block + first * kBlock;
      blocked_convert(p.to[b], p.is_float_enough, sums + b * count * kBlock, count, p.addend ? p.addend + at : nullptr, p.y + at);
    }
  };
  if constexpr (kMost == 14 && kDwords > 2) {
    if (p.row_bytes != 0) {
      sum_two_rows<kDot, kDwords, kBlocks, kMost>(p, sums, p.pixels * kBlock);
      return convert(0, p.pixels);
    }
  }
  // Some tiles at a time, as even as possible.
  int64_t tiles = (p.pixels + kMost - 1) / kMost;
  for (int64_t done = 0; tiles > 0;) {
    int64_t some = tiles < kTiles ? tiles : kTiles, count = (p.pixels - done) * some / tiles;
    if (count > some * kMost) count = some * kMost;
    tiles -= some;
    if (tiles == 0) count = p.pixels - done;
    for (int64_t at = 0; some > 0; --some) {
      const int64_t n = (count - at + some - 1) / some;
      sum_up_to<kDot, kDwords, kBlocks, kMost>(p, done + at, n, sums + at * kBlock, count * kBlock);
      at += n;
    }
    convert(done, count);
    done += count;
  }
}

template <Dot kDot, int kDwords>
ORKNN_SIMD void blocked_product_with(const BlockedProduct& p) {
  if constexpr (kProductBlocks == 2) {
    if (p.blocks == 2) return blocked_product_of<kDot, kDwords, 2>(p);
  }
  blocked_product_of<kDot, kDwords, 1>(p);
}

#if defined(ORKNN_INT_PAIRS)
static_assert(kParts == 2 && kProductBlocks == 1);

static void blocked_panel(const BlockedPanel& p) {
  I32 sum[kPairPixels];
  ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) sum[i] = zero32();
  const uint8_t* x[kPairPixels];
  int64_t step[kPairPixels];
  ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) {
    x[i] = p.x[i];
    step[i] = p.block_bytes[i];
  }
  int16_t* y = p.y;
  for (int64_t block = 0; block < p.whole; ++block, y += kPairPixels * kBlock)
    ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) {
      const I32 words = words_of_pixel(x[i]);
      x[i] += step[i];
      store32(reinterpret_cast<int32_t*>(y + i * kBlock), words);
      sum[i] = add(sum[i], products_of_pairs(words));
    }
  if (p.partial_dwords > 0) ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) {
      const I32 words = words_of_pixel(x[i]);
      store32(reinterpret_cast<int32_t*>(p.partial_y + i * kBlock), words);
      sum[i] = add(sum[i], products_of_pairs(first_lanes(words, p.partial_dwords / 2 * 2)));
    }
  add_totals(sum, p.products);
}

constexpr int64_t kPairPieces = 16;  // whose weights stay in the first-level cache while some pixels pass by

// Adds pieces [piece, piece + pieces) to the sums of the panel `first` is in, which begin with the bias; the last whole ones are
// followed by all partial ones.
ORKNN_SIMD void sum_pairs(const BlockedProduct& p, int64_t first, int64_t piece, int64_t pieces, int32_t* sums) {
  I32 sum[2 * kPairPixels];
  if (piece == 0) {
    const I32 low = load32(p.to->bias), high = load32(p.to->bias + kLanes);
    ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) {
      const I32 less = all32(p.pairs[first + i]);
      sum[i * kParts] = subtract(low, less);
      sum[i * kParts + 1] = subtract(high, less);
    }
  } else {
    ORKNN_UNROLL for (int j = 0; j < 2 * kPairPixels; ++j) sum[j] = load32(sums + j * kLanes);
  }
  const uint8_t* x = p.x + first / kPairPixels * p.panel_bytes + piece * kPanelPieceBytes;
  const int32_t* weights = p.weights + piece * kBlock * kBlock / 2;
  // The weights that come next follow these; each of eight panels asks for an eighth of them.
  const int64_t next_weights = pieces * kBlock * kBlock * 2 + first / kPairPixels % 8 * 64;
  if (pieces > 0) add_whole_pairs(x, p.panel_bytes, weights, next_weights, pieces, sum);
  for (int64_t k = piece + pieces == p.whole ? 0 : p.partial; k < p.partial; ++k, x += kPanelPieceBytes) {
    const uint8_t* from = x;
    if (p.partial_dwords > 1) add_pairs(from, weights, p.partial_dwords / 2, sum);
    if (p.partial_dwords % 2 == 0) continue;
    ORKNN_UNROLL for (int i = 0; i < kPairPixels; ++i) {
      int32_t dword;
      std::memcpy(&dword, from + i * kBlock * 2, 4);
      ORKNN_UNROLL for (int j = 0; j < kParts; ++j) sum[i * kParts + j] =
          dot<Dot::Words>(sum[i * kParts + j], load32(weights + j * kLanes), all32(dword));
    }
    weights += kBlock;
  }
  ORKNN_UNROLL for (int j = 0; j < 2 * kPairPixels; ++j) store32(sums + j * kLanes, sum[j]);
}

static void product_of_pairs(const BlockedProduct& given) {
  const BlockedProduct p = given;
  constexpr int64_t kChunk = 8 * kPairPixels;
  alignas(64) int32_t sums[kChunk * kBlock];
  for (int64_t done = 0; done < p.pixels; done += kChunk) {
    const int64_t count = p.pixels - done < kChunk ? p.pixels - done : kChunk;
    int64_t piece = 0;
    do {
      const int64_t pieces = p.whole - piece < kPairPieces ? p.whole - piece : kPairPieces;
      for (int64_t at = 0; at < count; at += kPairPixels) sum_pairs(p, done + at, piece, pieces, sums + at * kBlock);
      piece += pieces;
    } while (piece < p.whole);
    blocked_convert(*p.to, p.is_float_enough, sums, count, p.addend ? p.addend + done * kBlock : nullptr, p.y + done * kBlock);
  }
}
#endif

static void blocked_product(const BlockedProduct& p) {
  if constexpr (kHasBytes) {
    if (p.dot == Dot::BytesBUnsigned)
      return p.narrow ? blocked_product_with<Dot::BytesBUnsigned, 1>(p) : blocked_product_with<Dot::BytesBUnsigned, 4>(p);
  }
#if defined(ORKNN_INT_PAIRS)
  if (p.pairs) return product_of_pairs(p);
#endif
  p.narrow ? blocked_product_with<Dot::Words, 2>(p) : blocked_product_with<Dot::Words, 8>(p);
}

template <Dot kDot, int kPixels>
ORKNN_SIMD void sum_depthwise(const BlockedDepthwise& p, const int32_t* x, I32 (&sum)[kPixels][kParts]) {
  ORKNN_UNROLL for (int j = 0; j < kParts; ++j) {
    const I32 bias = load32(p.to->bias + j * kLanes);
    ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) sum[i][j] = bias;
  }
  for (int64_t k = 0; k < p.depth; ++k) {
    const int32_t* from = x + p.offsets[k];
    ORKNN_UNROLL for (int j = 0; j < kParts; ++j) {
      const I32 weight = load32(p.weights + k * kBlock + j * kLanes);
      ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) sum[i][j] =
          dot<kDot>(sum[i][j], weight, load32(from + i * kBlock + j * kLanes));
    }
  }
}

template <Dot kDot>
ORKNN_SIMD void depthwise_of(const BlockedDepthwise& p) {
  constexpr int kPixels = kParts == 1 ? 8 : kParts == 2 ? 4 : 2;
  I32 sum[kPixels][kParts];
#if !defined(ORKNN_INT_PORTABLE)
  if (converts_directly(*p.to, p.is_float_enough)) {
    constexpr int kTogether = 4 / kParts;
    const Direct direct(*p.to);
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t at = 0; at < p.columns; at += kPixels) {
        sum_depthwise<kDot, kPixels>(p, p.x + row * p.row_stride + at * kBlock, sum);
        const int64_t pixels = p.columns - at < kPixels ? p.columns - at : kPixels, place = (row * p.columns + at) * kBlock;
        const uint8_t* const addend = p.addend ? p.addend + place : nullptr;
        alignas(64) int32_t doubtful[kPixels * kBlock];
        uint32_t groups = 0;
        ORKNN_UNROLL for (int i = 0; i < kPixels; i += kTogether) {
          if (i >= pixels) break;
          I32 total[4];
          ORKNN_UNROLL for (int j = 0; j < 4; ++j) total[j] = sum[i + j / kParts][j % kParts];
          const int64_t count = pixels - i < kTogether ? pixels - i : kTogether;
          if (!convert_directly(direct, total, count * kBlock, addend ? addend + i * kBlock : nullptr, p.y + place + i * kBlock,
                                doubtful + i * kBlock))
            groups |= 1u << (i / kTogether);
        }
        if (__builtin_expect(groups != 0, 0)) settle(*p.to, doubtful, groups, pixels, addend, p.y + place);
      }
    return;
  }
#endif
  constexpr int64_t kChunk = 64;
  alignas(64) int32_t sums[(kChunk + kPixels) * kBlock];
  int64_t held = 0, done = 0;
  const auto convert = [&] {
    blocked_convert(*p.to, p.is_float_enough, sums, held, p.addend ? p.addend + done * kBlock : nullptr, p.y + done * kBlock);
    done += held;
    held = 0;
  };
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t at = 0; at < p.columns;) {
      if (held + kPixels > kChunk) convert();
      sum_depthwise<kDot, kPixels>(p, p.x + row * p.row_stride + at * kBlock, sum);
      ORKNN_UNROLL for (int i = 0; i < kPixels; ++i) ORKNN_UNROLL for (int j = 0; j < kParts; ++j)
          store32(sums + (held + i) * kBlock + j * kLanes, sum[i][j]);
      const int64_t count = p.columns - at < kPixels ? p.columns - at : kPixels;
      at += count;
      held += count;
    }
  }
  if (held > 0) convert();
}

static void blocked_depthwise(const BlockedDepthwise& given) {
  const BlockedDepthwise p = given;
  if constexpr (kHasBytes) {
    if (p.dot == Dot::BytesBUnsigned) return depthwise_of<Dot::BytesBUnsigned>(p);
  }
  depthwise_of<Dot::Words>(p);
}

template <Dot kDot>
ORKNN_SIMD void taps_of(const uint8_t* x, int64_t stride, int64_t dilation, int64_t count, int32_t* y) {
  for (int64_t i = 0; i < count; ++i) {
    I32 taps[kParts] = {};
    load_taps<kDot>(x + i * stride * kBlock, dilation * kBlock, taps);
    ORKNN_UNROLL for (int j = 0; j < kParts; ++j) store32(y + i * kBlock + j * kLanes, taps[j]);
  }
}
static void blocked_taps(Dot dot, const uint8_t* x, int64_t stride, int64_t dilation, int64_t count, int32_t* y) {
  if constexpr (kHasBytes) {
    if (dot == Dot::BytesBUnsigned)
      return dilation == 1 ? taps_of<Dot::BytesBUnsigned>(x, stride, 1, count, y)
                           : taps_of<Dot::BytesBUnsigned>(x, stride, dilation, count, y);
  }
  taps_of<Dot::Words>(x, stride, dilation, count, y);
}

#if defined(ORKNN_INT_VNNI)
static_assert(kParts == 1);
constexpr int kStripPixels = 4, kStripRows = 4;  // of depthwise results that are summed at once

// The sums of kRows rows of kStripPixels results, of which row 0 begins at `x`. kKernel: rows of a kernel whose taps are
// neighbours; kStride: of both axes; 0 = any, of one row.
template <int kRows, int kKernel, int kStride>
ORKNN_SIMD void sum_strip(const DepthwiseStrips& p, const uint8_t* x, I32 (&sum)[kRows][kStripPixels]) {
  const int64_t pixel_bytes = kStride == 0 ? p.pixel_bytes : kStride * kBlock, step = kStride == 0 ? p.tap_bytes : kBlock;
  const I32 bias = load32(p.to->bias);
  ORKNN_UNROLL for (int r = 0; r < kRows; ++r) ORKNN_UNROLL for (int i = 0; i < kStripPixels; ++i) sum[r][i] = bias;
  const auto load_row = [&](int64_t k, I32(&taps)[kStripPixels][1]) __attribute__((always_inline)) {
    ORKNN_UNROLL for (int i = 0; i < kStripPixels; ++i)
        load_taps<Dot::BytesBUnsigned>(x + k * p.tap_row_bytes + i * pixel_bytes, step, taps[i]);
  };
  if constexpr (kKernel == 0) {
    static_assert(kRows == 1);
    for (int64_t k = 0; k < p.kernel_rows; ++k) {
      I32 taps[kStripPixels][1];
      load_row(k, taps);
      const I32 weight = load32(p.weights + k * kBlock);
      ORKNN_UNROLL for (int i = 0; i < kStripPixels; ++i) sum[0][i] = dot<Dot::BytesBUnsigned>(sum[0][i], weight, taps[i][0]);
    }
  } else {
    ORKNN_UNROLL for (int k = 0; k < (kRows - 1) * kStride + kKernel; ++k) {
      I32 taps[kStripPixels][1];
      load_row(k, taps);
      ORKNN_UNROLL for (int r = 0; r < kRows; ++r) {
        const int tap = k - r * kStride;
        if (tap < 0 || tap >= kKernel) continue;
        const I32 weight = load32(p.weights + tap * kBlock);
        ORKNN_UNROLL for (int i = 0; i < kStripPixels; ++i) sum[r][i] = dot<Dot::BytesBUnsigned>(sum[r][i], weight, taps[i][0]);
      }
    }
  }
}

// Rows [first, first + kRows) of the result.
template <int kRows, int kKernel, int kStride>
__attribute__((noinline)) static void depthwise_strip(const DepthwiseStrips& given, int64_t first) {
  const DepthwiseStrips p = given;
  const uint8_t* const x = p.x + first * p.row_bytes;
  uint8_t* const y = p.y + first * p.columns * kBlock;
  const uint8_t* const addend = p.addend ? p.addend + first * p.columns * kBlock : nullptr;
  I32 sum[kRows][kStripPixels];
  if (converts_directly(*p.to, p.is_float_enough)) {
    const Direct direct(*p.to);
    const auto convert_all = [&](const uint8_t* operands) __attribute__((always_inline)) {
      for (int64_t at = 0; at < p.columns; at += kStripPixels) {
        sum_strip<kRows, kKernel, kStride>(p, x + at * p.pixel_bytes, sum);
        const int64_t pixels = p.columns - at < kStripPixels ? p.columns - at : kStripPixels;
        alignas(64) int32_t doubtful[kRows][kStripPixels * kBlock];
        uint32_t rows = 0;
        ORKNN_UNROLL for (int r = 0; r < kRows; ++r) {
          const int64_t place = (r * p.columns + at) * kBlock;
          if (!convert_directly(direct, sum[r], pixels * kBlock, operands ? operands + place : nullptr, y + place, doubtful[r]))
            rows |= 1u << r;
        }
        for (int r = 0; __builtin_expect(rows != 0, 0); ++r, rows >>= 1) {
          const int64_t place = (r * p.columns + at) * kBlock;
          settle(*p.to, doubtful[r], rows & 1, pixels, operands ? operands + place : nullptr, y + place);
        }
      }
    };
    addend ? convert_all(addend) : convert_all(nullptr);
    return;
  }
  constexpr int64_t kChunk = 32;
  alignas(64) int32_t sums[kRows * kChunk * kBlock];
  for (int64_t done = 0; done < p.columns; done += kChunk) {
    const int64_t count = p.columns - done < kChunk ? p.columns - done : kChunk;
    for (int64_t at = 0; at < count; at += kStripPixels) {
      sum_strip<kRows, kKernel, kStride>(p, x + (done + at) * p.pixel_bytes, sum);
      const int64_t pixels = count - at < kStripPixels ? count - at : kStripPixels;
      ORKNN_UNROLL for (int r = 0; r < kRows; ++r) ORKNN_UNROLL for (int i = 0; i < kStripPixels; ++i) if (i < pixels)
          store32(sums + (r * count + at + i) * kBlock, sum[r][i]);
    }
    // Rows that are whole follow each other.
    const int64_t runs = count == p.columns ? 1 : kRows, run = kRows / runs * count;
    for (int64_t r = 0; r < runs; ++r) {
      const int64_t place = (r * p.columns + done) * kBlock;
      blocked_convert(*p.to, p.is_float_enough, sums + r * run * kBlock, run, addend ? addend + place : nullptr, y + place);
    }
  }
}

template <int kKernel, int kStride>
ORKNN_SIMD void depthwise_strips_of(const DepthwiseStrips& p) {
  for (int64_t row = 0; row < p.rows; row += kStripRows)
    depthwise_strip<kStripRows, kKernel, kStride>(p, row + kStripRows <= p.rows ? row : p.rows - kStripRows);
}
static void depthwise_strips(const DepthwiseStrips& p) {
  const bool is_dense = p.rows >= kStripRows && p.tap_bytes == kBlock;
  for (const int stride : {1, 2}) {
    if (!is_dense || p.pixel_bytes != stride * kBlock || p.row_bytes != stride * p.tap_row_bytes) continue;
    if (p.kernel_rows == 3) return stride == 1 ? depthwise_strips_of<3, 1>(p) : depthwise_strips_of<3, 2>(p);
    if (p.kernel_rows == 5) return stride == 1 ? depthwise_strips_of<5, 1>(p) : depthwise_strips_of<5, 2>(p);
  }
  for (int64_t row = 0; row < p.rows; ++row) depthwise_strip<1, 0, 0>(p, row);
}
#endif

static void widen_bytes(const uint8_t* __restrict x, int64_t count, int16_t* __restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}

#if defined(ORKNN_INT_PORTABLE)
static void to_pixels(const uint8_t* x, int64_t plane, int64_t channels, uint8_t flip, int64_t count, uint8_t* y) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < kBlock; ++c)
      y[i * kBlock + c] = c < channels ? static_cast<uint8_t>(x[c * plane + i] ^ flip) : uint8_t{0};
}
static void from_pixels(const uint8_t* x, uint8_t flip, int64_t count, int64_t plane, int64_t channels, uint8_t* y) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < count; ++i) y[c * plane + i] = static_cast<uint8_t>(x[i * kBlock + c] ^ flip);
}
#else
ORKNN_SIMD void store_pixel(uint8_t* to, PixelBytes pixel) { std::memcpy(to, &pixel, kBlock); }
// gcc 12 would join shuffles of shuffles, of which there are then many more.
ORKNN_SIMD void keep_apart(PixelBytes& pixel) {
#if defined(ORKNN_INT_NEON)
  asm("" : "+w"(pixel));
#else
  asm("" : "+v"(pixel));
#endif
}
// 16 x 16 bytes.
ORKNN_SIMD void transpose_bytes(PixelBytes (&m)[16]) {
  // Each round interleaves row i with row i + 8; after four of them bit by bit the indices have changed places.
  ORKNN_UNROLL for (int round = 0; round < 4; ++round) {
    PixelBytes next[16];
    ORKNN_UNROLL for (int i = 0; i < 8; ++i) {
      next[2 * i] = __builtin_shufflevector(m[i], m[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(m[i], m[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    ORKNN_UNROLL for (int i = 0; i < 16; ++i) {
      m[i] = next[i];
      keep_apart(m[i]);
    }
  }
}
static void to_pixels(const uint8_t* x, int64_t plane, int64_t channels, uint8_t flip, int64_t count, uint8_t* y) {
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t left = count - i < 16 ? count - i : 16;
    PixelBytes m[16];
    ORKNN_UNROLL for (int c = 0; c < 16; ++c) m[c] =
        c < channels ? (PixelBytes)load_bytes(x + c * plane + i, left) ^ flip : PixelBytes{};
    transpose_bytes(m);
    if (left == 16) {
      ORKNN_UNROLL for (int j = 0; j < 16; ++j) store_pixel(y + (i + j) * kBlock, m[j]);
      continue;
    }
    alignas(16) uint8_t buffer[256];
    ORKNN_UNROLL for (int j = 0; j < 16; ++j) store_pixel(buffer + j * kBlock, m[j]);
    std::memcpy(y + i * kBlock, buffer, static_cast<size_t>(left * kBlock));
  }
}
static void from_pixels(const uint8_t* x, uint8_t flip, int64_t count, int64_t plane, int64_t channels, uint8_t* y) {
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t left = count - i < 16 ? count - i : 16;
    PixelBytes m[16];
    ORKNN_UNROLL for (int j = 0; j < 16; ++j) m[j] =
        j < left ? (PixelBytes)load_bytes(x + (i + j) * kBlock, kBlock) ^ flip : PixelBytes{};
    transpose_bytes(m);
    alignas(16) uint8_t buffer[16];
    for (int64_t c = 0; c < channels; ++c) {
      if (left == 16) {
        store_pixel(y + c * plane + i, m[c]);
        continue;
      }
      store_pixel(buffer, m[c]);
      std::memcpy(y + c * plane + i, buffer, static_cast<size_t>(left));
    }
  }
}
#endif

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
