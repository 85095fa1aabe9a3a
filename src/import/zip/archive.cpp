#include "import/zip/archive.h"

#include <algorithm>
#include <cstring>

#include "import/zip/inflate.h"

namespace orknn::importer::zip {
namespace {
constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr size_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kEnd64LocatorBytes = 20;
constexpr uint16_t kEncrypted = 1;

template <class T>
T load(std::span<const std::byte> bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool fits(std::span<const std::byte> bytes, uint64_t at, uint64_t count) {
  return at <= bytes.size() && count <= bytes.size() - at;
}

std::string_view text_of(std::span<const std::byte> bytes, uint64_t at, uint64_t count) {
  return {reinterpret_cast<const char*>(bytes.data() + at), static_cast<size_t>(count)};
}

struct Directory {
  uint64_t offset = 0, bytes = 0, count = 0;
};

// The end record lies at the very end, before a comment of at most 64 KiB.
Result<Directory> find_directory(std::span<const std::byte> bytes) {
  if (bytes.size() < kEndBytes) return invalid_model("the archive is too short");
  const uint64_t last = bytes.size() - kEndBytes, first = last - std::min<uint64_t>(last, 0xffff);
  for (uint64_t at = last + 1; at-- > first;) {
    if (load<uint32_t>(bytes, at) != kEnd) continue;
    Directory d{load<uint32_t>(bytes, at + 16), load<uint32_t>(bytes, at + 12), load<uint16_t>(bytes, at + 10)};
    if (at >= kEnd64LocatorBytes && load<uint32_t>(bytes, at - kEnd64LocatorBytes) == kEnd64Locator) {
      const uint64_t end64 = load<uint64_t>(bytes, at - kEnd64LocatorBytes + 8);
      if (!fits(bytes, end64, kEnd64Bytes) || load<uint32_t>(bytes, end64) != kEnd64)
        return invalid_model("the archive's ZIP64 end record is damaged").found("offset " + std::to_string(end64));
      d = {load<uint64_t>(bytes, end64 + 48), load<uint64_t>(bytes, end64 + 40), load<uint64_t>(bytes, end64 + 32)};
    }
    if (!fits(bytes, d.offset, d.bytes))
      return invalid_model("the archive's directory is outside the file").found("offset " + std::to_string(d.offset));
    return d;
  }
  return invalid_model("the archive has no end record").hint("is the file complete?");
}

// Sizes and offsets that do not fit 32 bits stand in the ZIP64 field, in this order, only those that are needed.
Status apply_zip64(std::span<const std::byte> extra, Entry& entry) {
  for (uint64_t at = 0; fits(extra, at, 4);) {
    const uint16_t id = load<uint16_t>(extra, at), length = load<uint16_t>(extra, at + 2);
    at += 4;
    if (!fits(extra, at, length)) break;
    if (id == 1) {
      const auto field = extra.subspan(at, length);
      uint64_t next = 0;
      for (uint64_t* value : {&entry.size, &entry.packed_size, &entry.header_offset}) {
        if (*value != 0xffffffffu) continue;
        if (!fits(field, next, 8)) return invalid_model("a ZIP64 field is too short").node(entry.name, "archive entry");
        *value = load<uint64_t>(field, next);
        next += 8;
      }
    }
    at += length;
  }
  return {};
}
}  // namespace

bool looks_like_archive(std::span<const std::byte> bytes) {
  return bytes.size() >= kEndBytes && load<uint32_t>(bytes, 0) == kLocalHeader;
}

Result<Archive> Archive::open(std::span<const std::byte> bytes) {
  ORKNN_TRY_ASSIGN(const Directory directory, find_directory(bytes));
  Archive archive;
  archive.bytes_ = bytes;
  uint64_t at = directory.offset;
  const auto part = bytes.first(directory.offset + directory.bytes);
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (!fits(part, at, kCentralHeaderBytes) || load<uint32_t>(part, at) != kCentralHeader)
      return invalid_model("the archive's directory is damaged at offset " + std::to_string(at))
          .expected(std::to_string(directory.count) + " entries")
          .found(std::to_string(i));
    Entry entry;
    entry.flags = load<uint16_t>(part, at + 8);
    entry.method = load<uint16_t>(part, at + 10);
    entry.packed_size = load<uint32_t>(part, at + 20);
    entry.size = load<uint32_t>(part, at + 24);
    const uint64_t name = load<uint16_t>(part, at + 28), extra = load<uint16_t>(part, at + 30),
                   comment = load<uint16_t>(part, at + 32);
    entry.header_offset = load<uint32_t>(part, at + 42);
    at += kCentralHeaderBytes;
    if (!fits(part, at, name + extra + comment))
      return invalid_model("the archive's directory is damaged at offset " + std::to_string(at));
    entry.name = text_of(part, at, name);
    ORKNN_TRY(apply_zip64(part.subspan(at + name, extra), entry));
    at += name + extra + comment;
    archive.by_name_[entry.name] = archive.entries_.size();
    archive.entries_.push_back(entry);
  }
  return archive;
}

const Entry* Archive::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

// The local header repeats name and extra field with lengths of its own.
Result<std::span<const std::byte>> Archive::packed(const Entry& entry) const {
  const auto damaged = [&](const char* what) {
    return invalid_model(std::string(what) + " at offset " + std::to_string(entry.header_offset))
        .node(entry.name, "archive entry");
  };
  if (entry.flags & kEncrypted) return unsupported("the archive entry is encrypted").node(entry.name, "archive entry");
  if (!fits(bytes_, entry.header_offset, kLocalHeaderBytes) || load<uint32_t>(bytes_, entry.header_offset) != kLocalHeader)
    return damaged("no entry header");
  const uint64_t data = entry.header_offset + kLocalHeaderBytes + load<uint16_t>(bytes_, entry.header_offset + 26) +
                        load<uint16_t>(bytes_, entry.header_offset + 28);
  if (!fits(bytes_, data, entry.packed_size)) return damaged("an entry is longer than the file");
  return bytes_.subspan(data, entry.packed_size);
}

Result<std::span<const std::byte>> Archive::stored(const Entry& entry) const {
  if (entry.method != 0 || entry.size != entry.packed_size)
    return unsupported("the archive entry is compressed")
        .node(entry.name, "archive entry")
        .hint("save the model again with torch.jit.save, which stores weights uncompressed");
  return packed(entry);
}

Result<std::string> Archive::text(const Entry& entry, uint64_t limit) const {
  if (entry.size > limit)
    return invalid_model("the archive entry is too large")
        .node(entry.name, "archive entry")
        .expected("at most " + std::to_string(limit) + " bytes")
        .found(std::to_string(entry.size));
  ORKNN_TRY_ASSIGN(const auto data, packed(entry));
  if (entry.method == 0) {
    if (entry.size != entry.packed_size)
      return invalid_model("the archive entry states two sizes").node(entry.name, "archive entry");
    return std::string(text_of(data, 0, data.size()));
  }
  if (entry.method != 8)
    return unsupported("the archive entry is compressed in an unknown way")
        .node(entry.name, "archive entry")
        .expected("stored or deflate")
        .found("method " + std::to_string(entry.method));
  auto content = inflate(data, entry.size);
  if (!content) return Status(content.status()).node(entry.name, "archive entry");
  return std::string(text_of(*content, 0, content->size()));
}

}  // namespace orknn::importer::zip
