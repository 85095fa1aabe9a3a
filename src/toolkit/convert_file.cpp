#include "toolkit/convert_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "base/utf8.h"

namespace orknn::toolkit {
namespace {

using data::YamlValue;
using YamlKind = YamlValue::Kind;
constexpr uint64_t kMaxConvertFileBytes = 1 << 20;

Result<std::string> as_text(const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::Scalar) return value.problem(fmt::format("expected a text for '{}'", key));
  return value.text;
}

Result<bool> as_flag(const YamlValue& value, std::string_view key) {
  constexpr std::array<std::string_view, 6> kYes{"true", "True", "TRUE", "yes", "on", "1"},
      kNo{"false", "False", "FALSE", "no", "off", "0"};
  const auto is_one_of = [&](const auto& words) { return std::find(words.begin(), words.end(), value.text) != words.end(); };
  if (value.kind == YamlKind::Scalar && is_one_of(kYes)) return true;
  if (value.kind == YamlKind::Scalar && is_one_of(kNo)) return false;
  return value.problem(fmt::format("expected true or false for '{}'", key));
}

template <class T>
Result<T> as_number(std::string_view text, const YamlValue& where, std::string_view key) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stopped != end || text.empty())
    return where.problem(fmt::format("expected numbers for '{}', found '{}'", key, to_utf8(text)));
  return number;
}

// "1, 3, 224" in the pieces between `separators`, blanks around them left out.
std::vector<std::string> pieces_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    const size_t first = piece.find_first_not_of(' ');
    if (first != piece.npos) pieces.emplace_back(piece.substr(first, piece.find_last_not_of(' ') - first + 1));
    at = end + 1;
  }
  return pieces;
}

// Numbers of a list, or of a text with commas or blanks between them.
template <class T>
Result<std::vector<T>> as_numbers(const YamlValue& value, std::string_view key) {
  std::vector<T> numbers;
  if (value.kind == YamlKind::Scalar) {
    for (const std::string& piece : pieces_of(value.text, ", ")) {
      ORKNN_TRY_ASSIGN(const T number, as_number<T>(piece, value, key));
      numbers.push_back(number);
    }
    return numbers;
  }
  if (value.kind != YamlKind::List) return value.problem(fmt::format("expected a list of numbers for '{}'", key));
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(const std::string text, as_text(item, key));
    ORKNN_TRY_ASSIGN(const T number, as_number<T>(text, item, key));
    numbers.push_back(number);
  }
  return numbers;
}

// One list for a model with one input, or a list of lists.
template <class T>
Result<std::vector<std::vector<T>>> as_number_lists(const YamlValue& value, std::string_view key) {
  std::vector<std::vector<T>> lists;
  const bool nested = value.kind == YamlKind::List && !value.items.empty() && value.items[0].kind == YamlKind::List;
  if (!nested) {
    ORKNN_TRY_ASSIGN(std::vector<T> one, as_numbers<T>(value, key));
    lists.push_back(std::move(one));
    return lists;
  }
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(std::vector<T> one, as_numbers<T>(item, key));
    lists.push_back(std::move(one));
  }
  return lists;
}

Result<std::vector<std::string>> as_texts(const YamlValue& value, std::string_view key) {
  if (value.kind == YamlKind::Scalar) return std::vector<std::string>{value.text};
  std::vector<std::string> texts;
  if (value.kind != YamlKind::List) return value.problem(fmt::format("expected a list for '{}'", key));
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(std::string text, as_text(item, key));
    texts.push_back(std::move(text));
  }
  return texts;
}

// --- keys of config()

using SetOption = Status (*)(BuildConfig&, const YamlValue&, std::string_view key);

template <auto kField>
Status set_flag(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_flag(value, key));
  return {};
}
template <auto kField>
Status set_text(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_text(value, key));
  return {};
}
template <auto kField>
Status set_numbers(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.*kField, as_number_lists<double>(value, key));
  return {};
}
template <auto kField, class T>
Status set_number(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(const std::string text, as_text(value, key));
  ORKNN_TRY_ASSIGN(config.*kField, as_number<T>(text, value, key));
  return {};
}

Status set_platforms(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.other_platforms, as_texts(value, key));
  if (config.other_platforms.empty()) return value.problem("expected a chip for 'target_platform'");
  config.target_platform = config.other_platforms.front();
  config.other_platforms.erase(config.other_platforms.begin());
  return {};
}

