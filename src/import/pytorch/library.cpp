#include "import/pytorch/library.h"

namespace orknn::importer::pytorch {
namespace {
constexpr uint64_t kMaxSourceBytes = uint64_t{1} << 27;

// "__torch__.a.b.C" -> "code/__torch__/a/b.py" and "C".
std::pair<std::string, std::string_view> split(std::string_view qualified) {
  const size_t dot = qualified.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string path = "code/" + std::string(qualified.substr(0, dot)) + ".py";
  for (size_t i = 5; i + 3 < path.size(); ++i)
    if (path[i] == '.') path[i] = '/';
  return {std::move(path), qualified.substr(dot + 1)};
}
}  // namespace

Result<const SourceFile*> Library::file(const std::string& path) {
  const auto known = files_.find(path);
  if (known != files_.end()) return static_cast<const SourceFile*>(known->second.get());
  auto& slot = files_[path];
  const zip::Entry* entry = archive_.find(root_ + path);
  if (!entry) return static_cast<const SourceFile*>(nullptr);
  ORKNN_TRY_ASSIGN(const std::string text, archive_.text(*entry, kMaxSourceBytes - total_bytes_));
  total_bytes_ += text.size();
  auto parsed = parse_source(text);
  if (!parsed) return Status(parsed.status()).node(path, "source");
  slot = std::make_unique<SourceFile>(std::move(*parsed));
  return static_cast<const SourceFile*>(slot.get());
}

Result<const Class*> Library::find_class(std::string_view qualified) {
  if (const auto own = own_classes_.find(qualified); own != own_classes_.end()) return &own->second;
  const auto [path, name] = split(qualified);
  ORKNN_TRY_ASSIGN(const SourceFile* source, file(path));
  if (!source) return static_cast<const Class*>(nullptr);
  const auto it = source->classes.find(name);
  return it == source->classes.end() ? nullptr : &it->second;
}

Result<const Function*> Library::find_function(std::string_view qualified) {
  const auto [path, name] = split(qualified);
  ORKNN_TRY_ASSIGN(const SourceFile* source, file(path));
  if (!source) return static_cast<const Function*>(nullptr);
  const auto it = source->functions.find(name);
  return it == source->functions.end() ? nullptr : &it->second;
}

void Library::add_class(std::string qualified, Class definition) { own_classes_[std::move(qualified)] = std::move(definition); }

}  // namespace orknn::importer::pytorch
