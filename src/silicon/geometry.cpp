#include "silicon/geometry.h"

namespace orknn::silicon {
namespace {
using namespace field;

// The registers of BS and BN have the same fields at other offsets.
Stage stage(const Registers& r, uint16_t offset_from_bs, Field negative_shift) {
  const auto at = [&](Field f) { return Field{static_cast<uint16_t>(f.offset + offset_from_bs), f.low, f.bits}; };
  const auto flag = [&](Field f) { return r.get(at(f)) != 0; };
  Stage s;
  s.bypass = flag(DPU_BS_CFG_BYPASS);
  s.alu = !s.bypass && !flag(DPU_BS_CFG_ALU_BYPASS);
  s.mul = !s.bypass && !flag(DPU_BS_CFG_MUL_BYPASS);
  s.prelu = flag(DPU_BS_CFG_MUL_PRELU);
  s.relu = !s.bypass && !flag(DPU_BS_CFG_RELU_BYPASS);
  s.ceiling_on = s.relu && flag(DPU_BS_CFG_RELUX_EN);
  s.alu_from_memory = flag(DPU_BS_CFG_ALU_SRC);
  s.mul_from_memory = flag(DPU_BS_MUL_CFG_MUL_SRC);
  s.algorithm = r.get(at(DPU_BS_CFG_ALU_ALGO));
  s.alu_operand = r.get_signed(at(DPU_BS_ALU_CFG_OPERAND));
  s.alu_bits = r.get(at(DPU_BS_ALU_CFG_OPERAND));
  s.mul_operand = r.get_signed(at(DPU_BS_MUL_CFG_OPERAND));
  s.shift = r.get(at(DPU_BS_MUL_CFG_SHIFT));
  s.negative_shift = r.get(negative_shift);
  s.ceiling = r.get_signed(at(DPU_BS_RELUX_CMP_VALUE_VALUE));
  s.ceiling_bits = r.get(at(DPU_BS_RELUX_CMP_VALUE_VALUE));
  return s;
}
constexpr uint16_t kBnFromBs = reg::DPU_BN_CFG - reg::DPU_BS_CFG;
}  // namespace

DpuTask dpu_task(const Registers& r) {
  DpuTask d;
  d.flying = r.get(DPU_FEATURE_MODE_CFG_FLYING);
  d.depthwise = r.get(DPU_FEATURE_MODE_CFG_CONV_MODE) == 3;
  d.process = static_cast<Precision>(r.get(DPU_DATA_FORMAT_PROC_PRECISION));
  d.in = static_cast<Precision>(r.get(DPU_DATA_FORMAT_IN_PRECISION));
  d.out = static_cast<Precision>(r.get(DPU_DATA_FORMAT_OUT_PRECISION));
  d.width = r.get(DPU_DATA_CUBE_WIDTH_WIDTH) + 1;
  d.height = r.get(DPU_DATA_CUBE_HEIGHT_HEIGHT) + 1;
  d.channels = r.get(DPU_DATA_CUBE_CHANNEL_CHANNEL) + 1;
  d.real_channels = r.get(DPU_DATA_CUBE_CHANNEL_REAL_CHANNEL) + 1;
  d.destination = r.get(reg::DPU_DST_BASE_ADDR);
  d.surface_stride = r.get(reg::DPU_DST_SURF_STRIDE);
  d.skips_weight_zero = r.get(DPU_BS_OW_CFG_OD_BYPASS);
  d.weight_zero_from_memory = r.get(DPU_BS_OW_CFG_OW_SRC);
  d.weight_zero = r.get_signed(DPU_BS_OW_OP_OPERAND);
  d.bias_use = r.get(RDMA_BRDMA_CFG_DATA_USE);
  d.bias_address = r.get(reg::RDMA_BS_BASE_ADDR);
  d.bs = stage(r, 0, DPU_DATA_FORMAT_BS_NEGATIVE_SHIFT);
  d.bn = stage(r, kBnFromBs, DPU_DATA_FORMAT_BN_NEGATIVE_SHIFT);
  d.ew = !r.get(DPU_EW_CFG_BYPASS);
  d.ew_operation = d.ew && !r.get(DPU_EW_CFG_OP_BYPASS) && r.get(DPU_EW_CFG_OP_SRC);
  d.ew_multiplies = r.get(DPU_EW_CFG_OP_TYPE);
  d.ew_converts = !r.get(DPU_EW_CFG_OP_CVT_BYPASS) && r.get(DPU_EW_CFG_CVT_TYPE);
  d.lookup = d.ew && !r.get(DPU_EW_CFG_LUT_BYPASS);
  d.ew_relu = d.ew && !r.get(DPU_EW_CFG_RELU_BYPASS);
  d.ew_ceiling_on = d.ew_relu && r.get(DPU_EW_CFG_RELUX_EN);
  d.ew_algorithm = r.get(DPU_EW_CFG_ALU_ALGO);
  d.ew_operand_bytes = r.get(DPU_EW_CFG_EDATA_SIZE) == 2 ? 2 : 1;
  d.ew_offset = r.get_signed(DPU_EW_CVT_OFFSET_VALUE_OFFSET);
  d.ew_scale = r.get(DPU_EW_CVT_SCALE_VALUE_SCALE);
  d.ew_shift = r.get(DPU_EW_CVT_SCALE_VALUE_SHIFT);
  d.ew_ceiling = r.get_signed(DPU_EW_RELUX_CMP_VALUE_VALUE);
  d.even_address = r.get(reg::RDMA_SRC_BASE_ADDR);
  d.odd_address = r.get(reg::RDMA_EW_BASE_ADDR);
  d.even_notch = r.get(reg::RDMA_SURF_NOTCH);
  d.odd_notch = r.get(reg::RDMA_EW_SURF_NOTCH);
  d.out_offset = r.get_signed(DPU_OUT_CVT_OFFSET_OFFSET);
  d.out_scale = r.get_signed(DPU_OUT_CVT_SCALE_SCALE);
  d.out_shift = r.get(DPU_OUT_CVT_SHIFT_SHIFT) & 63;
  d.minus_exponent = r.get(DPU_OUT_CVT_SHIFT_MINUS_EXP);
  d.rounds_away = r.get(DPU_OUT_CVT_SHIFT_CVT_ROUND);
  return d;
}

ConvTask conv_task(const Registers& r) {
  ConvTask c;
  c.depthwise = r.get(CNA_CONV_CON1_CONV_MODE) == 3;
  c.precision = static_cast<Precision>(r.get(CNA_CONV_CON1_PROC_PRECISION));
  c.width = r.get(CNA_DATA_SIZE0_WIDTH);
  c.height = r.get(CNA_DATA_SIZE0_HEIGHT);
  c.channels = r.get(CNA_DATA_SIZE1_CHANNELS);
  c.out_width = r.get(CORE_DATAOUT_SIZE_0_WIDTH) + 1;
  c.out_height = r.get(CORE_DATAOUT_SIZE_0_HEIGHT) + 1;
  c.kernels = r.get(CNA_WEIGHT_SIZE2_KERNELS);
  c.kernel_width = r.get(CNA_WEIGHT_SIZE2_WIDTH);
  c.kernel_height = r.get(CNA_WEIGHT_SIZE2_HEIGHT);
  c.stride_x = r.get(CNA_CONV_CON3_STRIDE_X);
  c.stride_y = r.get(CNA_CONV_CON3_STRIDE_Y);
  c.dilation_x = r.get(CNA_CONV_CON3_DILATION_X) + 1;
  c.dilation_y = r.get(CNA_CONV_CON3_DILATION_Y) + 1;
  c.pad_left = r.get(CNA_PAD_CON0_LEFT);
  c.pad_top = r.get(CNA_PAD_CON0_TOP);
  c.pad_value = r.get(reg::CNA_PAD_CON1);
  c.features = r.get(reg::CNA_FEATURE_DATA_ADDR);
  c.weights = r.get(reg::CNA_DCOMP_ADDR0);
  c.line_bytes = int64_t{r.get(CNA_DMA_CON1_LINE_STRIDE)} * 4;
  c.plane_bytes = r.get_signed(CNA_DMA_CON2_SURF_STRIDE) * kAtomBytes + c.line_bytes * 4;
  c.truncate = r.get(CORE_CLIP_TRUNCATE_SHIFT);
  return c;
}

PoolTask pool_task(const Registers& r) {
  PoolTask p;
  p.method = static_cast<PoolTask::Method>(r.get(PPU_OPERATION_MODE_CFG_POOLING_METHOD));
  p.precision = static_cast<Precision>(r.get(PPU_DATA_FORMAT_PROC_PRECISION));
  p.width = r.get(PPU_DATA_CUBE_IN_WIDTH_WIDTH) + 1;
  p.height = r.get(PPU_DATA_CUBE_IN_HEIGHT_HEIGHT) + 1;
  p.channels = r.get(PPU_DATA_CUBE_IN_CHANNEL_CHANNEL) + 1;
  p.out_width = r.get(PPU_DATA_CUBE_OUT_WIDTH_WIDTH) + 1;
  p.out_height = r.get(PPU_DATA_CUBE_OUT_HEIGHT_HEIGHT) + 1;
  p.kernel_width = r.get(PPU_POOLING_KERNEL_CFG_WIDTH) + 1;
  p.kernel_height = r.get(PPU_POOLING_KERNEL_CFG_HEIGHT) + 1;
  p.stride_x = r.get(PPU_POOLING_KERNEL_CFG_STRIDE_X) + 1;
  p.stride_y = r.get(PPU_POOLING_KERNEL_CFG_STRIDE_Y) + 1;
  p.left = r.get(PPU_POOLING_PADDING_CFG_LEFT);
  p.top = r.get(PPU_POOLING_PADDING_CFG_TOP);
  p.right = r.get(PPU_POOLING_PADDING_CFG_RIGHT);
  p.bottom = r.get(PPU_POOLING_PADDING_CFG_BOTTOM);
  p.reciprocal_width = r.get(reg::PPU_RECIP_KERNEL_WIDTH);
  p.reciprocal_height = r.get(reg::PPU_RECIP_KERNEL_HEIGHT);
  p.pad_value = r.get(reg::PPU_PADDING_VALUE_1_CFG);
  p.source = r.get(reg::PPU_RDMA_SRC_BASE_ADDR);
  p.destination = r.get(reg::PPU_DST_BASE_ADDR);
  p.line_bytes = r.get(reg::PPU_RDMA_SRC_LINE_STRIDE);
  p.plane_bytes = r.get(reg::PPU_RDMA_SRC_SURF_STRIDE);
  p.out_plane_bytes = r.get(reg::PPU_DST_SURF_STRIDE);
  return p;
}

}  // namespace orknn::silicon
