// Finds the importer for a file and calls it.
#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/nearest_name.h"
#include "base/printable_line.h"
#include "import/foreign_files.h"
#include "import/importer.h"
#include "ir/printable_names.h"

namespace orknn::importer {

using ImporterFunction = const Importer& (*)();
extern const std::span<const ImporterFunction> kImporters;  // written by cmake/rooms.cmake

namespace {
std::string known_names() {
  std::string text;
  for (const Importer* i : importers()) text += (text.empty() ? "" : ", ") + std::string(i->name);
  return text;
}
// What is wrong with the request before the model is looked into.
Status check_request(const Importer& importer, const Source& source, const ImportOptions& options) {
  if (!source.other_files.empty() && importer.weights_extension.empty())
    return invalid_argument("models of " + std::string(importer.name) + " are one file")
        .expected("no weights file")
        .found("'" + source.other_files[0] + "'");
  if (source.other_files.size() > 1)
    return invalid_argument("a model has one weights file").found(std::to_string(source.other_files.size()));
  for (size_t i = 0; i < options.inputs.size(); ++i)
    if (std::find(options.inputs.begin(), options.inputs.begin() + static_cast<ptrdiff_t>(i), options.inputs[i]) !=
        options.inputs.begin() + static_cast<ptrdiff_t>(i))
      return invalid_argument("'" + options.inputs[i] + "' is listed twice in inputs");
  if (importer.sniff(source.bytes)) return {};
  for (const Importer* other : importers())
    if (other->sniff(source.bytes))
      return invalid_argument("the file is a model of " + std::string(other->name) + ", not of " + std::string(importer.name))
          .hint("load it with load_" + std::string(other->name));
  return recognize_foreign_file(source.path, source.bytes);
}
std::string base_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == path.npos) return path;                     // the root
  const size_t begin = path.find_last_of('/', end) + 1;  // npos + 1 = 0
  return path.substr(begin, end + 1 - begin);
}
}  // namespace

std::vector<const Importer*> importers() {
  std::vector<const Importer*> list;
  for (ImporterFunction f : kImporters) list.push_back(&f());
  return list;
}

const Importer* find_importer(std::string_view name) {
  for (const Importer* i : importers())
    if (i->name == name) return i;
  return nullptr;
}

Result<const Importer*> sniff(std::string_view path, std::span<const std::byte> bytes) {
  for (const Importer* i : importers())
    if (i->sniff(bytes)) return i;
  ORKNN_TRY(recognize_foreign_file(path, bytes));
  for (const Importer* i : importers())
    for (std::string_view extension : i->extensions)
      if (path.ends_with(extension)) return i;
  return invalid_model("the file is of no known model format").expected("one of: " + known_names());
}

namespace {
Result<const Importer*> choose(std::string_view path, std::span<const std::byte> bytes, std::string_view framework) {
  if (framework.empty()) return sniff(path, bytes);
  const Importer* found = find_importer(framework);
  if (!found) {
    std::vector<std::string_view> names;
    for (const Importer* known : importers()) names.push_back(known->name);
    Status problem =
        invalid_argument("there is no importer '" + std::string(framework) + "'").expected("one of: " + known_names());
    if (const std::string meant = did_you_mean(framework, names); !meant.empty()) problem.hint(meant);
    return problem;
  }
  return found;
}

Result<Source> open_source(const std::string& given) {
  ORKNN_TRY_ASSIGN(const std::string path, model_file_of(given));
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Source source;
  source.path = path;
  source.folder = directory_of(path);
  std::error_code problem;
  if (std::filesystem::is_symlink(path, problem))
    source.real_folder = std::filesystem::canonical(path, problem).parent_path().string();
  source.bytes = file->bytes();
  source.keeper = file;
  return source;
}
}  // namespace

Result<Imported> load_bytes(const Source& source, const ImportOptions& options, const ir::OpSet& ops,
                            std::string_view framework) {
  const std::string model = source.path.empty() ? "model" : base_name(source.path);
  auto result = [&]() -> Result<Imported> {
    ORKNN_TRY_ASSIGN(const Importer* found, choose(source.path, source.bytes, framework));
    ORKNN_TRY(check_request(*found, source, options));
    return found->load(source, options, ops);
  }();
  if (result) {
    ir::make_names_printable(result->graph);
    result->source.producer = printable_line(result->source.producer);
    for (std::string& text : result->source.warnings) text = printable_line(text);
    return result;
  }
  Status status = result.status();
  return status.model(model).stage("import");
}

Result<Imported> load_file(const std::string& path, const ImportOptions& options, const ir::OpSet& ops,
                           std::string_view framework, std::vector<std::string> other_files) {
  auto source = open_source(path);
  if (!source) {
    Status status = source.status();
    return status.model(base_name(path)).stage("import");
  }
  source->other_files = std::move(other_files);
  auto imported = load_bytes(*source, options, ops, framework);
  if (const auto file = MappedFile::holding(source->bytes.data()))
    if (Status s = file->check(); !s) return s.model(base_name(path)).stage("import");
  return imported;
}

Result<const Importer*> choose_importer(const std::string& path, std::string_view framework) {
  auto source = open_source(path);
  auto found = source ? choose(path, source->bytes, framework) : Result<const Importer*>(source.status());
  if (found) return found;
  Status status = found.status();
  return status.model(base_name(path)).stage("import");
}

Result<Survey> survey_file(const std::string& path, std::string_view framework) {
  ORKNN_TRY_ASSIGN(const Source source, open_source(path));
  ORKNN_TRY_ASSIGN(const Importer* found, choose(source.path, source.bytes, framework));
  ORKNN_TRY_ASSIGN(Survey survey, found->survey(source));
  for (auto* ports : {&survey.inputs, &survey.outputs})
    for (StatedPort& port : *ports) port.name = printable_line(port.name);
  std::map<std::string, size_t> operators;
  for (const auto& [name, count] : survey.operators) operators[printable_line(name)] += count;
  survey.operators = std::move(operators);
  return survey;
}

}  // namespace orknn::importer
