#include "toolkit/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/nearest_name.h"
#include "ops/resample/yuv_to_rgb.h"
#include "optimize/pipeline.h"
#include "platform/toolkit1.h"
#include "quantize/steps.h"
#include "silicon/network.h"
#include "toolkit/shape_sets.h"

namespace orknn::toolkit {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& n : names) text += (text.size() > 1 ? ", '" : "'") + n + "'";
  return text + "]";
}

Status not_in(std::string_view what, const std::string& value, const std::vector<std::string>& legal) {
  Status problem = invalid_argument(fmt::format("Invalid {}, expect in {}!", what, quoted_list(legal)));
  if (const std::string meant = did_you_mean(value, legal); !meant.empty()) problem.hint(meant);
  return problem;
}

void one_of(Status& problems, std::string_view key, const std::string& value, const std::vector<std::string>& legal) {
  if (std::find(legal.begin(), legal.end(), value) == legal.end())
    problems.also(not_in(fmt::format("{} '{}'", key, value), value, legal));
}

// Users also write what other tools call a number format.
Status unknown_dtype(const std::string& value, const std::vector<std::string>& legal) {
  Status problem = not_in(fmt::format("quantized_dtype '{}'", value), value, legal);
  if (value == "int8" || value == "i8" || value == "uint8" || value == "u8") problem.hint("did you mean 'w8a8'?");
  if (value == "int16" || value == "i16") problem.hint("did you mean 'w16a16i'?");
  if (value.starts_with("fp") || value.starts_with("float"))
    problem.hint("floats need no quantization: build(do_quantization=False)");
  return problem;
}

void warn(const std::string& text) { log(LogLevel::Warn, "config", text); }

const platform::Platform* check_platforms(const BuildConfig& c, Status& problems) {
  const platform::Platform* chip = &platform::default_platform();
  const platform::Platform& of_toolkit1 = platform::default_toolkit1_platform();
  const bool means_toolkit1 =
      c.toolkit1 || std::ranges::find(of_toolkit1.quantized_dtypes, c.quantized_dtype) != of_toolkit1.quantized_dtypes.end();
  if (c.target_platform.empty() && means_toolkit1) {
    chip = &of_toolkit1;
    warn(fmt::format("The target_platform is not set in config, using default target platform {}.", chip->name));
  } else if (c.target_platform.empty()) {
    warn(fmt::format("'target_platform' is None, use {} as default, set it to the chip you build for!", chip->name));
  } else if (auto found = platform::get(c.target_platform)) {
    chip = *found;
  } else {
    problems.also(found.status());
  }
  for (const std::string& name : c.other_platforms) {
    const auto other = platform::get(name);
    if (!other)
      problems.also(other.status());
    else if ((*other)->compatibility != chip->compatibility)
      problems.also(invalid_argument(fmt::format(
          "Invalid target_platform '{}' beside '{}', the chips of a list must run the same model: build one model for "
          "each!",
          name, c.target_platform)));
  }
  return chip;
}

