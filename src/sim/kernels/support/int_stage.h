// What the fast integer kernels share: element types, and the output converter of a node, prepared for the cores.
#pragma once

#include <optional>
#include <vector>

#include "ops/support/requantize.h"
#include "sim/kernel.h"
#include "sim/kernels/support/aligned_array.h"
#include "sim/kernels/support/int_forms.h"

namespace orknn::sim::kernels {

// The type of an integer tensor the converter reads or writes.
std::optional<Int> int_of(DType dtype);
constexpr int64_t int_bytes(Int type) { return type == Int::Signed16 ? 2 : 1; }
// 8-bit data: what it takes to make the bytes unsigned, and its range.
constexpr bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }
constexpr int32_t byte_offset(DType t) { return t == DType::Int8 ? 128 : 0; }
// Holds for every int64: nothing is added to `value`, which may come from a file.
constexpr bool in_byte_range(DType t, int64_t value) { return value >= -byte_offset(t) && value <= 255 - byte_offset(t); }
// True when the zero points of a node's data and of its `outputs` channels of weights lie in the range of their 8-bit types.
bool zero_points_fit(const KernelQuery& query, int64_t outputs);

// The same where either operand is int16. The operand that stays words (input 0 or 1) may have a zero point where it is input 0;
// the other one, which is divided into bytes, has any.
bool wide_zero_points_fit(const KernelQuery& query, int64_t outputs, size_t words);
// A value divided as low + 256 * high, low being 0 to 255. Sums of products of words with such halves stay exact in 32 bits for
// this many dwords.
constexpr int64_t kWideDepth = 64;
constexpr int32_t low_half(int64_t value) { return static_cast<int32_t>(value & 0xff); }
constexpr int32_t high_half(int64_t value) { return static_cast<int32_t>(value >> 8); }
// Sums of a tile whose A is given twice, as low halves and as high ones, from `start` of each row on (nullptr = 0). `low` and
// `high` are as large as the sums.
void wide_tile(const IntForms& f, IntTile tile, const int32_t* high_a, const int64_t* start, int32_t* low, int32_t* high,
               int64_t* sums);

// Input slots of a node's bias, added operand and table.
struct StageSlots {
  size_t bias, addend, table;
};
constexpr size_t kNoSlot = SIZE_MAX;

// Factors of the output converter whose products with any value are exact in doubles.
constexpr int64_t kMostInDoubles = 1 << 18;

// How the sums of each channel become results. Lists have an entry per channel, and some more, so that vectors may read beyond
// the last.
struct OutputPlan {
  std::vector<int32_t> bias, factor, shift;
  std::vector<int32_t> channel_factor, slope_factor;  // empty = no such stage
  int32_t channel_shift = 0, slope_shift = 0;
  int32_t add_zero = 0, add_factor = 0, add_shift = 0;
  int32_t zero = 0, low = 0, high = 0;
  int64_t limit = INT32_MAX;
  bool has_addend = false, has_bias = false;
  Int addend_type = Int::Signed8, type = Int::Signed8;
  const ir::TensorData* table = nullptr;
  size_t addend_slot = 0;
  // In floats: all stages of a channel in one factor, and how far from an integer that is certain. Where `is_float_enough` is not
  // set, only the stages themselves will do.
  bool is_float_enough = false;
  std::vector<float> scale, slope_scale;  // the latter may be empty
  float add_scale = 0, margin = 0, start = 0, blocked_margin = 0;
  std::vector<uint8_t> byte_table, steps;  // of blocks, in the place of `table`
  int32_t steps_up = 0, steps_down = 0;
  double stage_error = 0;                    // what the roundings of the stages add up to
  int64_t most_in_doubles = kMostInDoubles;  // a larger factor may make products with sums that doubles do not hold
  double channel_unit = 1, slope_unit = 1, add_gain = 0, gain = 0;

  // Nothing for nodes whose parameters are wrong or not known ahead: the reference kernel then says what is the matter.
  static std::optional<OutputPlan> create(const KernelQuery& query, const StageSlots& slots, const ops::StageLimits& limits);

  // For results and operands in blocks, which are unsigned bytes.
  void make_unsigned();
  // What floats need, from the parameters of the first channels.
  void measure_floats(int64_t channels);
  bool is_bytes() const { return type != Int::Signed16 && (!has_addend || addend_type != Int::Signed16); }
  // The converter of one channel for results at `y` (and operands at `addend`), or of all channels of a row.
  IntConvert channel(int64_t channel, const void* addend, void* y) const;
  IntConvert row(int64_t first_channel, const void* addend, void* y) const;

 private:
  void divide_table();
};

// Runs the converter in the given form, or by its stages where floats are too coarse.
inline void convert(const IntForms& f, const OutputPlan& plan, const IntConvert& c, const int32_t* sums, int64_t count) {
  if (plan.is_float_enough)
    f.convert(c, sums, count);
  else
    convert_exactly(c, sums, count);
}

// What a value of an integer type may differ from a zero point.
constexpr int64_t int_reach(Int type, int64_t zero) {
  return (type == Int::Signed16 ? int64_t{1} << 15 : 255) + (zero < 0 ? -zero : zero);
}

// Floats decide about values v * gain + zero that end between `low` and `high`: `roundings` of v precede, operands reach up to
// `reach` beyond the bounds and cancel again. Gives the margin of IntConvert; nothing when floats are too coarse.
struct FloatCheck {
  double gain = 0, roundings = 0, reach = 0;
  int64_t zero = 0, low = 0, high = 0;
};
std::optional<float> float_margin(const FloatCheck& check);
}  // namespace orknn::sim::kernels
