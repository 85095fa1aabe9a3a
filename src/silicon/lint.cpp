#include "silicon/lint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <string_view>

#include "base/half.h"
#include "silicon/geometry.h"

namespace orknn::silicon {
namespace {
using namespace field;

// Collects what is wrong with one task.
class Findings {
 public:
  explicit Findings(const Registers& registers) : registers_(registers) {}

  // False when it does not hold, so that checks which rely on it can be left out.
  bool expect(bool holds, std::string_view problem) {
    if (!holds) problems_.emplace_back(problem);
    return holds;
  }
  bool expect_value(uint16_t offset, std::initializer_list<uint32_t> legal) {
    const uint32_t value = registers_.get(offset);
    for (const uint32_t v : legal)
      if (v == value) return true;
    return expect(false, describe(offset, value) + ", expected " + one_of(legal));
  }
  bool expect_value(Field f, int64_t legal) {
    const int64_t value = registers_.get(f);
    return value == legal || expect(false, name_of(f) + " is " + std::to_string(value) + ", expected " + std::to_string(legal));
  }
  void expect_aligned(uint16_t offset, uint32_t multiple) {
    const uint32_t value = registers_.get(offset);
    if (value % multiple != 0) expect(false, describe(offset, value) + ", not a multiple of " + std::to_string(multiple));
  }
  // Registers keep their values between tasks, so a task writes all that its blocks have, unless it is known to work without.
  void expect_written(std::initializer_list<Block> blocks, std::span<const uint16_t> unless = {}) {
    for (const RegisterInfo& r : all_registers())
      for (const Block b : blocks)
        if (r.block == b && !is_lut(r.offset) && !registers_.written(r.offset) &&
            std::ranges::find(unless, r.offset) == unless.end())
          problems_.push_back(std::string(r.name) + " is not written and would keep the value of an earlier task");
  }
  std::vector<std::string> take() { return std::move(problems_); }

