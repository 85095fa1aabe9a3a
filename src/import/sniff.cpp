// Finds the importer for a file and calls it.
#include "base/files.h"
#include "import/importer.h"

namespace orknn::importer {

using ImporterFunction = const Importer& (*)();
extern const std::span<const ImporterFunction> kImporters;  // written by cmake/rooms.cmake

namespace {
std::string known_names() {
  std::string text;
  for (const Importer* i : importers()) text += (text.empty() ? "" : ", ") + std::string(i->name);
  return text;
}
std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }
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
  for (const Importer* i : importers())
    for (std::string_view extension : i->extensions)
      if (path.ends_with(extension)) return i;
  return invalid_model("the file is of no known model format").expected("one of: " + known_names());
}

Result<Imported> load_bytes(const Source& source, const ImportOptions& options, const ir::OpSet& ops, std::string_view framework) {
  const std::string model = source.path.empty() ? "model" : base_name(source.path);
  auto result = [&]() -> Result<Imported> {
    if (framework.empty()) {
      ORKNN_TRY_ASSIGN(const Importer* found, sniff(source.path, source.bytes));
      return found->load(source, options, ops);
    }
    const Importer* found = find_importer(framework);
    if (!found) return invalid_argument("there is no importer '" + std::string(framework) + "'").expected("one of: " + known_names());
    return found->load(source, options, ops);
  }();
  if (result) return result;
  Status status = result.status();
  return status.model(model).stage("import");
}

Result<Imported> load_file(const std::string& path, const ImportOptions& options, const ir::OpSet& ops, std::string_view framework,
                           std::vector<std::string> other_files) {
  auto file = MappedFile::open(path);
  if (!file) {
    Status status = file.status();
    return status.model(base_name(path)).stage("import");
  }
  Source source;
  source.path = path;
  source.folder = directory_of(path);
  source.bytes = (*file)->bytes();
  source.keeper = *file;
  source.other_files = std::move(other_files);
  return load_bytes(source, options, ops, framework);
}

}  // namespace orknn::importer