void check_quantization(const BuildConfig& c, const platform::Platform& chip, Status& problems) {
  if (!c.quantized_algorithm.empty()) one_of(problems, "quantized_algorithm", c.quantized_algorithm, quantized_algorithms());
  one_of(problems, "quantized_method", c.quantized_method, quantized_methods());
  const std::vector<std::string> dtypes = quantized_dtypes();
  if (std::find(dtypes.begin(), dtypes.end(), c.quantized_dtype) == dtypes.end())
    problems.also(unknown_dtype(c.quantized_dtype, {dtypes.begin(), dtypes.begin() + 5}));
  else if (c.quantized_dtype != BuildConfig().quantized_dtype)  // the default may stay where nothing is quantized
    problems.also(number_format(chip, c.quantized_dtype).status());
  if (c.quantized_algorithm == "gdq" && c.quantized_dtype != "w4a16" && c.quantized_dtype != "w8a16")
    problems.also(invalid_argument("Invalid quantized_algorithm 'gdq', it needs quantized_dtype 'w4a16' or 'w8a16'!"));
  if (c.quantized_method.starts_with("group") && c.quantized_dtype != "w4a16")
    problems.also(
        invalid_argument(fmt::format("Invalid quantized_method '{}', it needs quantized_dtype 'w4a16'!", c.quantized_method)));
  if (c.quantized_hybrid_level < 0 || c.quantized_hybrid_level > 3)
    problems.also(
        invalid_argument(fmt::format("Invalid quantized_hybrid_level {}, expect in [0, 1, 2, 3]!", c.quantized_hybrid_level)));
  if (c.batch_size < 1)
    problems.also(invalid_argument(fmt::format("Invalid batch_size {}, expect a number of samples!", c.batch_size)));
  if (c.epochs < 1 && c.epochs != -1)
    problems.also(invalid_argument(fmt::format("Invalid epochs {}, expect -1 or a number of batches!", c.epochs)));
  if (!(c.auto_hybrid_cos_thresh > 0 && c.auto_hybrid_cos_thresh <= 1))
    problems.also(invalid_argument(
        fmt::format("Invalid auto_hybrid_cos_thresh {}, expect a number above 0 and up to 1!", c.auto_hybrid_cos_thresh)));
  if (c.auto_hybrid_euc_thresh && !(*c.auto_hybrid_euc_thresh > 0))
    problems.also(invalid_argument(
        fmt::format("Invalid auto_hybrid_euc_thresh {}, expect None or a number above 0!", *c.auto_hybrid_euc_thresh)));
}

void check_inputs(const BuildConfig& c, Status& problems) {
  const auto check_numbers = [&](std::string_view key, const std::optional<ChannelValues>& values, bool zero_allowed) {
    if (!values) return;
    bool finite = true, zero = false;
    for (const std::vector<double>& row : *values)
      for (double v : row) {
        finite &= std::isfinite(static_cast<float>(v));
        zero |= static_cast<float>(v) == 0;
      }
    if (!finite) problems.also(invalid_argument(fmt::format("Invalid {} {}, expect finite numbers!", key, *values)));
    if (zero && !zero_allowed) problems.also(invalid_argument(fmt::format("Invalid {} {}, zero is not allowed!", key, *values)));
  };
  check_numbers("mean_values", c.mean_values, true);
  check_numbers("std_values", c.std_values, false);
  const auto is_set = [](const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); };
  if (is_set(c.reorder_channel) && is_set(c.quant_img_RGB2BGR))
    problems.also(invalid_argument(
        "reorder_channel '2 1 0' swaps the channels of calibration pictures too, quant_img_RGB2BGR would swap them back!"));
  for (const std::string& format : c.inputs_yuv_fmt)
    if (!format.empty()) one_of(problems, "inputs_yuv_fmt", format, ops::picture_formats());
  if (std::ranges::any_of(c.inputs_yuv_fmt, [](const std::string& f) { return !f.empty(); }) && !c.dynamic_input.empty())
    problems.also(invalid_argument("inputs_yuv_fmt and dynamic_input exclude each other: a YUV picture has one size!"));
  const auto is_extent = [](int64_t d) { return d > 0 && d <= INT32_MAX; };
  for (const std::vector<ir::Dims>& set : c.dynamic_input)
    if (set.empty() || set.size() != c.dynamic_input[0].size() ||
        !std::all_of(set.begin(), set.end(),
                     [&](const ir::Dims& shape) { return std::all_of(shape.begin(), shape.end(), is_extent); }))
      problems.also(invalid_argument(fmt::format(
          "Invalid dynamic_input set {}, expect one shape of positive numbers per input, as many as in the other sets!",
          to_text(set))));
}

// What is legal but does not do what the user may expect.
void warn_of_options_without_effect(const BuildConfig& c, const platform::Platform& chip) {
  if (c.enable_flash_attention && !chip.features.flash_attention)
    warn(fmt::format("The 'enable_flash_attention' has no effect on {}, it does not compute attention in its buffers!",
                     chip.name));
  if (c.sparse_infer && !chip.features.sparse_weights)
    warn(fmt::format("The 'sparse_infer' has no effect on {}, it has no kernels for sparse weights!", chip.name));
  if (c.compress_weight && !chip.features.weight_compression)
    warn(fmt::format("The 'compress_weight' has no effect on {}, it cannot read compressed weights!", chip.name));
  if (c.single_core_mode && chip.cores == 1)
    warn(fmt::format("The 'single_core_mode' has no effect on {}, it has one core!", chip.name));
}

