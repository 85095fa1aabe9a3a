// The compute cores of integer tensors: 8-bit data, int32 sums that wrap, the chip's output converter (ops/support/requantize.h).
// As in forms.h they are plain functions over pointers that exist once per instruction set; all forms give the same bytes.
//
// Sums are made of dot products of `dwords`: four bytes (the data unsigned, or see IntForms::data_flip, the weights signed), or
// two int16 values. Bytes are four times as dense, but only instruction sets that add four products without saturation have them.
#pragma once

#include <cstdint>

#include "sim/form.h"
#include "sim/kernels/support/cpu.h"

namespace orknn::sim::kernels {

enum class Int : uint8_t { Signed8, Unsigned8, Signed16 };

enum class Dot : uint8_t { Words, BytesBUnsigned, BytesAUnsigned };

constexpr int64_t kIntRows = 8;      // rows of A per panel: [depth][8] dwords
constexpr int64_t kIntColumns = 48;  // columns of a tile

// sums[r][c] = start[c] + sum over k < depth of a[k][r] . b[offsets[k] + 4 c]. Without offsets row k of B is at k * b_stride.
// Reads B and `start` in vectors, up to 60 bytes beyond the last column.
struct IntTile {
  Dot dot = Dot::Words;
  const int32_t* a = nullptr;
  const std::byte* b = nullptr;
  const int64_t* offsets = nullptr;  // in bytes, as b_stride
  int64_t b_stride = kIntColumns * 4;
  int64_t depth = 0;
  int64_t rows = 0, columns = 0;   // any number of rows with panel_step, else up to kIntRows; up to kIntColumns
  int64_t panel_step = 0;          // dwords of A from one panel to the next
  int32_t* sums = nullptr;         // whole panels of rows of whole sixteens of columns are written
  const int32_t* start = nullptr;  // nullptr = 0
  bool streams = false;            // the sums are not read soon; they, and their rows and fours, are aligned to 64 bytes
  int64_t row_stride = kIntColumns;
  int64_t quad_stride = 4;  // from one four of columns to the next; in rows it is 4, else row_stride is
};

// One row: sums[c] = start[c] + sum over k of weights[k] . b[offsets[k] + 4 c], B as above. Reads and writes up to 15 sums beyond
// the last.
struct IntRow {
  Dot dot = Dot::Words;
  const int32_t* weights = nullptr;
  const std::byte* b = nullptr;
  const int64_t* offsets = nullptr;
  int64_t b_stride = kIntColumns * 4;
  int64_t depth = 0, columns = 0;
  int32_t* sums = nullptr;
  const int32_t* start = nullptr;  // nullptr = 0
};

// Results of sums by the stages of ops::OutputStage, with parameters of one value per row, or one per column for all rows.
//
// The forms first compute in float: (x[i] + bias) * scale, plus (addend[i] - add_zero) * add_scale, rounded to the nearest
// integer. That is what the stages give except near ties: where it is further than `margin` from an integer, the stages decide.
struct IntConvert {
  bool per_column = false;
  const int32_t* bias = nullptr;
  const int32_t* channel_factor = nullptr;  // nullptr = no such stage
  int32_t channel_shift = 0;
  const int32_t* slope_factor = nullptr;  // nullptr = no slopes
  int32_t slope_shift = 0;
  const int32_t* factor = nullptr;
  const int32_t* shift = nullptr;
  int32_t zero = 0, low = 0, high = 0;
  int64_t limit = INT32_MAX;     // OutputStage::limit
  const void* addend = nullptr;  // nullptr = none
  Int addend_type = Int::Signed8;
  int32_t add_zero = 0, add_factor = 0, add_shift = 0;
  const void* table = nullptr;  // of the result's type; nullptr = none
  // The same table in tables of 256 bytes: the first of every sixteen entries, then from which one on the result is one more,
  // then one less; nullptr = it would take too many.
  const uint8_t* steps = nullptr;
  int32_t steps_up = 0, steps_down = 0;
  const float* scale = nullptr;
  const float* slope_scale = nullptr;  // of x[i] + bias below zero; nullptr = as of others
  float add_scale = 0, margin = 0;
  // Of blocks, whose zero points are part of the float: it starts at `start`, and so much of an integer is certain.
  float start = 0, blocked_margin = 0;
  double channel_unit = 1, slope_unit = 1, add_gain = 0, gain = 0;  // factors with their shifts, as doubles; exact
  Int type = Int::Signed8;
  void* y = nullptr;
  // Rows of results; what belongs to one channel belongs to the first of as many channels.
  int64_t rows = 1, sums_stride = 0, y_stride = 0, addend_stride = 0;
};

// Columns [column, column + count) of a tile, neighbours in the result from `place` on.
struct IntSegment {
  int64_t column = 0, count = 0, place = 0;
};

// A tile of sums, converted to bytes before it leaves the registers. Addends are laid out as results.
struct IntProduct {
  Dot dot = Dot::Words;
  const int32_t* a = nullptr;  // panels of kIntRows rows, one after the other
  const std::byte* b = nullptr;
  const int64_t* offsets = nullptr;
  int64_t depth = 0;
  int64_t columns = 0;  // up to kIntColumns
  IntConvert to;        // any number of rows, with parameters by row; results and addends are bytes
  const IntSegment* segments = nullptr;
  int64_t segment_count = 0;
};

enum class IntBinaryOp : uint8_t { Add, Multiply, Max, Min };

// Two operands, which have lost their zero points: a * a_factor and b * b_factor * 2^-b_shift combined, or their product, then
// the output converter; in float first as above. An operand that is not dense is one value for all.
struct IntBinary {
  IntBinaryOp op = IntBinaryOp::Add;
  const void* a = nullptr;
  const void* b = nullptr;
  Int a_type = Int::Signed8, b_type = Int::Signed8;
  bool a_dense = true, b_dense = true;
  int32_t a_zero = 0, b_zero = 0;
  int32_t a_factor = 0, b_factor = 0, b_shift = 0;
  int32_t factor = 0, shift = 1;
  int32_t zero = 0, low = 0, high = 0;
  float a_scale = 0, b_scale = 0, margin = 0;  // of a product: a_scale alone
  double b_gain = 0, gain = 0;                 // factors with their shifts; exact
  const void* table = nullptr;
  Int type = Int::Signed8;
  void* y = nullptr;
};

// Where the bytes of up to four rows (or two, for words) become dwords: byte or word j of y[i] is rows[j][i]. Bytes change their
// sign bit where `flip` is 0x80; words lose `zero`. A row that is nullptr gives zeros.
struct IntInterleave {
  bool words = false;
  bool wide = false;      // the data are words already, and have no zero point
  bool is_signed = true;  // of the data, for words
  const uint8_t* rows[4] = {};
  uint8_t flip = 0;
  int32_t zero = 0;
  int64_t count = 0;
  int32_t* y = nullptr;
};

// Rows of bytes as a panel of a tile: dword k of row r becomes y[k * pitch + r]. Bytes are changed by `flip`, words lose `zero`;
// the last dword ends with zeros.
struct IntPanel {
  bool words = false;
  bool is_signed = true;  // of the data, for words
  uint8_t flip = 0;
  int32_t zero = 0;
  const uint8_t* x = nullptr;
  int64_t rows = 0, row_stride = 0;
  int64_t depth = 0;
  int64_t block = 0, block_stride = 0;  // of rows in pieces of so many bytes, a multiple of 16; 0 = in one
  int32_t* y = nullptr;
  int64_t pitch = kIntRows;
};

// Neighbours of each row as dwords: byte j of dword i is x[i * stride + j * dilation], likewise for words, where x is an array of
// int16. Row r goes to y + r % row_stride * remainder_size + r / row_stride * count. Reads up to 64 bytes beyond the last of a
// row, writes up to 15 dwords beyond the last.
struct IntExpand {
  bool words = false;
  const void* x = nullptr;
  int64_t x_stride = 0;  // elements from row to row
  int64_t rows = 0, row_stride = 1, remainder_size = 0;
  int64_t stride = 1, dilation = 1, count = 0;
  int32_t* y = nullptr;
};

// Rows of a plane between their padding: bytes change their sign bit where `flip` is 0x80, words lose `zero`. Rows below 0 and
// from `height` on are padding altogether. Writes up to 15 elements beyond the last of a row.
struct IntPad {
  bool words = false;
  bool is_signed = true;  // of the data, for words
  uint8_t flip = 0;
  int32_t zero = 0, fill = 0;
  const uint8_t* x = nullptr;
  int64_t width = 0, height = 0;
  int64_t first = 0, rows = 0;
  int64_t left = 0, inside = 0, length = 0;
  void* y = nullptr;
  int64_t y_stride = 0;
};

// Softmax of up to 64 columns: y = clamp(floor((2 factor p + 256 sum) / (512 sum)) + zero), where p is the power of an element's
// distance to the largest of its column and sum that of all. Numerators stay below 2^52, so that doubles hold them.
struct IntSoftmax {
  Int type = Int::Signed8;
  const int32_t* powers = nullptr;
  int64_t factor = 0;
  int32_t zero = 0, low = 0, high = 0;
  int64_t extent = 0, stride = 1;  // of a column
  int64_t columns = 0, column_step = 1;
  const void* x = nullptr;
  void* y = nullptr;
};

constexpr int64_t kPairPixels = 4;                              // that sums of pairs (IntForms::blocked_panel) read at once
constexpr int64_t kPanelPieceBytes = kPairPixels * kBlock * 2;  // of one piece of depth: [pixel][kBlock] words

// Pixels in blocks of kBlock channels (sim/form.h): sums of dot products over the depth and the output converter. Depth comes in
// pieces: the channels of one pixel that lie next to each other, at one tap of the kernel.
struct BlockedProduct {
  Dot dot = Dot::Words;              // or BytesBUnsigned
  bool narrow = false;               // pixels of four channels, otherwise of kBlock; as bytes, or as words
  uint8_t flip = 0;                  // IntForms::data_flip where the data do not have it yet
  const uint8_t* x = nullptr;        // where the first pixel reads; the next ones are neighbours
  int64_t row_bytes = 0;             // not 0: the second half of the pixels, up to 7, reads so much further on
  const int32_t* offsets = nullptr;  // in bytes, per piece
  int64_t whole = 0, partial = 0;    // pieces of all channels of a pixel, then pieces of its first `partial_dwords` dwords
  int64_t partial_dwords = 0;
  int64_t blocks = 1;                // of output channels, up to IntForms::blocked_blocks
  const int32_t* weights = nullptr;  // [dword of depth][block][kBlock]
  const IntConvert* to = nullptr;    // per block, with parameters by column
  bool is_float_enough = true;       // otherwise by the stages alone
  int64_t pixels = 0;
  // Sums of pairs (IntForms::blocked_panel), of one block: the products of the pixels, as many as their panels have; nullptr =
  // ordinary sums of products. Panels are `panel_bytes` apart, their pieces follow each other, there are no offsets.
  const int32_t* pairs = nullptr;
  int64_t panel_bytes = 0;
  uint8_t* y = nullptr;             // of the first block
  const uint8_t* addend = nullptr;  // laid out as y
  int64_t y_block = 0;              // bytes from block to block
};

// What kPairPixels pixels read at one tap of the kernel, to be multiplied in pairs: their channels as words.
struct BlockedPanel {
  const uint8_t* x[kPairPixels] = {};
  int64_t block_bytes[kPairPixels] = {};  // from block to block of each
  int64_t whole = 0, partial_dwords = 0;  // blocks of all channels, then dwords of one more
  int16_t* y = nullptr;                   // [block][pixel][kBlock]
  int16_t* partial_y = nullptr;           // [pixel][kBlock] of the last block, where it is partial
  int32_t* products = nullptr;            // of each pixel, which those of this tap are added to
};

// Rows of a depthwise convolution of one block, whose pixels have become dwords of the neighbours that a row of the kernel
// multiplies (IntForms::blocked_taps). A piece of depth is such a pixel.
struct BlockedDepthwise {
  Dot dot = Dot::Words;
  const int32_t* x = nullptr;        // kBlock dwords per pixel; read up to seven pixels beyond those of the last result
  int64_t row_stride = 0;            // dwords between what rows of the result read
  const int32_t* offsets = nullptr;  // in dwords, per piece
  int64_t depth = 0;
  const int32_t* weights = nullptr;  // [piece][kBlock]
  const IntConvert* to = nullptr;
  bool is_float_enough = true;
  int64_t rows = 0, columns = 0;
  uint8_t* y = nullptr;  // rows follow each other
  const uint8_t* addend = nullptr;
};

constexpr int64_t kDepthwiseTaps = 4;  // columns of a kernel that IntForms::depthwise_strips multiplies at once

// Rows of a depthwise convolution of one block whose kernel has up to kDepthwiseTaps columns, from rows of pixels between their
// padding. Reads kDepthwiseTaps pixels for each result, and for up to three results beyond the last of a row.
struct DepthwiseStrips {
  const uint8_t* x = nullptr;
  int64_t row_bytes = 0;      // between what rows of the result read
  int64_t tap_row_bytes = 0;  // between rows of the kernel
  int64_t pixel_bytes = 0;    // between what neighbours in the result read
  int64_t tap_bytes = 0;      // between columns of the kernel
  int64_t kernel_rows = 0;
  const int32_t* weights = nullptr;  // [row of the kernel][kBlock], of bytes
  const IntConvert* to = nullptr;
  bool is_float_enough = true;
  int64_t rows = 0, columns = 0;
  uint8_t* y = nullptr;  // rows follow each other
  const uint8_t* addend = nullptr;
};

// 3x3 convolutions by tiles of 4x4 results (blocked_3x3_body.h): a tile reads 6x6 pixels, which become as many points.
constexpr int kTileEdge = 6, kTileResults = 4, kTilePoints = kTileEdge * kTileEdge;

// Products of transformed pixels and weights, point by point.
struct TileSums {
  const int16_t* x = nullptr;  // kBlock words per tile; the next tiles are neighbours
  int64_t point_words = 0;
  const int32_t* offsets = nullptr;       // of the blocks of channels, in bytes
  int64_t whole = 0, partial_dwords = 0;  // blocks, then dwords of one more
  int64_t blocks = 1;                     // of output channels, up to IntForms::blocked_blocks
  const int32_t* weights = nullptr;       // [point][dword of depth][block][kBlock]
  int64_t point_dwords = 0;
  int64_t tiles = 0;
  int32_t* sums = nullptr;  // [point][block][tile][kBlock]
};

// The results of one tile and block.
struct TileOutput {
  const int32_t* sums = nullptr;
  int64_t point_stride = 0;
  const int32_t* bias = nullptr;  // what results start with; nullptr: they are added to `y`
  int32_t* y = nullptr;           // rows of kTileResults pixels
  int64_t row_stride = 0;
};

struct IntForms {
  bool has_bytes;  // Dot::Bytes* is there
  // What unsigned bytes of data change before Dot::Bytes* multiplies them: 0x80 where both its operands are signed, so that the
  // data, their padding and their zero point are 128 less.
  uint8_t data_flip = 0;
  void (*tile)(const IntTile& tile);
  void (*row)(const IntRow& row);
  void (*product)(const IntProduct& product);  // nullptr where registers are too few
  void (*convert)(const IntConvert& convert, const int32_t* sums, int64_t count);
  // The same of 64-bit sums, which are clamped to ops::kMaxWideSum after the bias, by the stages alone.
  void (*convert_wide)(const IntConvert& convert, const int64_t* sums, int64_t count);
  // sums[i] += low[i] + 256 * high[i].
  void (*widen)(const int32_t* low, const int32_t* high, int64_t* sums, int64_t count);
  // y[i] = x[p] * (one - share) + x[p + 1] * share, where columns holds pairs of p and share; x[p + 1] is not read where share is
  // 0.
  void (*resize_columns)(const void* x, Int type, const int32_t* columns, int32_t one, int64_t count, int32_t* y);
  // y[i] = upper[i] * (one - share) + lower[i] * share, in 32 bits or less the zero point times one * one in 64.
  void (*resize_rows)(const int32_t* upper, const int32_t* lower, int32_t one, int32_t share, int64_t count, int32_t* y);
  void (*resize_rows_wide)(const int32_t* upper, const int32_t* lower, int32_t one, int32_t share, int64_t zero, int64_t count,
                           int64_t* y);
  // sums[i] += x[i]; sums[i] += x[i * stride]; the sum of all x[i], which fits 32 bits.
  void (*add_row)(const void* x, Int type, int64_t count, int32_t* sums);
  void (*add_every)(const int32_t* x, int64_t stride, int64_t count, int64_t* sums);
  int32_t (*sum_row)(const void* x, Int type, int64_t count);
  // y[i] = clamp(round_half_even(x[i] / scale) + zero), NaN gives zero; y[i] = (x[i] - zero) * scale.
  void (*quantize)(const float* x, float scale, int32_t zero, Int type, int64_t count, void* y);
  void (*dequantize)(const void* x, Int type, int32_t zero, float scale, int64_t count, float* y);
  void (*binary)(const IntBinary& binary, int64_t count);
  void (*interleave)(const IntInterleave& interleave);
  void (*panel)(const IntPanel& panel);
  void (*expand)(const IntExpand& expand);
  void (*pad)(const IntPad& pad);
  void (*softmax)(const IntSoftmax& softmax);
  // y[i] = x[i * stride], i < count.
  void (*every)(const int32_t* x, int64_t stride, int64_t count, int32_t* y);
  // y[i] = table[x[i]].
  void (*lookup)(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t count);
  // Differs when bytes do, but for accidents; every form has one of its own.
  uint64_t (*fingerprint)(const void* data, int64_t bytes);
  int64_t blocked_blocks, blocked_pixels;  // that a product computes at once
  void (*blocked_product)(const BlockedProduct& product);
  // Gathers pixels for sums with half the multiplications: of every two dwords of a piece that follow each other, i and j,
  // x[i] * w[i] + x[j] * w[j] = (x[i] + w[j]) * (x[j] + w[i]) - x[i] * x[j] - w[i] * w[j]. The last product is in the bias, this
  // gives the sum of the second. nullptr where that is not faster.
  void (*blocked_panel)(const BlockedPanel& panel);
  void (*blocked_depthwise)(const BlockedDepthwise& rows);
  // Pixels of a block as dwords: four that are `dilation` pixels apart as bytes, which get data_flip, or two as words, beginning
  // with every `stride`th pixel. Reads them all.
  void (*blocked_taps)(Dot dot, const uint8_t* x, int64_t stride, int64_t dilation, int64_t count, int32_t* y);
  // The same as both for small kernels, where products of bytes and registers for several rows are there; else nullptr.
  void (*depthwise_strips)(const DepthwiseStrips& strips);
  // The points of the 6x6 pixels at `x`.
  void (*tile_input)(const uint8_t* x, int64_t row_bytes, int16_t* y, int64_t point_words);
  void (*tile_sums)(const TileSums& sums);
  void (*tile_output)(const TileOutput& output);
  // Sums [pixel][kBlock], bias included, become bytes.
  void (*blocked_convert)(const IntConvert& to, bool is_float_enough, const int32_t* sums, int64_t pixels, const uint8_t* addend,
                          uint8_t* y);
  // Rows of up to kBlock planes, `plane` bytes apart, and pixels of a block; `flip` changes bits of every byte. Absent channels
  // become zeros.
  void (*to_pixels)(const uint8_t* x, int64_t plane, int64_t channels, uint8_t flip, int64_t count, uint8_t* y);
  void (*from_pixels)(const uint8_t* x, uint8_t flip, int64_t count, int64_t plane, int64_t channels, uint8_t* y);
  // Bytes as words.
  void (*widen_bytes)(const uint8_t* x, int64_t count, int16_t* y);
  // y[i] = max(y[i], x[i]). Reads and writes up to 31 bytes beyond the last.
  void (*maximum)(const uint8_t* x, bool is_signed, uint8_t* y, int64_t count);
};

// The table of a form that isa_available().
const IntForms& int_forms(Isa isa);
inline const IntForms& int_forms() { return int_forms(current_isa()); }

// The converter and two-operand arithmetic by the stages alone, for parameters that floats are too coarse for.
void convert_exactly(const IntConvert& convert, const int32_t* sums, int64_t count);
void binary_exactly(const IntBinary& binary, int64_t count);

}  // namespace orknn::sim::kernels
