#include "silicon/recipe.h"

#include <bit>
#include <cstring>

#include "base/half.h"
#include "silicon/lint.h"

namespace orknn::silicon {
namespace {
using namespace field;

bool is_half(const ConvLayer& layer) { return layer.in == Precision::Half; }

int64_t row_entries(const ConvLayer& l) { return ceil_divide(l.width * l.stored_channels() * bytes_of(l.in), kEntryBytes); }

// Entries of a row for counting banks: where three atoms are left over in a pixel, an entry for each pixel's.
int64_t counted_entries(const ConvLayer& l) {
  const int64_t atoms = l.stored_channels() * bytes_of(l.in) / kAtomBytes, rest = atoms % 4;
  return atoms / 4 * l.width + (rest == 3 ? l.width : ceil_divide(rest * l.width, 4));
}

// A product of matrices, whose rows are the pixels of one column. Bands of other numbers than multiples of four come out wrong on
// boards.
bool is_product(const ConvLayer& l) { return l.width == 1 && l.height > 1 && l.window.reach_y() == 1 && l.window.stride_y == 1; }
constexpr int64_t kProductRows = 4;

struct BankSplit {
  int64_t data = 0, weights = 0, rows = 0;  // rows: of the input that fit
  bool weights_stay = false;
};

Result<BankSplit> split_banks(const ConvLayer& l) {
  const int64_t per_row = std::max(counted_entries(l), row_entries(l)),
                weight_banks = ceil_divide(l.kernel().bytes(), kBankBytes) + 1;
  const bool stays = weight_banks + 1 < kCbufBanks;
  // With a single column the last rows of a nearly full bank come out wrong: one bank stays free.
  const int64_t free = l.width == 1 ? 1 : 0;
  const auto banks_for = [&](int64_t rows) { return ceil_divide(per_row * rows, kBankEntries) + free; };
  const auto rows_in = [&](int64_t banks) { return std::min((banks - free) * kBankEntries / per_row, l.height); };
  const int64_t least = std::min(is_product(l) ? kProductRows : l.window.reach_y(), l.height);
  BankSplit split;
  split.weights_stay = stays;
  split.data = std::min(banks_for(l.height), stays ? kCbufBanks - weight_banks : 7);
  split.weights = kCbufBanks - split.data;
  split.rows = rows_in(split.data);
  if (split.rows >= least) return split;
  // The least rows of a band are more: as many banks as they take, weights pass by.
  split.data = banks_for(least);
  split.weights = kCbufBanks - split.data;
  split.weights_stay = false;
  split.rows = rows_in(split.data);
  if (split.weights < 1)
    return unsupported("the rows of one window exceed the convolution buffer")
        .expected("at most " + std::to_string((kCbufBanks - 1 - free) * kBankEntries) + " entries")
        .found(std::to_string(per_row * least));
  return split;
}

struct Band {
  int64_t first_out = 0, out_rows = 0, first_in = 0, in_rows = 0, top = 0;
};

constexpr int64_t kMaxRows = 1022;  // of an input band, as measured

std::vector<Band> make_bands(const ConvLayer& l, int64_t rows) {
  const Window2d& w = l.window;
  if (rows >= l.height && l.height <= kMaxRows) return {{0, l.out_height, 0, l.height, w.top}};
  int64_t most = std::min(rows, kMaxRows);
  if (is_product(l)) most -= most % kProductRows;
  std::vector<Band> bands;
  for (int64_t first = 0; first < l.out_height;) {
    Band b;
    b.first_out = first;
    b.first_in = std::max<int64_t>(0, first * w.stride_y - w.top);
    b.top = std::max<int64_t>(0, w.top - first * w.stride_y);
    const auto end_of = [&](int64_t n) { return std::min(l.height, (first + n - 1) * w.stride_y - w.top + w.reach_y()); };
    b.out_rows = 1;
    while (first + b.out_rows < l.out_height && end_of(b.out_rows + 1) - b.first_in <= most) ++b.out_rows;
    b.in_rows = end_of(b.out_rows) - b.first_in;
    bands.push_back(b);
    first += b.out_rows;
  }
  return bands;
}

void set_cna(Registers& r, const ConvLayer& l, const Band& b, const BankSplit& banks, bool first_band) {
  const int64_t stored = l.stored_channels(), precision = static_cast<int64_t>(l.in);
  const KernelShape kernel = l.kernel();
  const Window2d& w = l.window;
  r.set(CNA_CONV_CON1_CONV_MODE, l.depthwise ? 3 : 0);
  r.set(CNA_CONV_CON1_IN_PRECISION, precision);
  r.set(CNA_CONV_CON1_PROC_PRECISION, precision);
  r.set(CNA_CONV_CON2_FEATURE_GRAINS, std::max<int64_t>(50, w.reach_y()) + w.stride_y + 1);
  r.set(CNA_CONV_CON3_STRIDE_X, w.stride_x);
  r.set(CNA_CONV_CON3_STRIDE_Y, w.stride_y);
  r.set(CNA_CONV_CON3_DILATION_X, w.dilation_x - 1);
  r.set(CNA_CONV_CON3_DILATION_Y, w.dilation_y - 1);
  r.set(CNA_DATA_SIZE0_WIDTH, l.width);
  r.set(CNA_DATA_SIZE0_HEIGHT, b.in_rows);
  r.set(CNA_DATA_SIZE1_REAL_CHANNELS, l.channels - 1);
  r.set(CNA_DATA_SIZE1_CHANNELS, stored);
  r.set(CNA_DATA_SIZE2_OUT_WIDTH, l.out_width);
  r.set(CNA_DATA_SIZE3_OUT_PIXELS, l.out_width * b.out_rows);
  r.set(CNA_WEIGHT_SIZE0_BYTES, kernel.bytes());
  r.set(CNA_WEIGHT_SIZE1_KERNEL_BYTES, kernel.kernel_bytes());
  r.set(CNA_WEIGHT_SIZE2_WIDTH, w.width);
  r.set(CNA_WEIGHT_SIZE2_HEIGHT, w.height);
  r.set(CNA_WEIGHT_SIZE2_KERNELS, l.depthwise ? 1 : kernel.kernels);
  r.set(CNA_CBUF_CON0_DATA_BANK, banks.data);
  r.set(CNA_CBUF_CON0_WEIGHT_BANK, banks.weights);
  r.set(CNA_CBUF_CON0_WEIGHT_REUSE, !first_band && banks.weights_stay);
  r.set(CNA_CBUF_CON1_DATA_ENTRIES, row_entries(l));
  r.set(reg::CNA_CVT_CON0, 0xb);
  for (const uint16_t lane : {reg::CNA_CVT_CON1, reg::CNA_CVT_CON2, reg::CNA_CVT_CON3, reg::CNA_CVT_CON4}) r.set(lane, 0x10000);
  r.set(CNA_PAD_CON0_LEFT, w.left);
  r.set(CNA_PAD_CON0_TOP, b.top);
  r.set(reg::CNA_DMA_CON0, 0xf000f);
  r.set(CNA_DMA_CON1_LINE_STRIDE, 4 * l.width);
  r.set(CNA_DMA_CON2_SURF_STRIDE, l.width * (l.height - 4));
  r.set(CNA_FC_DATA_SIZE0_WIDTH, l.width);
  r.set(CNA_FC_DATA_SIZE0_HEIGHT, b.in_rows);
  r.set(CNA_FC_DATA_SIZE1_CHANNELS, stored);
  r.set(reg::CNA_PAD_CON1, static_cast<uint8_t>(l.in_zero_point) * 0x01010101u);
}

void set_core(Registers& r, const ConvLayer& l, const Band& b) {
  r.set(CORE_MISC_CFG_QD_EN, l.out != Precision::Int32);
  r.set(CORE_MISC_CFG_DW_EN, l.depthwise);
  r.set(CORE_MISC_CFG_PROC_PRECISION, static_cast<int64_t>(l.in));
  r.set(CORE_DATAOUT_SIZE_0_WIDTH, l.out_width - 1);
  r.set(CORE_DATAOUT_SIZE_0_HEIGHT, b.out_rows - 1);
  r.set(CORE_DATAOUT_SIZE_1_CHANNEL, l.written_channels() - 1);
}

constexpr uint32_t kStageOff = 0x53, kBiasOnly = 0x20150, kBiasAndMultiplier = 0x20140;

void set_stages(Registers& r, const ConvLayer& l) {
  const bool per_channel = !l.channel_multipliers.empty();
  r.set(reg::DPU_BS_CFG, !l.has_bias ? kStageOff : per_channel ? kBiasAndMultiplier : kBiasOnly);
  if (per_channel) {
    r.set(DPU_BS_MUL_CFG_MUL_SRC, 1);
    r.set(DPU_BS_MUL_CFG_SHIFT, l.channel_shift);
    r.set(DPU_DATA_FORMAT_BS_NEGATIVE_SHIFT, l.channel_shift);
  }
  r.set(reg::DPU_BN_CFG, kStageOff);
  const bool relu_here = l.relu && (!l.element_wise || l.relu_first);
  if (relu_here || l.slope) {
    r.set(DPU_BN_CFG_BYPASS, 0);
    r.set(DPU_BN_CFG_RELU_BYPASS, !relu_here);
  }
  if (relu_here && l.ceiling) {
    r.set(DPU_BN_CFG_RELUX_EN, 1);
    r.set(DPU_BN_RELUX_CMP_VALUE_VALUE, *l.ceiling);
  }
  if (l.slope) {
    r.set(DPU_BN_CFG_MUL_BYPASS, 0);
    r.set(DPU_BN_CFG_MUL_PRELU, 1);
    r.set(DPU_BN_MUL_CFG_OPERAND, l.slope->multiplier);
    r.set(DPU_BN_MUL_CFG_SHIFT, l.slope->shift);
    r.set(DPU_DATA_FORMAT_BN_NEGATIVE_SHIFT, l.slope->shift);
  }
}

uint32_t operation_word(const ConvLayer& l) {
  using enum ElementWise::Operation;
  if (!is_half(l)) return 0x904202c0;
  switch (l.element_wise->operation) {
    case Add: return 0x108202c0;
    case Max: return 0x108002c0;
    case Min: return 0x108102c0;
    case Multiply: return 0x108003c4;
  }
  return 0;
}

void set_element_wise(Registers& r, const ConvLayer& l, const Band& b, uint32_t operand) {
  if (!l.element_wise) {
    r.set(reg::DPU_EW_CFG, 0x383);
    r.set(reg::DPU_EW_CVT_SCALE_VALUE, 1);
    r.set(reg::RDMA_ERDMA_CFG, 1);
    return;
  }
  r.set(reg::DPU_EW_CFG, operation_word(l));
  if (l.relu && !l.relu_first) {
    r.set(DPU_EW_CFG_RELU_BYPASS, 0);
    r.set(DPU_EW_CFG_RELUX_EN, l.ceiling.has_value());
    r.set(DPU_EW_RELUX_CMP_VALUE_VALUE, l.ceiling.value_or(0));
  }
  r.set(DPU_EW_CVT_OFFSET_VALUE_OFFSET, -l.element_wise->zero_point);
  r.set(DPU_EW_CVT_SCALE_VALUE_SCALE, l.element_wise->multiplier);
  r.set(DPU_EW_CVT_SCALE_VALUE_SHIFT, l.element_wise->shift);
  const int64_t plane = l.out_width * l.out_height * kAtomBytes,
                notch = plane + l.out_width * (l.out_height - b.out_rows) * kAtomBytes;
  const auto first = static_cast<uint32_t>(operand + b.first_out * l.out_width * kAtomBytes);
  r.set(reg::RDMA_ERDMA_CFG, is_half(l) ? 0x40000008 : 0x40000004);
  r.set(reg::RDMA_SRC_BASE_ADDR, first);
  r.set(reg::RDMA_EW_BASE_ADDR, static_cast<uint32_t>(first + plane));
  r.set(reg::RDMA_EW_SURF_STRIDE, static_cast<uint32_t>(plane));
  r.set(reg::RDMA_SURF_NOTCH, static_cast<uint32_t>(notch));
  r.set(reg::RDMA_EW_SURF_NOTCH, static_cast<uint32_t>(notch));
}

// DATA_FORMAT without shifts, the writer's sizes, SURFACE_ADD in planes, and what the output converter gets.
struct OutputForm {
  uint32_t format, writer;
  int64_t surfaces;
  uint32_t scale;
};
OutputForm output_form(const ConvLayer& l) {
  if (l.out == Precision::Int32) return {0x80000000, 0x7fe, 8, 1};
  if (l.out == Precision::Float) return {0xa8000002, 0x36e, 4, 1};
  if (l.out == Precision::Half) return {0x48000002, l.depthwise ? 0x36cu : 0x126u, l.depthwise ? 4 : 2, 0x10001};
  return {0, l.depthwise ? 0x36cu : 0x124u, l.depthwise ? 4 : 2, static_cast<uint32_t>(l.out_multiplier)};
}

// What the known generator of float16 depthwise streams writes there; without effect.
constexpr uint32_t kHalfDepthwiseOwOperand = 0x80;

void set_dpu(Registers& r, const ConvLayer& l, const Band& b) {
  const int64_t written = l.written_channels(), plane = l.out_width * l.out_height * kAtomBytes;
  const OutputForm form = output_form(l);
  r.set(reg::DPU_S_POINTER, 0xe);
  r.set(reg::DPU_FEATURE_MODE_CFG, l.depthwise ? 0x1fc : 0x1e4);
  r.set(reg::DPU_DATA_FORMAT, form.format);
  r.set(reg::DPU_DST_SURF_STRIDE, static_cast<uint32_t>(plane));
  r.set(DPU_DATA_CUBE_WIDTH_WIDTH, l.out_width - 1);
  r.set(DPU_DATA_CUBE_HEIGHT_HEIGHT, b.out_rows - 1);
  r.set(DPU_DATA_CUBE_CHANNEL_REAL_CHANNEL, l.kernels - 1);
  r.set(DPU_DATA_CUBE_CHANNEL_CHANNEL, written - 1);
  r.set(reg::DPU_BS_OW_CFG, form.writer);
  r.set(DPU_BS_OW_OP_OPERAND, is_half(l) ? (l.depthwise ? int64_t{kHalfDepthwiseOwOperand} : 0) : -l.weight_zero_point);
  r.set(DPU_WDMA_SIZE_0_CHANNEL, written - 1);
  r.set(DPU_WDMA_SIZE_1_WIDTH, l.out_width - 1);
  r.set(DPU_WDMA_SIZE_1_HEIGHT, b.out_rows - 1);
  r.set(reg::DPU_OUT_CVT_SCALE, form.scale);
  if (l.out == Precision::Int8) {
    r.set(DPU_OUT_CVT_OFFSET_OFFSET, l.out_zero_point);
    r.set(DPU_OUT_CVT_SHIFT_SHIFT, l.out_shift);
  }
  r.set(reg::DPU_SURFACE_ADD, static_cast<uint32_t>(form.surfaces * plane));
}

void set_rdma(Registers& r, const ConvLayer& l, const Band& b) {
  r.set(reg::RDMA_S_POINTER, 0xe);
  r.set(RDMA_DATA_CUBE_WIDTH_WIDTH, l.out_width - 1);
  r.set(RDMA_DATA_CUBE_HEIGHT_HEIGHT, b.out_rows - 1);
  r.set(RDMA_DATA_CUBE_CHANNEL_CHANNEL, l.written_channels() - 1);
  r.set(RDMA_BRDMA_CFG_DATA_USE, !l.has_bias ? 0 : l.channel_multipliers.empty() ? 1 : 7);
  uint32_t mode = 0x7810 | (l.depthwise ? 6u : 0u) | (l.out == Precision::Half ? 8u : 0u);
  if (l.element_wise) mode = is_half(l) ? 0x17d40 : 0x7d00;
  r.set(reg::RDMA_FEATURE_MODE_CFG, mode);
  r.set(reg::RDMA_WEIGHT, 0x01010101);
}

Stream band_stream(const ConvLayer& l, const ConvAddresses& a, const Band& b, const BankSplit& banks, bool first_band) {
  Registers r = cleared({Block::Cna, Block::Core, Block::Dpu, Block::DpuRdma});
  set_cna(r, l, b, banks, first_band);
  set_core(r, l, b);
  set_dpu(r, l, b);
  set_stages(r, l);
  set_element_wise(r, l, b, a.operand);
  set_rdma(r, l, b);
  r.set(reg::CNA_FEATURE_DATA_ADDR, static_cast<uint32_t>(a.input + b.first_in * l.width * kAtomBytes));
  r.set(reg::CNA_DCOMP_ADDR0, a.weights);
  r.set(reg::DPU_DST_BASE_ADDR, static_cast<uint32_t>(a.output + b.first_out * l.out_width * kAtomBytes));
  if (l.has_bias) r.set(reg::RDMA_BS_BASE_ADDR, a.bias);
  return encode_task(r, kEnableConvolution);
}

Status out_of_range(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return unsupported(std::string(what) + " is outside of what the unit has")
      .expected(std::to_string(least) + " to " + std::to_string(most))
      .found(std::to_string(value));
}

// Along one axis: the first and the last window read a row or column of the input, not padding alone.
Status check_windows(int64_t padding, int64_t reach, int64_t windows, int64_t stride, int64_t extent) {
  if (padding >= reach)
    return unsupported("the padding is as large as the kernel")
        .expected("at most " + std::to_string(reach - 1))
        .found(std::to_string(padding));
  const int64_t last = (windows - 1) * stride - padding;
  if (last < extent) return {};
  return unsupported("the last windows read nothing but padding")
      .expected("the last one at most at " + std::to_string(extent - 1))
      .found(std::to_string(last));
}

// What fields can hold.
Status check_limits(const ConvLayer& l) {
  const Window2d& w = l.window;
  ORKNN_TRY(out_of_range("the input's width", l.width, 1, CNA_DATA_SIZE0_WIDTH.max()));
  ORKNN_TRY(out_of_range("the input's height", l.height, 1, 8191));
  ORKNN_TRY(out_of_range("the number of input channels", l.channels, 1, CNA_DATA_SIZE1_REAL_CHANNELS.max()));
  ORKNN_TRY(out_of_range("the output's width", l.out_width, 1, CNA_DATA_SIZE2_OUT_WIDTH.max()));
  ORKNN_TRY(out_of_range("the output's height", l.out_height, 1, 8191));
  ORKNN_TRY(out_of_range("the number of output channels", l.written_channels(), 1, 8192));
  for (const int64_t side : {w.height, w.width}) ORKNN_TRY(out_of_range("the kernel", side, 1, 31));
  for (const int64_t stride : {w.stride_y, w.stride_x}) ORKNN_TRY(out_of_range("the stride", stride, 1, 7));
  for (const int64_t dilation : {w.dilation_y, w.dilation_x}) ORKNN_TRY(out_of_range("the dilation", dilation, 1, 32));
  for (const int64_t pad : {w.top, w.left}) ORKNN_TRY(out_of_range("the padding", pad, 0, 15));
  ORKNN_TRY(check_windows(w.top, w.reach_y(), l.out_height, w.stride_y, l.height));
  ORKNN_TRY(check_windows(w.left, w.reach_x(), l.out_width, w.stride_x, l.width));
  ORKNN_TRY(out_of_range("the size of a kernel", l.kernel().kernel_bytes(), 1, CNA_WEIGHT_SIZE1_KERNEL_BYTES.max()));
  ORKNN_TRY(out_of_range("a row of the input in the buffer", row_entries(l), 1, CNA_CBUF_CON1_DATA_ENTRIES.max()));
  if (l.out == Precision::Int8) {
    ORKNN_TRY(out_of_range("the output's multiplier", l.out_multiplier, 1, INT16_MAX));
    ORKNN_TRY(out_of_range("the output's shift", l.out_shift, 0, 62));
  }
  for (const int64_t zero : {l.in_zero_point, l.weight_zero_point, l.out_zero_point})
    ORKNN_TRY(out_of_range("a zero point", zero, -128, 127));
  ORKNN_TRY(out_of_range("the channels' shift", l.channel_shift, 0, 62));
  for (const int32_t m : l.channel_multipliers) ORKNN_TRY(out_of_range("a channel's multiplier", m, INT16_MIN, INT16_MAX));
  if (l.ceiling) ORKNN_TRY(out_of_range("the ceiling", *l.ceiling, 0, INT32_MAX));
  return {};
}

Status check_combination(const ConvLayer& l) {
  if (l.depthwise && l.kernels != l.channels) return unsupported("a depthwise convolution has one kernel per channel");
  if (l.depthwise && bytes_of(l.out) == 4) return unsupported("there is no proven depthwise convolution with results of 32 bits");
  if (l.depthwise && l.element_wise)
    return unsupported("there is no proven way to combine a second tensor with a depthwise convolution");
  if (!l.channel_multipliers.empty() && !l.has_bias) return invalid_argument("scales per channel come with a bias");
  if (l.element_wise && l.out_width * l.out_height < 12)
    return unsupported("a second tensor of fewer than 12 pixels is read wrongly");
  if (l.element_wise && !is_half(l)) {
    const ElementWise& e = *l.element_wise;
    if (e.operation != ElementWise::Operation::Add) return unsupported("of int8 tensors the unit adds only, as far as is proven");
    ORKNN_TRY(out_of_range("the operand's multiplier", e.multiplier, 1, UINT16_MAX));
    ORKNN_TRY(out_of_range("the operand's shift", e.shift, 0, 62));
  }
  return {};
}

ScaleShift split_float(float factor, int64_t extra) {
  const uint32_t bits = std::bit_cast<uint32_t>(factor);
  ScaleShift s{static_cast<int64_t>(0x4000 | ((bits >> 9) & 0x3fff)) + extra, 141 - static_cast<int64_t>((bits >> 23) & 0xff)};
  if (s.scale == 0x8000) s = {0x4000, s.shift - 1};
  return s;
}
}  // namespace

ScaleShift split_output_scale(float factor) { return split_float(factor, 1); }
ScaleShift split_operand_scale(float factor) { return split_float(factor, 0); }

int64_t ConvLayer::stored_channels() const { return kernel().channels; }
int64_t ConvLayer::written_channels() const {
  return round_up(kernels, depthwise ? depthwise_group(in) : weight_groups(in).kernels);
}
WeightPlan ConvLayer::weights() const {
  const int64_t taps = window.height * window.width;
  return {.precision = in,
          .depthwise = depthwise,
          .grouping = grouping,
          .kernels = kernels,
          .channels = channels,
          .height = window.height,
          .width = window.width,
          .block = block,
          .zero_point = in == Precision::Half ? 0 : weight_zero_point,
          .kernel_step = depthwise ? 1 : taps * channels,
          .tap_step = channels,
          .channel_step = 1,
          .own_channels = channels,
          .kernels_together = kernels};
}
int64_t ConvLayer::input_bytes() const { return Cube{height, width, stored_channels(), in}.bytes(); }
int64_t ConvLayer::output_bytes() const { return Cube{out_height, out_width, written_channels(), out}.bytes(); }

std::vector<ConvLayer> ConvLayer::parts() const {
  if (block == 0) return {*this};
  std::vector<ConvLayer> all;
  for (int64_t first = 0; first < kernels; first += block) {
    ConvLayer part = *this;
    part.block = 0;
    part.channels = part.kernels = std::min(block, kernels - first);
    all.push_back(std::move(part));
  }
  return all;
}

Result<std::vector<int32_t>> bias_without_zero_point(const ConvLayer& l, std::span<const int32_t> bias, const WeightPlan& plan,
                                                     const void* weights) {
  std::vector<int32_t> corrected(bias.begin(), bias.end());
  corrected.resize(static_cast<size_t>(l.kernels));
  if (is_half(l)) return corrected;
  const std::vector<int64_t> sums = plan.sums(static_cast<const int8_t*>(weights));
  for (size_t k = 0; k < corrected.size(); ++k) {
    const int64_t value = corrected[k] - l.in_zero_point * sums[k];
    if (value < INT32_MIN || value > INT32_MAX)
      return unsupported("the bias of kernel " + std::to_string(k) + " without the input's zero point exceeds 32 bits")
          .expected(std::to_string(INT32_MIN) + " to " + std::to_string(INT32_MAX))
          .found(std::to_string(value));
    corrected[k] = static_cast<int32_t>(value);
  }
  return corrected;
}

Result<std::vector<std::byte>> pack_bias_of(const ConvLayer& l, std::span<const int32_t> bias, const WeightPlan& plan,
                                            const void* weights) {
  if (!l.has_bias) return std::vector<std::byte>();
  ORKNN_TRY_ASSIGN(const std::vector<int32_t> corrected, bias_without_zero_point(l, bias, plan, weights));
  return pack_bias(corrected, l.channel_multipliers, l.grouping == Grouping::Whole ? l.written_channels() : l.kernels);
}

Result<ConvOperands> pack_operands(const ConvLayer& l, const void* weights, std::span<const int32_t> bias) {
  const WeightPlan plan = l.weights();
  ConvOperands operands{std::vector<std::byte>(plan.bytes()), {}};
  ORKNN_TRY_ASSIGN(operands.bias, pack_bias_of(l, bias, plan, weights));
  plan.pack(weights, operands.weights, ThreadPool::shared());
  return operands;
}

namespace {
Result<std::vector<Stream>> block_streams(const ConvLayer& l, ConvAddresses at) {
  if (l.depthwise || l.element_wise || !l.channel_multipliers.empty() || l.channels != l.kernels ||
      l.block % weight_groups(l.in).kernels != 0 || l.grouping != Grouping::Whole)
    return unsupported("a layer in blocks of channels has plain stages");
  std::vector<Stream> streams;
  const auto step = [&](int64_t planes, int64_t pixels) { return static_cast<uint32_t>(planes * pixels * kAtomBytes); };
  for (const ConvLayer& part : l.parts()) {
    ORKNN_TRY_ASSIGN(const std::vector<Stream> own, conv_streams(part, at));
    streams.insert(streams.end(), own.begin(), own.end());
    at.input += step(l.block / lanes_of(l.in), l.height * l.width);
    at.output += step(l.block / lanes_of(l.out), l.out_height * l.out_width);
    at.weights += static_cast<uint32_t>(part.kernel().bytes());
    if (l.has_bias) at.bias += static_cast<uint32_t>(part.written_channels() * 4);
  }
  return streams;
}
}  // namespace

Result<std::vector<Stream>> conv_streams(const ConvLayer& l, const ConvAddresses& addresses) {
  if (l.block > 0) return block_streams(l, addresses);
  ORKNN_TRY(check_limits(l));
  ORKNN_TRY(check_combination(l));
  ORKNN_TRY_ASSIGN(const BankSplit banks, split_banks(l));
  std::vector<Stream> streams;
  for (const Band& b : make_bands(l, banks.rows)) streams.push_back(band_stream(l, addresses, b, banks, streams.empty()));
  return streams;
}

void forget_kept_weights(Stream& stream) {
  for (uint64_t& word : stream)
    if (Command c = decode(word); c.target == Target::Cna && c.offset == reg::CNA_CBUF_CON0) {
      c.value &= ~CNA_CBUF_CON0_WEIGHT_REUSE.mask();
      word = encode(c);
    }
}

Result<Stream> pool_stream(const PoolLayer& l, uint32_t input, uint32_t output) {
  const Window2d& w = l.window;
  for (const int64_t side : {w.height, w.width, w.stride_y, w.stride_x})
    ORKNN_TRY(out_of_range("the window or stride", side, 1, 16));
  for (const int64_t pad : {w.top, w.left}) ORKNN_TRY(out_of_range("the padding", pad, 0, 7));
  for (const int64_t extent : {l.height, l.width, l.channels}) ORKNN_TRY(out_of_range("the pooled tensor", extent, 1, 8191));
  if (w.dilation_x != 1 || w.dilation_y != 1) return unsupported("the pooling unit has no dilation");
  // Only rows and columns that windows use; a window that reaches beyond takes padding.
  const int64_t end_x = (l.out_width - 1) * w.stride_x + w.width - w.left,
                end_y = (l.out_height - 1) * w.stride_y + w.height - w.top;
  const int64_t width = std::min(l.width, end_x), height = std::min(l.height, end_y), right = end_x - width,
                bottom = end_y - height;
  for (const int64_t pad : {right, bottom}) ORKNN_TRY(out_of_range("the padding", pad, 0, 7));
  const bool average = l.method == PoolTask::Method::Average, half = l.precision == Precision::Half;
  const bool padded = w.left + w.top + right + bottom > 0;
  if (average && half && (w.width == 1 || w.height == 1))
    return unsupported("the reciprocal of a float16 window's side of one is no float16 number");
  const int64_t plane = l.out_width * l.out_height * kAtomBytes;
  Registers r = cleared({Block::Ppu, Block::PpuRdma});
  r.set(reg::PPU_S_POINTER, 0xe);
  r.set(reg::PPU_RDMA_S_POINTER, 0xe);
  for (const Field f : {PPU_DATA_CUBE_IN_WIDTH_WIDTH, PPU_RDMA_CUBE_IN_WIDTH_WIDTH}) r.set(f, width - 1);
  for (const Field f : {PPU_DATA_CUBE_IN_HEIGHT_HEIGHT, PPU_RDMA_CUBE_IN_HEIGHT_HEIGHT}) r.set(f, height - 1);
  for (const Field f : {PPU_DATA_CUBE_IN_CHANNEL_CHANNEL, PPU_DATA_CUBE_OUT_CHANNEL_CHANNEL, PPU_RDMA_CUBE_IN_CHANNEL_CHANNEL})
    r.set(f, l.channels - 1);
  r.set(PPU_DATA_CUBE_OUT_WIDTH_WIDTH, l.out_width - 1);
  r.set(PPU_DATA_CUBE_OUT_HEIGHT_HEIGHT, l.out_height - 1);
  r.set(PPU_OPERATION_MODE_CFG_POOLING_METHOD, static_cast<int64_t>(l.method));
  r.set(PPU_OPERATION_MODE_CFG_FLYING, 1);
  r.set(PPU_POOLING_KERNEL_CFG_WIDTH, w.width - 1);
  r.set(PPU_POOLING_KERNEL_CFG_HEIGHT, w.height - 1);
  r.set(PPU_POOLING_KERNEL_CFG_STRIDE_X, w.stride_x - 1);
  r.set(PPU_POOLING_KERNEL_CFG_STRIDE_Y, w.stride_y - 1);
  const auto reciprocal = [&](int64_t n) {
    return half ? float_to_half(65536.0f / static_cast<float>(n)) : static_cast<uint32_t>(0x10000 / n);
  };
  if (average) {
    r.set(reg::PPU_RECIP_KERNEL_WIDTH, reciprocal(w.width));
    r.set(reg::PPU_RECIP_KERNEL_HEIGHT, reciprocal(w.height));
  }
  r.set(PPU_POOLING_PADDING_CFG_LEFT, w.left);
  r.set(PPU_POOLING_PADDING_CFG_TOP, w.top);
  r.set(PPU_POOLING_PADDING_CFG_RIGHT, right);
  r.set(PPU_POOLING_PADDING_CFG_BOTTOM, bottom);
  uint32_t pad_value = 0;  // 19 bits for int8
  if (l.method == PoolTask::Method::Max)
    pad_value = half ? (padded ? 0xfc00 : 0) : 0x7ff80;
  else if (l.method == PoolTask::Method::Min)
    pad_value = !padded ? 0 : half ? 0x7c00 : 0x7f;
  else if (padded && !half)
    pad_value = static_cast<uint32_t>(l.zero_point) & 0x7ffff;
  r.set(reg::PPU_PADDING_VALUE_1_CFG, pad_value);
  r.set(reg::PPU_DST_BASE_ADDR, output);
  r.set(reg::PPU_DST_SURF_STRIDE, static_cast<uint32_t>(plane));
  r.set(reg::PPU_DATA_FORMAT, static_cast<uint32_t>(plane) | static_cast<uint32_t>(l.precision));
  r.set(reg::PPU_MISC_CTRL, 3);
  r.set(reg::PPU_RDMA_SRC_BASE_ADDR, input);
  r.set(reg::PPU_RDMA_SRC_LINE_STRIDE, static_cast<uint32_t>(l.width * kAtomBytes));
  r.set(reg::PPU_RDMA_SRC_SURF_STRIDE, static_cast<uint32_t>(l.height * l.width * kAtomBytes));
  r.set(PPU_RDMA_DATA_FORMAT_STORAGE_WIDTH, half ? 2 : 1);
  return encode_task(r, kEnablePooling);
}

}  // namespace orknn::silicon
