#include "import/pytorch/model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "import/pytorch/old_archive.h"
#include "import/pytorch/pickle.h"

namespace orknn::importer::pytorch {
namespace {
constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 28;

// Compressed weights are unusual; they may grow, but not without bounds.
uint64_t inflated_limit(size_t file_bytes) { return (uint64_t{1} << 26) + 20 * static_cast<uint64_t>(file_bytes); }

std::string_view without_folder(std::string_view name) { return name.substr(name.rfind('/') + 1); }

int64_t read_version(const zip::Archive& archive, const std::string& root) {
  for (const char* name : {".data/version", "version"}) {
    const zip::Entry* entry = archive.find(root + name);
    if (!entry) continue;
    const auto text = archive.text(*entry, 64);
    int64_t version = 0;
    if (text && std::from_chars(text->data(), text->data() + text->size(), version).ec == std::errc()) return version;
  }
  return 0;
}

// Names every object and tensor by the path that leads to it; the first path counts.
void name_parts(const Value& root, std::vector<ObjectValue*>& modules) {
  std::vector<std::pair<Value, std::string>> pending{{root, ""}};
  std::unordered_set<const void*> seen;
  while (!pending.empty()) {
    const auto [value, path] = std::move(pending.back());
    pending.pop_back();
    if (value.is_tensor()) {
      if (value.tensor().name.empty()) value.tensor().name = path;
      continue;
    }
    if ((value.kind() != Kind::Object && !value.is_sequence() && value.kind() != Kind::Dict) ||
        !seen.insert(value.identity()).second || path.size() > 4096)
      continue;
    const std::string prefix = path.empty() ? "" : path + ".";
    const size_t first = pending.size();
    if (value.kind() == Kind::Object) {
      ObjectValue& o = value.object();
      o.path = path;
      o.is_part_of_model = true;
      modules.push_back(&o);
      for (const auto& [name, item] : o.attributes) pending.emplace_back(item, prefix + name);
      if (o.state && o.state->kind() != Kind::Dict) pending.emplace_back(*o.state, path);
    } else if (value.kind() == Kind::Dict) {
      for (const auto& [key, item] : value.dict().items) pending.emplace_back(item, prefix + to_text(key));
    } else {
      for (size_t i = 0; i < value.sequence().items.size(); ++i)
        pending.emplace_back(value.sequence().items[i], prefix + std::to_string(i));
    }
    std::reverse(pending.begin() + static_cast<ptrdiff_t>(first), pending.end());
  }
}
}  // namespace

Contents look_into(const zip::Archive& archive) {
  Contents found;
  bool has_code = false, has_data = false, has_old_model = false;
  for (const zip::Entry& e : archive.entries()) {
    const std::string_view base = without_folder(e.name);
    const size_t depth = static_cast<size_t>(std::count(e.name.begin(), e.name.end(), '/'));
    if (base == "data.pkl" && depth <= 1 && !has_data) {
      has_data = true;
      found.root = std::string(e.name.substr(0, e.name.size() - base.size()));
    }
    if (base == "model.json" && depth <= 1) {
      has_old_model = true;
      if (!has_data) found.root = std::string(e.name.substr(0, e.name.size() - base.size()));
    }
    if (base == "serialized_exported_program.json" || e.name.ends_with("models/model.json")) {
      found.kind = FileKind::ExportedProgram;
      found.root = std::string(e.name);
      return found;
    }
    has_code |= e.name.starts_with("code/") || e.name.find("/code/") != std::string_view::npos;
  }
  if (has_data)
    found.kind = has_code ? FileKind::TorchScript : FileKind::Eager;
  else if (has_old_model && has_code)
    found.kind = FileKind::OldTorchScript;
  return found;
}

// The magic number that torch.save of before version 1.6 pickles first.
bool is_legacy_pickle(std::span<const std::byte> bytes) {
  static constexpr unsigned char kMagic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  return bytes.size() > sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

Result<Source> nested_source(const Source& source, const zip::Archive& archive, const std::string& name) {
  const zip::Entry* entry = archive.find(name);
  if (!entry) return invalid_model("the archive has no entry '" + name + "'").hint("is the file complete?");
  Source inner;
  if (entry->method == 0) {
    ORKNN_TRY_ASSIGN(inner.bytes, archive.stored(*entry));
    inner.keeper = source.keeper;
    return inner;
  }
  ORKNN_TRY_ASSIGN(std::string text, archive.text(*entry, inflated_limit(source.bytes.size())));
  const auto owner = std::make_shared<const std::string>(std::move(text));
  inner.bytes = std::as_bytes(std::span(owner->data(), owner->size()));
  inner.keeper = owner;
  return inner;
}

Result<Value> read_pickled(const Source& source, const zip::Archive& archive, const std::string& root, std::string_view stem,
                           Heap& heap, bool shapes_only) {
  const std::string name = root + std::string(stem) + ".pkl";
  const zip::Entry* entry = archive.find(name);
  if (!entry) return invalid_model("the archive has no entry '" + name + "'");
  ORKNN_TRY_ASSIGN(const std::string bytes, archive.text(*entry, kMaxPickleBytes));
  StorageReader storages(source, archive, root + std::string(stem) + "/", heap);
  PickleHost host;
  host.storage = [&](std::string_view type_name, std::string_view key, int64_t count) -> Result<const Storage*> {
    const ScalarType* type = scalar_type_of_storage(type_name);
    if (!type) return unsupported("storages of type " + std::string(type_name) + " are not supported");
    if (!shapes_only) return storages.find(*type, key, count);
    Storage* s = heap.storage();
    s->dtype = type->dtype;
    s->type_name = std::string(type->name);
    s->count = std::max<int64_t>(count, 0);
    return s;
  };
  auto value = read_pickle(std::as_bytes(std::span(bytes.data(), bytes.size())), heap, host);
  if (!value) return Status(value.status()).node(name, "pickle");
  return value;
}

Status check_byte_order(const zip::Archive& archive, const std::string& root) {
  const zip::Entry* entry = archive.find(root + "byteorder");
  if (!entry) return {};
  ORKNN_TRY_ASSIGN(const std::string text, archive.text(*entry, 64));
  if (text.starts_with("little")) return {};
  return unsupported("the weights are stored in another byte order").expected("little").found(text);
}

Result<const Storage*> StorageReader::find(const ScalarType& type, std::string_view key, int64_t count) {
  const Storage*& slot = known_[{std::string(key), type.code}];
  if (slot) return slot;
  const std::string name = folder_ + std::string(key);
  ORKNN_TRY_ASSIGN(const Source inner, nested_source(source_, archive_, name));
  Storage* s = heap_.storage();
  s->name = name;
  s->dtype = type.dtype;
  s->type_name = std::string(type.name);
  s->is_quantized = type.is_quantized;
  s->bytes = inner.bytes;
  s->keeper = inner.keeper;
  if (count < 0 || static_cast<uint64_t>(count) > s->bytes.size() / type.bytes)
    return invalid_model("a storage is longer than its archive entry")
        .node(name, "storage")
        .expected(std::to_string(count) + " elements of " + std::string(type.name))
        .found(std::to_string(s->bytes.size()) + " bytes");
  s->count = count;
  slot = s;
  return slot;
}

Result<Model> read_model(const Source& source, const zip::Archive& archive, const Contents& contents, Library& library,
                         Heap& heap) {
  Model model;
  const std::string& root = contents.root;
  model.version = read_version(archive, root);
  ORKNN_TRY(check_byte_order(archive, root));
  if (contents.kind == FileKind::OldTorchScript) {
    ORKNN_TRY(read_old_archive(source, archive, root, library, heap, model));
  } else {
    ORKNN_TRY_ASSIGN(model.root, read_pickled(source, archive, root, "data", heap));
    if (archive.find(root + "constants.pkl")) {
      ORKNN_TRY_ASSIGN(const Value constants, read_pickled(source, archive, root, "constants", heap));
      if (constants.is_sequence()) model.constants = constants.sequence().items;
    }
    if (archive.find(root + "traced_inputs.pkl")) {
      // Only a help: a file in which it cannot be read is still a model.
      const auto inputs = read_pickled(source, archive, root, "traced_inputs", heap, true);
      const Value forward = heap.string("forward");
      if (inputs && inputs->kind() == Kind::Dict)
        if (const Value* arguments = inputs->dict().find(forward)) model.traced_inputs = *arguments;
    }
  }
  if (model.root.kind() != Kind::Object) return invalid_model("the archive holds no module").found(describe(model.root));
  name_parts(model.root, model.modules);
  for (size_t i = 0; i < model.constants.size(); ++i)
    if (model.constants[i].is_tensor() && model.constants[i].tensor().name.empty())
      model.constants[i].tensor().name = "CONSTANTS.c" + std::to_string(i);
  return model;
}

}  // namespace orknn::importer::pytorch
