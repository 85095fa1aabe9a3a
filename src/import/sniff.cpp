// Finds the importer for a file and calls it.
#include <algorithm>

#include "base/files.h"
#include "base/utf8.h"
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
// Python, JSON and .rknn readers expect names in UTF-8; a file may hold anything.
void make_names_printable(ir::Graph& graph) {
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const ir::TensorId t{static_cast<int32_t>(i)};
    if (!is_utf8(graph.tensor(t).name)) graph.rename_tensor(t, to_utf8(graph.tensor(t).name));
  }
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    if (is_utf8(n.name) && is_utf8(n.op) && std::all_of(n.origin.begin(), n.origin.end(), is_utf8)) continue;
    ir::Node changed = n;
    changed.name = to_utf8(n.name);
    changed.op = to_utf8(n.op);
    for (std::string& o : changed.origin) o = to_utf8(o);
    graph.replace_node(id, std::move(changed));
  }
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
  if (result) {
    make_names_printable(result->graph);
    return result;
  }
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