 private:
  static bool is_lut(uint16_t offset) { return offset >= reg::DPU_LUT_ACCESS_CFG && offset <= reg::DPU_LUT_LO_SLOPE_SHIFT; }
  static std::string hex(uint32_t v) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%x", v);
    return text;
  }
  static std::string describe(uint16_t offset, uint32_t value) {
    return std::string(find_register(offset)->name) + " is " + hex(value);
  }
  static std::string one_of(std::initializer_list<uint32_t> legal) {
    std::string text;
    for (const uint32_t v : legal) text += (text.empty() ? "" : " or ") + hex(v);
    return text;
  }
  static std::string name_of(Field f) {
    const RegisterInfo* r = find_register(f.offset);
    for (const NamedField& n : r->fields)
      if (n.field.low == f.low) return std::string(r->name) + "." + std::string(n.name);
    return std::string(r->name);
  }
  const Registers& registers_;
  std::vector<std::string> problems_;
};

bool is_supported(Precision p) { return p == Precision::Int8 || p == Precision::Half; }

// Entries of the convolution buffer that one input row takes.
int64_t row_entries(const ConvTask& c) { return ceil_divide(c.width * c.channels * bytes_of(c.precision), kEntryBytes); }

void check_sizes(const Registers& r, const ConvTask& c, Findings& f) {
  f.expect(c.width > 0 && c.height > 0 && c.channels > 0, "the input has no elements");
  f.expect(c.channels % 16 == 0, "programmed input channels are not a multiple of 16");
  const int64_t real = r.get(CNA_DATA_SIZE1_REAL_CHANNELS) + 1;
  f.expect(c.channels == round_up(real, 16) || (c.depthwise && c.channels == round_up(real, depthwise_group(c.precision))),
           "programmed and real input channels do not belong together");
  f.expect_value(CNA_DATA_SIZE2_OUT_WIDTH, c.out_width);
  f.expect_value(CNA_DATA_SIZE3_OUT_PIXELS, c.out_width * c.out_height);
  f.expect_value(CNA_DATA_SIZE3_SURF_MODE, 0);
  f.expect_value(CNA_FC_DATA_SIZE0_WIDTH, c.width);
  f.expect_value(CNA_FC_DATA_SIZE0_HEIGHT, c.height);
  f.expect_value(CNA_FC_DATA_SIZE1_CHANNELS, c.channels);
  f.expect_value(CNA_DMA_CON1_LINE_STRIDE, 4 * c.width);
  f.expect(c.plane_bytes >= c.height * c.line_bytes || c.planes() == 1, "planes of the input overlap");
}

void check_window(const ConvTask& c, Findings& f) {
  if (!f.expect(c.kernel_width > 0 && c.kernel_height > 0 && c.stride_x > 0 && c.stride_y > 0, "kernel or stride is zero"))
    return;
  const int64_t reach_x = (c.kernel_width - 1) * c.dilation_x + 1, reach_y = (c.kernel_height - 1) * c.dilation_y + 1;
  f.expect(c.pad_left < reach_x && c.pad_top < reach_y, "padding is as large as the kernel");
  f.expect((c.out_width - 1) * c.stride_x - c.pad_left < c.width, "the last column of windows is beyond the input");
  f.expect((c.out_height - 1) * c.stride_y - c.pad_top < c.height, "the last row of windows is beyond the input");
}

void check_weights(const ConvTask& c, const DpuTask& d, Findings& f) {
  f.expect_value(CNA_WEIGHT_SIZE1_KERNEL_BYTES, c.kernel().kernel_bytes());
  f.expect_value(CNA_WEIGHT_SIZE0_BYTES, c.kernel().bytes());
  if (c.depthwise) {
    f.expect_value(CNA_WEIGHT_SIZE2_KERNELS, 1);
    f.expect(d.channels == round_up(d.real_channels, depthwise_group(c.precision)) && c.channels <= d.channels &&
                 d.real_channels <= c.channels,
             "depthwise channels of input and output do not belong together");
    return;
  }
  f.expect(c.kernels > 0 && c.kernels % 2 == 0, "the number of kernels is not even");
  f.expect(d.channels == round_up(d.real_channels, weight_groups(c.precision).kernels),
           "output channels are not whole groups of kernels");
  f.expect(c.kernels >= d.real_channels && c.kernels <= d.channels, "kernels and output channels do not belong together");
}

void check_buffer(const Registers& r, const ConvTask& c, Findings& f) {
  const int64_t data = r.get(CNA_CBUF_CON0_DATA_BANK), weights = r.get(CNA_CBUF_CON0_WEIGHT_BANK);
  f.expect(data > 0 && weights > 0 && data + weights <= kCbufBanks, "banks of data and weights overlap or are missing");
  f.expect_value(CNA_CBUF_CON0_FC_DATA_BANK, 0);
  f.expect_value(CNA_CBUF_CON0_DATA_REUSE, 0);
  f.expect_value(CNA_CBUF_CON1_DATA_ENTRIES, row_entries(c));
  const int64_t needed = ceil_divide(row_entries(c) * c.height, kBankEntries);
  f.expect(needed <= data, "the input exceeds its banks");
  f.expect(c.precision != Precision::Int8 || c.width > 1 || c.height == 1 || needed < data || needed > data,
           "rows of a single column leave no bank free");
}

void check_cna(const Registers& r, const ConvTask& c, const DpuTask& d, Findings& f) {
  f.expect(r.get(CNA_CONV_CON1_CONV_MODE) == 0 || c.depthwise, "unknown convolution mode");
  f.expect(is_supported(c.precision), "no recipe for this precision");
  f.expect_value(CNA_CONV_CON1_IN_PRECISION, r.get(CNA_CONV_CON1_PROC_PRECISION));
  for (const Field zero :
       {CNA_CONV_CON1_ARGB_IN, CNA_CONV_CON1_DECONV, CNA_CONV_CON1_GROUP_LINE_OFF, CNA_CONV_CON1_NONALIGN_DMA,
        CNA_CONV_CON2_CMD_FIFO_SRST, CNA_CONV_CON2_CSC_DO_EN, CNA_CONV_CON2_CSC_WO_EN, CNA_CONV_CON2_KERNEL_GROUP,
        CNA_CONV_CON3_DECONV_STRIDE_X, CNA_CONV_CON3_DECONV_STRIDE_Y, CNA_CONV_CON3_NN_MODE})
    f.expect_value(zero, 0);
  check_sizes(r, c, f);
  check_window(c, f);
  const int64_t reach = (c.kernel_height - 1) * c.dilation_y + 1;
  f.expect(r.get(CNA_CONV_CON2_FEATURE_GRAINS) >= std::min(reach + c.stride_y, c.height + 1),
           "fewer rows are fetched ahead than a window needs");
  check_weights(c, d, f);
  check_buffer(r, c, f);
  f.expect_value(reg::CNA_CVT_CON0, {0xb});
  for (const uint16_t lane : {reg::CNA_CVT_CON1, reg::CNA_CVT_CON2, reg::CNA_CVT_CON3, reg::CNA_CVT_CON4})
    f.expect_value(lane, {0x10000});
  f.expect_value(reg::CNA_DMA_CON0, {0xf000f});
  const auto byte = static_cast<uint8_t>(c.pad_value);
  const uint32_t extended = static_cast<uint32_t>(static_cast<int8_t>(byte));
  const uint32_t two_lanes = (extended & 0xffff0000u) | (byte * 0x0101u);
  f.expect(c.pad_value == extended || c.pad_value == two_lanes || c.pad_value == byte * 0x01010101u,
           "the padding is not a byte in one or in all lanes");
  f.expect_aligned(reg::CNA_FEATURE_DATA_ADDR, kAtomBytes);
  f.expect_aligned(reg::CNA_DCOMP_ADDR0, kAtomBytes);
}

void check_core(const Registers& r, const ConvTask& c, const DpuTask& d, Findings& f) {
  f.expect_value(CORE_MISC_CFG_QD_EN, d.out == Precision::Int32 ? 0 : 1);
  f.expect_value(CORE_MISC_CFG_DW_EN, c.depthwise);
  f.expect_value(CORE_MISC_CFG_PROC_PRECISION, r.get(CNA_CONV_CON1_PROC_PRECISION));
  f.expect_value(CORE_MISC_CFG_SOFT_GATING, 0);
  f.expect_value(CORE_CLIP_TRUNCATE_ROUND_TYPE, 0);
  f.expect_value(CORE_DATAOUT_SIZE_0_WIDTH, d.width - 1);
  f.expect_value(CORE_DATAOUT_SIZE_0_HEIGHT, d.height - 1);
  f.expect_value(CORE_DATAOUT_SIZE_1_CHANNEL, d.channels - 1);
}

// BS or BN: what is off has no operands, what is on gets them from where they are.
void check_stage(const Stage& s, uint32_t config, uint32_t mul_config, const char* name, Findings& f) {
  const auto expect = [&](bool holds, const char* problem) {
    if (!holds) f.expect(false, std::string(name) + problem);
  };
  const uint32_t unused = s.bypass ? config & ~0x53u : 0;
  expect(unused == 0, " is bypassed and configured at the same time");
  expect(!s.bypass || (s.alu_bits == 0 && mul_config == 0 && s.ceiling_bits == 0), " is bypassed and has operands");
  expect(!s.bypass || (config & 0x52) == 0x52, " is bypassed, its parts are not");
  expect(!s.alu || s.algorithm == 2, " does not add");
  expect(s.alu || (!s.alu_from_memory && s.alu_bits == 0), " has an addend and does not add");
  expect(!s.alu_from_memory || s.alu_bits == 0, " has two addends");
  expect(s.alu || s.algorithm == 0 || s.bypass, " has an algorithm and does not add");
  expect(s.mul || mul_config == 0, " has a factor and does not multiply");
  expect(!s.mul_from_memory || s.mul_operand == 0, " has two factors");
  expect((mul_config & field::DPU_BS_MUL_CFG_TRUNCATE_SRC.mask()) == 0, " takes its shift from memory");
  expect(s.prelu ? s.mul : s.shift == s.negative_shift, " shifts products of either sign by other numbers");
  expect(s.ceiling_on || s.ceiling_bits == 0, " has a ceiling that is off");
  expect(!s.ceiling_on || s.ceiling >= 0, " has a ceiling below zero");
  expect(s.relu || (config & field::DPU_BS_CFG_RELUX_EN.mask()) == 0, " has a ceiling without ReLU");
}

struct WriterForm {
  uint32_t ow_config;
  int64_t surfaces;  // SURFACE_ADD in units of the surface stride
};
WriterForm writer_form(const DpuTask& d) {
  if (d.flying) return {0x2, 1};
  if (d.out == Precision::Int32) return {0x7fe, 8};
  if (d.out == Precision::Float) return {0x36e, 4};
  if (d.depthwise) return {0x36c, 4};
  return {d.out == Precision::Half ? 0x126u : 0x124u, 2};
}

void check_formats(const Registers& r, const DpuTask& d, Findings& f) {
  const uint32_t plain =
      r.get(reg::DPU_DATA_FORMAT) & ~(DPU_DATA_FORMAT_BS_NEGATIVE_SHIFT.mask() | DPU_DATA_FORMAT_BN_NEGATIVE_SHIFT.mask());
  f.expect(plain == 0 || plain == 0x80000000u || plain == 0x48000002u || plain == 0xa8000002u,
           "no recipe for these formats of the DPU");
  f.expect(!(d.flying && plain != 0x48000002u), "no recipe for these formats of a DPU that reads memory");
}

void check_writer(const Registers& r, const DpuTask& d, Findings& f) {
  f.expect_value(reg::DPU_FEATURE_MODE_CFG, {d.flying ? 0x1e5u : d.depthwise ? 0x1fcu : 0x1e4u});
  f.expect_value(reg::DPU_DATA_CUBE_NOTCH_ADDR, {0});
  f.expect_value(DPU_WDMA_SIZE_0_CHANNEL, d.channels - 1);
  f.expect_value(DPU_WDMA_SIZE_0_SIZE_C, 0);
  f.expect_value(DPU_WDMA_SIZE_0_TP_PRECISION, 0);
  f.expect_value(DPU_WDMA_SIZE_1_WIDTH, d.width - 1);
  f.expect_value(DPU_WDMA_SIZE_1_HEIGHT, d.height - 1);
  f.expect(d.real_channels <= d.channels, "more real than programmed output channels");
  const WriterForm form = writer_form(d);
  f.expect((r.get(reg::DPU_BS_OW_CFG) & ~1u) == form.ow_config, "the writer's sizes do not belong to the output");
  f.expect(r.get(reg::DPU_SURFACE_ADD) == form.surfaces * d.surface_stride, "SURFACE_ADD does not belong to the surface stride");
  f.expect(d.surface_stride >= d.pixels() * kAtomBytes, "planes of the output overlap");
  f.expect_aligned(reg::DPU_DST_BASE_ADDR, kAtomBytes);
  f.expect_aligned(reg::DPU_DST_SURF_STRIDE, kAtomBytes);
}

void check_bias(const DpuTask& d, Findings& f) {
  f.expect(d.bias_use == 0 || d.bias_use == 1 || d.bias_use == 7, "no recipe for this use of the bias reader");
  f.expect(d.bs.alu_from_memory == ((d.bias_use & 1) != 0), "the BS stage and the reader disagree about the bias");
  f.expect((d.bs.mul && d.bs.mul_from_memory) == ((d.bias_use & 4) != 0),
           "the BS stage and the reader disagree about the multipliers");
  f.expect(!d.weight_zero_from_memory || d.bias_use == 7, "weight zero points are to be read and are not there");
  f.expect(d.bias_use != 0 || d.bias_address == 0, "a bias address that nothing reads");
  f.expect(d.bias_address % kAtomBytes == 0, "the bias address is not aligned");
  f.expect(!d.bn.alu_from_memory && !d.bn.mul_from_memory, "the BN stage has no proven reader");
}

// The words known to work, ReLU after the operation aside.
void check_element_wise(const Registers& r, const DpuTask& d, Findings& f) {
  const uint32_t config = r.get(reg::DPU_EW_CFG), relu_bits = DPU_EW_CFG_RELU_BYPASS.mask() | DPU_EW_CFG_RELUX_EN.mask();
  const uint32_t plain = (config & ~relu_bits) | DPU_EW_CFG_RELU_BYPASS.mask();
  f.expect(d.ew_relu || !(config & DPU_EW_CFG_RELUX_EN.mask()), "EW has a ceiling without ReLU");
  f.expect(d.ew_ceiling_on ? d.ew_ceiling >= 0 : d.ew_ceiling == 0, "EW has no legal ceiling");
  if (!d.ew_operation) {
    f.expect(config == 0x383 || (d.lookup && (config == 0x300 || config == 0x302)), "no recipe for this EW configuration");
    f.expect_value(reg::DPU_EW_CVT_OFFSET_VALUE, {0});
    f.expect_value(reg::DPU_EW_CVT_SCALE_VALUE, {1});
    f.expect_value(reg::RDMA_ERDMA_CFG, {1});
    for (const uint16_t zero : {reg::RDMA_EW_BASE_ADDR, reg::RDMA_EW_SURF_STRIDE, reg::RDMA_SURF_NOTCH, reg::RDMA_EW_SURF_NOTCH})
      f.expect_value(zero, {0});
    if (!d.flying) f.expect_value(reg::RDMA_SRC_BASE_ADDR, {0});
    return;
  }
  const bool half = d.process == Precision::Half;
  if (half)
    f.expect(plain == 0x108202c0u || plain == 0x108002c0u || plain == 0x108102c0u ||
                 plain == (0x108003c4u | DPU_EW_CFG_RELU_BYPASS.mask()),
             "no recipe for this EW operation");
  else
    f.expect(plain == 0x904202c0u, "no recipe for this EW operation");
  f.expect_value(reg::RDMA_ERDMA_CFG, {half ? 0x40000008u : 0x40000004u});
  f.expect_value(DPU_EW_CVT_SCALE_VALUE_TRUNCATE, 0);
  f.expect(!half || (d.ew_offset == 0 && r.get(reg::DPU_EW_CVT_SCALE_VALUE) == 1), "float operands are not converted");
  f.expect_value(reg::RDMA_EW_SURF_NOTCH, {r.get(reg::RDMA_SURF_NOTCH)});
  f.expect_aligned(reg::RDMA_SRC_BASE_ADDR, kAtomBytes);
  f.expect_aligned(reg::RDMA_EW_BASE_ADDR, kAtomBytes);
  f.expect_value(reg::RDMA_EW_SURF_STRIDE, {d.odd_address - d.even_address});
  const int64_t stride = r.get(reg::RDMA_EW_SURF_STRIDE);
  f.expect(stride >= 12 * kAtomBytes, "operands of fewer than 12 pixels are read wrongly");
  f.expect(stride >= d.pixels() * kAtomBytes && d.even_notch == 2 * stride - d.pixels() * kAtomBytes,
           "the notch does not belong to the operand's planes");
}

void check_converter(const Registers& r, const DpuTask& d, Findings& f) {
  f.expect(d.out_shift == r.get(DPU_OUT_CVT_SHIFT_SHIFT), "the output shift has more than 6 bits");
  if (d.out == Precision::Int8) {
    f.expect(d.out_scale > 0 && r.get(DPU_OUT_CVT_SCALE_FP32TOFP16_EN) == 0, "the output scale is no positive number of 15 bits");
    f.expect(d.minus_exponent == 0 && r.get(DPU_OUT_CVT_SHIFT_CVT_TYPE) == 0, "no recipe for this output conversion");
    f.expect(d.out_offset >= -128 && d.out_offset <= 127, "the output zero point is no int8");
    return;
  }
  f.expect_value(reg::DPU_OUT_CVT_SCALE, {d.out == Precision::Half ? 0x10001u : 1u});
  if (d.lookup) return;
  f.expect_value(reg::DPU_OUT_CVT_SHIFT, {0});
  f.expect_value(reg::DPU_OUT_CVT_OFFSET, {0});
}

void check_reader(const DpuTask& d, Findings& f) {
  f.expect_value(RDMA_DATA_CUBE_WIDTH_WIDTH, d.width - 1);
  f.expect_value(RDMA_DATA_CUBE_HEIGHT_HEIGHT, d.height - 1);
  f.expect_value(RDMA_DATA_CUBE_HEIGHT_EW_LINE_NOTCH, 0);
  f.expect_value(RDMA_DATA_CUBE_CHANNEL_CHANNEL, d.channels - 1);
  f.expect_value(reg::RDMA_SRC_DMA_CFG, {0});
  f.expect_value(reg::RDMA_WEIGHT, {0x01010101});
  uint32_t mode = 0x7810;
  if (d.flying)
    mode = 0x17849;
  else if (d.ew_operation)
    mode = d.process == Precision::Half ? 0x17d40 : 0x7d00;
  else
    mode |= (d.depthwise ? 6u : 0u) | (d.out == Precision::Half ? 8u : 0u);
  f.expect_value(reg::RDMA_FEATURE_MODE_CFG, {mode});
}

void check_dpu(const Registers& r, const DpuTask& d, Findings& f) {
  f.expect_value(reg::DPU_S_POINTER, {0xe});
  f.expect_value(reg::RDMA_S_POINTER, {0xe});
  check_formats(r, d, f);
  check_writer(r, d, f);
  check_stage(d.bs, r.get(reg::DPU_BS_CFG), r.get(reg::DPU_BS_MUL_CFG), "BS", f);
  if (!d.lookup) check_stage(d.bn, r.get(reg::DPU_BN_CFG), r.get(reg::DPU_BN_MUL_CFG), "BN", f);
  check_bias(d, f);
  check_element_wise(r, d, f);
  check_converter(r, d, f);
  check_reader(d, f);
}

std::vector<std::string> lint_convolution(const Registers& r) {
  Findings f(r);
  const ConvTask c = conv_task(r);
  const DpuTask d = dpu_task(r);
  f.expect_written({Block::Cna, Block::Core, Block::Dpu, Block::DpuRdma});
  check_cna(r, c, d, f);
  check_core(r, c, d, f);
  f.expect(!d.depthwise || bytes_of(d.out) < 4, "no recipe for results of 32 bits of a depthwise convolution");
  f.expect(!d.flying && d.depthwise == c.depthwise, "CNA and DPU disagree about the kind of convolution");
  f.expect(d.process == (c.precision == Precision::Half ? Precision::Half : Precision::Int8),
           "CNA and DPU disagree about the precision");
  f.expect(!d.ew_operation || !d.depthwise, "no recipe for an operand after a depthwise convolution");
  f.expect(!d.lookup, "no recipe for tables after a convolution");
  check_dpu(r, d, f);
  return f.take();
}

// A function by tables: the index is the number times a factor, the result an entry times a power of two.
void check_lookup(const Registers& r, const DpuTask& d, Findings& f) {
  f.expect_value(reg::DPU_BN_CFG, {0x20040});
  f.expect_value(reg::DPU_BN_RELUX_CMP_VALUE, {0});
  f.expect(std::isfinite(std::bit_cast<float>(d.bn.alu_bits)), "the index has no legal addend");
  const float factor = half_to_float(static_cast<uint16_t>(d.bn.mul_operand));
  f.expect(std::isfinite(factor) && factor > 0 && (r.get(reg::DPU_BN_MUL_CFG) & 0xffff) == 0, "the index has no legal factor");
  f.expect_value(reg::DPU_LUT_CFG, {0x68});
  f.expect_value(reg::DPU_LUT_INFO, {0x50500});
  f.expect_value(reg::DPU_LUT_LE_START, {0xffffc000});
  f.expect_value(reg::DPU_LUT_LE_END, {0});
  f.expect_value(reg::DPU_LUT_LO_START, {0});
  f.expect_value(reg::DPU_LUT_LO_END, {0x4000});
  for (const Field zero : {DPU_LUT_LE_SLOPE_SCALE_OVER, DPU_LUT_LE_SLOPE_SHIFT_OVER}) f.expect_value(zero, 0);
  for (const uint16_t zero : {reg::DPU_LUT_LO_SLOPE_SCALE, reg::DPU_LUT_LO_SLOPE_SHIFT}) f.expect_value(zero, {0});
  f.expect((r.get(reg::DPU_OUT_CVT_SHIFT) & ~DPU_OUT_CVT_SHIFT_MINUS_EXP.mask()) == DPU_OUT_CVT_SHIFT_CVT_TYPE.mask() &&
               d.minus_exponent <= 15,
           "no recipe for this conversion of entries");
  f.expect(d.out_offset >= INT16_MIN && d.out_offset <= INT16_MAX, "the offset is larger than entries");
  f.expect(d.height == 1 && d.channels == 8 && d.width <= 4096, "tables have a recipe for rows of at most 4096 atoms");
}

// What the known program of a DPU without the array leaves at its reset value.
constexpr uint16_t kUnwrittenWithTables[]{reg::DPU_OFFSET_PEND,        reg::DPU_DATA_CUBE_NOTCH_ADDR,
                                          reg::DPU_BS_ALU_CFG,         reg::DPU_BS_MUL_CFG,
                                          reg::DPU_BS_RELUX_CMP_VALUE, reg::DPU_BS_OW_OP,
                                          reg::DPU_BN_RELUX_CMP_VALUE, reg::DPU_EW_CVT_OFFSET_VALUE,
                                          reg::DPU_EW_RELUX_CMP_VALUE, reg::DPU_EW_OP_VALUE_0,
                                          reg::DPU_EW_OP_VALUE_1,      reg::DPU_EW_OP_VALUE_2,
                                          reg::DPU_EW_OP_VALUE_3,      reg::DPU_EW_OP_VALUE_4,
                                          reg::DPU_EW_OP_VALUE_5,      reg::DPU_EW_OP_VALUE_6,
                                          reg::DPU_EW_OP_VALUE_7,      reg::RDMA_BRDMA_CFG,
                                          reg::RDMA_BS_BASE_ADDR,      reg::RDMA_NRDMA_CFG,
                                          reg::RDMA_BN_BASE_ADDR,      reg::RDMA_EW_BASE_ADDR,
                                          reg::RDMA_EW_SURF_STRIDE,    reg::RDMA_SRC_DMA_CFG,
                                          reg::RDMA_SURF_NOTCH,        reg::RDMA_PAD_CFG,
                                          reg::RDMA_EW_SURF_NOTCH};

std::vector<std::string> lint_dpu(const DecodedTask& task) {
  Findings f(task.registers);
  const DpuTask d = dpu_task(task.registers);
  f.expect_written({Block::Dpu, Block::DpuRdma}, d.lookup ? std::span(kUnwrittenWithTables) : std::span<const uint16_t>());
  if (d.lookup) check_lookup(task.registers, d, f);
  f.expect(d.flying, "the DPU waits for an array that is not enabled");
  f.expect(!d.lookup || (task.lut_le.size() == kLutEntries && task.lut_lo.size() == kLutEntries), "the tables are not loaded");
  check_dpu(task.registers, d, f);
  return f.take();
}

// What the reciprocal of a window's extent must be.
uint32_t reciprocal(const PoolTask& p, int64_t extent) {
  if (p.method != PoolTask::Method::Average) return 0;
  return p.precision == Precision::Half ? float_to_half(65536.0f / static_cast<float>(extent))
                                        : static_cast<uint32_t>(0x10000 / extent);
}

void check_pool_window(const PoolTask& p, Findings& f) {
  f.expect((p.out_width - 1) * p.stride_x + p.kernel_width <= p.width + p.left + p.right &&
               (p.out_height - 1) * p.stride_y + p.kernel_height <= p.height + p.top + p.bottom,
           "a window reaches beyond the padded input");
  f.expect((p.out_width - 1) * p.stride_x + p.kernel_width >= p.width + p.left &&
               (p.out_height - 1) * p.stride_y + p.kernel_height >= p.height + p.top,
           "the input has rows or columns that no window uses");
  f.expect((p.out_width - 1) * p.stride_x + p.kernel_width == p.width + p.left + p.right || p.right == 0,
           "padding at the right that no window uses");
  f.expect((p.out_height - 1) * p.stride_y + p.kernel_height == p.height + p.top + p.bottom || p.bottom == 0,
           "padding at the bottom that no window uses");
  f.expect(p.left < p.kernel_width && p.right < p.kernel_width && p.top < p.kernel_height && p.bottom < p.kernel_height,
           "padding is as large as the window");
}

std::vector<std::string> lint_pooling(const Registers& r) {
  Findings f(r);
  const PoolTask p = pool_task(r);
  f.expect_written({Block::Ppu, Block::PpuRdma});
  f.expect_value(reg::PPU_S_POINTER, {0xe});
  f.expect_value(reg::PPU_RDMA_S_POINTER, {0xe});
  f.expect(r.get(PPU_OPERATION_MODE_CFG_POOLING_METHOD) <= 2, "unknown pooling method");
  f.expect((r.get(reg::PPU_OPERATION_MODE_CFG) & ~3u) == 0x10, "no recipe for this pooling mode");
  f.expect(is_supported(p.precision), "no recipe for this precision");
  check_pool_window(p, f);
  f.expect_value(reg::PPU_RECIP_KERNEL_WIDTH, {reciprocal(p, p.kernel_width)});
  f.expect_value(reg::PPU_RECIP_KERNEL_HEIGHT, {reciprocal(p, p.kernel_height)});
  f.expect_value(reg::PPU_PADDING_VALUE_2_CFG, {0});
  f.expect(p.precision == Precision::Half ? p.pad_value <= 0xffff
                                          : p.pad_value <= 0x7f || (p.pad_value >= 0x7ff80 && p.pad_value <= 0x7ffff),
           "the padding is no value of the input");
  f.expect(p.method != PoolTask::Method::Max || p.precision == Precision::Half || p.pad_value == 0x7ff80,
           "the padding of a maximum is its least value");
  f.expect(p.left + p.right + p.top + p.bottom > 0 || p.pad_value == 0 || p.method == PoolTask::Method::Max,
           "a padding value without padding");
  f.expect_value(PPU_DATA_CUBE_OUT_CHANNEL_CHANNEL, p.channels - 1);
  f.expect_value(PPU_RDMA_CUBE_IN_WIDTH_WIDTH, p.width - 1);
  f.expect_value(PPU_RDMA_CUBE_IN_HEIGHT_HEIGHT, p.height - 1);
  f.expect_value(PPU_RDMA_CUBE_IN_CHANNEL_CHANNEL, p.channels - 1);
  f.expect(p.line_bytes >= p.width * kAtomBytes && p.plane_bytes >= (p.height - 1) * p.line_bytes + p.width * kAtomBytes &&
               p.plane_bytes % p.line_bytes == 0,
           "lines or planes of the input overlap");
  f.expect(p.out_plane_bytes == p.out_width * p.out_height * kAtomBytes, "planes of the output are not dense");
  f.expect((r.get(reg::PPU_DATA_FORMAT) & ~0xfu) == p.out_plane_bytes, "DATA_FORMAT does not state the output's plane");
  f.expect_value(PPU_DATA_FORMAT_DPU_FLYIN, 0);
  f.expect_value(reg::PPU_MISC_CTRL, {3});
  f.expect_value(PPU_RDMA_DATA_FORMAT_STORAGE_WIDTH, p.precision == Precision::Half ? 2 : 1);
  for (const uint16_t address : {reg::PPU_DST_BASE_ADDR, reg::PPU_DST_SURF_STRIDE, reg::PPU_RDMA_SRC_BASE_ADDR})
    f.expect_aligned(address, kAtomBytes);
  return f.take();
}

class Accesses {
 public:
  explicit Accesses(const DeviceMemory& memory) : memory_(memory) {}
  void add(uint64_t address, int64_t bytes, const char* what) {
    if (const auto at = memory_.at(address, static_cast<uint64_t>(bytes), what); !at)
      problems_.push_back(at.status().to_string());
  }
  void add_written(uint64_t address, int64_t bytes, const char* what) {
    if (const auto at = memory_.writable_at(address, static_cast<uint64_t>(bytes), what); !at)
      problems_.push_back(at.status().to_string());
  }
  std::vector<std::string> take() { return std::move(problems_); }