Status set_swaps(BuildConfig& config, const YamlValue& value, std::string_view key) {
  config.quant_img_RGB2BGR.clear();
  for (const YamlValue& flag : value.kind == YamlKind::List ? value.items : std::vector{value}) {
    ORKNN_TRY_ASSIGN(const bool swap, as_flag(flag, key));
    config.quant_img_RGB2BGR.push_back(swap);
  }
  return {};
}

Status set_targets(BuildConfig& config, const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::Map) return value.problem("expected 'layer: cpu' and the like for 'op_target'");
  for (const auto& [layer, target] : value.entries) {
    ORKNN_TRY_ASSIGN(config.op_target[layer], as_text(target, key));
  }
  return {};
}

Status set_rules(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.disable_rules, as_texts(value, key));
  return {};
}

Status set_shape_sets(BuildConfig& config, const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::List || value.items.empty()) return value.problem("expected sets of shapes for 'dynamic_input'");
  config.dynamic_input.clear();
  for (const YamlValue& set : value.items) {
    ORKNN_TRY_ASSIGN(std::vector<ir::Dims> shapes, as_number_lists<int64_t>(set, key));
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
    for (const std::string& piece : pieces_of(input, " ")) {
      ORKNN_TRY_ASSIGN(const double number, as_number<double>(piece, value, key));
      numbers.push_back(number);
    }
    if (numbers.size() < 2) return value.problem("expected means and a scale for 'channel_mean_value', e.g. 128 128 128 128");
    stds.emplace_back(numbers.size() - 1, numbers.back());
    numbers.pop_back();
    means.push_back(std::move(numbers));
  }
  config.mean_values = std::move(means);
  config.std_values = std::move(stds);
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
      return value.problem("expected 0 1 2 or 2 1 0 for 'reorder_channel'");
    config.reorder_channel.push_back(swapped);
  }
  return {};
}

Status set_picture_formats(BuildConfig& config, const YamlValue& value, std::string_view key) {
  ORKNN_TRY_ASSIGN(config.inputs_yuv_fmt, as_texts(value, key));
  return {};
}

struct OptionRow {
  std::string_view key;
  SetOption set;
};
using Config = BuildConfig;
constexpr OptionRow kOptionRows[] = {
    {"auto_hybrid_cos_thresh", set_number<&Config::auto_hybrid_cos_thresh, double>},
    {"auto_hybrid_euc_thresh", set_number<&Config::auto_hybrid_euc_thresh, double>},
    {"channel_mean_value", set_channel_means},
    {"compress_weight", set_flag<&Config::compress_weight>},
    {"custom_string", set_text<&Config::custom_string>},
    {"disable_rules", set_rules},
    {"dynamic_input", set_shape_sets},
    {"enable_flash_attention", set_flag<&Config::enable_flash_attention>},
    {"float_dtype", set_text<&Config::float_dtype>},
    {"inputs_yuv_fmt", set_picture_formats},
    {"mean_values", set_numbers<&Config::mean_values>},
    {"model_pruning", set_flag<&Config::model_pruning>},
    {"op_target", set_targets},
    {"optimization_level", set_number<&Config::optimization_level, int>},
    {"quant_img_RGB2BGR", set_swaps},
    {"quantize_weight", set_flag<&Config::quantize_weight>},
    {"quantized_algorithm", set_text<&Config::quantized_algorithm>},
    {"quantized_dtype", set_text<&Config::quantized_dtype>},
    {"quantized_hybrid_level", set_number<&Config::quantized_hybrid_level, int>},
    {"quantized_method", set_text<&Config::quantized_method>},
    {"remove_reshape", set_flag<&Config::remove_reshape>},
    {"remove_weight", set_flag<&Config::remove_weight>},
    {"reorder_channel", set_channel_order},
    {"single_core_mode", set_flag<&Config::single_core_mode>},
    {"sparse_infer", set_flag<&Config::sparse_infer>},
    {"std_values", set_numbers<&Config::std_values>},
    {"target_platform", set_platforms},
};

// Keys of older releases that change nothing here.
constexpr std::string_view kKeysWithoutEffect[] = {
    "batch_size",
    "epochs",
    "need_horizontal_merge",
    "quantized_moving_alpha",
    "mmse_epoch",
    "output_optimize",
    "force_builtin_perm",
    "quantize_input_node",
    "deconv_merge",
    "conv_mul_merge",
    "do_sparse_network",
    "quantized_divergence_nbins",
    "sram_prefer",
    "nbuf_prefer",
    "check_data",
    "merge_dequant_layer_and_output_node",
    "target_sub_class",
};

