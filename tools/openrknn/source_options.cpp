// Reading and checking the options that describe a source model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/nearest_name.h"
#include "commands.h"
#include "format/rknn_file.h"
#include "import/importer.h"
#include "ops/resample/yuv_to_rgb.h"
#include "platform/platforms.h"
#include "terminal.h"
#include "toolkit/config_keys.h"
#include "toolkit/source_report.h"
#include "toolkit/table.h"

namespace orknn::cli {
namespace {

std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (separators.find(c) != separators.npos)
      parts.emplace_back();
    else if (c != ' ' && c != '[' && c != ']')
      parts.back() += c;
  }
  return parts;
}

template <class T>
Result<std::vector<T>> numbers(const std::string& option, const std::string& text, std::string_view separators) {
  std::vector<T> values;
  const std::vector<std::string> parts = split(text, separators);
  if (parts.size() == 1 && parts[0].empty()) return values;  // "[]": the shape of a single number
  for (const std::string& part : parts) {
    T value{};
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error == std::errc::result_out_of_range)
      return invalid_argument(fmt::format("a number of {} is too large", option)).found(part);
    if (error != std::errc{} || end != part.data() + part.size())
      return invalid_argument(fmt::format("{} needs numbers, found '{}'", option, text))
          .expected(std::is_integral_v<T> ? "for example 1,3,224,224" : "for example 123.675,116.28,103.53");
    values.push_back(value);
  }
  return values;
}
std::vector<std::string> platform_names() {
  std::vector<std::string> names;
  for (const platform::Platform& chip : platform::all()) names.emplace_back(chip.name);
  return names;
}

std::string option_of(std::string_view key) {
  if (key == "batch_size") return "--quantization-batch-size";  // --batch-size is that of the built model
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

data::YamlValue scalar(const std::string& text) {
  data::YamlValue value;
  value.kind = data::YamlValue::Kind::Scalar;
  value.text = text;
  return value;
}

Status set_other_keys(toolkit::BuildConfig& config, const std::map<std::string, std::vector<std::string>, std::less<>>& given) {
  Status problems;
  for (const toolkit::ConfigKey& row : toolkit::config_keys()) {
    const auto texts = given.find(row.key);
    if (texts == given.end()) continue;
    data::YamlValue value = scalar(texts->second.empty() ? "" : texts->second.back());
    if (row.is_list()) {
      value.kind = data::YamlValue::Kind::List;
      for (const std::string& text : texts->second) value.items.push_back(scalar(text));
    }
    problems.also(row.set(config, value, option_of(row.key)));
  }
  return problems;
}

// Accepts these values, and says which of them another one was probably meant to be.
CLI::Validator is_one_of(std::vector<std::string> values) {
  std::string names = fmt::format("{{{}}}", fmt::join(values, ","));
  const auto check = [values = std::move(values)](std::string& value) -> std::string {
    if (std::find(values.begin(), values.end(), value) != values.end()) return "";
    const std::string meant = did_you_mean(value, values);
    return fmt::format("'{}' is not one of {}{}{}", value, fmt::join(values, ", "), meant.empty() ? "" : "; ", meant);
  };
  return CLI::Validator(check, std::move(names));
}

std::map<const CLI::Option*, std::vector<std::string>>& offers() {
  static std::map<const CLI::Option*, std::vector<std::string>> all;
  return all;
}
}  // namespace

bool has_option(const CLI::App& command, const std::string& name) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [&](const CLI::Option* o) { return o->check_name(name); });
}

