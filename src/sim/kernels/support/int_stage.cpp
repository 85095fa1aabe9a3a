#include "sim/kernels/support/int_stage.h"

#include <algorithm>
#include <cmath>

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
  const std::byte* b = t.b;
  for (int64_t r = 0; r < t.rows; ++r) std::fill_n(sums + r * kIntColumns, kIntColumns, start ? start[r] : 0);
  for (int64_t k = 0; k < depth; k += kWideDepth) {
    t.depth = std::min(kWideDepth, depth - k);
    if (offsets)
      t.offsets = offsets + k;
    else
      t.b = b + k * t.b_stride;
    t.a = low_a + k * kIntRows;
    t.sums = low;
    f.tile(t);
    t.a = high_a + k * kIntRows;
    t.sums = high;
    f.tile(t);
    f.widen(low, high, sums, t.rows * kIntColumns);
  }
}

std::optional<float> float_margin(const FloatCheck& f) {
  // Values beyond the bounds end at them, wherever exactly they are.
  const double bound = 2 + static_cast<double>(std::max(std::abs(f.low - f.zero), std::abs(f.high - f.zero)));
  // A product of a sum and a factor, each rounded to 24 bits, and one more rounding where an operand is added.
  constexpr double kFloatError = 4.0 / (1 << 24);
  const double error = f.roundings * f.gain + kFloatError * (bound + 2 * f.reach);
  // What saturates at 32 bits on the way must end at the bounds.
  const bool stays_inside = 2147483647.0 * f.gain > bound + 2 * f.reach && bound + 2 * f.reach < 1 << 30;
  if (!stays_inside || error > 1.0 / 64) return std::nullopt;
  return static_cast<float>(0.5 - 1.01 * error);
}

void OutputPlan::measure_floats(int64_t channels) {
  gain = std::ldexp(factor[0], -shift[0]);
  channel_unit = std::ldexp(1.0, -channel_shift);
  slope_unit = std::ldexp(1.0, -slope_shift);
  add_gain = std::ldexp(add_factor, -add_shift);
  double steepest = 1, largest = 0;
  scale.assign(bias.size(), 0);
  if (!slope_factor.empty()) slope_scale.assign(bias.size(), 0);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double of_channel = channel_factor.empty() ? gain : gain * channel_factor[c] * channel_unit;
    const double slope = slope_factor.empty() ? 1 : slope_factor[c] * slope_unit;
    scale[c] = static_cast<float>(of_channel);
    if (!slope_factor.empty()) slope_scale[c] = static_cast<float>(of_channel * slope);
    steepest = std::max(steepest, std::abs(slope));
    largest = std::max(largest, std::abs(of_channel) * std::max(1.0, std::abs(slope)));
  }
  add_scale = static_cast<float>(gain * add_gain);
  FloatCheck check{.gain = std::abs(gain), .zero = zero, .low = low, .high = high};
  check.roundings = 0.5 * (channel_factor.empty() ? 0 : steepest) + 0.5 * (slope_factor.empty() ? 0 : 1) + 0.5 * has_addend;
  if (has_addend) check.reach = std::abs(gain * add_gain) * static_cast<double>(int_reach(addend_type, add_zero));
  const std::optional<float> found = float_margin(check);
  const bool turns_signs = !slope_factor.empty() && std::ranges::any_of(channel_factor, [](int32_t f) { return f < 0; });
  // Whatever the sums are, floats must fit an int32.
  const double reach = 0x1p31 * largest + std::abs(static_cast<double>(zero)) + 512 + 2 * check.reach;
  is_float_enough = found && reach < 0x7ffff000 && !turns_signs && std::abs(factor[0]) <= most_in_doubles;
  if (found) margin = *found;
  stage_error = check.roundings * check.gain;
}

// Functions are smooth: among sixteen neighbouring entries there are few steps.
void OutputPlan::divide_table() {
  constexpr size_t kEntries = 16, kParts = 256, kMostSteps = 8;
  if (byte_table.size() > kEntries * kParts || byte_table.size() <= 256) return;
  std::vector<uint8_t> entries = byte_table;
  entries.resize(kEntries * kParts, entries.back());
  std::vector<uint8_t> first(kParts), up[kMostSteps], down[kMostSteps];
  size_t most_up = 0, most_down = 0;
  for (size_t part = 0; part < kParts; ++part) {
    size_t ups = 0, downs = 0;
    const uint8_t* from = entries.data() + part * kEntries;
    first[part] = from[0];
    for (size_t i = 1; i < kEntries; ++i) {
      const int change = from[i] - from[i - 1];
      auto& list = change > 0 ? up : down;
      size_t& count = change > 0 ? ups : downs;
      for (int k = 0; k < std::abs(change); ++k, ++count) {
        if (count == kMostSteps) return;
        list[count].resize(kParts, kEntries);  // never
        list[count][part] = static_cast<uint8_t>(i);
      }
    }
    most_up = std::max(most_up, ups);
    most_down = std::max(most_down, downs);
  }
  if (most_up + most_down > kMostSteps) return;
  steps = std::move(first);
  for (size_t k = 0; k < most_up; ++k) steps.insert(steps.end(), up[k].begin(), up[k].end());
  for (size_t k = 0; k < most_down; ++k) steps.insert(steps.end(), down[k].begin(), down[k].end());
  steps_up = static_cast<int32_t>(most_up);
  steps_down = static_cast<int32_t>(most_down);
}

