// The chip's output converter: how integer sums become integer results. Every op of npu_integer/ and its fast kernels end in it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

// A real factor as a register pair holds it: factor * 2^-shift.
struct Multiplier {
  int64_t factor = 0;
  int64_t shift = 1;
};
inline constexpr int kMultiplierBits = 15;
inline constexpr int64_t kMaxShift = 62;
// Factors of single channels and slopes are int16, those of an added operand have 16 bits without a sign.
inline constexpr int64_t kMaxChannelFactor = INT16_MAX, kMaxAddFactor = UINT16_MAX;
// The nearest one with 2^14 <= factor < 2^15; zero for ratios too small for any. Nothing for ratios too large, negative or not
// finite.
std::optional<Multiplier> make_multiplier(double ratio);
// The nearest one with a factor of at most `max_factor`, which is not below 2^14 where the shift allows it.
std::optional<Multiplier> make_multiplier(double ratio, int64_t max_factor);

// Sums of 8-bit products have 32 bits and wrap; those with a 16-bit operand have 64 and stay within a limit, so that multipliers
// of 15 bits keep them in an int64.
inline bool has_wide_sums(DType a, DType b) { return a == DType::Int16 || b == DType::Int16; }
inline constexpr int64_t kMaxWideSum = int64_t{1} << 46, kMaxWideFactor = int64_t{1} << 15;
inline int64_t with_bias(uint32_t sum, int32_t bias) { return static_cast<int32_t>(sum + static_cast<uint32_t>(bias)); }
inline int64_t with_bias(uint64_t sum, int32_t bias) {
  const auto total = static_cast<int64_t>(sum + static_cast<uint64_t>(static_cast<int64_t>(bias)));
  return total < -kMaxWideSum ? -kMaxWideSum : total > kMaxWideSum ? kMaxWideSum : total;
}
// Of int:Softmax: a power for each difference of two values.
inline int64_t softmax_entries(DType data) { return data == DType::Int16 ? 65536 : 256; }
// Exponentials are at most 2^24, so that products fit an int64.
inline constexpr int64_t kMaxSoftmaxFactor = int64_t{1} << 32;

// Of int:Resize: bits of a share, for which 32-bit sums of 8-bit data suffice; what multipliers may be so that sums of int16 data
// stay below 2^62; what its tables of places hold: positions below `extent` with a neighbour where they need one, shares from 0
// to below `one`.
inline int64_t resize_bits(DType data) { return data == DType::Int16 ? 14 : 11; }
inline constexpr int64_t kMaxResizeFactor = int64_t{1} << 16;
Status check_places(const ir::TensorView& places, int64_t extent, int64_t one);

// Input `slot`, called `what` in the error, has as many elements as `shape`, as far as both are known.
Status check_count(const ir::InferContext& c, size_t slot, std::string_view what, const ir::Shape& shape);

// value * 2^-shift to nearest, ties to even, as everywhere on the chip. The shift is from 0 to kMaxShift.
inline int64_t round_shift(int64_t value, int64_t shift) {
  if (shift == 0) return value;
  return (value + (int64_t{1} << (shift - 1)) - 1 + ((value >> shift) & 1)) >> shift;
}
inline int64_t saturate(int64_t value, int64_t limit) { return value < -limit - 1 ? -limit - 1 : value > limit ? limit : value; }
// The pooling unit's mean of `taps` elements: to nearest, ties to even where all extents of the window are powers of two, else
// towards zero.
inline bool is_power_of_two_window(std::span<const int64_t> extents) {
  return std::ranges::all_of(extents, [](int64_t n) { return n > 0 && (n & (n - 1)) == 0; });
}
inline int64_t window_mean(int64_t sum, int64_t taps, bool ties_to_even) {
  const int64_t magnitude = sum < 0 ? -sum : sum, below = magnitude / taps, rest = 2 * (magnitude % taps);
  const int64_t mean = below + (rest > taps || (rest == taps && ties_to_even && below % 2 != 0) ? 1 : 0);
  return sum < 0 ? -mean : mean;
}

// How the sums of a node become results, stage by stage as on the chip:
//   v = sum                                            sums of 8-bit products wrap at 32 bits
//   v = sat(round_shift(v * channel_factor, channel_shift))   where channels have scales of their own
//   v = sat(round_shift(v * slope_factor, slope_shift))       below zero, where there are slopes (PRelu, LeakyRelu)
//   v = sat(v + round_shift((operand - add_zero) * add_factor, add_shift))   where a tensor is added
//   y = clamp(round_shift(v * factor, shift) + zero_point, low, high)
// When there is a table, y is an index into it, and what stands there is the result.
struct OutputStage {
  std::vector<int64_t> channel_factor;  // one per channel, or none
  std::vector<int64_t> slope_factor;    // one, one per channel, or none
  int64_t channel_shift = 0, slope_shift = 0;
  int64_t add_factor = 0, add_shift = 0, add_zero = 0;
  std::vector<int64_t> factor, shift;  // one; int:AveragePool has one per number of elements
  int64_t zero_point = 0, low = -128, high = 127;
  int64_t limit = INT32_MAX;  // that v is saturated at
  DType dtype = DType::Int8;  // of the result
  ir::TensorView table;       // dtype Undefined = none