void offer(const CLI::Option* option, std::vector<std::string> words) { offers()[option] = std::move(words); }
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  offer(option, words);
  return option->check(is_one_of(words));
}
std::vector<std::string> whole_numbers(int low, int high) {
  std::vector<std::string> numbers;
  for (int number = low; number <= high; ++number) numbers.push_back(std::to_string(number));
  return numbers;
}
CLI::Validator existing_folder() {
  const auto check = [](std::string& path) -> std::string {
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) return "";
    return std::filesystem::exists(path, problem) ? "'" + path + "' is a file, not a folder"
                                                  : "there is no folder '" + path + "'";
  };
  return CLI::Validator(check, "FOLDER");
}
CLI::Validator whole_number(int64_t low, int64_t high) {
  const auto check = [low, high](std::string& text) -> std::string {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc() && end == text.data() + text.size() && number >= low && number <= high) return "";
    return fmt::format("'{}' is not a whole number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("INT in [{} - {}]", low, high));
}
const std::vector<std::string>* offered(const CLI::Option* option) {
  const auto found = offers().find(option);
  return found == offers().end() ? nullptr : &found->second;
}

void SourceOptions::add_to(CLI::App& command) {
  const size_t before = command.get_options().size();
  offer(
      command.add_option("-t,--target-platform,--target", platform,
                         fmt::format("chip to build for (openrknn platforms), {} by default", platform::default_platform().name)),
      platform_names());
  one_of(command.add_option("--float-dtype", float_dtype, "float16, or float32 for exact comparison with the source framework"),
         {"float16", "float32"})
      ->capture_default_str();
  offer(command
            .add_option("-O,--optimization-level", level,
                        "0 = only what compiling needs (constants, paddings, If, dead layers), 3 = all rules")
            ->type_name("INT in [0 - 3]")  // says it; toolkit::check refuses others
            ->capture_default_str(),
        whole_numbers(0, 3));
  std::vector<std::string> frameworks;
  for (const importer::Importer* i : importer::importers()) frameworks.emplace_back(i->name);
  offer(command.add_option("--framework", framework,
                           fmt::format("format of the source model: {}; recognized by default", fmt::join(frameworks, ", "))),
        frameworks);
  command.add_option("--inputs", inputs, "tensors at which the model begins, a,b")->delimiter(',')->allow_extra_args(false);
  command.add_option("--input-size-list", sizes, "shape of each input, 1,3,224,224; once per input")->allow_extra_args(false);
  command.add_option("--outputs", outputs, "tensors at which the model ends, a,b")->delimiter(',')->allow_extra_args(false);
  command.add_option("--mean,--mean-values", means, "mean of each channel, 123.675,116.28,103.53; once per input")
      ->allow_extra_args(false);
  command.add_option("--std,--std-values", stds, "divisor of each channel; once per input")->allow_extra_args(false);
  command.add_option("--op-target", targets, "where an op runs, NAME=cpu; may be repeated")->allow_extra_args(false);
  command
      .add_option("--weights", other_files,
                  "second file of formats that keep weights apart; by default one of the model's name beside it; 'none' for "
                  "random weights")
      ->allow_extra_args(false);
  const std::vector<CLI::Option*> all = command.get_options();
  declared.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
}

void SourceOptions::warn_finished(std::initializer_list<std::string_view> useful) const {
  std::string names;
  for (const CLI::Option* option : declared)
    if (option->count() > 0 &&
        std::none_of(useful.begin(), useful.end(), [&](std::string_view name) { return option->check_lname(std::string(name)); }))
      names += (names.empty() ? "--" : ", --") + option->get_lnames().front();
  if (!names.empty()) log(LogLevel::Warn, "openrknn", "the model is a finished .rknn, no effect on it: " + names);
}

void SourceOptions::add_quantization_to(CLI::App& command) {
  command.add_option("--dataset", dataset, "list of calibration samples, one per line: the model is quantized with them")
      ->required(needs_dataset);
  offer(command.add_option("--algorithm,--quantized-algorithm", algorithm,
                           fmt::format("how ranges are found: {} (normal; gdq for w8a16 and w4a16)",
                                       fmt::join(toolkit::quantized_algorithms(), ", "))),
        toolkit::quantized_algorithms());
  offer(command
            .add_option("--method,--quantized-method", method,
                        "scales of weights: channel, layer, or group32 to group256 with w4a16")
            ->capture_default_str(),
        toolkit::quantized_methods());
  offer(command.add_option("--dtype,--quantized-dtype", dtype, "number format: w8a8, w8a16, w16a16i, w16a16i_dfp, w4a16")
            ->capture_default_str(),
        toolkit::quantized_dtypes());
  if (!needs_dataset)
    command.add_flag("--quantize-weight", quantize_weight,
                     "without --dataset: weights are stored as int8, everything is computed in float");
  command.add_flag("--bgr,--quant-img-RGB2BGR", bgr, "calibration pictures are fed as BGR");
  command.add_option("--auto-hybrid,--auto-hybrid-cos-thresh", auto_hybrid,
                     "leave the fewest layers in float16 that bring every output to this cosine");
}

Result<toolkit::BuildConfig> SourceOptions::config() const {
  toolkit::BuildConfig config;
  config.target_platform = platform;
  config.float_dtype = float_dtype;
  config.optimization_level = level;
  config.quantized_algorithm = algorithm;
  config.quantized_method = method;
  config.quantized_dtype = dtype;
  config.quantize_weight = quantize_weight;
  config.quant_img_RGB2BGR = {bgr};
  if (auto_hybrid) config.auto_hybrid_cos_thresh = *auto_hybrid;
  const auto rows = [](const std::string& option, const std::vector<std::string>& texts) -> Result<toolkit::ChannelValues> {
    toolkit::ChannelValues values;
    for (const std::string& text : texts) {
      ORKNN_TRY_ASSIGN(std::vector<double> row, numbers<double>(option, text, ","));
      values.push_back(std::move(row));
    }
    return values;
  };
  if (!means.empty()) {
    ORKNN_TRY_ASSIGN(config.mean_values, rows("--mean", means));
  }
  if (!stds.empty()) {
    ORKNN_TRY_ASSIGN(config.std_values, rows("--std", stds));
  }
  for (const std::string& target : targets) {
    const size_t at = target.rfind('=');
    if (at == target.npos) return invalid_argument("--op-target needs NAME=npu or NAME=cpu").found(target);
    config.op_target[target.substr(0, at)] = target.substr(at + 1);
  }
  ORKNN_TRY(set_other_keys(config, other_keys));
  return config;
}

void SourceOptions::add_other_keys_to(CLI::App& command) {
  for (const toolkit::ConfigKey& row : toolkit::config_keys()) {
    const std::string name = option_of(row.key), help(row.help), key(row.key);
    if (has_option(command, name) || (needs_dataset && row.key == "quantize_weight")) continue;
    if (row.kind == toolkit::ConfigKey::Kind::Flag) {
      command.add_flag_callback(
          name, [this, key] { other_keys[key] = {"true"}; }, help);
      continue;
    }
    const auto keep = [this, key](const std::vector<std::string>& texts) {
      other_keys[key] = texts;
      return true;
    };
    CLI::Option* option = command.add_option(name, CLI::callback_t(keep), help);
    option->type_name(row.is_number() ? "NUMBER" : "TEXT");
    if (row.is_list()) option->take_all()->allow_extra_args(false);
    if (key == "inputs_yuv_fmt") offer(option, ops::picture_formats());
    if (key == "quantized_hybrid_level") offer(option, whole_numbers(0, 3));
  }
}

toolkit::BuildRequest SourceOptions::build_request() const { return {!dataset.empty(), dataset, auto_hybrid.has_value()}; }

Result<importer::ImportOptions> SourceOptions::import_options() const {
  importer::ImportOptions options;
  options.inputs = inputs;
  options.outputs = outputs;
  for (const std::string& text : sizes) {
    ORKNN_TRY_ASSIGN(ir::Dims dims, numbers<int64_t>("--input-size-list", text, ",x"));
    options.input_size_list.push_back(std::move(dims));
  }
  return options;
}

namespace {
class HelpFormatter : public CLI::Formatter {
  static constexpr size_t kIndent = 30, kWidth = 80;
  std::string fitted(const std::string& text, size_t indent, std::string_view separator) const {
    const size_t width = output_width() ? output_width() : kWidth;
    return fmt::format("{}", fmt::join(toolkit::wrapped(text, std::max(width, 2 * kIndent) - indent), separator));
  }
  // CLI11 indents what follows a line end.
  std::string make_option_desc(const CLI::Option* option) const override {
    return fitted(option->get_description(), kIndent, "\n");
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_display_name(true), fitted(command->get_description(), kIndent, "\n"), kIndent);
    return out.str();
  }
  std::string make_description(const CLI::App* app) const override { return fitted(app->get_description(), 0, "\n") + "\n"; }
  // The examples: a shell goes on after a backslash at the end of a line.
  std::string make_footer(const CLI::App* app) const override {
    std::istringstream lines(app->get_footer());
    std::string text;
    for (std::string line; std::getline(lines, line);)
      text += (line.starts_with("  ") ? "  " + fitted(line, 6, " \\\n    ") : line) + "\n";
    return text;
  }
};
}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void add_examples(CLI::App& command, std::initializer_list<std::string_view> lines) {
  std::string text = "\nExamples:\n";
  for (std::string_view line : lines) {
    std::string example = fmt::format("  openrknn {}\n", line);
    constexpr std::string_view kChip = "CHIP";
    if (const size_t at = example.find(kChip); at != example.npos)
      example.replace(at, kChip.size(), platform::default_platform().name);
    text += example;
  }
  command.footer(text);
}

