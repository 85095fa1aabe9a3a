#include "platform/platforms.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "base/forks.h"
#include "base/nearest_name.h"
#include "platform/gpu.h"
#include "platform/toolkit1.h"

namespace orknn::platform {
namespace {
constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kMHz = 1'000'000;

// Channel alignments that several chips share (conv in, conv out, depthwise, other).
constexpr ChannelAlignment kWideInt8{32, 32, 64, 16}, kWideHalf{32, 16, 32, 8}, kWideFloat{16, 16, 16, 4};
constexpr ChannelAlignment kMediumInt8{32, 16, 32, 16}, kMediumHalf{32, 8, 16, 8}, kMediumFloat{16, 8, 8, 4};
constexpr ChannelAlignment kSmallInt16{16, 16, 16, 8};
constexpr ChannelAlignment kOldInt8{32, 16, 32, 8}, kOldHalf{16, 8, 16, 4}, kOldFloat{8, 8, 8, 2};
constexpr ChannelAlignment kTinyInt8{8, 8, 8, 8}, kAudioHalf{8, 8, 8, 4};

constexpr FirstLayerLimits kFirstLayerOld{.width_align_int8 = 8,
                                          .width_align_half = 4,
                                          .row_elements_int8 = 1024,
                                          .row_elements_half = 1024,
                                          .strict = true,
                                          .conv_reserved_banks = 1};
// The published formula gives up to 9 free banks here, so the window 1..7 of the other chips is widened.
constexpr FirstLayerLimits kFirstLayerWide{.max_width = 8192,
                                           .row_elements_half = 1024,
                                           .max_free_banks = 9,
                                           .conv_reserved_banks = 3,
                                           .depthwise_taps_per_bank_int8 = 2048,
                                           .depthwise_taps_per_bank_half = 2048,
                                           .depthwise_reserved_banks_int8 = 3,
                                           .depthwise_reserved_banks_half = 3};
constexpr FirstLayerLimits kFirstLayerMedium{};
constexpr FirstLayerLimits kFirstLayerNew{
    .depthwise_taps_per_bank_int8 = 2048, .depthwise_taps_per_bank_half = 2048, .depthwise_reserved_banks_half = 3};
constexpr FirstLayerLimits kFirstLayerTiny{.width_align_int8 = 8, .width_align_half = 8};
constexpr FirstLayerLimits kFirstLayerAudio{.width_align_int8 = 4, .width_align_half = 4};

constexpr WeightPacking kMicroPacking{.inputs = 1,
                                      .first_inputs_int8 = 4,
                                      .first_inputs_half = 4,
                                      .depthwise_bytes = 2,
                                      .pads_depthwise = false,
                                      .bias_align = 16,
                                      .depthwise_bias_bytes = 6,
                                      .depthwise_bias_align = 1};

constexpr Features kLinuxChip{.general_api = true,
                              .dynamic_shape = true,
                              .matmul_api = true,
                              .custom_ops = true,
                              .layer_profile = true,
                              .dup_context = true,
                              .encryption = true,
                              .memory_from_fd = true,
                              .board_connection = true};
constexpr Features kMicroChip{
    .memory_from_fd = true, .device_memory_query = true, .board_connection = true, .nchw_output = false};
constexpr Features kGeneration1{.general_api = true, .layer_profile = true, .encryption = true, .board_connection = true};

constexpr Features with(Features f, bool Features::*flag) {
  f.*flag = true;
  return f;
}
constexpr Features kMultiCore = with(kLinuxChip, &Features::core_mask);

const std::vector<std::string_view> kToolkit1Dtypes{"asymmetric_quantized-u8", "asymmetric_affine-u8",
                                                    "dynamic_fixed_point-8",   "dynamic_fixed_point-i8",
                                                    "dynamic_fixed_point-16",  "dynamic_fixed_point-i16"};

// Speed constants of the chips with published figures, written by bench/fit_npu.py.
#include "platform/speed.inc"

// Matmul API. Where guide and header disagree, the weaker multiple of the header counts.
const MatMulLimits kNoMatMul;
const MatMulLimits kOldMatMul{.max_inner = 10240,
                              .max_columns = 4096,
                              .inner_multiple_half = 16,
                              .columns_multiple_int8 = 16,
                              .columns_multiple_half = 8,
                              .transposed_normal = false,
                              .types = {1, 2}};
const MatMulLimits kMediumMatMul{
    .max_inner = 10240, .max_columns = 4096, .columns_multiple_int8 = 16, .columns_multiple_half = 8, .types = {1, 2}};
// Here int4 weights meet wider activations, whose multiples count.
const MatMulLimits kNewerMatMul{.max_columns = 4096,
                                .max_columns_int4 = 4096,
                                .columns_multiple_int8 = 32,
                                .columns_multiple_half = 16,
                                .columns_multiple_int4 = 16,
                                .inner_segment = 4096,
                                .types = {1, 2, 4, 5, 7, 8, 11}};
const MatMulLimits kWideMatMul{.max_columns = 4096,
                               .max_columns_int4 = 8192,
                               .columns_multiple_int8 = 32,
                               .columns_multiple_half = 16,
                               .columns_multiple_int4 = 64,
                               .inner_segment = 8192,
                               .types = {1, 2, 3, 4, 9, 10}};

// A chip without published speeds: a relative's constants with another NPU clock and memory bus (shares of the relative's) and
// CPU.
SpeedModel scaled(SpeedModel speed, double clock, double bus, double cpu_time) {
  speed.source = SpeedModel::Source::Scaled;
  // Times of the NPU follow its clock; what only moves data waits for the slower of clock and bus.
  for (double* time : {&speed.layer_us, &speed.softmax_ns, &speed.attention_ns, &speed.norm_ns}) *time /= clock;
  for (double* time : {&speed.transpose_ns, &speed.reshape_ns}) *time /= std::min(clock, bus);
  for (double* rate : {&speed.feature_gbs, &speed.weight_gbs, &speed.move_gbs}) *rate *= bus;
  for (double* time : {&speed.cpu_layer_us, &speed.cpu_ns, &speed.cpu_transpose_ns, &speed.cpu_mac_ns, &speed.space_to_batch_ns,
                       &speed.narrow_ns})
    *time *= cpu_time;
  return speed;
}

// Two names for one row of figures.
Platform renamed(Platform p, std::string_view name, std::vector<std::string_view> aliases = {}) {
  p.name = name;
  p.aliases = std::move(aliases);
  return p;
}

std::vector<Platform> make_rows() {
  std::vector<Platform> rows;

  // Fp16 only; clocks, MACs and memory are not published.
  rows.push_back({.name = "rk2118",
                  .compatibility = "rk2118",
                  .operator_group = 'F',
                  .ddr_bus_bytes = 0,
                  .c2_half = 4,
                  .align_int8 = kAudioHalf,
                  .align_half = kAudioHalf,
                  .align_float = kAudioHalf,
                  .output_align_conv_half = 8,
                  .depthwise_array = 8,
                  .pools_single_pixels = false,
                  .div_broadcasts_channels_only = true,
                  .first_layer = kFirstLayerAudio,
                  .conv_int8 = false,
                  .cpu_ops = CpuOps::None,
                  .features = {.device_memory_query = true, .nchw_output = false}});

  rows.push_back({.name = "rk3562",
                  .compatibility = "rk3562",
                  .npu_name = "RKNPU t4",
                  .operator_group = 'C',
                  .int8_macs = 512,
                  .int16_macs = 256,
                  .half_macs = 256,
                  .npu_hz = 1000 * kMHz,
                  .ddr_hz = 1560 * kMHz,
                  .cpu_hz = 2000 * kMHz,
                  .nbuf_bytes = 256 * kKiB,
                  // Errors of networks left out of the fit fall by a third when the buffer holds features. On the chip with two
                  // cores they rise.
                  .nbuf_holds_features = true,
                  .c2_int8 = 16,
                  .c2_half = 8,
                  .align_int8 = kMediumInt8,
                  .align_half = kMediumHalf,
                  .align_float = kMediumFloat,
                  .output_align_conv_int8 = 32,
                  .output_align_conv_half = 16,
                  .depthwise_array = 32,
                  .first_layer = kFirstLayerMedium,
                  .features = with(kLinuxChip, &Features::flash_attention),
                  .mat_mul = kMediumMatMul,
                  .quantized_dtypes = {"w8a8", "w8a16"},
                  .speed = kSpeedMedium});

  Platform old{.name = "rk3566",
               .compatibility = "rk3566/rk3568",
               .npu_name = "RKNPU lite",
               .operator_group = 'A',
               .int8_macs = 512,
               .int16_macs = 128,
               .half_macs = 128,
               .npu_hz = 1000 * kMHz,
               .ddr_hz = 1056 * kMHz,
               .cpu_hz = 1800 * kMHz,
               .c2_int8 = 8,
               .c2_half = 4,
               .align_int8 = kOldInt8,
               .align_half = kOldHalf,
               .align_float = kOldFloat,
               .output_align_conv_int8 = 16,
               .output_align_conv_half = 8,
               .depthwise_array = 32,
               .transposed_conv_stride_power_of_two = true,
               .first_layer = kFirstLayerOld,
               .max_tasks_per_submit = 4095,
               .interpolates = false,
               .narrow_on_cpu = true,
               .features = kLinuxChip,
               .mat_mul = kOldMatMul,
               .quantized_dtypes = {"w8a8"},
               .speed = kSpeedOld};
  rows.push_back(old);
  old.ddr_hz = 1560 * kMHz;
  rows.push_back(renamed(old, "rk3568"));

  // One core as in rk3588 by block shapes and published speeds (inferred).
  Platform newer{.name = "rk3576",
                 .compatibility = "rk3576",
                 .npu_name = "RKNPU f2",
                 .operator_group = 'E',
                 .cores = 2,
                 .int8_macs = 1024,
                 .int16_macs = 512,
                 .half_macs = 512,
                 .int4_macs = 2048,
                 .npu_hz = 1000 * kMHz,
                 .ddr_hz = 2112 * kMHz,
                 .cpu_hz = 2016 * kMHz,
                 .nbuf_bytes = 1024 * kKiB,
                 .c2_int8 = 16,
                 .c2_half = 8,
                 .align_int8 = kWideInt8,
                 .align_half = kWideHalf,
                 .align_float = kWideFloat,
                 .output_align_conv_int8 = 32,
                 .output_align_conv_half = 16,
                 .first_layer = kFirstLayerNew,
                 .multi_core_lut = true,
                 .features = with(with(kMultiCore, &Features::flash_attention), &Features::sparse_weights),
                 .mat_mul = kNewerMatMul,
                 .quantized_dtypes = {"w8a8", "w4a16"},
                 .speed = kSpeedNewer};
  rows.push_back(newer);

  rows.push_back({.name = "rk3588",
                  .aliases = {"rk3588s"},
                  .compatibility = "rk3588/rk3588s",
                  .npu_name = "RKNPU v2",
                  .operator_group = 'B',
                  .cores = 3,
                  .int8_macs = 1024,
                  .int16_macs = 512,
                  .half_macs = 512,
                  .int4_macs = 2048,
                  .npu_hz = 1000 * kMHz,
                  .ddr_hz = 2112 * kMHz,
                  .cpu_hz = 2256 * kMHz,
                  .ddr_bus_bytes = 8,
                  .cbuf_banks = 12,
                  .sram_bytes = 956 * kKiB,
                  .c2_int8 = 16,
                  .c2_half = 8,
                  .align_int8 = kWideInt8,
                  .align_half = kWideHalf,
                  .align_float = kWideFloat,
                  .output_align_conv_int8 = 32,
                  .output_align_conv_half = 16,
                  .transposed_conv_stride_power_of_two = true,
                  .first_layer = kFirstLayerWide,
                  .max_tasks_per_submit = 4095,
                  .narrow_on_cpu = true,
                  .features = with(with(kMultiCore, &Features::sram_for_internal), &Features::weight_compression),
                  .mat_mul = kWideMatMul,
                  .quantized_dtypes = {"w8a8"},
                  .speed = kSpeedWide});

  const Platform micro{.name = "rv1103",
                       .compatibility = "rv1103/rv1106",
                       .operator_group = 'D',
                       .int8_macs = 512,
                       .int16_macs = 256,
                       .npu_hz = 500 * kMHz,
                       .ddr_hz = 924 * kMHz,
                       .cpu_hz = 1608 * kMHz,
                       .ddr_bus_bytes = 2,
                       .dram_bytes = 64 * kMiB,
                       .c2_int8 = 16,
                       .c2_half = 8,
                       .align_int8 = kMediumInt8,
                       .align_half = kSmallInt16,
                       .align_float = kMediumFloat,
                       .output_align_conv_int8 = 32,
                       .packing = kMicroPacking,
                       .depthwise_array = 32,
                       .max_hardmax_elements = 8192,
                       .first_layer = kFirstLayerMedium,
                       .conv_half = false,
                       .cpu_ops = CpuOps::Few,
                       .features = with(kMicroChip, &Features::weight_compression),
                       .mat_mul = kNoMatMul,
                       .quantized_dtypes = {"w8a8", "w16a16i", "w16a16i_dfp"},
                       .speed = scaled(kSpeedMedium, 0.5, 0.3, 3)};  // half the clock, a 16-bit bus at 924 MHz, and a slower CPU
  rows.push_back(micro);
  // A narrower core (C2 is half as wide); MACs, clocks and bus are not published.
  Platform micro_b = micro;
  micro_b.compatibility = "rv1103b/rv1106b";
  micro_b.operator_group = 'G';
  micro_b.int8_macs = micro_b.int16_macs = 0;
  micro_b.npu_hz = micro_b.ddr_hz = micro_b.cpu_hz = 0;
  micro_b.ddr_bus_bytes = 0;
  micro_b.dram_bytes = 0;
  micro_b.max_hardmax_elements = 0;
  micro_b.max_pool_extent = 7;
  micro_b.div_broadcasts_channels_only = true;
  micro_b.speed = {};
  micro_b.c2_int8 = 8;
  micro_b.c2_half = 0;
  micro_b.align_int8 = kTinyInt8;
  micro_b.output_align_conv_int8 = 8;
  micro_b.depthwise_array = 8;
  micro_b.first_layer = kFirstLayerTiny;
  micro_b.features = kMicroChip;
  micro_b.quantized_dtypes = {"w8a8"};
  rows.push_back(renamed(micro_b, "rv1103b"));
  Platform larger = renamed(micro, "rv1106");
  larger.dram_bytes = 256 * kMiB;
  rows.push_back(larger);
  rows.push_back(renamed(micro_b, "rv1106b"));

  Platform single = renamed(newer, "rv1126b");
  single.compatibility = "rv1126b";
  single.npu_name = "RKNPU f3";
  single.cores = 1;
  single.npu_hz = 950 * kMHz;
  single.ddr_hz = 0;  // the vendor's script holds a placeholder
  single.cpu_hz = 1608 * kMHz;
  single.nbuf_bytes = 512 * kKiB;
  single.multi_core_lut = false;
  single.features = with(kLinuxChip, &Features::sparse_weights);
  std::erase(single.mat_mul.types, 2);  // reported as refused there
  // One core of its relative at a lower clock; the constants tell that chip's memory, buffer included.
  single.speed = scaled(kSpeedNewer, 0.95, 1, 1.25);
  single.speed.ddr_hz = newer.ddr_hz;
  rows.push_back(single);

  // Generation 1: other cores, no published operator limits; placement borrows the most permissive column.
  const Platform first{.name = "rk1806",
                       .generation = 1,
                       .compatibility = "rk1806/rk1808/rk3399pro",
                       .operator_group = 'B',
                       .int8_macs = 1920,
                       .int16_macs = 192,
                       .half_macs = 64,
                       .npu_hz = 792 * kMHz,
                       .ddr_hz = 924 * kMHz,
                       .cpu_hz = 1200 * kMHz,
                       .simulator_hz = 800 * kMHz,
                       .cbuf_banks = 16,
                       .c2_int8 = 16,
                       .c2_half = 8,
                       .align_int8 = kWideInt8,
                       .align_half = kWideHalf,
                       .align_float = kWideFloat,
                       .output_align_conv_int8 = 32,
                       .output_align_conv_half = 16,
                       .packs_channels = true,
                       .table_follows = true,
                       .functions_in_parts = true,
                       .has_shader = true,
                       .interpolates = false,
                       .features = kGeneration1,
                       .mat_mul = kNoMatMul,
                       .quantized_dtypes = kToolkit1Dtypes,
                       .speed = scaled(kSpeedFirst, 1, 1, 1)};
  rows.push_back(first);
  Platform original = renamed(first, "rk1808");
  original.speed = kSpeedFirst;
  rows.push_back(original);
  Platform companion = renamed(first, "rk3399pro", {"rk3399prod"});
  companion.ddr_hz = 934 * kMHz;
  companion.cpu_hz = 1512 * kMHz;
  rows.push_back(companion);
  Platform camera = renamed(first, "rv1109", {"rk1109"});
  camera.compatibility = "rv1109/rv1126";
  camera.int8_macs = 1024;  // from marketed speed and clock (inferred)
  camera.int16_macs = camera.half_macs = 0;
  camera.npu_hz = 594 * kMHz;
  camera.simulator_hz = 0;
  camera.cpu_hz = 1512 * kMHz;
  camera.speed = kSpeedCameraSlow;
  rows.push_back(camera);
  camera = renamed(camera, "rv1126", {"rk1126"});
  camera.npu_hz = 934 * kMHz;
  camera.speed = kSpeedCamera;
  rows.push_back(camera);
  return rows;
}

const std::vector<Platform>& rows() {
  static const std::vector<Platform> table = make_rows();
  return table;
}
ORKNN_MAKE_AT_LOAD(rows);
}  // namespace

double SpeedModel::beside(double compute, double traffic, double table) const {
  return std::pow(std::pow(compute, overlap) + std::pow(traffic, overlap) + std::pow(table, overlap), 1 / overlap);
}

int Platform::c2(DType t) const {
  switch (dtype_bytes(t)) {
    case 1: return std::max(c2_int8, 1);
    case 2: return std::max(c2_half, 1);
    case 4: return std::max(align_float.other, 1);
    default: return 1;
  }
}

const ChannelAlignment& Platform::alignment(DType t) const {
  static const ChannelAlignment none{};
  switch (dtype_bytes(t)) {
    case 1: return align_int8;
    case 2: return align_half;
    case 4: return align_float;
    default: return none;
  }
}

int Platform::macs_per_cycle(DType t) const {
  switch (t) {
    case DType::Int8:
    case DType::UInt8: return int8_macs;
    case DType::Int16:
    case DType::UInt16: return int16_macs;
    case DType::Int4:
    case DType::UInt4: return int4_macs ? int4_macs : int8_macs;
    default: return half_macs ? half_macs : int16_macs;
  }
}

bool Platform::conv_int16() const {
  const auto offers = [&](std::string_view name) {
    return std::find(quantized_dtypes.begin(), quantized_dtypes.end(), name) != quantized_dtypes.end();
  };
  return offers("w16a16i") || offers("dynamic_fixed_point-i16");
}

double Platform::ddr_bytes_per_cycle(int64_t npu_clock, int64_t ddr_clock) const {
  if (npu_clock <= 0) return 0;
  const double exact = static_cast<double>(ddr_clock) * 2 * ddr_bus_bytes * 0.7 / static_cast<double>(npu_clock);
  return std::round(exact * 1000) / 1000;
}

std::vector<std::string_view> Platform::unknown() const {
  std::vector<std::string_view> names;
  const std::pair<std::string_view, bool> facts[] = {{"MACs per cycle", int8_macs == 0 && half_macs == 0},
                                                     {"float16 MACs per cycle", int8_macs > 0 && conv_half && half_macs == 0},
                                                     {"16-bit MACs per cycle", int8_macs > 0 && conv_int16() && int16_macs == 0},
                                                     {"NPU clock", npu_hz == 0},
                                                     {"DDR clock", ddr_hz == 0},
                                                     {"DDR bus width", ddr_bus_bytes == 0},
                                                     {"CPU clock", cpu_hz == 0},
                                                     {"speed", speed.source == SpeedModel::Source::Unknown}};
  for (const auto& [name, missing] : facts)
    if (missing) names.push_back(name);
  return names;
}

std::span<const Platform> all() { return rows(); }

namespace {
std::string to_lower(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}
}  // namespace

const Platform* find(std::string_view name) {
  const std::string wanted = to_lower(name);
  for (const Platform& p : rows())
    if (p.name == wanted || std::find(p.aliases.begin(), p.aliases.end(), wanted) != p.aliases.end()) return &p;
  return nullptr;
}

Result<const Platform*> get(std::string_view name) {
  if (const Platform* p = find(name)) return p;
  std::string names;
  for (const Platform& p : rows()) names += (names.empty() ? "" : ", ") + std::string(p.name);
  std::vector<std::string_view> known;
  for (const Platform& p : rows()) known.push_back(p.name);
  Status problem = invalid_argument("Invalid target_platform '" + std::string(name) + "'").expected("one of " + names);
  // People also write the number alone.
  const std::string wanted = to_lower(name);
  const bool is_number =
      wanted.size() >= 3 && std::all_of(wanted.begin(), wanted.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto named =
      std::find_if(known.begin(), known.end(), [&](std::string_view k) { return is_number && k.ends_with(wanted); });
  const std::string hint = did_you_mean(named != known.end() ? *named : std::string_view(wanted), known);
  if (!hint.empty()) problem.hint(hint);
  return problem;
}

const Platform& default_platform() { return *find("rk3566"); }
bool has_gpu(const Platform& platform) {
  static constexpr std::string_view kWithGpu[] = {"rk3399pro", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588"};
  return std::ranges::find(kWithGpu, platform.name) != std::end(kWithGpu);
}
const Platform& default_toolkit1_platform() { return *find("rk1808"); }

Result<int> cores_of_mask(const Platform& platform, int64_t mask) {
  constexpr int64_t kAll = 0xffff;
  if (mask == 0) return 1;
  if (platform.cores < 2)
    return unsupported(std::string(platform.name) + " has one NPU core, which core_mask cannot choose")
        .found(std::to_string(mask))
        .hint("leave core_mask at NPU_CORE_AUTO");
  if (mask == kAll) return platform.cores;
  const bool is_mask = mask == 1 || mask == 2 || mask == 4 || mask == 3 || mask == 7;
  const int64_t most = (int64_t{1} << platform.cores) - 1;
  if (!is_mask || mask > most)
    return invalid_argument("invalid core_mask " + std::to_string(mask) + " for " + std::string(platform.name) +
                            ", max core mask = " + std::to_string(most))
        .expected("0, 1, 2, 3" + std::string(platform.cores > 2 ? ", 4, 7" : "") + " or 65535");
  return std::popcount(static_cast<uint64_t>(mask));
}

bool compatible(const Platform& a, const Platform& b) { return a.compatibility == b.compatibility; }

}  // namespace orknn::platform
