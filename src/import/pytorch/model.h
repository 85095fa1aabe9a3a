// A model archive: the root module with its weights, the code and what the writer noted about inputs. All generations of the
// format come out alike.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "import/importer.h"
#include "import/pytorch/library.h"
#include "import/pytorch/value.h"

namespace orknn::importer::pytorch {

struct Model {
  Value root;                          // the root module
  std::vector<Value> constants;        // CONSTANTS.c0, c1, ...
  std::optional<Value> traced_inputs;  // arguments of forward when it was traced; only their shapes and types matter
  int64_t version = 0;
  std::vector<ObjectValue*> modules;  // every object of the model, the root first
};

// What a file is, judged by its bytes.
enum class FileKind { TorchScript, OldTorchScript, ExportedProgram, Eager, LegacyEager, Other };
struct Contents {
  FileKind kind = FileKind::Other;
  std::string root;  // top folder with its slash, or empty
};
Contents look_into(const zip::Archive& archive);
bool is_legacy_pickle(std::span<const std::byte> bytes);

// A file within the archive as a source of its own; in place unless it is compressed.
Result<Source> nested_source(const Source& source, const zip::Archive& archive, const std::string& name);
// The value in <root><stem>.pkl with the storages of <root><stem>/. `shapes_only` reads no storage.
Result<Value> read_pickled(const Source& source, const zip::Archive& archive, const std::string& root, std::string_view stem,
                           Heap& heap, bool shapes_only = false);
// Fails for weights that are not little-endian.
Status check_byte_order(const zip::Archive& archive, const std::string& root);

// Reads the archive; nothing of its code is parsed yet.
Result<Model> read_model(const Source& source, const zip::Archive& archive, const Contents& contents, Library& library,
                         Heap& heap);

// Storages named by entries of one folder of the archive.
class StorageReader {
 public:
  StorageReader(const Source& source, const zip::Archive& archive, std::string folder, Heap& heap)
      : source_(source), archive_(archive), folder_(std::move(folder)), heap_(heap) {}
  // Fails when the entry does not hold `count` elements.
  Result<const Storage*> find(const ScalarType& type, std::string_view key, int64_t count);

 private:
  const Source& source_;
  const zip::Archive& archive_;
  std::string folder_;
  Heap& heap_;
  std::map<std::pair<std::string, int64_t>, const Storage*> known_;
};

}  // namespace orknn::importer::pytorch