Result<toolkit::ShapeSets> parse_shape_sets(const std::string& option, const std::vector<std::string>& texts) {
  toolkit::ShapeSets sets;
  for (const std::string& text : texts) {
    sets.emplace_back();
    for (const std::string& shape : split(text, ";")) {
      ORKNN_TRY_ASSIGN(ir::Dims dims, numbers<int64_t>(option, shape, ",x"));
      sets.back().push_back(std::move(dims));
    }
  }
  return sets;
}

Result<std::vector<std::string>> SourceOptions::weights_of(const std::string& model) const {
  if (other_files == std::vector<std::string>{kNoWeights}) return std::vector<std::string>{};
  if (!other_files.empty()) return other_files;
  ORKNN_TRY_ASSIGN(std::vector<std::string> found, toolkit::find_other_files(model, framework));
  for (const std::string& file : found) note("weights: " + file);
  return found;
}

Status check_outputs(const std::vector<std::string>& read, const std::vector<std::string>& written) {
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i].empty()) continue;
    std::error_code problem;
    for (const std::string& source : read)
      if (std::filesystem::equivalent(source, written[i], problem))
        return invalid_argument("'" + written[i] + "' would overwrite the model that is read").hint("give another file name");
    for (size_t k = 0; k < i; ++k)
      if (std::filesystem::path(written[k]).lexically_normal() == std::filesystem::path(written[i]).lexically_normal())
        return invalid_argument("two results would go to '" + written[i] + "'").hint("give each a file of its own");
  }
  return {};
}

