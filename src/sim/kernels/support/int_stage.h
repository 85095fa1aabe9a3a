// What the fast integer kernels share: element types, and the output converter of a node, prepared for the cores.
#pragma once

#include <optional>
#include <vector>

#include "base/memory.h"
#include "sim/kernel.h"
#include "sim/kernels/support/int_forms.h"

namespace orknn::sim::kernels {

// The type of an integer tensor the converter reads or writes.
std::optional<Int> int_of(DType dtype);
constexpr int64_t int_bytes(Int type) { return type == Int::Signed16 ? 2 : 1; }
// 8-bit data: what it takes to make the bytes unsigned, and its range.
constexpr bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }
constexpr int32_t byte_offset(DType t) { return t == DType::Int8 ? 128 : 0; }
constexpr bool in_byte_range(DType t, int64_t value) { return value + byte_offset(t) >= 0 && value + byte_offset(t) <= 255; }
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

// Memory of dwords, aligned to a cache line.
class AlignedDwords {
 public:
  // False when memory is short.
  bool allocate(int64_t count);
  int32_t* data() const { return data_.get(); }

 private:
  AlignedPtr<int32_t> data_;
};

// Input slots of a node's bias, added operand and table.
struct StageSlots {
  size_t bias, addend, table;
};
constexpr size_t kNoSlot = SIZE_MAX;

// How the sums of each channel become results. Lists have an entry per channel, and some more, so that vectors may read beyond
// the last.
struct OutputPlan {
  std::vector<int32_t> bias, factor, shift;
  std::vector<int32_t> negative_factor, negative_shift;  // of sums below zero; empty = as of others
  std::vector<int64_t> add_factor;
  std::vector<char> narrow;  // per channel: the forms' converter holds it
  bool all_narrow = true;
  int32_t zero = 0, low = 0, high = 0, add_zero = 0;
  bool has_addend = false, has_bias = false;
  Int addend_type = Int::Signed8, type = Int::Signed8;
  const ir::TensorData* table = nullptr;
  size_t addend_slot = 0;
  // Bytes whose converter IntProduct holds, and their factors at a shift of 32.
  bool direct = false;
  std::vector<int32_t> high_factor, high_add_factor, high_negative_factor;

  // Nothing for nodes whose parameters are wrong or not known ahead: the reference kernel then says what is the matter.
  static std::optional<OutputPlan> create(const KernelQuery& query, int64_t channels, const StageSlots& slots,
                                          int64_t max_factor = int64_t{1} << 30);

  // The converter of one channel for results at `y` (and operands at `addend`), or of all channels of a row.
  IntConvert channel(int64_t channel, const void* addend, void* y) const;
  IntConvert row(int64_t first_channel, const void* addend, void* y) const;
};

// Runs the converter in the given form, or exactly where its vectors do not hold the parameters.
inline void convert(const IntForms& f, const IntConvert& c, bool narrow, const int32_t* sums, int64_t count) {
  if (narrow)
    f.convert(c, sums, count);
  else
    convert_exactly(c, sums, count);
}

// ((value + half) >> shift) + zero of any |value| <= bound fits an int32.
bool fits_after_shift(int64_t bound, int64_t shift, int64_t zero);

}  // namespace orknn::sim::kernels
