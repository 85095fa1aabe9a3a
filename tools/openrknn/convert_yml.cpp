// openrknn convert --yml FILE: the models that a yml file of rknn_convert describes.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/folders.h"
#include "commands.h"
#include "terminal.h"
#include "toolkit/convert_file.h"
#include "toolkit/report.h"

namespace orknn::cli {
namespace {

// Builds one model and writes it to `path`.
Status convert_described(const toolkit::ConvertFile& file, const std::string& path, const std::string& platform,
                         nlohmann::ordered_json* json) {
  ORKNN_TRY_ASSIGN(toolkit::BuildConfig config, toolkit::config_of(file));
  if (!platform.empty()) {
    config.target_platform = platform;
    config.other_platforms.clear();
  }
  std::vector<std::string> read = file.source.other_files;
  read.push_back(file.source.path);
  ORKNN_TRY(check_outputs(read, {path}));
  ORKNN_TRY_ASSIGN(toolkit::Builder builder, toolkit::Builder::create(std::move(config), progress_bar()));
  ORKNN_TRY(builder.load_model(file.source));
  ORKNN_TRY(builder.build({file.do_quantization, file.do_quantization ? file.dataset : std::string()}));
  ORKNN_TRY(builder.export_rknn(path));
  const toolkit::ModelReport report = toolkit::describe(*builder.built()->model);
  const uint64_t bytes = std::filesystem::file_size(path);
  if (json) {
    json->push_back({{"output", path}, {"file_bytes", bytes}, {"model", toolkit::to_json(report)}});
    return {};
  }
  print(toolkit::summary_text(report));
  print(fmt::format("{:<16}{} ({})\n", "written", path, toolkit::bytes_text(bytes)));
  return {};
}

}  // namespace

Status convert_yml(const std::string& file, const std::string& output, const std::string& platform, bool json) {
  ORKNN_TRY_ASSIGN(const std::vector<toolkit::ConvertFile> models, toolkit::read_convert_file(file));
  const bool is_file = output.ends_with(".rknn");
  if (is_file && models.size() != 1)
    return invalid_argument(fmt::format("the file describes {} models", models.size())).hint("give a folder with -o");
  if (!is_file) ORKNN_TRY(make_folder(output));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const toolkit::ConvertFile& model : models) {
    const std::string path = is_file ? output : (std::filesystem::path(output) / (model.name + ".rknn")).string();
    ORKNN_TRY(convert_described(model, path, platform, json ? &list : nullptr));
  }
  if (json) print_json({{"models", list}});
  return {};
}

}  // namespace orknn::cli
