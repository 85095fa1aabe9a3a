// What the registers of a task say, as numbers: the only thing that lint and chip model look at.
#pragma once

#include "silicon/command.h"
#include "silicon/layout.h"

namespace orknn::silicon {

// A stage BS or BN of the DPU.
struct Stage {
  bool bypass = false, alu = false, mul = false, prelu = false, relu = false, ceiling_on = false;
  bool alu_from_memory = false, mul_from_memory = false;
  uint32_t algorithm = 0;
  int64_t alu_operand = 0, mul_operand = 0, ceiling = 0;
  uint32_t shift = 0, negative_shift = 0;
  uint32_t alu_bits = 0, ceiling_bits = 0;  // as written, for float tasks
};

struct DpuTask {
  bool flying = false, depthwise = false;
  Precision process = Precision::Int8, in = Precision::Int8, out = Precision::Int8;
  int64_t width = 0, height = 0, channels = 0, real_channels = 0;
  uint32_t destination = 0;
  int64_t surface_stride = 0;
  bool skips_weight_zero = false, weight_zero_from_memory = false;
  int64_t weight_zero = 0;
  uint32_t bias_use = 0, bias_address = 0;
  Stage bs, bn;
  // EW
  bool ew = false, ew_operation = false, ew_multiplies = false, ew_converts = false, ew_relu = false, ew_ceiling_on = false;
  bool lookup = false;
  uint32_t ew_algorithm = 0, ew_operand_bytes = 1;
  int64_t ew_offset = 0, ew_scale = 1, ew_ceiling = 0;
  uint32_t ew_shift = 0;
  uint32_t even_address = 0, odd_address = 0;
  int64_t even_notch = 0, odd_notch = 0;
  // Output converter
  int64_t out_offset = 0, out_scale = 1;
  uint32_t out_shift = 0, minus_exponent = 0;
  bool rounds_away = false;

  int64_t pixels() const { return width * height; }
  int64_t operand_lanes() const { return kAtomBytes / ew_operand_bytes; }
};
DpuTask dpu_task(const Registers& r);

struct ConvTask {
  bool depthwise = false;
  Precision precision = Precision::Int8;
  int64_t width = 0, height = 0, channels = 0;  // input
  int64_t out_width = 0, out_height = 0;
  int64_t kernels = 0, kernel_width = 0, kernel_height = 0;
  int64_t stride_x = 1, stride_y = 1, dilation_x = 1, dilation_y = 1;
  int64_t pad_left = 0, pad_top = 0;
  uint32_t pad_value = 0;
  uint32_t features = 0, weights = 0;
  int64_t line_bytes = 0, plane_bytes = 0;
  uint32_t truncate = 0;

  KernelShape kernel() const {
    return {.kernels = kernels,
            .channels = channels,
            .height = kernel_height,
            .width = kernel_width,
            .depthwise = depthwise,
            .precision = precision};
  }
  int64_t planes() const { return ceil_divide(channels, lanes_of(precision)); }
  // From the first byte of the features to the last one read.
  int64_t feature_bytes() const { return (planes() - 1) * plane_bytes + (height - 1) * line_bytes + width * kAtomBytes; }
};
ConvTask conv_task(const Registers& r);

struct PoolTask {
  enum class Method : uint8_t { Average = 0, Max = 1, Min = 2 };
  Method method = Method::Average;
  Precision precision = Precision::Int8;
  int64_t width = 0, height = 0, channels = 0, out_width = 0, out_height = 0;
  int64_t kernel_width = 1, kernel_height = 1, stride_x = 1, stride_y = 1;
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  uint32_t reciprocal_width = 0, reciprocal_height = 0, pad_value = 0;
  uint32_t source = 0, destination = 0;
  int64_t line_bytes = 0, plane_bytes = 0, out_plane_bytes = 0;

  int64_t planes() const { return ceil_divide(channels, lanes_of(precision)); }
  int64_t source_bytes() const { return (planes() - 1) * plane_bytes + (height - 1) * line_bytes + width * kAtomBytes; }
  int64_t destination_bytes() const { return (planes() - 1) * out_plane_bytes + out_width * out_height * kAtomBytes; }
};
PoolTask pool_task(const Registers& r);

}  // namespace orknn::silicon
