// The compute cores: plain functions over pointers that exist once per instruction set. Each works on a range that one
// thread owns; dividing work between threads and everything about nodes and tensors is the callers' business.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "sim/kernels/support/cpu.h"

namespace orknn::sim::kernels {

// Storage of tensors the cores understand.
enum class Storage : uint8_t { Float, Half };

// --- element-wise functions

// Operators whose function of x, with the parameters a and b that OpDef::scalar names, exists on vectors: each has an enumerator.
// clang-format off
#define ORKNN_VECTOR_FUNCTIONS(X)                                                                                              \
  X(Identity) X(Relu) X(LeakyRelu) X(Sigmoid) X(Swish) X(HardSwish) X(HardSigmoid) X(Tanh) X(Gelu) X(Mish) X(Elu) X(Selu)       \
  X(Celu) X(Softplus) X(Softsign) X(ThresholdedRelu) X(Exp) X(Log) X(Sqrt) X(Reciprocal) X(Neg) X(Abs) X(Erf) X(Floor) X(Ceil)  \
  X(Round) X(Sin) X(Cos) X(Sign)
// clang-format on

enum class Fn : uint8_t {
#define ORKNN_ENUMERATOR(name) name,
  ORKNN_VECTOR_FUNCTIONS(ORKNN_ENUMERATOR)
#undef ORKNN_ENUMERATOR
  // of x and up to two parameters a, b, that are no operator of that name alone
  Clip /* a..b */,
  GeluTanh,
  Square,
  Cube,
  InverseSqrt,
  ScaleShift /* a x + b */,
  Called /* Step::call(x, a, b), one element after the other */,
  // of x and an operand y
  Add,
  Subtract,
  SubtractFrom /* y - x */,
  Multiply,
  Divide,
  DivideInto /* y / x */,
  Max,
  Min,
  PRelu /* x < 0 ? x y : x */,
};
// By enumerator.
inline constexpr std::string_view kVectorOperators[] = {
#define ORKNN_NAME(name) #name,
    ORKNN_VECTOR_FUNCTIONS(ORKNN_NAME)
#undef ORKNN_NAME
};
constexpr bool takes_operand(Fn fn) { return fn >= Fn::Add; }

// One step of a fused tail, on a value at (row, column) of a matrix of results. Its operand is
// operand[batch * batch_stride + row * row_stride + column * column_stride], column_stride 0 or 1.
struct Step {
  Fn fn = Fn::Identity;
  Storage storage = Storage::Float;  // of the operand
  float a = 0, b = 0;
  float (*call)(float x, float a, float b) = nullptr;  // of Fn::Called
  const void* operand = nullptr;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 0;
};

// --- matrix product

constexpr int64_t kPanelRows = 8;      // rows of A per packed panel: [ceil(rows / 8)][depth][8]
constexpr int64_t kPanelColumns = 48;  // columns of B per packed panel: [ceil(columns / 48)][depth][48]

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t panels_a(int64_t rows) { return divide_up(rows, kPanelRows); }
constexpr int64_t panels_b(int64_t columns) { return divide_up(columns, kPanelColumns); }

// A block of C = finish(A * B). Panels of A and B may have more depth than the block uses (the strides say).
struct GemmBlock {
  const float* a = nullptr;
  int64_t a_panel_stride = 0;  // floats from one panel of 8 rows to the next
  const float* b = nullptr;
  int64_t b_panel_stride = 0;  // floats from one panel of 48 columns to the next
  int64_t b_row_stride = kPanelColumns;
  bool b_goes_on = false;  // B comes from far away, and what is needed next follows it
  int64_t rows = 0, columns = 0, depth = 0;
  float* sum = nullptr;  // where float results (or partial sums) go; equals `c` for float results
  int64_t sum_row_stride = 0;
  // From one four of columns to the next; rows of a four are then sum_row_stride = 4 apart. For whole panels of rows, whole
  // vectors of 16 columns, sums of one pass and results without steps. 0 = columns are neighbours.
  int64_t sum_quad_stride = 0;
  bool streams = false;             // sums of one pass that are not read soon: whole vectors, aligned to 64 bytes
  bool accumulate = false;          // start from what `sum` holds instead of the bias
  bool finish = true;               // last part of the depth: clamp, apply steps, store
  const float* row_bias = nullptr;  // first row of the block; nullptr = 0
  bool clamp = false;
  float low = 0, high = 0;
  const Step* steps = nullptr;
  int64_t step_count = 0;
  int64_t batch = 0, row = 0, column = 0;  // place of the block in the result, for operands of steps
  Storage storage = Storage::Float;
  void* c = nullptr;  // top left corner of the block
  int64_t c_row_stride = 0;
};

// Rows of A that become panels. Element (row, k) is at row * row_stride + k * depth_stride; with a `block`, at row * row_stride +
// k / block * block_stride + k % block * depth_stride.
struct LeftRows {
  const void* x = nullptr;
  Storage storage = Storage::Float;
  int64_t row_stride = 0, depth_stride = 1;
  int64_t block = 0, block_stride = 0;
  int64_t rows = 0, depth = 0;
};

// Where the columns of B come from when B is the unfolded input of a convolution: column = output position
// (z * out_height + y) * out_width + x, depth = tap * channels + channel.
struct Tap {
  int32_t z = 0, y = 0, x = 0;  // input position = output position * stride + tap
};
struct ConvSource {
  const void* x = nullptr;
  Storage storage = Storage::Float;
  int64_t channels = 0;
  int64_t depth = 1, height = 1, width = 1;
  int64_t out_height = 1, out_width = 1;
  int64_t stride_z = 1, stride_y = 1, stride_x = 1;
  const Tap* taps = nullptr;
};

// --- rows

enum class Reduction : uint8_t { Sum, SumOfSquares, SumOfMagnitudes, Max, Min };

struct Moments {
  double mean = 0, variance = 0;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over one row.
struct NormalizeRow {
  const void* x = nullptr;
  void* y = nullptr;
  Storage storage = Storage::Float;
  int64_t count = 0;
  bool centered = true;  // false: mean is taken as 0 (root mean square)
  float epsilon = 0;
  const float* scale = nullptr;  // per element
  const float* bias = nullptr;   // per element; nullptr = 0
};

// --- windows over a plane

// Rows of a padded copy of a plane (or of part of it), columns split by remainder modulo `stride`.
struct PadRows {
  const void* x = nullptr;
  Storage storage = Storage::Float;
  int64_t height = 0, width = 0;
  int64_t pad_top = 0, pad_left = 0;
  int64_t row = 0, rows = 0;  // which padded rows
  int64_t stride = 1;
  int64_t phase_size = 0;  // floats per phase, a multiple of 16
  float fill = 0;
  float* y = nullptr;  // up to 15 floats after the last row are written too
};
// Rows of results, one below the other: result (r, c) reads x[r * row_step + offsets[t] + c]. May read up to 15 floats beyond
// the last column's.
struct DepthwiseRows {
  const float* x = nullptr;
  int64_t row_step = 0;
  const int64_t* offsets = nullptr;
  const float* weights = nullptr;
  int64_t taps = 0, rows = 0, columns = 0;
  bool three = false;  // a 3x3 window with row_step between its rows, too
  float bias = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* y = nullptr;
};
// Rows of results of kLaneChannels channels, as pixels: result (r, c) reads the pixels at x + r * row_step + c * column_step +
// offsets[t]; all of these are floats.
constexpr int64_t kLaneChannels = 16;
struct DepthwisePixels {
  const float* x = nullptr;
  int64_t row_step = 0, column_step = 0;
  const int64_t* offsets = nullptr;
  const float* weights = nullptr;  // [tap][kLaneChannels]
  const float* bias = nullptr;     // [kLaneChannels]
  int64_t taps = 0, rows = 0, columns = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* y = nullptr;  // rows follow each other
};
// Rows of results of a convolution, as pixels of `blocks` blocks of kLaneChannels channels. For tap t, result (r, c) reads input
// channel k at x[r * row_step + c * pixel_step + offsets[t] + k / lanes * block_step + k % lanes]. Sums start with the bias and
// run over taps, for each of them over channels.
struct ConvPixels {
  const float* x = nullptr;
  int64_t lanes = kLaneChannels;  // neighbouring channels
  int64_t channels = 0, block_step = 0, pixel_step = 0, row_step = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;
  const float* weights = nullptr;  // [block][tap][channel][kLaneChannels]
  int64_t weights_step = 0;        // floats from one block to the next
  int64_t ahead = 0;               // floats from these weights to those that are needed next
  const float* bias = nullptr;     // [block][kLaneChannels]; nullptr = 0
  int64_t blocks = 0, rows = 0, columns = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* y = nullptr;
  int64_t y_block_step = 0, y_row_step = 0;
};
// Winograd's F(4x4, 3x3): a tile of 6x6 pixels becomes 36 values, `point_step` floats apart, whose products with transformed
// weights become a tile of 4x4 results.
constexpr int64_t kFloatTile = 4, kFloatTileReads = kFloatTile + 2, kFloatTilePoints = kFloatTileReads * kFloatTileReads;
// The points at which the polynomials are evaluated, besides 0 and infinity: four times smaller errors than with 1 and 2.
constexpr double kNearPoint = 0.75, kFarPoint = 1.5;
struct TileResult {
  const float* x = nullptr;
  int64_t point_step = 0;
  const float* bias = nullptr;  // [kLaneChannels]
  bool clamp = false;
  float low = 0, high = 0;
  float* y = nullptr;
  int64_t y_row_step = 0, rows = 0, columns = 0;  // at most kFloatTile each
};
// Windows over pixels of kLaneChannels channels: the rows and columns of the plane that one result reads.
struct PoolPixel {
  const float* x = nullptr;
  int64_t row_step = 0, column_step = 0, rows = 0, columns = 0;
  bool average = false;  // the sum divided by `count`; else the maximum
  bool begins = true;    // the window's first position is inside the plane; else the maximum starts with -infinity
  float count = 1;
  float* y = nullptr;
};
// One row of results; result c reads x[offsets[t] + c].
struct PoolRow {
  const float* x = nullptr;
  const int64_t* offsets = nullptr;
  int64_t taps = 0, columns = 0;
  const float* counts = nullptr;  // average over counts[c] * row_count; nullptr = maximum
  float row_count = 1;
  float* y = nullptr;
};

// --- resampling

// y[c] = sum over k < width of weights[k * columns + c] * x[positions[k * columns + c]], columns being a multiple of 16.
struct ResampleRow {
  const float* x = nullptr;
  const int32_t* positions = nullptr;
  const float* weights = nullptr;
  int64_t width = 0, columns = 0;
  float* y = nullptr;
};

// --- the table

struct Forms {
  void (*gemm)(const GemmBlock& block);
  // Rows of a matrix to panels of 8. Missing rows become 0.
  void (*pack_a)(const LeftRows& rows, float* dst);
  // Columns of a matrix to panels of 48: element (k, c) at src[k * depth_stride + c * column_stride]. Missing columns become 0.
  void (*pack_b)(const void* src, Storage storage, int64_t depth_stride, int64_t column_stride, int64_t depth, int64_t columns,
                 float* dst);
  // Columns [column, column + columns) and depth [k_begin, k_end) of an unfolded input, to panels of 48.
  void (*pack_conv)(const ConvSource& source, int64_t column, int64_t columns, int64_t k_begin, int64_t k_end, float* dst);
  // Applies steps to a block of floats in place.
  void (*apply_steps)(float* values, int64_t row_stride, int64_t rows, int64_t columns, const Step* steps, int64_t step_count,
                      int64_t batch, int64_t row, int64_t column);
  // y[i] = fn(x[i]) and z[i] = fn(x[i], y[i]), where an operand that is not dense is one value for all i. In place is fine.
  void (*map)(Fn fn, float a, float b, const float* x, float* y, int64_t count);
  void (*map2)(Fn fn, const float* x, bool x_dense, const float* y, bool y_dense, float* z, int64_t count);
  // Softmax (or its logarithm) of each of `rows` rows; `buffer` holds `count` floats.
  void (*softmax_rows)(const void* x, void* y, Storage storage, int64_t rows, int64_t count, bool logarithm, float* buffer);
  // Softmax over `count` values row_stride apart, for `columns` neighbours.
  void (*softmax_columns)(const void* x, void* y, Storage storage, int64_t count, int64_t row_stride, int64_t columns,
                          bool logarithm);
  void (*normalize)(const NormalizeRow& row);
  Moments (*moments)(const void* x, Storage storage, int64_t count);
  // y[i] = (x[i] - shift) * scale + bias.
  void (*shift_scale)(const void* x, void* y, Storage storage, int64_t count, float shift, float scale, float bias);
  double (*reduce_row)(Reduction reduction, const void* x, Storage storage, int64_t count);
  // y[c] = reduction over x[r * row_stride + c], r < rows, rows >= 1.
  void (*reduce_columns)(Reduction reduction, const void* x, Storage storage, int64_t rows, int64_t row_stride, int64_t columns,
                         float* y);
  void (*pad_rows)(const PadRows& rows);
  void (*depthwise_rows)(const DepthwiseRows& rows);
  void (*pool_row)(const PoolRow& row);
  void (*resample_row)(const ResampleRow& row);
  // y[c] = sum over k < count of weights[k] * x[offsets[k] + c], count >= 1; may read up to 15 floats beyond the last column's.
  void (*weigh_rows)(const float* x, const int64_t* offsets, const float* weights, int64_t count, void* y, Storage storage,
                     int64_t columns);
  // Widens or narrows.
  void (*to_float)(const Half* from, float* to, int64_t count);
  void (*to_half)(const float* from, Half* to, int64_t count);
  // Up to kLaneChannels planes, `plane` elements apart, as pixels of kLaneChannels channels, the missing ones 0; and back.
  void (*to_pixels)(const void* x, Storage storage, int64_t plane, int64_t channels, int64_t count, float* y);
  void (*from_pixels)(const float* x, int64_t channels, int64_t count, float* y, int64_t plane);
  void (*depthwise_pixels)(const DepthwisePixels& rows);
  void (*conv_pixels)(const ConvPixels& rows);
  // The pixels of a tile, `row_step` floats from row to row.
  void (*tile_points)(const float* x, int64_t row_step, float* y, int64_t point_step);
  // False when a result is not finite.
  bool (*tile_results)(const TileResult& tile);
  void (*pool_pixel)(const PoolPixel& window);
  // y[c] = sum of `count` pixels of kLaneChannels channels.
  void (*sum_pixels)(const float* x, int64_t count, float* y);
};

// The table of a form that isa_available().
const Forms& forms(Isa isa);
inline const Forms& forms() { return forms(current_isa()); }

}  // namespace orknn::sim::kernels
