#include "toolkit/config_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/nearest_name.h"
#include "base/utf8.h"
#include "toolkit/yaml_fields.h"

namespace orknn::toolkit {
namespace {

using data::YamlValue;
using YamlKind = YamlValue::Kind;

YamlValue scalar(std::string text) {
  YamlValue value(YamlKind::Scalar);
  value.text = std::move(text);
  return value;
}
YamlValue list(const std::vector<std::string>& texts) {
  YamlValue value(YamlKind::List);
  for (const std::string& text : texts) value.items.push_back(scalar(text));
  return value;
}

template <auto kField>
Status set_flag(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_flag(value, key));
  return {};
}
template <auto kField>
YamlValue get_flag(const BuildConfig& config) {
  return scalar(config.*kField ? "true" : "false");
}
template <auto kField>
Status set_text(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_text(value, key));
  return {};
}
template <auto kField>
YamlValue get_text(const BuildConfig& config) {
  return scalar(config.*kField);
}
template <auto kField>
Status set_texts(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_texts(value, key));
  return {};
}
template <auto kField>
YamlValue get_texts(const BuildConfig& config) {
  return list(config.*kField);
}
template <auto kField>
Status set_numbers(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_number_lists<double>(value, key));
  config.first_value_for_one_channel = false;
  return {};
}
template <auto kField, class T>
Status set_number(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(const std::string text, as_text(value, key));
  ORKNN_TRY_ASSIGN(config.*kField, as_number<T>(text, value, key));
  return {};
}
template <auto kField>
YamlValue get_number(const BuildConfig& config) {
  return scalar(fmt::format("{}", config.*kField));
}

YamlValue get_distance(const BuildConfig& config) {
  return config.auto_hybrid_euc_thresh ? scalar(fmt::format("{}", *config.auto_hybrid_euc_thresh)) : YamlValue();
}

Status set_platforms(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.other_platforms, as_texts(value, key));
  if (config.other_platforms.empty())
    return value.problem(
        fmt::format("Invalid target_platform [], expect the name of a chip, e.g. '{}'!", platform::default_platform().name));
  config.target_platform = config.other_platforms.front();
  config.other_platforms.erase(config.other_platforms.begin());
  return {};
}

YamlValue get_platforms(const BuildConfig& config) {
  std::vector<std::string> platforms = config.other_platforms;
  platforms.insert(platforms.begin(), config.target_platform);
  return list(platforms);
}

Status set_swaps(BuildConfig& config, const YamlValue& value, std::string_view key) {
  config.quant_img_RGB2BGR.clear();
  for (const YamlValue& flag : value.kind == YamlKind::List ? value.items : std::vector{value}) {
    ORKNN_TRY_ASSIGN(const bool swap, as_flag(flag, key));
    config.quant_img_RGB2BGR.push_back(swap);
  }
  return {};
}

YamlValue get_swaps(const BuildConfig& config) {
  YamlValue value(YamlKind::List);
  for (const bool swap : config.quant_img_RGB2BGR) value.items.push_back(scalar(swap ? "true" : "false"));
  return value;
}

Status set_targets(BuildConfig& config, const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::Map) return value.problem("expected 'layer: cpu' and the like for 'op_target'");
  for (const auto& [layer, target] : value.entries) {
    ORKNN_TRY_ASSIGN(config.op_target[layer], as_text(target, key));
  }
  return {};
}

YamlValue get_targets(const BuildConfig& config) {
  YamlValue value(YamlKind::Map);
  for (const auto& [layer, target] : config.op_target) value.entries.emplace_back(layer, scalar(target));
  return value;
}

// A list of shapes, one shape, or a text of shapes with ';' between them.
Result<std::vector<ir::Dims>> shape_set(const YamlValue& set, std::string_view key) {
  if (set.kind != YamlKind::Scalar) return as_number_lists<int64_t>(set, key);
  std::vector<ir::Dims> shapes;
  for (const std::string& text : pieces_of(set.text, ";")) {
    YamlValue shape = set;
    shape.text = text;
    ORKNN_TRY_ASSIGN(ir::Dims dims, as_numbers<int64_t>(shape, key));
    shapes.push_back(std::move(dims));
  }
  return shapes;
}

Status set_shape_sets(BuildConfig& config, const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::List || value.items.empty()) return value.problem("expected sets of shapes for 'dynamic_input'");
  config.dynamic_input.clear();
  for (const YamlValue& set : value.items) {
    ORKNN_TRY_ASSIGN(std::vector<ir::Dims> shapes, shape_set(set, key));
    config.dynamic_input.push_back(std::move(shapes));
  }
  return {};
}