 private:
  const DeviceMemory& memory_;
  std::vector<std::string> problems_;
};

// The readers fetch as many channels as the writer has, real ones or not.
void add_dpu(const DpuTask& d, Accesses& a) {
  const int64_t planes = ceil_divide(d.channels, lanes_of(d.out));
  a.add_written(d.destination, (planes - 1) * d.surface_stride + d.pixels() * kAtomBytes, "the output");
  if (d.bias_use == 1) a.add(d.bias_address, d.channels * 4, "the bias");
  if (d.bias_use == 7) a.add(d.bias_address, ceil_divide(d.channels, kBiasGroup) * kBiasGroupBytes, "the bias");
  if (!d.ew_operation) return;
  const int64_t plane = d.pixels() * kAtomBytes, operands = ceil_divide(d.channels, d.operand_lanes());
  a.add(d.even_address, (operands - 1) / 2 * (plane + d.even_notch) + plane, "the second operand");
  if (operands > 1) a.add(d.odd_address, (operands - 2) / 2 * (plane + d.odd_notch) + plane, "the second operand");
}
}  // namespace

std::vector<std::string> lint(const DecodedTask& task) {
  switch (task.enable) {
    case kEnableConvolution: return lint_convolution(task.registers);
    case kEnableDpu: return lint_dpu(task);
    case kEnablePooling: return lint_pooling(task.registers);
    default: return {"the enable word starts no set of blocks that works together"};
  }
}