const quantize::Step* find_step(std::string_view name) {
  const auto steps = quantize::steps();
  const auto step = std::ranges::find(steps, name, &quantize::Step::name);
  return step == steps.end() ? nullptr : &*step;
}

// Names of passes and of steps of the quantizer. Scripts may leave out rules that only the vendor's optimizer has: a name that is
// not known is no error there.
void check_passes(const BuildConfig& c, Status& problems) {
  std::vector<std::string_view> known;
  for (const optimize::Pass& p : optimize::pass_catalogue()) known.push_back(p.name);
  const size_t passes = known.size();
  for (const quantize::Step& s : quantize::steps()) known.push_back(s.name);
  const auto is_known = [&](std::string_view name) { return std::ranges::find(known, name) != known.end(); };
  for (const std::string& name : c.disable_rules) {
    const quantize::Step* step = find_step(name);
    if (step && step->required)
      problems.also(
          invalid_argument(fmt::format("the step '{}' cannot be left out", name)).hint("nothing is quantized without it"));
    else if (const std::string meant = is_known(name) ? "" : did_you_mean(name, known); !is_known(name))
      warn(fmt::format("The rule '{}' in disable_rules is not known and is ignored{}", name, meant.empty() ? "!" : ", " + meant));
  }
  const auto check_name = [&](const std::string& name, std::span<const std::string_view> legal) {
    if (std::ranges::find(legal, name) != legal.end()) return;
    Status problem = invalid_argument(fmt::format("there is no pass '{}'", name));
    const std::string meant = did_you_mean(name, legal);
    problems.also(meant.empty() ? problem.expected(fmt::format("one of {}", fmt::join(legal, ", "))) : problem.hint(meant));
  };
  for (const std::string& name : c.dump_after) check_name(name, known);
  if (find_step(c.stop_after))
    problems.also(invalid_argument(fmt::format("'{}' is a step of quantization, not a pass", c.stop_after))
                      .hint("building stops after passes of the optimizer only"));
  else if (!c.stop_after.empty())
    check_name(c.stop_after, std::span(known).first(passes));
}

void check_files(const BuildConfig& c, const platform::Platform& chip, Status& problems) {
  if (c.remove_weight && !c.dynamic_input.empty())
    problems.also(invalid_argument("Invalid remove_weight True, models with 'dynamic_input' cannot share weights!"));
  if (c.registers && !silicon::knows_registers_of(chip))
    problems.also(unsupported("the registers of this chip are not known, so its files hold no command streams")
                      .found(std::string(chip.name))
                      .hint("leave out the option 'registers'"));
  if (c.registers && c.remove_weight)
    problems.also(invalid_argument("'registers' stores the weights in packed form, so it cannot be combined with 'remove_weight'")
                      .hint("leave out 'registers' or 'remove_weight'"));
  if (c.registers && c.remove_streams)
    problems.also(invalid_argument("'registers' stores packed weights beside the streams that 'remove_streams' leaves out")
                      .hint("leave out 'registers' or 'remove_streams'"));
}
}  // namespace

std::vector<std::string> quantized_algorithms() {
  return {"normal", "mmse", "kl_divergence", "gdq", "moving_average", "adaround"};
}

std::vector<std::string> quantized_methods() {
  std::vector<std::string> methods{"layer", "channel"};
  for (int size = 32; size <= 256; size += 32) methods.push_back(fmt::format("group{}", size));
  return methods;
}

std::vector<std::string> quantized_dtypes() {
  return {"w8a8",
          "w8a16",
          "w16a16i",
          "w16a16i_dfp",
          "w4a16",
          "asymmetric_quantized-8",
          "asymmetric_quantized-u8",
          "asymmetric_affine-u8",
          "dynamic_fixed_point-8",
          "dynamic_fixed_point-i8",
          "dynamic_fixed_point-16",
          "dynamic_fixed_point-i16"};
}