// Toolkit1: 'M0 M1 M2 S', the inputs separated by '#'.
Status set_channel_means(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(const std::string text, as_text(value, key));
  ChannelValues means, stds;
  for (const std::string& input : pieces_of(text, "#")) {
    std::vector<double> numbers;
    bool sound = true;
    for (const std::string& piece : pieces_of(input, " ")) {
      const auto number = as_number<double>(piece, value, key);
      sound &= number.is_ok();
      if (number) numbers.push_back(*number);
    }
    if (!sound || numbers.size() < 2)
      return value.problem(fmt::format("Invalid channel_mean_value '{}', expect e.g. '128 128 128 128'!", to_utf8(text)));
    stds.emplace_back(numbers.size() - 1, numbers.back());
    numbers.pop_back();
    means.push_back(std::move(numbers));
  }
  config.mean_values = std::move(means);
  config.std_values = std::move(stds);
  config.first_value_for_one_channel = true;
  return {};
}

// Toolkit1: '0 1 2' or '2 1 0', the inputs separated by '#'.
Status set_channel_order(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(const std::string text, as_text(value, key));
  config.reorder_channel.clear();
  for (const std::string& input : pieces_of(text, "#")) {
    const std::vector<std::string> order = pieces_of(input, " ");
    const bool swapped = order == std::vector<std::string>{"2", "1", "0"};
    if (!swapped && order != std::vector<std::string>{"0", "1", "2"})
      return value.problem(fmt::format("Invalid reorder_channel '{}', expect '0 1 2' or '2 1 0'!", to_utf8(text)));
    config.reorder_channel.push_back(swapped);
  }
  return {};
}

using Config = BuildConfig;
using Kind = ConfigKey::Kind;
constexpr ConfigKey kConfigKeys[] = {
    {"auto_hybrid_cos_thresh", Kind::Real, set_number<&Config::auto_hybrid_cos_thresh, double>,
     get_number<&Config::auto_hybrid_cos_thresh>, "cosine that auto_hybrid brings every output to"},
    {"auto_hybrid_euc_thresh", Kind::RealOrNone, set_number<&Config::auto_hybrid_euc_thresh, double>, get_distance,
     "Euclidean distance that auto_hybrid brings every output below"},
    {"batch_size", Kind::Whole, set_number<&Config::batch_size, int64_t>, nullptr,
     "Toolkit1: samples of a calibration batch; epochs says how many batches are used", true},
    {"channel_mean_value", Kind::Text, set_channel_means, nullptr,
     "Toolkit1: means and divisor of the channels, 'M0 M1 M2 S', the inputs separated by '#'", true},
    {"compress_weight", Kind::Flag, set_flag<&Config::compress_weight>, get_flag<&Config::compress_weight>,
     "store weights compressed, where the chip can read them"},
    {"custom_string", Kind::Text, set_text<&Config::custom_string>, get_text<&Config::custom_string>, "text stored in the model"},
    {"disable_rules", Kind::Names, set_texts<&Config::disable_rules>, get_texts<&Config::disable_rules>,
     "passes of the optimizer or steps of the quantizer to leave out"},
    {"dynamic_input", Kind::ShapeSets, set_shape_sets, nullptr, "sets of input shapes that the model runs with"},
    {"enable_flash_attention", Kind::Flag, set_flag<&Config::enable_flash_attention>, nullptr,
     "compute attention as one task, where the chip can"},
    {"epochs", Kind::Whole, set_number<&Config::epochs, int64_t>, nullptr, "Toolkit1: calibration batches to use, -1 for all",
     true},
    {"float_dtype", Kind::Name, set_text<&Config::float_dtype>, get_text<&Config::float_dtype>,
     "number format of layers that are not quantized"},
    {"inputs_yuv_fmt", Kind::Formats, set_texts<&Config::inputs_yuv_fmt>, get_texts<&Config::inputs_yuv_fmt>,
     "format of the pictures an input takes, nv12 for example; once per input"},
    {"mean_values", Kind::NumberLists, set_numbers<&Config::mean_values>, nullptr, "mean of each channel of each input"},
    {"model_pruning", Kind::Flag, set_flag<&Config::model_pruning>, nullptr, "remove channels that no result depends on"},
    {"op_target", Kind::Targets, set_targets, get_targets, "where an op runs"},
    {"optimization_level", Kind::Whole, set_number<&Config::optimization_level, int>, get_number<&Config::optimization_level>,
     "0 to 3"},
    {"quant_img_RGB2BGR", Kind::Flags, set_swaps, get_swaps, "calibration pictures are fed as BGR"},
    {"quantize_weight", Kind::Flag, set_flag<&Config::quantize_weight>, nullptr, "store weights as int8, compute in float"},
    {"quantized_algorithm", Kind::Name, set_text<&Config::quantized_algorithm>, get_text<&Config::quantized_algorithm>,
     "how ranges are found"},
    {"quantized_dtype", Kind::Name, set_text<&Config::quantized_dtype>, get_text<&Config::quantized_dtype>,
     "number format of quantized layers"},
    {"quantized_hybrid_level", Kind::Whole, set_number<&Config::quantized_hybrid_level, int>, nullptr,
     "0 to 3: how many layers stay in float, the most sensitive ones first"},
    {"quantized_method", Kind::Name, set_text<&Config::quantized_method>, get_text<&Config::quantized_method>,
     "what shares a scale of weights"},
    {"registers", Kind::Flag, set_flag<&Config::registers>, get_flag<&Config::registers>,
     "store the weights as the NPU wants them packed, beside its command streams"},
    {"remove_reshape", Kind::Flag, set_flag<&Config::remove_reshape>, get_flag<&Config::remove_reshape>,
     "inputs and outputs keep the shapes of the layers next to them"},
    {"remove_streams", Kind::Flag, set_flag<&Config::remove_streams>, get_flag<&Config::remove_streams>,
     "leave the NPU's command streams out of the file"},
    {"remove_weight", Kind::Flag, set_flag<&Config::remove_weight>, get_flag<&Config::remove_weight>,
     "leave out weights that another model provides"},
    {"reorder_channel", Kind::Text, set_channel_order, nullptr,
     "Toolkit1: '2 1 0' for RGB pictures and a network that takes BGR, the inputs separated by '#'", true},
    {"single_core_mode", Kind::Flag, set_flag<&Config::single_core_mode>, get_flag<&Config::single_core_mode>,
     "plan every layer for one core"},
    {"sparse_infer", Kind::Flag, set_flag<&Config::sparse_infer>, get_flag<&Config::sparse_infer>,
     "use the chip's kernels for sparse weights"},
    {"std_values", Kind::NumberLists, set_numbers<&Config::std_values>, nullptr, "divisor of each channel of each input"},
    {"target_platform", Kind::Platforms, set_platforms, get_platforms, "chip to build for"},
};