// --- the description of a model

// Keys of a model beside those that are read; Toolkit1 wrote some that nothing depends on.
constexpr std::string_view kModelKeys[] = {"name",
                                           "platform",
                                           "model_file_path",
                                           "prototxt_file_path",
                                           "caffemodel_file_path",
                                           "darknet_cfg_path",
                                           "darknet_weights_path",
                                           "quantize",
                                           "dataset",
                                           "subgraphs",
                                           "configs",
                                           "source",
                                           "dequant_mean",
                                           "dequant_scale"};

std::string path_beside(const std::string& path, const std::string& folder) {
  const std::filesystem::path beside = std::filesystem::path(folder) / path;  // an absolute path stays what it is
  std::error_code ignored;
  if (!std::filesystem::exists(beside, ignored) && std::filesystem::exists(path, ignored)) return path;
  return beside.lexically_normal().string();
}

// One model of the file while it is read.
class ModelReader {
 public:
  ModelReader(const YamlValue& model, const std::string& folder) : model_(model), folder_(folder) {}

  Result<ConvertFile> run(std::string name) {
    if (model_.kind != YamlKind::Map) return model_.problem("expected the description of a model");
    warn_of_unknown_keys();
    if (const YamlValue* own = model_.find("name")) {
      ORKNN_TRY_ASSIGN(name, as_text(*own, "name"));
    }
    if (name.empty() || name.find('/') != name.npos || name == "." || name == "..")
      return model_.problem("expected a 'name' that can be a file name");
    file_.name = std::move(name);
    ORKNN_TRY(read_files());
    ORKNN_TRY(read_subgraphs());
    ORKNN_TRY(read_quantization());
    if (const YamlValue* configs = model_.find("configs")) {
      if (configs->kind != YamlKind::Map && configs->kind != YamlKind::Null)
        return configs->problem("expected 'key: value' below 'configs'");
      file_.configs = *configs;
    }
    return std::move(file_);
  }

 private:
  void warn_of_unknown_keys() const {
    for (const auto& [key, value] : model_.entries)
      if (std::find(std::begin(kModelKeys), std::end(kModelKeys), key) == std::end(kModelKeys))
        log(LogLevel::Warn, "rknn_convert",
            fmt::format("line {}: the '{}' is not known and is ignored!", value.line, to_utf8(key)));
  }

  Result<std::string> path(const char* key) const {
    const YamlValue* value = model_.find(key);
    if (!value) return model_.problem(fmt::format("'{}' is missing", key));
    ORKNN_TRY_ASSIGN(const std::string text, as_text(*value, key));
    return path_beside(text, folder_);
  }

  Status read_files() {
    const YamlValue* platform = model_.find("platform");
    if (!platform) return model_.problem("'platform' is missing: the framework of the model");
    ORKNN_TRY_ASSIGN(file_.source.framework, as_text(*platform, "platform"));
    const std::string& framework = file_.source.framework;
    if (!importer::find_importer(framework)) {
      std::vector<std::string_view> known;
      for (const importer::Importer* i : importer::importers()) known.push_back(i->name);
      return platform->problem(fmt::format("there is no framework '{}'", to_utf8(framework)))
          .hint(did_you_mean(framework, known));
    }
    const bool caffe = framework == "caffe", darknet = framework == "darknet";
    ORKNN_TRY_ASSIGN(file_.source.path, path(caffe ? "prototxt_file_path" : darknet ? "darknet_cfg_path" : "model_file_path"));
    const char* weights = caffe ? "caffemodel_file_path" : "darknet_weights_path";
    if ((caffe || darknet) && model_.find(weights)) {
      ORKNN_TRY_ASSIGN(std::string file, path(weights));
      file_.source.other_files.push_back(std::move(file));
    }
    return {};
  }