void OutputPlan::make_unsigned() {
  const bool is_signed = type == Int::Signed8;
  type = Int::Unsigned8;
  if (table) {
    const auto* from = static_cast<const uint8_t*>(table->data());
    byte_table.assign(from, from + table->count());
    byte_table.resize(std::max<size_t>(byte_table.size(), 256));  // lookups read whole vectors
    for (uint8_t& entry : byte_table) entry = static_cast<uint8_t>(entry ^ (is_signed ? 0x80 : 0));
    divide_table();
  } else if (is_signed) {
    zero += 128;
    low += 128;
    high += 128;
  }
  if (has_addend && addend_type == Int::Signed8) {
    addend_type = Int::Unsigned8;
    add_zero += 128;
  }
  start = static_cast<float>(zero - static_cast<double>(add_zero) * add_scale);
  // Floats near a result: the sum and its factor are rounded, the operand's factor and where it starts, every sum of two.
  constexpr double kHalfUnit = 1.0 / (1 << 24);
  const double result = 2 + std::max(std::abs(low), std::abs(high)), operand = has_addend ? 255.0 * std::abs(add_scale) : 0,
               sum = result + std::abs(start) + operand;
  const double error = kHalfUnit * (2 * sum + result + (has_addend ? sum + operand + std::abs(start) : 0));
  blocked_margin = static_cast<float>(0.5 - 1.05 * (stage_error + error));
}

std::optional<OutputPlan> OutputPlan::create(const KernelQuery& q, const StageSlots& slots, const ops::StageLimits& limits) {
  const auto operand = [&](size_t slot) -> const OperandFacts* {
    return slot < q.inputs.size() && q.inputs[slot].exists() ? &q.inputs[slot] : nullptr;
  };
  const OperandFacts *of_bias = operand(slots.bias), *of_addend = operand(slots.addend), *of_table = operand(slots.table);
  if (!q.node.tail.empty() || (of_table && !of_table->constant) ||
      (of_bias && (!of_bias->constant || of_bias->dtype != DType::Int32 || of_bias->constant->count() != limits.channels)))
    return std::nullopt;
  const ir::NodeReader node = q.attributes();
  const auto stage = ops::read_output_stage(node, of_table ? of_table->constant->view() : ir::TensorView{}, limits);
  if (!stage || stage->dtype != q.outputs[0].dtype || (of_table && of_table->dtype != stage->dtype)) return std::nullopt;
  const std::optional<Int> type = int_of(stage->dtype);
  if (!type) return std::nullopt;
  OutputPlan p;
  p.type = *type;
  p.zero = static_cast<int32_t>(stage->zero_point);
  p.low = static_cast<int32_t>(stage->low);
  p.high = static_cast<int32_t>(stage->high);
  p.limit = stage->limit;
  p.channel_shift = static_cast<int32_t>(stage->channel_shift);
  p.slope_shift = static_cast<int32_t>(stage->slope_shift);
  if (of_table) p.table = of_table->constant;
  const int64_t channels = std::max(limits.channels, limits.multipliers);
  // One value per channel of a list that may hold one for all.
  const auto spread = [&](const std::vector<int64_t>& list, int32_t rest) {
    std::vector<int32_t> out(static_cast<size_t>(channels) + kMore, rest);
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) out[c] = static_cast<int32_t>(list[list.size() == 1 ? 0 : c]);
    return out;
  };
  p.factor = spread(stage->factor, 0);
  p.shift = spread(stage->shift, 1);
  if (!stage->channel_factor.empty()) p.channel_factor = spread(stage->channel_factor, 0);
  if (!stage->slope_factor.empty()) p.slope_factor = spread(stage->slope_factor, 0);
  p.bias.assign(static_cast<size_t>(channels) + kMore, 0);
  if (of_bias) {
    p.has_bias = true;
    std::copy_n(of_bias->constant->as<int32_t>(), channels, p.bias.begin());
  }
  if (of_addend) {
    const std::optional<Int> addend_type = int_of(of_addend->dtype);
    if (!addend_type || ir::element_count(of_addend->dims) != ir::element_count(q.outputs[0].dims)) return std::nullopt;
    p.has_addend = true;
    p.addend_slot = slots.addend;
    p.addend_type = *addend_type;
    p.add_zero = static_cast<int32_t>(stage->add_zero);
    p.add_factor = static_cast<int32_t>(stage->add_factor);
    p.add_shift = static_cast<int32_t>(stage->add_shift);
  }
  p.measure_floats(channels);
  return p;
}

IntConvert OutputPlan::channel(int64_t channel, const void* addend, void* y) const {
  IntConvert c = row(channel, addend, y);
  c.per_column = false;
  return c;
}

IntConvert OutputPlan::row(int64_t first, const void* addend, void* y) const {
  const auto from = [&](const auto& list) { return list.empty() ? nullptr : list.data() + first; };
  IntConvert c;
  c.per_column = true;
  c.bias = from(bias);
  c.channel_factor = from(channel_factor);
  c.channel_shift = channel_shift;
  c.slope_factor = from(slope_factor);
  c.slope_shift = slope_shift;
  c.factor = from(factor);
  c.shift = from(shift);
  c.zero = zero;
  c.low = low;
  c.high = high;
  c.limit = limit;
  c.addend = has_addend ? addend : nullptr;
  c.addend_type = addend_type;
  c.add_zero = add_zero;
  c.add_factor = add_factor;
  c.add_shift = add_shift;
  c.table = !byte_table.empty() ? byte_table.data() : table ? table->data() : nullptr;
  c.steps = steps.empty() ? nullptr : steps.data();
  c.steps_up = steps_up;
  c.steps_down = steps_down;
  c.scale = from(scale);
  c.slope_scale = from(slope_scale);
  c.add_scale = add_scale;
  c.margin = margin;
  c.start = start;
  c.blocked_margin = blocked_margin;
  c.channel_unit = channel_unit;
  c.slope_unit = slope_unit;
  c.add_gain = add_gain;
  c.gain = gain;
  c.type = type;
  c.y = y;
  return c;
}

}  // namespace orknn::sim::kernels