Result<quantize::NumberFormat> number_format(const platform::Platform& chip, const std::string& quantized_dtype) {
  const auto offers = [&](std::string_view name) {
    return std::find(chip.quantized_dtypes.begin(), chip.quantized_dtypes.end(), name) != chip.quantized_dtypes.end();
  };
  const bool first_generation = offers("asymmetric_affine-u8");
  std::string meant = quantized_dtype;
  if (meant == "asymmetric_quantized-8") meant = "w8a8";
  if (first_generation && meant == "w8a8") meant = "asymmetric_affine-u8";  // Toolkit1's default
  ORKNN_TRY_ASSIGN(quantize::NumberFormat format, quantize::number_format(meant));
  if (!first_generation && meant.starts_with("asymmetric_")) {
    meant = "w8a8";
    format = {.per_tensor = true};
  }
  if (!first_generation && meant.starts_with("dynamic_fixed_point")) meant = format.bits() == 16 ? "w16a16i_dfp" : "w8a8";
  if (offers(meant)) return format;
  if (chip.quantized_dtypes.empty())
    return invalid_argument(
               fmt::format("Invalid quantized_dtype '{}' for {}, it only computes in float16!", quantized_dtype, chip.name))
        .hint("call build(do_quantization=False)");
  return invalid_argument(fmt::format("Invalid quantized_dtype '{}' for {}, expect in {}!", quantized_dtype, chip.name,
                                      quoted_list({chip.quantized_dtypes.begin(), chip.quantized_dtypes.end()})));
}

size_t calibration_samples(const BuildConfig& config, size_t count) {
  if (config.epochs < 1) return count;
  const uint64_t batch = std::min<uint64_t>(static_cast<uint64_t>(config.batch_size), count);
  const auto epochs = static_cast<uint64_t>(config.epochs);
  return batch == 0 || epochs >= count / batch + 1 ? count : static_cast<size_t>(std::min<uint64_t>(batch * epochs, count));
}

Status check_batch(int64_t samples) {
  if (samples >= 1 && samples <= kMostSamplesAtOnce) return {};
  return invalid_argument(
      fmt::format("Invalid rknn_batch_size {}, expect a number of samples from 1 to {}!", samples, kMostSamplesAtOnce));
}

Status check_optimization_level(int level) {
  if (level >= 0 && level <= 3) return {};
  return invalid_argument(fmt::format("Invalid optimization_level {}, expect in [0, 1, 2, 3]!", level));
}

Status check_op_target(const std::map<std::string, std::string>& op_target) {
  const std::vector<std::string> devices{"cpu", "npu", "gpu", "auto"};
  Status problems;
  for (const auto& [key, value] : op_target)
    if (std::find(devices.begin(), devices.end(), value) == devices.end())
      problems.also(not_in(fmt::format("op_target '{}' for '{}'", value, key), value, devices));
  return problems;
}

void warn_of_quantized_build(const BuildConfig& c) {
  if (c.quantize_weight)
    warn("The 'quantize_weight' has no effect when the whole model is quantized, it is for builds without quantization!");
}

Result<const platform::Platform*> check(const BuildConfig& c) {
  Status problems;
  problems.also(check_batch(c.rknn_batch_size));
  const platform::Platform* chip = check_platforms(c, problems);
  one_of(problems, "float_dtype", c.float_dtype, {"float16", "float32"});
  check_quantization(c, *chip, problems);
  problems.also(check_optimization_level(c.optimization_level));
  problems.also(check_op_target(c.op_target));
  if (c.custom_string.size() > 1023) problems.also(invalid_argument("Invalid custom_string, expect at most 1023 bytes!"));
  check_inputs(c, problems);
  check_passes(c, problems);
  check_files(c, *chip, problems);
  if (!problems) return problems;

  warn_of_options_without_effect(c, *chip);
  if (!c.dynamic_input.empty()) {
    const size_t largest = largest_set(c.dynamic_input);
    warn(
        fmt::format("The 'dynamic_input' function has been enabled, the MaxShape is dynamic_input[{}] = {}!\n"
                    "          1. Calibration, eval_perf and eval_memory use the MaxShape.\n"
                    "          2. The inputs of every inference must have the shapes of one set.",
                    largest, to_text(c.dynamic_input[largest])));
  }
  return chip;
}

}  // namespace orknn::toolkit
