#include "toolkit/convert_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "base/utf8.h"
#include "toolkit/config_keys.h"
#include "toolkit/yaml_fields.h"

namespace orknn::toolkit {
namespace {

using data::YamlValue;
using YamlKind = YamlValue::Kind;
constexpr uint64_t kMaxConvertFileBytes = 1 << 20;

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
