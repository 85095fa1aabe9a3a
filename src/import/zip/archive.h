// Reads ZIP archives (ZIP64 too) over mapped bytes: the central directory, and the contents of single entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace orknn::importer::zip {

struct Entry {
  std::string_view name;  // in the archive's bytes
  uint64_t packed_size = 0, size = 0;
  uint64_t header_offset = 0;  // of the local header
  uint16_t method = 0;         // 0 stored, 8 deflated
  uint16_t flags = 0;
};

// True for bytes that begin like an archive.
bool looks_like_archive(std::span<const std::byte> bytes);

class Archive {
 public:
  static Result<Archive> open(std::span<const std::byte> bytes);

  const std::vector<Entry>& entries() const { return entries_; }
  // nullptr when there is none; of several with one name the last counts.
  const Entry* find(std::string_view name) const;
  // The bytes of a stored entry, in place. An error for a compressed one.
  Result<std::span<const std::byte>> stored(const Entry& entry) const;
  // The contents of any entry of at most `limit` bytes, decompressed if need be.
  Result<std::string> text(const Entry& entry, uint64_t limit) const;

 private:
  Result<std::span<const std::byte>> packed(const Entry& entry) const;

  std::span<const std::byte> bytes_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace orknn::importer::zip