  Status read_subgraphs() {
    const YamlValue* parts = model_.find("subgraphs");
    if (!parts || parts->kind == YamlKind::Null) return {};
    if (parts->kind != YamlKind::Map) return parts->problem("expected inputs, outputs and input_size_list below 'subgraphs'");
    importer::ImportOptions& options = file_.source.options;
    for (const auto& [key, value] : parts->entries) {
      if (value.kind == YamlKind::Null) continue;
      if (key == "inputs") {
        ORKNN_TRY_ASSIGN(options.inputs, as_texts(value, key));
      } else if (key == "outputs") {
        ORKNN_TRY_ASSIGN(options.outputs, as_texts(value, key));
      } else if (key == "input_size_list" || key == "input-size-list") {
        ORKNN_TRY(read_sizes(value));
      } else {
        return value.problem(fmt::format("there is no key '{}' below 'subgraphs'", to_utf8(key)));
      }
    }
    return {};
  }

  // A list of shapes, each a text like 1,3,224,224 or a list; a text alone is the shape of the only input.
  Status read_sizes(const YamlValue& sizes) {
    const bool one = sizes.kind == YamlKind::Scalar;
    if (!one && sizes.kind != YamlKind::List) return sizes.problem("expected a list of shapes for 'input_size_list'");
    for (const YamlValue& shape : one ? std::vector{sizes} : sizes.items) {
      ORKNN_TRY_ASSIGN(ir::Dims dims, as_numbers<int64_t>(shape, "input_size_list"));
      file_.source.options.input_size_list.push_back(std::move(dims));
    }
    return {};
  }

  Status read_quantization() {
    const YamlValue* dataset = model_.find("dataset");
    if (dataset && dataset->kind != YamlKind::Null) {
      ORKNN_TRY_ASSIGN(file_.dataset, path("dataset"));
    }
    const YamlValue* quantize = model_.find("quantize");
    file_.do_quantization = !file_.dataset.empty();
    if (quantize) {
      ORKNN_TRY_ASSIGN(file_.do_quantization, as_flag(*quantize, "quantize"));
    }
    if (file_.do_quantization && file_.dataset.empty()) return quantize->problem("'quantize' needs a 'dataset'");
    return {};
  }

  const YamlValue& model_;
  const std::string& folder_;
  ConvertFile file_;
};

}  // namespace

Status set_option(BuildConfig& config, const std::string& key, const data::YamlValue& value) {
  const auto row = std::find_if(std::begin(kOptionRows), std::end(kOptionRows), [&](const OptionRow& r) { return r.key == key; });
  if (row != std::end(kOptionRows)) return value.kind == YamlKind::Null ? Status() : row->set(config, value, key);
  if (std::find(std::begin(kKeysWithoutEffect), std::end(kKeysWithoutEffect), key) != std::end(kKeysWithoutEffect)) {
    log(LogLevel::Warn, "config", fmt::format("The '{}' has no effect and is ignored!", key));
    return {};
  }
  std::vector<std::string_view> known;
  for (const OptionRow& r : kOptionRows) known.push_back(r.key);
  return value.problem(fmt::format("Invalid config key '{}'", to_utf8(key))).hint(did_you_mean(key, known));
}

Result<BuildConfig> config_of(const ConvertFile& file) {
  BuildConfig config;
  Status problems;
  for (const auto& [key, value] : file.configs.entries) problems.also(set_option(config, key, value));
  if (!problems) return problems;
  return config;
}

Result<std::vector<ConvertFile>> parse_convert_file(std::string_view text, const std::string& folder) {
  ORKNN_TRY_ASSIGN(const YamlValue file, data::parse_yaml(text));
  const YamlValue* models = file.find("models");
  if (!models || models->kind != YamlKind::Map || models->entries.empty())
    return invalid_argument("the file describes no model: 'models' is missing").hint("docs/command_line.md shows one");
  std::vector<ConvertFile> all;
  const YamlValue* platform = models->find("platform");
  if (models->find("name") || (platform && platform->kind == YamlKind::Scalar)) {
    ORKNN_TRY_ASSIGN(ConvertFile one, ModelReader(*models, folder).run(""));
    all.push_back(std::move(one));
    return all;
  }
  for (const auto& [name, model] : models->entries) {
    ORKNN_TRY_ASSIGN(ConvertFile one, ModelReader(model, folder).run(name));
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<ConvertFile>> read_convert_file(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  if (file->bytes().size() > kMaxConvertFileBytes)
    return invalid_argument("the file is too long for a description of models")
        .found(fmt::format("{} bytes", file->bytes().size()))
        .model(path);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto models = parse_convert_file(text, directory_of(path));
  if (!models) return std::move(models).status().model(path).stage("rknn_convert");
  return models;
}

}  // namespace orknn::toolkit