std::vector<std::string> lint(const DecodedTask& task, const DeviceMemory& memory) {
  Accesses a(memory);
  if (task.enable == kEnablePooling) {
    const PoolTask p = pool_task(task.registers);
    a.add(p.source, p.source_bytes(), "the input");
    a.add_written(p.destination, p.destination_bytes(), "the output");
    return a.take();
  }
  const DpuTask d = dpu_task(task.registers);
  if (task.enable == kEnableConvolution) {
    const ConvTask c = conv_task(task.registers);
    a.add(c.features, c.feature_bytes(), "the input");
    a.add(c.weights, c.kernel().bytes(), "the weights");
  } else {
    a.add(d.even_address, ceil_divide(d.channels, lanes_of(d.in)) * d.pixels() * kAtomBytes, "the input");
  }
  add_dpu(d, a);
  return a.take();
}

std::vector<std::string> lint_sequence(const DecodedTask* before, const DecodedTask& task) {
  if (task.enable != kEnableConvolution || !task.registers.get(CNA_CBUF_CON0_WEIGHT_REUSE)) return {};
  const char* problem = "a task reuses weights that no task before it has loaded into the same banks";
  if (!before || before->enable != kEnableConvolution) return {problem};
  const Registers &a = before->registers, &b = task.registers;
  for (const uint16_t same : {reg::CNA_DCOMP_ADDR0, reg::CNA_WEIGHT_SIZE0, reg::CNA_WEIGHT_SIZE1, reg::CNA_WEIGHT_SIZE2})
    if (a.get(same) != b.get(same)) return {problem};
  const bool same_banks = a.get(CNA_CBUF_CON0_DATA_BANK) == b.get(CNA_CBUF_CON0_DATA_BANK) &&
                          a.get(CNA_CBUF_CON0_WEIGHT_BANK) == b.get(CNA_CBUF_CON0_WEIGHT_BANK);
  if (!same_banks) return {problem};
  const int64_t bytes = b.get(reg::CNA_WEIGHT_SIZE0);
  if (bytes > int64_t{b.get(CNA_CBUF_CON0_WEIGHT_BANK)} * kBankBytes)
    return {"weights are reused that do not fit into their banks"};
  return {};
}

}  // namespace orknn::silicon
