// Files: mapped reading, and writing that is all or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/bus_errors.h"
#include "base/status.h"

namespace orknn {

// A file's bytes, read-only, for as long as the object lives. Small files are copied: whatever happens to them later has no
// effect. The others are mapped. Bytes that such a file has lost since read as zeros (bus_errors.h), so whoever uses one calls
// check() before, in order not to begin, and after, before anybody sees what came of it.
class MappedFile {
 public:
  static constexpr size_t kCopiedBytes = size_t{64} << 20;  // what all copies of the process may take together

  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // The mapped file that these bytes belong to; nullptr for any other memory.
  static std::shared_ptr<const MappedFile> holding(const void* address);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Io when the file is shorter than it was, or was when its bytes were read.
  Status check() const;

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t device_ = 0, number_ = 0;  // which file has the name, if it still has it
  bool copied_ = false;
  std::unique_ptr<BusErrorGuard> guard_;  // of a mapped one
};

// Advises the system that these bytes, if they belong to a MappedFile, will rarely be read again: they stop counting as memory
// of this process. Reading them later is legal and fetches them anew. No effect on other bytes.
void release_mapped_pages(std::span<const std::byte> bytes);

// Copies bytes that will not be read again, releasing their pages on the way: a large model never counts twice.
void copy_and_release(std::span<const std::byte> from, void* to);

// Receives the pieces of a file in order.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
};

// Writes `path` through a file in the same folder that gets its name when `fill` and the final flush have succeeded.
// On any failure the old file, if there was one, is untouched and no temporary is left, where the system allows it not even when
// the process is killed.
Status write_file_atomically(const std::string& path, const std::function<Status(FileWriter&)>& fill);

// "model" of "dir/model.onnx".
std::string file_stem(const std::string& path);
// "dir" of "dir/model.onnx", "." when there is none.
std::string directory_of(const std::string& path);

}  // namespace orknn
