#include "silicon/dpu.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "ops/support/requantize.h"

namespace orknn::silicon {
namespace {
template <class T>
T read_at(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// The output converter's shift: ties to even, or away from zero where the stream asks for it.
int64_t round_output(int64_t product, uint32_t shift, bool away) {
  if (!away || shift == 0) return ops::round_shift(product, shift);
  const int64_t half = int64_t{1} << (shift - 1);
  return product < 0 ? -((-product + half) >> shift) : (product + half) >> shift;
}
}  // namespace

Result<Dpu> Dpu::create(const DecodedTask& task, const DeviceMemory& memory) {
  Dpu dpu(task);
  const DpuTask& d = dpu.d_;
  const int64_t planes = ceil_divide(d.channels, lanes_of(d.out));
  ORKNN_TRY_ASSIGN(
      dpu.destination_,
      memory.writable_at(d.destination, static_cast<uint64_t>((planes - 1) * d.surface_stride + d.pixels() * kAtomBytes),
                         "the output"));
  ORKNN_TRY(dpu.fetch_bias(memory));
  ORKNN_TRY(dpu.fetch_operand(memory));
  return dpu;
}

Status Dpu::fetch_bias(const DeviceMemory& memory) {
  if (d_.bias_use == 0) return {};
  const auto channels = static_cast<size_t>(d_.real_channels);
  const bool grouped = d_.bias_use == 7;
  const int64_t bytes = grouped ? ceil_divide(d_.real_channels, kBiasGroup) * kBiasGroupBytes : d_.real_channels * 4;
  ORKNN_TRY_ASSIGN(const std::byte* from, memory.at(d_.bias_address, static_cast<uint64_t>(bytes), "the bias"));
  bias_.resize(channels);
  if (grouped) {
    multipliers_.resize(channels);
    zeros_.resize(channels);
  }
  for (size_t c = 0; c < channels; ++c) {
    const std::byte* group = from + (grouped ? c / kBiasGroup * kBiasGroupBytes : c / kBiasGroup * kBiasGroup * 4);
    bias_[c] = read_at<int32_t>(group + c % kBiasGroup * 4);
    if (!grouped) continue;
    zeros_[c] = read_at<int16_t>(group + 32 + c % kBiasGroup * 2);
    multipliers_[c] = read_at<int16_t>(group + 48 + c % kBiasGroup * 2);
  }
  if (d_.process == Precision::Half)
    for (const int32_t bits : bias_) float_bias_.push_back(std::bit_cast<float>(bits));
  return {};
}

Status Dpu::fetch_operand(const DeviceMemory& memory) {
  if (!d_.ew_operation) return {};
  const int64_t plane = d_.pixels() * kAtomBytes, planes = ceil_divide(d_.real_channels, d_.operand_lanes());
  ORKNN_TRY_ASSIGN(even_, memory.at(d_.even_address, static_cast<uint64_t>((planes - 1) / 2 * (plane + d_.even_notch) + plane),
                                    "the second operand"));
  if (planes > 1) {
    ORKNN_TRY_ASSIGN(odd_, memory.at(d_.odd_address, static_cast<uint64_t>((planes - 2) / 2 * (plane + d_.odd_notch) + plane),
                                     "the second operand"));
  }
  return {};
}

const std::byte* Dpu::operand(int64_t channel, int64_t pixel) const {
  const int64_t lanes = d_.operand_lanes(), plane = channel / lanes, plane_bytes = d_.pixels() * kAtomBytes;
  const std::byte* base =
      plane % 2 == 0 ? even_ + plane / 2 * (plane_bytes + d_.even_notch) : odd_ + plane / 2 * (plane_bytes + d_.odd_notch);
  return base + pixel * kAtomBytes + channel % lanes * d_.ew_operand_bytes;
}

int64_t Dpu::stage(const Stage& s, int64_t v, int64_t channel) const {
  const bool real = channel < d_.real_channels;
  if (s.alu) v += s.alu_from_memory ? (real ? bias_[static_cast<size_t>(channel)] : 0) : s.alu_operand;
  if (s.mul && !(s.prelu && v >= 0)) {
    const int64_t product = v * (s.mul_from_memory ? (real ? multipliers_[static_cast<size_t>(channel)] : 0) : s.mul_operand);
    v = ops::saturate(ops::round_shift(product, product >= 0 ? s.shift : s.negative_shift), INT32_MAX);
  }
  if (s.relu && v < 0) v = 0;
  if (s.ceiling_on && v > s.ceiling) v = s.ceiling;
  return v;
}

void Dpu::write(int64_t v, int64_t channel, int64_t pixel) const {
  if (!d_.bs.bypass) v = stage(d_.bs, v, channel);
  if (!d_.bn.bypass) v = stage(d_.bn, v, channel);
  if (d_.ew_operation && channel < d_.real_channels) {
    const int64_t b = read_at<int8_t>(operand(channel, pixel));
    v = ops::saturate(v + (d_.ew_converts ? ops::round_shift((b + d_.ew_offset) * d_.ew_scale, d_.ew_shift) : b), INT32_MAX);
  }
  if (d_.ew_relu && v < 0) v = 0;
  if (d_.ew_ceiling_on && v > d_.ew_ceiling) v = d_.ew_ceiling;
  const int64_t y = round_output(v * d_.out_scale, d_.out_shift, d_.rounds_away) + d_.out_offset;
  if (d_.out == Precision::Int32) {
    const auto wide = static_cast<int32_t>(ops::saturate(y, INT32_MAX));
    std::memcpy(place(channel, pixel), &wide, sizeof wide);
  } else {
    *place(channel, pixel) = static_cast<std::byte>(ops::saturate(y, INT8_MAX));
  }
}

float Dpu::stage(const Stage& s, float v, int64_t channel) const {
  const bool real = channel < d_.real_channels;
  if (s.mul && !(s.prelu && v >= 0)) v *= half_to_float(static_cast<uint16_t>(s.mul_operand));
  if (s.alu)
    v += s.alu_from_memory ? (real ? float_bias_[static_cast<size_t>(channel)] : 0.0f) : std::bit_cast<float>(s.alu_bits);
  if (s.relu && v < 0) v = 0;
  if (s.ceiling_on) v = std::min(v, std::bit_cast<float>(s.ceiling_bits));
  return v;
}

// Two tables of 513 entries that meet at LE_END = LO_START, with linear interpolation; straight lines outside.
float Dpu::look_up(float index) const {
  const Registers& r = task_->registers;
  const auto number = [&](uint16_t offset) { return static_cast<double>(static_cast<int32_t>(r.get(offset))); };
  const double at = index, start = number(reg::DPU_LUT_LE_START), middle = number(reg::DPU_LUT_LE_END),
               end = number(reg::DPU_LUT_LO_END);
  const auto line = [&](uint32_t scale, uint32_t shift, double from, int16_t value) {
    return static_cast<float>(value + (at - from) * static_cast<int16_t>(scale) * std::ldexp(1.0, -static_cast<int>(shift)));
  };
  using namespace field;
  if (at < start)
    return line(r.get(DPU_LUT_LE_SLOPE_SCALE_UNDER), r.get(DPU_LUT_LE_SLOPE_SHIFT_UNDER), start, task_->lut_le.front());
  if (at >= end) return line(r.get(DPU_LUT_LO_SLOPE_SCALE_OVER), r.get(DPU_LUT_LO_SLOPE_SHIFT_OVER), end, task_->lut_lo.back());
  const bool low = at < middle;
  const std::vector<int16_t>& table = low ? task_->lut_le : task_->lut_lo;
  const uint32_t select = low ? r.get(DPU_LUT_INFO_LE_INDEX_SELECT) : r.get(DPU_LUT_INFO_LO_INDEX_SELECT);
  const double position = (at - (low ? start : middle)) / std::ldexp(1.0, static_cast<int>(select));
  const auto entry = std::min(static_cast<size_t>(position), kLutEntries - 2);
  const double share = std::min(position - static_cast<double>(entry), 1.0);
  return static_cast<float>(table[entry] + (table[entry + 1] - table[entry]) * share);
}

void Dpu::write(float v, int64_t channel, int64_t pixel) const {
  if (!d_.bs.bypass) v = stage(d_.bs, v, channel);
  if (!d_.bn.bypass) v = stage(d_.bn, v, channel);
  if (d_.ew_operation && channel < d_.real_channels) {
    const float b = half_to_float(read_at<uint16_t>(operand(channel, pixel)));
    v = d_.ew_multiplies ? v * b : d_.ew_algorithm == 0 ? std::max(v, b) : d_.ew_algorithm == 1 ? std::min(v, b) : v + b;
  }
  if (d_.ew_relu && v < 0) v = 0;
  if (d_.ew_ceiling_on) v = std::min(v, std::bit_cast<float>(static_cast<int32_t>(d_.ew_ceiling)));
  if (d_.lookup)
    v = (std::rint(look_up(v)) + static_cast<float>(d_.out_offset)) * std::ldexp(1.0f, -static_cast<int>(d_.minus_exponent));
  if (d_.out == Precision::Float) {
    std::memcpy(place(channel, pixel), &v, sizeof v);
  } else {
    const uint16_t half = float_to_half(v);
    std::memcpy(place(channel, pixel), &half, sizeof half);
  }
}

void Dpu::write_beyond_real_channels() const {
  const int64_t lanes = lanes_of(d_.out);
  for (int64_t plane = ceil_divide(d_.real_channels, lanes); plane < ceil_divide(d_.channels, lanes); ++plane)
    std::memset(destination_ + plane * d_.surface_stride, 0xa5, static_cast<size_t>(d_.pixels() * kAtomBytes));
}

}  // namespace orknn::silicon
