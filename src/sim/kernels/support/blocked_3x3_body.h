// The cores of 3x3 convolutions of blocks by tiles of 4x4 results: Winograd's F(4x4, 3x3) at the points 0, 1, -1, 2, -2 and
// infinity, in integers. Weights are scaled so that no fraction remains (kernels/blocked_3x3.cpp); a result is then 576 times
// its value, which sums of 32 bits hold modulo 2^32: multiplied by the inverse of 9 they are 64 times the value, and that divided
// by 64 is exact while the value fits 26 bits. Included by each int_forms_*.cpp after blocked_body.h.
#pragma once

namespace orknn::sim::kernels::ORKNN_INT_FORM {

typedef int16_t PixelWords __attribute__((vector_size(2 * kBlock)));
typedef uint32_t Wrapping __attribute__((vector_size(4 * kLanes)));
typedef int32_t Signed __attribute__((vector_size(4 * kLanes)));

// Results are at most 100 times as large as a byte: they fit words.
ORKNN_SIMD void transform_pixels(const PixelWords (&x)[kTileEdge], PixelWords (&y)[kTileEdge]) {
  const PixelWords near = x[4] - 4 * x[2], far = x[3] - 4 * x[1], even = x[4] - x[2], odd = 2 * (x[3] - x[1]);
  y[0] = 4 * (x[0] - x[2]) + even;
  y[1] = near + far;
  y[2] = near - far;
  y[3] = even + odd;
  y[4] = even - odd;
  y[5] = x[5] - x[3] - 2 * odd;
}

static void tile_input(const uint8_t* x, int64_t row_bytes, int16_t* y, int64_t point_words) {
  PixelWords rows[kTileEdge][kTileEdge];
  ORKNN_UNROLL for (int r = 0; r < kTileEdge; ++r) {
    PixelWords pixels[kTileEdge];
    ORKNN_UNROLL for (int c = 0; c < kTileEdge; ++c) {
      PixelBytes bytes;
      std::memcpy(&bytes, x + r * row_bytes + c * kBlock, kBlock);
      pixels[c] = __builtin_convertvector(bytes, PixelWords);
    }
    transform_pixels(pixels, rows[r]);
  }
  ORKNN_UNROLL for (int c = 0; c < kTileEdge; ++c) {
    PixelWords column[kTileEdge], points[kTileEdge];
    ORKNN_UNROLL for (int r = 0; r < kTileEdge; ++r) column[r] = rows[r][c];
    transform_pixels(column, points);
    ORKNN_UNROLL for (int r = 0; r < kTileEdge; ++r)
        std::memcpy(y + (r * kTileEdge + c) * point_words, &points[r], sizeof points[r]);
  }
}

template <int kBlocks>
ORKNN_SIMD void tile_sums_of(const TileSums& p) {
  alignas(64) static constexpr int32_t kNoBias[kBlock] = {};
  IntConvert none[kBlocks];
  for (IntConvert& to : none) to.bias = kNoBias;
  BlockedProduct product;
  product.offsets = p.offsets;
  product.whole = p.whole;
  product.partial = p.partial_dwords > 0 ? 1 : 0;
  product.partial_dwords = p.partial_dwords;
  product.to = none;
  int32_t* sums = p.sums;
  for (int64_t point = 0; point < kTilePoints; ++point, sums += kBlocks * p.tiles * kBlock) {
    product.x = reinterpret_cast<const uint8_t*>(p.x + point * p.point_words);
    product.weights = p.weights + point * p.point_dwords;
    int64_t pieces = (p.tiles + kBlockPixels - 1) / kBlockPixels;
    for (int64_t at = 0; pieces > 0; --pieces) {
      const int64_t count = (p.tiles - at + pieces - 1) / pieces;
      sum_up_to<Dot::Words, static_cast<int>(kBlock / 2), kBlocks, kBlockPixels>(product, at, count, sums + at * kBlock,
                                                                                 p.tiles * kBlock);
      at += count;
    }
  }
}
static void tile_sums(const TileSums& p) {
  if constexpr (kProductBlocks == 2) {
    if (p.blocks == 2) return tile_sums_of<2>(p);
  }
  tile_sums_of<1>(p);
}

// 24, 12, 6 and 6 times the results of a row.
ORKNN_SIMD void transform_sums(const Wrapping (&m)[kTileEdge], Wrapping (&y)[kTileResults]) {
  const Wrapping one = m[1] + m[2], one_less = m[1] - m[2], two = m[3] + m[4], two_less = m[3] - m[4];
  y[0] = 2 * (3 * m[0] + 2 * one) + two;
  y[1] = 2 * one_less + two_less;
  y[2] = one + two;
  y[3] = one_less + 2 * (two_less + 3 * m[5]);
}

static void tile_output(const TileOutput& p) {
  constexpr uint32_t kInverseOfNine = 954437177;
  constexpr int kDoublings[kTileResults] = {0, 1, 2, 2};  // that transform_sums leaves out
  for (int part = 0; part < kParts; ++part) {
    Wrapping columns[kTileResults][kTileEdge];
    ORKNN_UNROLL for (int c = 0; c < kTileEdge; ++c) {
      Wrapping column[kTileEdge], y[kTileResults];
      ORKNN_UNROLL for (int r = 0; r < kTileEdge; ++r)
          std::memcpy(&column[r], p.sums + (r * kTileEdge + c) * p.point_stride + part * kLanes, sizeof column[r]);
      transform_sums(column, y);
      ORKNN_UNROLL for (int r = 0; r < kTileResults; ++r) columns[r][c] = y[r];
    }
    Wrapping bias = {};
    if (p.bias) std::memcpy(&bias, p.bias + part * kLanes, sizeof bias);
    ORKNN_UNROLL for (int r = 0; r < kTileResults; ++r) {
      Wrapping y[kTileResults];
      transform_sums(columns[r], y);
      ORKNN_UNROLL for (int c = 0; c < kTileResults; ++c) {
        int32_t* to = p.y + r * p.row_stride + c * kBlock + part * kLanes;
        Wrapping start = bias;
        if (!p.bias) std::memcpy(&start, to, sizeof start);
        const Signed value = (Signed)(y[c] * kInverseOfNine) >> (6 - kDoublings[r] - kDoublings[c]);
        const Wrapping total = (Wrapping)value + start;
        std::memcpy(to, &total, sizeof total);
      }
    }
  }
}

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
