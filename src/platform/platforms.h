// What is known about each chip, one row per SoC (platforms.cpp). Code asks a Platform for a property and never compares
// names; figures marked "inferred" or "assumed" there have no primary source.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace orknn::platform {

// Which operators the chip's runtime computes on its CPU when the NPU cannot.
enum class CpuOps : uint8_t {
  None,  // the NPU or nothing
  Few,   // the short list of the smallest chips
  All,   // the whole CPU list
};

// Channels are padded to these multiples. They are also the granularity of the compute array, so a conv with fewer
// channels takes as long as one with the padded number.
struct ChannelAlignment {
  int conv_in = 1, conv_out = 1, depthwise = 1, other = 1;
};

// How the chip wants constants in memory.
struct WeightPacking {
  int inputs = 16, first_inputs_int8 = 16,
      first_inputs_half = 8;            // input channels of a dense kernel are padded to these; on a picture to the others
  int depthwise_bytes = 1;              // of one tap, in elements
  bool pads_depthwise = true;           // to the alignment of depthwise channels, in memory
  int bias_bytes = 8, bias_align = 32;  // per output channel, int8
  int depthwise_bias_bytes = 8, depthwise_bias_align = 32;
};

// Limits of a convolution that reads an image (4-D input with 1, 3 or 4 channels) directly.
struct FirstLayerLimits {
  int width_align_int8 = 16, width_align_half = 8;  // elements; matters for zero-copy inputs only
  int max_width = 4096;
  int row_elements_int8 = 2048, row_elements_half = 2048;  // width * kernel height per free bank
  bool strict = false;                                     // the product must be smaller, not smaller or equal
  int max_free_banks = 7;
  int conv_reserved_banks = 2;  // banks the weights take at least
  int depthwise_taps_per_bank_int8 = 4096, depthwise_taps_per_bank_half = 4096;
  int depthwise_reserved_banks_int8 = 1, depthwise_reserved_banks_half = 1;
};

// Limits of the matmul API. The native blocks of the second operand are those of the MAC array (align_*.conv_out x
// align_*.conv_in).
struct MatMulLimits {
  int max_inner = 0, max_columns = 0, max_columns_int4 = 0;  // K and N; 0 = no limit
  int inner_multiple_int8 = 32, inner_multiple_half = 32, inner_multiple_int4 = 32;
  int columns_multiple_int8 = 0, columns_multiple_half = 0, columns_multiple_int4 = 0;  // 0 = type not offered
  int inner_segment = 0;          // a native second operand is stored in parts of this many rows; 0 = in one
  bool transposed_normal = true;  // the second operand may be stored N x K
  std::vector<int> types = {};    // values of rknn_matmul_type; empty = no matmul API
};

// Constants of the time model (docs/npu_model.md). Rates per cycle follow the NPU clock; the GB/s follow the DDR clock.
struct SpeedModel {
  enum class Source : uint8_t {
    Unknown,  // no prediction is possible
    Scaled,   // taken from a relative with published speeds, corrected by clocks and bus
    Fitted,   // bench/fit_npu.py, from published speeds of this chip
  };
  Source source = Source::Unknown;
  double conv = 0, pointwise = 0, depthwise = 0;  // share of the array's cycles that do work: kernels above 1x1, 1x1, depthwise
  double half = 1;                                // factor on 1x1 and products in float16; generation 1: on all but depthwise
  double stem = 1;                                // cycles of a convolution on a picture, as a share of the ordinary count
  double feature_gbs = 0, weight_gbs = 0,
         move_gbs = 0;         // 1e9 bytes per second: convolutions, their weights, element-wise and data movement
  double layer_us = 0;         // of every NPU layer
  double table_per_cycle = 0;  // activations looked up
  double pool_per_cycle = 0, global_pool_per_cycle = 0;                                    // outputs, inputs
  double softmax_ns = 0, attention_ns = 0, norm_ns = 0, transpose_ns = 0, reshape_ns = 0;  // per element
  double cpu_layer_us = 0, cpu_ns = 0, cpu_transpose_ns = 0,
         cpu_mac_ns = 0;         // of the chip's CPU, or of the NPU's shader: per layer, element, multiply-accumulate
  double space_to_batch_ns = 0;  // per element moved for a dilated depthwise convolution
  double narrow_ns = 0;          // per element brought into a short last axis by the CPU (Platform::narrow_on_cpu)
  int64_t ddr_hz = 0;            // DDR clock the GB/s belong to; 0 = the chip's own
  double overlap = 4;            // exponent p of (compute^p + traffic^p + tables^p)^(1/p): large = perfect overlap

  // Time of parts that run beside each other.
  double beside(double compute, double traffic, double table = 0) const;
  // Bandwidth of several cores, as a multiple of what one gets: three get 1.6 times as much.
  static double bus_gain(double cores) { return 1 + 0.3 * (cores - 1); }
};

struct Features {
  bool general_api = false;  // inputs_set / outputs_get
  bool dynamic_shape = false;
  bool matmul_api = false;
  bool custom_ops = false;
  bool layer_profile = false;
  bool dup_context = false;
  bool core_mask = false;
  bool sram_for_internal = false;
  bool encryption = false;
  bool sparse_weights = false;
  bool weight_compression = false;
  bool flash_attention = false;
  bool memory_from_fd = false;
  bool device_memory_query = false;
  bool board_connection = false;  // init_runtime(target=...)
  bool nchw_output = true;
};

