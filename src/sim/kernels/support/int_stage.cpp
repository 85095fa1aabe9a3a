#include "sim/kernels/support/int_stage.h"

#include <algorithm>

#include "ops/support/requantize.h"

namespace orknn::sim::kernels {
namespace {
constexpr size_t kMore = 64;  // entries beyond the last channel
}

std::optional<Int> int_of(DType dtype) {
  if (dtype == DType::Int8) return Int::Signed8;
  if (dtype == DType::UInt8) return Int::Unsigned8;
  if (dtype == DType::Int16) return Int::Signed16;
  return std::nullopt;
}

bool zero_points_fit(const KernelQuery& q, int64_t outputs) {
  const ir::NodeReader node = q.attributes();
  const std::vector<int64_t>& of_weights = node.get_ints("w_zero_point");
  if (of_weights.size() != 1 && static_cast<int64_t>(of_weights.size()) != outputs) return false;
  return in_byte_range(q.inputs[0].dtype, node.get_int("x_zero_point")) &&
         std::all_of(of_weights.begin(), of_weights.end(), [&](int64_t zero) { return in_byte_range(q.inputs[1].dtype, zero); });
}

bool wide_zero_points_fit(const KernelQuery& q, int64_t outputs, size_t words) {
  const ir::NodeReader node = q.attributes();
  const std::vector<int64_t>& of_weights = node.get_ints("w_zero_point");
  const int64_t of_data = node.get_int("x_zero_point");
  if (of_weights.size() != 1 && static_cast<int64_t>(of_weights.size()) != outputs) return false;
  const auto fits = [&](int64_t zero) { return zero >= INT16_MIN && zero <= INT16_MAX; };
  if (!fits(of_data) || !std::all_of(of_weights.begin(), of_weights.end(), fits)) return false;
  const auto as_words = [&](int64_t zero) {
    return is_byte(q.inputs[words].dtype) ? in_byte_range(q.inputs[words].dtype, zero) : zero == 0 || words == 0;
  };
  return words == 0 ? as_words(of_data) : std::all_of(of_weights.begin(), of_weights.end(), as_words);
}

void wide_tile(const IntForms& f, IntTile t, const int32_t* high_a, const int64_t* start, int32_t* low, int32_t* high,
               int64_t* sums) {
  const int64_t depth = t.depth;
  const int32_t* low_a = t.a;
  const int64_t* offsets = t.offsets;
  for (int64_t r = 0; r < t.rows; ++r) std::fill_n(sums + r * kIntColumns, kIntColumns, start ? start[r] : 0);
  for (int64_t k = 0; k < depth; k += kWideDepth) {
    t.depth = std::min(kWideDepth, depth - k);
    t.offsets = offsets + k;
    t.a = low_a + k * kIntRows;
    t.sums = low;
    f.tile(t);
    t.a = high_a + k * kIntRows;
    t.sums = high;
    f.tile(t);
    f.widen(low, high, sums, t.rows * kIntColumns);
  }
}

bool AlignedDwords::allocate(int64_t count) {
  data_.reset(static_cast<int32_t*>(allocate_aligned(static_cast<size_t>(std::max<int64_t>(count, 1)) * 4)));
  return data_ != nullptr;
}

bool fits_after_shift(int64_t bound, int64_t shift, int64_t zero) {
  return ops::round_shift(bound, shift) + std::abs(zero) <= INT32_MAX &&
         ops::round_shift(-bound, shift) - std::abs(zero) >= INT32_MIN;
}

std::optional<OutputPlan> OutputPlan::create(const KernelQuery& q, int64_t channels, const StageSlots& slots,
                                             int64_t max_factor) {
  const auto operand = [&](size_t slot) -> const OperandFacts* {
    return slot < q.inputs.size() && q.inputs[slot].exists() ? &q.inputs[slot] : nullptr;
  };
  const OperandFacts *bias = operand(slots.bias), *addend = operand(slots.addend), *table = operand(slots.table);
  if (!q.node.tail.empty() || (table && !table->constant) || (bias && (!bias->constant || bias->dtype != DType::Int32)))
    return std::nullopt;
  if (bias && bias->constant->count() != channels) return std::nullopt;
  const ir::NodeReader node = q.attributes();
  const auto stage = ops::read_output_stage(node, channels, table ? table->constant->view() : ir::TensorView{}, max_factor);
  if (!stage || stage->dtype != q.outputs[0].dtype || (table && table->dtype != stage->dtype)) return std::nullopt;
  const std::optional<Int> type = int_of(stage->dtype);
  if (!type) return std::nullopt;
  OutputPlan p;
  p.type = *type;
  p.zero = static_cast<int32_t>(stage->zero_point);
  p.low = static_cast<int32_t>(stage->low);
  p.high = static_cast<int32_t>(stage->high);
  if (table) p.table = table->constant;
  const size_t count = static_cast<size_t>(channels);
  p.bias.assign(count + kMore, 0);
  p.factor.assign(count + kMore, 0);
  p.shift.assign(count + kMore, 1);
  p.add_factor.assign(count + kMore, 0);
  p.narrow.assign(count, 1);
  if (bias) {
    p.has_bias = true;
    std::copy_n(bias->constant->as<int32_t>(), channels, p.bias.begin());
  }
  int64_t reach = 0;  // of the added operand
  std::vector<int64_t> add_factors{0};
  const bool slopes = !stage->negative_factor.empty();
  if (addend && slopes) return std::nullopt;
  if (slopes) {
    p.negative_factor.assign(count + kMore, 0);
    p.negative_shift.assign(count + kMore, 1);
  }
  if (addend) {
    const std::optional<Int> addend_type = int_of(addend->dtype);
    if (!addend_type || ir::element_count(addend->dims) != ir::element_count(q.outputs[0].dims)) return std::nullopt;
    const auto zero = ops::read_zero_point(node, "add_zero_point");
    add_factors = node.get_ints("add_multiplier");
    if (!zero || (add_factors.size() != 1 && add_factors.size() != count)) return std::nullopt;
    for (int64_t f : add_factors)
      if (f < -ops::kMaxAddFactor || f > ops::kMaxAddFactor) return std::nullopt;
    p.has_addend = true;
    p.addend_slot = slots.addend;
    p.addend_type = *addend_type;
    p.add_zero = static_cast<int32_t>(*zero);
    reach = (*addend_type == Int::Signed16 ? int64_t{1} << 15 : 255) + std::abs(*zero);
  }
  for (size_t c = 0; c < count; ++c) {
    const size_t k = stage->slot(static_cast<int64_t>(c));
    p.factor[c] = static_cast<int32_t>(stage->factor[k]);
    p.shift[c] = static_cast<int32_t>(stage->shift[k]);
    p.add_factor[c] = add_factors[add_factors.size() == 1 ? 0 : c];
    const int64_t extra = std::abs(p.add_factor[c]);
    p.narrow[c] = extra <= INT32_MAX &&
                  fits_after_shift((int64_t{1} << 31) * std::abs(stage->factor[k]) + reach * extra, stage->shift[k], p.zero);
    if (slopes) {
      p.negative_factor[c] = static_cast<int32_t>(stage->negative_factor[k]);
      p.negative_shift[c] = static_cast<int32_t>(stage->negative_shift[k]);
      p.narrow[c] = p.narrow[c] && fits_high(p.factor[c], p.shift[c]) && fits_high(p.negative_factor[c], p.negative_shift[c]);
    }
    p.all_narrow &= p.narrow[c] != 0;
  }
  p.direct = p.all_narrow && p.type != Int::Signed16 && (!addend || p.addend_type != Int::Signed16);
  for (size_t c = 0; c < count && p.direct; ++c) {
    p.direct = fits_high(p.factor[c], p.shift[c]) && fits_high(p.add_factor[c], p.shift[c]);
    if (!p.direct) break;
    const int64_t one = int64_t{1} << (32 - p.shift[c]);
    p.high_factor.push_back(static_cast<int32_t>(p.factor[c] * one));
    p.high_add_factor.push_back(static_cast<int32_t>(p.add_factor[c] * one));
    if (slopes)
      p.high_negative_factor.push_back(static_cast<int32_t>(p.negative_factor[c] * (int64_t{1} << (32 - p.negative_shift[c]))));
  }
  return p;
}

IntConvert OutputPlan::channel(int64_t channel, const void* addend, void* y) const {
  IntConvert c = row(channel, addend, y);
  c.per_column = false;
  return c;
}

IntConvert OutputPlan::row(int64_t first, const void* addend, void* y) const {
  IntConvert c;
  c.per_column = true;
  c.bias = bias.data() + first;
  c.factor = factor.data() + first;
  c.shift = shift.data() + first;
  if (!negative_factor.empty()) {
    c.negative_factor = negative_factor.data() + first;
    c.negative_shift = negative_shift.data() + first;
  }
  c.zero = zero;
  c.low = low;
  c.high = high;
  c.addend = has_addend ? addend : nullptr;
  c.addend_type = addend_type;
  c.add_zero = add_zero;
  c.add_factor = add_factor.data() + first;
  c.table = table ? table->data() : nullptr;
  c.type = type;
  c.y = y;
  return c;
}

}  // namespace orknn::sim::kernels