  int64_t scaled(int64_t sum, int64_t channel) const {
    const auto c = static_cast<size_t>(channel);
    int64_t v = sum;
    if (!channel_factor.empty()) v = saturate(round_shift(v * channel_factor[c], channel_shift), INT32_MAX);
    if (v < 0 && !slope_factor.empty())
      v = saturate(round_shift(v * slope_factor[slope_factor.size() == 1 ? 0 : c], slope_shift), limit);
    return v;
  }
  int64_t with_operand(int64_t v, int64_t operand) const {
    return saturate(v + round_shift((operand - add_zero) * add_factor, add_shift), limit);
  }
  int32_t finish(int64_t v, size_t k = 0) const {
    int64_t q = round_shift(v * factor[k], shift[k]) + zero_point;
    q = q < low ? low : q > high ? high : q;
    if (table.dtype == DType::Undefined) return static_cast<int32_t>(q);
    return table.dtype == DType::Int16   ? table.as<int16_t>()[q]
           : table.dtype == DType::UInt8 ? table.as<uint8_t>()[q]
                                         : table.as<int8_t>()[q];
  }
};

// Attributes: multiplier, shift, y_zero_point, low, high, y_type; `fused` names the source operators an op stands for, for
// reports.
std::vector<ir::AttributeDef> output_stage_attributes(std::vector<ir::AttributeDef> more = {});
// Of ops whose converter knows slopes: slope_multiplier, slope_shift.
std::vector<ir::AttributeDef> slope_attributes(std::vector<ir::AttributeDef> more = {});
// Of convolutions and matrix products: those, channel_multiplier, channel_shift, add_zero_point, add_multiplier, add_shift.
std::vector<ir::AttributeDef> product_stage_attributes(std::vector<ir::AttributeDef> more = {});

// What a node's converter may hold.
struct StageLimits {
  int64_t channels = 1;                   // of channel factors and slopes
  int64_t multipliers = 1;                // 1 or this many
  int64_t max_factor = int64_t{1} << 30;  // |v| * max_factor must stay below 2^62
  bool wide = false;                      // sums with a 16-bit operand
};
StageLimits product_limits(DType a, DType b, int64_t channels);
// Reads and checks the attributes; nothing in a node can make the stages overflow or read outside of the table. `table` is an
// input slot.
Result<OutputStage> read_output_stage(const ir::RunContext& c, size_t table, const StageLimits& limits = {});
// The same for a node known before it runs; `table` may have no value.
Result<OutputStage> read_output_stage(const ir::NodeReader& c, const ir::TensorView& table, const StageLimits& limits = {});
// Whether it can be read, for shape rules; a table of unknown shape passes as one of any length.
Status check_output_stage(const ir::InferContext& c, size_t table, const StageLimits& limits = {});
// Type of the result and of the table, for shape rules.
Result<DType> output_stage_type(const ir::InferContext& c, size_t table);

// Of int:Add, int:Max and int:Min: what brings both operands to one scale. Of int:Mul: its zero points alone.
struct BinaryScale {
  int64_t a_zero = 0, b_zero = 0;
  int64_t a_factor = 0;  // a signed byte, as the weight of a convolution
  int64_t b_factor = 0, b_shift = 0;
};
inline constexpr int64_t kMaxBinaryFactor = int64_t{1} << 28;  // operands below 2^17, products below 2^34
Result<BinaryScale> read_binary_scale(const ir::NodeReader& c);

// Integers the ops of npu_integer/ take as data: int8, uint8, int16.
bool is_npu_integer(DType t);
// Calls f with the element's C++ type.
template <class F>
void visit_npu_integer(DType t, F&& f) {
  if (t == DType::Int8)
    f(TypeTag<int8_t>{});
  else if (t == DType::UInt8)
    f(TypeTag<uint8_t>{});
  else if (t == DType::Int16)
    f(TypeTag<int16_t>{});
}
// The zero points of weights, attribute w_zero_point: one, or one per output channel; each in the range of int16 and uint8.
Result<std::vector<int64_t>> read_weight_zero_points(const ir::NodeReader& c, int64_t channels);
// A zero point attribute, within the range of int16 and uint8.
Result<int64_t> read_zero_point(const ir::NodeReader& c, std::string_view name);

}  // namespace orknn::ops
