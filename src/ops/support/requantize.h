// The chip's output converter: how integer sums become integer results. Every op of npu_integer/ and its fast kernels end in it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

// A real factor as the converter holds it: factor * 2^-shift.
struct Multiplier {
  int64_t factor = 0;
  int64_t shift = 1;
};
inline constexpr int kMultiplierBits = 15;
inline constexpr int64_t kMaxShift = 62;
// Of an operand added to a sum: |sum| < 2^31 and factors up to 2^30, operands below 2^17 and factors up to 2^44: both products
// and a rounding bit fit an int64.
inline constexpr int64_t kMaxAddFactor = int64_t{1} << 44;
// The nearest one with 2^14 <= factor < 2^15; zero for ratios too small for any. Nothing for ratios too large, negative or not
// finite.
std::optional<Multiplier> make_multiplier(double ratio);

// Sums of 8-bit products have 32 bits and wrap; those with a 16-bit operand have 64 and stay within a limit, so that multipliers
// of 15 bits keep them in an int64.
inline bool has_wide_sums(DType a, DType b) { return a == DType::Int16 || b == DType::Int16; }
inline constexpr int64_t kMaxWideSum = int64_t{1} << 46, kMaxWideFactor = int64_t{1} << 15;
inline int64_t with_bias(uint32_t sum, int32_t bias) { return static_cast<int32_t>(sum + static_cast<uint32_t>(bias)); }
inline int64_t with_bias(uint64_t sum, int32_t bias) {
  const auto total = static_cast<int64_t>(sum + static_cast<uint64_t>(static_cast<int64_t>(bias)));
  return total < -kMaxWideSum ? -kMaxWideSum : total > kMaxWideSum ? kMaxWideSum : total;
}
// The largest factor that sums of these types may meet.
inline int64_t max_sum_factor(DType a, DType b) { return has_wide_sums(a, b) ? kMaxWideFactor : int64_t{1} << 30; }

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

// (value + half) >> shift: rounds to nearest, halves up.
inline int64_t round_shift(int64_t value, int64_t shift) { return (value + (int64_t{1} << (shift - 1))) >> shift; }

// What a node says about its results. `Factors` are per channel, or one for all; sums below zero may have others (PRelu,
// LeakyRelu). When there is a table, the converted value is an index into it, and what stands there is the result.
struct OutputStage {
  std::vector<int64_t> factor, shift;
  std::vector<int64_t> negative_factor, negative_shift;  // as many, or none
  int64_t zero_point = 0, low = -128, high = 127;
  DType dtype = DType::Int8;  // of the result
  ir::TensorView table;       // dtype Undefined = none

  size_t slot(int64_t channel) const { return factor.size() == 1 ? 0 : static_cast<size_t>(channel); }
  // `scaled` is a sum of products with the factors of slot `k`.
  int32_t finish(int64_t scaled, size_t k) const { return settle(scaled, shift[k]); }
  int32_t settle(int64_t scaled, int64_t by) const {
    int64_t q = round_shift(scaled, by) + zero_point;
    q = q < low ? low : q > high ? high : q;
    if (table.dtype == DType::Undefined) return static_cast<int32_t>(q);
    return table.dtype == DType::Int16   ? table.as<int16_t>()[q]
           : table.dtype == DType::UInt8 ? table.as<uint8_t>()[q]
                                         : table.as<int8_t>()[q];
  }
  int32_t convert(int64_t sum, int64_t channel) const {
    const size_t k = slot(channel);
    return sum < 0 && !negative_factor.empty() ? settle(sum * negative_factor[k], negative_shift[k])
                                               : settle(sum * factor[k], shift[k]);
  }
};

// Attributes: multiplier, shift, y_zero_point, low, high, y_type; `fused` names the source operators an op stands for, for
// reports.
std::vector<ir::AttributeDef> output_stage_attributes(std::vector<ir::AttributeDef> more = {});
// Of ops whose converter knows slopes: negative_multiplier, negative_shift.
std::vector<ir::AttributeDef> slope_attributes(std::vector<ir::AttributeDef> more);
// Reads and checks them; nothing in a node can make finish() overflow or read outside of the table. `table` is an input slot.
// |sum| * max_factor must stay below 2^62.
Result<OutputStage> read_output_stage(const ir::RunContext& c, int64_t channels, size_t table,
                                      int64_t max_factor = int64_t{1} << 30);
// The same for a node known before it runs; `table` may have no value.
Result<OutputStage> read_output_stage(const ir::NodeReader& c, int64_t channels, const ir::TensorView& table,
                                      int64_t max_factor = int64_t{1} << 30);
// Type of the result and of the table, for shape rules.
Result<DType> output_stage_type(const ir::InferContext& c, size_t table);

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
// A zero point attribute, within the range of int16 and uint8.
Result<int64_t> read_zero_point(const ir::NodeReader& c, std::string_view name);

}  // namespace orknn::ops