bool is_rknn(const std::string& path) {
  std::error_code problem;
  const bool is_file = std::filesystem::is_regular_file(path, problem);  // opening a named pipe would wait for its writer
  std::ifstream in(is_file ? path : "", std::ios::binary);
  char magic[8] = {};
  in.read(magic, sizeof magic);
  if (std::string_view(magic, 4) == "RKNN" || std::string_view(magic, sizeof magic) == "CYPTRKNN") return true;
  return path.ends_with(".rknn");
}

Result<toolkit::Builder> build_model(const std::string& path, const SourceOptions& options) {
  ORKNN_TRY_ASSIGN(toolkit::BuildConfig config, options.config());
  ORKNN_TRY_ASSIGN(const importer::ImportOptions importing, options.import_options());
  ORKNN_TRY_ASSIGN(toolkit::Builder builder, toolkit::Builder::create(std::move(config), progress_bar()));
  ORKNN_TRY_ASSIGN(std::vector<std::string> weights, options.weights_of(path));
  ORKNN_TRY(builder.load_model({path, options.framework, importing, std::move(weights)}));
  ORKNN_TRY(builder.build(options.build_request()));
  return builder;
}

Result<std::shared_ptr<const format::Model>> open_model(const std::string& path, const SourceOptions& options) {
  if (is_rknn(path)) {
    options.warn_finished();
    ORKNN_TRY_ASSIGN(format::Model model, format::read_rknn(path));
    return std::shared_ptr<const format::Model>(std::make_shared<format::Model>(std::move(model)));
  }
  ORKNN_TRY_ASSIGN(const toolkit::Builder builder, build_model(path, options));
  return builder.built()->model;
}

}  // namespace orknn::cli