// Legal in other releases. Their keys without an effect are warned of.
constexpr OldConfigKey kOldConfigKeys[] = {
    {"img_quant_RGB2BGR", "quant_img_RGB2BGR"},
    {"auto_hybrid_quant", ""},
    {"check_data", ""},
    {"core_num", ""},
    {"custom_inf", ""},
    {"enable_rnn_loop", ""},
    {"input_attrs", ""},
    {"nbuf_prefer", ""},
    {"npu_do_output_nhwc", ""},
    {"output_optimize", ""},
    {"output_tensor_type", ""},
    {"set_op_attr", ""},
    {"sram_prefer", ""},
    {"stream_op", ""},
    {"subgraph_dtype_target", ""},
    {"target_sub_class", ""},
    {"caffe_mean_file", "", true},
    {"conv_mul_merge", "", true},
    {"deconv_merge", "", true},
    {"do_sparse_network", "", true},
    {"dtype", "", true},
    {"force_builtin_perm", "", true},
    {"force_gray", "", true},
    {"input_fitting", "", true},
    {"input_normalization", "", true},
    {"inputs_scale_range", "", true},
    {"mean_file", "", true},
    {"merge_dequant_layer_and_output_node", "", true},
    {"mmse_epoch", "", true},
    {"model_data_format", "", true},
    {"model_quantize", "", true},
    {"need_horizontal_merge", "", true},
    {"optimize", "", true},
    {"quantize_input_node", "", true},
    {"quantized_divergence_nbins", "", true},
    {"quantized_hybrid", "", true},
    {"quantized_moving_alpha", "", true},
    {"random_brightness", "", true},
    {"random_contrast", "", true},
    {"random_crop", "", true},
    {"random_flip", "", true},
    {"random_mirror", "", true},
    {"remove_tensorflow_output_permute", "", true},
    {"restart", "", true},
    {"samples", "", true},
};

}  // namespace

std::span<const ConfigKey> config_keys() { return kConfigKeys; }

std::span<const OldConfigKey> old_config_keys() { return kOldConfigKeys; }

Status set_option(BuildConfig& config, const std::string& key, const data::YamlValue& value) {
  const auto row = std::ranges::find(kConfigKeys, key, &ConfigKey::key);
  if (row != std::end(kConfigKeys)) {
    if (value.kind == YamlKind::Null) return {};
    // The first releases of Toolkit2 had it as a truth value.
    if (key == "reorder_channel" && as_flag(value, key)) return set_option(config, "quant_img_RGB2BGR", value);
    config.toolkit1 |= row->toolkit1;
    return row->set(config, value, key);
  }
  const auto old = std::ranges::find(kOldConfigKeys, key, &OldConfigKey::key);
  if (old != std::end(kOldConfigKeys)) {
    if (!old->now.empty()) return set_option(config, std::string(old->now), value);
    config.toolkit1 |= old->toolkit1 && value.kind != YamlKind::Null;
    log(LogLevel::Warn, "config", fmt::format("The '{}' has no effect and is ignored!", key));
    return {};
  }
  std::vector<std::string_view> known;
  for (const ConfigKey& r : kConfigKeys) known.push_back(r.key);
  return value.problem(fmt::format("Invalid config key '{}'", to_utf8(key))).hint(did_you_mean(key, known));
}

}  // namespace orknn::toolkit