struct Platform {
  std::string_view name;  // as users write it, lower case
  std::vector<std::string_view> aliases = {};
  int generation = 2;                   // 1 = Toolkit1 chips
  std::string_view compatibility = {};  // chips with the same text run each other's models
  std::string_view npu_name = "RKNPU";  // how logs and files call the NPU
  char operator_group = 'A';            // column of the operator tables (compile/npu_ops.cpp)

  // Figures below that are 0 are not published and cannot be derived.
  int cores = 1;
  int int8_macs = 0, int16_macs = 0, half_macs = 0, int4_macs = 0;  // per core and cycle
  int64_t npu_hz = 0, ddr_hz = 0, cpu_hz = 0;
  int64_t simulator_hz = 0;  // NPU clock that Toolkit1's simulator assumes; 0 = npu_hz
  int ddr_bus_bytes = 4;
  int cbuf_banks = 8, cbuf_bank_bytes = 32 * 1024;  // convolution buffer of one core
  int64_t sram_bytes = 0;                           // system SRAM the NPU may be given
  int64_t nbuf_bytes = 0;                           // on-chip buffer of the NPU itself
  bool nbuf_holds_features = false;                 // it keeps the bottom of the intermediate results
  int64_t dram_bytes = 0;  // memory inside the package, the largest that is sold; 0 = outside, of any size

  int c2_int8 = 0, c2_half = 0;  // lanes of the native layout NC1HWC2; 0 = type not offered
  ChannelAlignment align_int8 = {}, align_half = {}, align_float = {};
  int output_align_conv_int8 = 0, output_align_conv_half = 0;  // NC1HWC2 outputs made by a convolution
  WeightPacking packing = {};
  int depthwise_array = 64;                      // channels one depthwise cycle covers
  int min_passes_int8 = 4, min_passes_half = 2;  // least kernel passes of a dense convolution
  int max_depthwise_kernel = 8;
  int max_pool_extent = 8192;       // of a pooled map
  bool pools_single_pixels = true;  // pooling with a 1x1 window
  bool div_broadcasts_channels_only = false;
  int max_hardmax_elements = 0;  // 0 = no limit
  bool transposed_conv_stride_power_of_two = false;
  FirstLayerLimits first_layer = {};
  int max_tasks_per_submit = 65535;

  bool conv_int8 = true, conv_half = true;
  CpuOps cpu_ops = CpuOps::All;
  bool packs_channels = false;      // the MAC array is filled whatever the number of channels (generation 1)
  bool table_follows = false;       // table activations run after the convolution instead of beside it (generation 1)
  bool functions_in_parts = false;  // functions that can be are three element-wise layers (NpuFacts::in_parts; generation 1)
  bool has_shader = false;          // what no other block of the NPU computes runs on its shader, not on the CPU (generation 1)
  bool interpolates = true;         // bilinear enlarging runs on the NPU
  bool narrow_on_cpu = false;       // 4-D tensors become 3-D ones with a short last axis on the CPU
  bool multi_core_lut = false;      // convolutions with a table activation, and attention, may be split over cores
  Features features = {};
  MatMulLimits mat_mul = {};
  std::vector<std::string_view> quantized_dtypes = {};  // accepted by config(quantized_dtype=...)
  SpeedModel speed = {};

  int64_t cbuf_bytes() const { return int64_t{cbuf_banks} * cbuf_bank_bytes; }
  // Lanes of the native layout for elements of this type; 1 where the chip has no such layout.
  int c2(DType t) const;
  const ChannelAlignment& alignment(DType t) const;
  int macs_per_cycle(DType t) const;
  // Bytes of the NPU's own buffer that hold the bottom of the intermediate results.
  int64_t feature_buffer_bytes() const { return nbuf_holds_features ? nbuf_bytes : 0; }
  // Whether convolutions take 16-bit integers.
  bool conv_int16() const;
  // Bytes the DDR moves per NPU cycle in the vendor's cycle columns; 0 when a clock is unknown. Other clocks: what if.
  double ddr_bytes_per_cycle() const { return ddr_bytes_per_cycle(npu_hz, ddr_hz); }
  double ddr_bytes_per_cycle(int64_t npu_clock, int64_t ddr_clock) const;
  // The NPU clock that reports of the simulator count with.
  int64_t report_hz() const { return simulator_hz > 0 ? simulator_hz : npu_hz; }
  // The DDR clock that the speed constants belong to; 0 when unknown.
  int64_t speed_ddr_hz() const { return speed.ddr_hz > 0 ? speed.ddr_hz : ddr_hz; }
  bool has_speed() const { return speed.source != SpeedModel::Source::Unknown && npu_hz > 0; }
  // What is not known about the chip, for reports: "NPU clock", ...
  std::vector<std::string_view> unknown() const;
};

// All rows, Toolkit2 chips first, each in alphabetical order.
std::span<const Platform> all();
// Any case, aliases included; nullptr when unknown.
const Platform* find(std::string_view name);
// The same with an error that lists what exists.
Result<const Platform*> get(std::string_view name);
// What a build uses when the user names no chip.
const Platform& default_platform();
// How many cores a core mask of the API names; 0 means any idle one, 0xffff all. An error for cores the chip lacks, for numbers
// that are no mask, and for any choice on a chip with one core.
Result<int> cores_of_mask(const Platform& platform, int64_t mask);
// True when a model made for `a` runs on `b`.
bool compatible(const Platform& a, const Platform& b);

}  // namespace orknn::platform
