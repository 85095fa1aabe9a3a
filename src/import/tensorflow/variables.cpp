#include "import/tensorflow/variables.h"

#include <algorithm>

#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {
namespace {
using wire::Slot;
using wire::take_varint;

// --- the sorted table: blocks of entries, an index block that names them, a footer that names the index

constexpr size_t kFooterBytes = 48, kTrailerBytes = 5;  // a trailer is the kind of compression and a checksum
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr std::string_view kObjects = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr int64_t kMostParts = 1 << 12;
// Writers repeat a whole name in every 16th entry: names take at most about 16 times the bytes of the file.
constexpr size_t kMostNameBytes = 64;  // per byte of the file

Status damaged() { return invalid_model("the table of variables is damaged"); }

uint64_t little_endian(Bytes bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

// The block that a handle (offset, size) names, without its trailer.
Result<Bytes> block_at(Bytes file, Bytes& handle) {
  uint64_t offset = 0, size = 0;
  if (!take_varint(handle, offset) || !take_varint(handle, size)) return damaged();
  if (offset > file.size() || size > file.size() - offset || kTrailerBytes > file.size() - offset - size) return damaged();
  if (file[offset + size] != std::byte{0}) return unsupported("a compressed table of variables is not supported");
  return file.subspan(offset, size);
}

// Calls f(key, value) for each entry; keys share their beginning with the one before.
template <class F>
Status for_each_entry(Bytes block, F&& f) {
  if (block.size() < 4) return damaged();
  const uint64_t restarts = little_endian(block.last(4));
  if (restarts > (block.size() - 4) / 4) return damaged();
  Bytes rest = block.first(block.size() - 4 - 4 * restarts);
  std::string key;
  while (!rest.empty()) {
    uint64_t shared = 0, fresh = 0, length = 0;
    if (!take_varint(rest, shared) || !take_varint(rest, fresh) || !take_varint(rest, length)) return damaged();
    if (shared > key.size() || fresh > rest.size() || length > rest.size() - fresh) return damaged();
    key.resize(shared);
    key.append(reinterpret_cast<const char*>(rest.data()), fresh);
    ORKNN_TRY(f(key, rest.subspan(fresh, length)));
    rest = rest.subspan(fresh + length);
  }
  return {};
}

// --- entries

// One text: its length, a checksum of that, its bytes.
Status take_text(Bytes stored, Bytes& text) {
  constexpr size_t kChecksumBytes = 4;
  uint64_t length = 0;
  if (!take_varint(stored, length) || stored.size() < kChecksumBytes || length != stored.size() - kChecksumBytes)
    return damaged();
  text = stored.subspan(kChecksumBytes);
  return {};
}

Result<int64_t> part_count(Bytes header) {
  int64_t parts = 1, order = 0;
  ORKNN_TRY(read_fields(header, Slot{1, parts}, Slot{2, order}));
  if (order != 0) return unsupported("variables of a machine with another order of bytes are not supported");
  if (parts < 1 || parts > kMostParts) return damaged().found(std::to_string(parts) + " parts");
  return parts;
}

std::string five_digits(int64_t number) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
}
}  // namespace

Result<std::vector<std::pair<std::string, Bytes>>> read_table(Bytes file) {
  if (file.size() < kFooterBytes || little_endian(file.last(8)) != kMagic) return damaged();
  Bytes handles = file.last(kFooterBytes).first(kFooterBytes - 8);
  uint64_t ignored = 0;
  if (!take_varint(handles, ignored) || !take_varint(handles, ignored)) return damaged();  // of a block about the others
  ORKNN_TRY_ASSIGN(const Bytes index, block_at(file, handles));
  std::vector<std::pair<std::string, Bytes>> entries;
  size_t block_bytes = 0, name_bytes = 0;
  const Status read = for_each_entry(index, [&](const std::string&, Bytes handle) -> Status {
    ORKNN_TRY_ASSIGN(const Bytes block, block_at(file, handle));
    block_bytes += block.size();
    if (block_bytes > file.size()) return damaged().found("blocks that overlap");
    return for_each_entry(block, [&](const std::string& key, Bytes value) -> Status {
      name_bytes += key.size();
      if (name_bytes / kMostNameBytes > file.size()) return damaged().found("names longer than their table");
      entries.emplace_back(key, value);
      return {};
    });
  });
  if (!read) return read;
  return entries;
}

Result<VariableBundle> VariableBundle::open(const std::string& prefix) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> index, MappedFile::open(prefix + ".index"));
  ORKNN_TRY_ASSIGN(const auto entries, read_table(index->bytes()));
  if (entries.empty() || !entries.front().first.empty()) return damaged().found("no header");
  ORKNN_TRY_ASSIGN(const int64_t parts, part_count(entries.front().second));
  VariableBundle bundle;
  for (int64_t i = 0; i < parts; ++i) {
    ORKNN_TRY_ASSIGN(auto file, MappedFile::open(prefix + ".data-" + five_digits(i) + "-of-" + five_digits(parts)));
    bundle.files_.push_back(std::move(file));
  }
  for (size_t i = 1; i < entries.size(); ++i) ORKNN_TRY(bundle.add(entries[i].first, entries[i].second));
  return bundle;
}

Status VariableBundle::add(std::string_view name, Bytes message) {
  BundleEntry entry;
  Bytes shape;
  int64_t part = 0, offset = 0, size = 0;
  bool is_sliced = false;
  const auto note_slice = [&](Bytes) {
    is_sliced = true;
    return Status();
  };
  ORKNN_TRY(read_fields(message, Slot{1, entry.type}, Slot{2, shape}, Slot{3, part}, Slot{4, offset}, Slot{5, size},
                        Slot{7, note_slice}));
  // Other texts and variables in slices are not weights of a network; a node that needs one reports it as missing.
  const bool is_objects = name == kObjects;
  if (is_sliced || (to_dtype(entry.type) == DType::Undefined && !is_objects)) return {};
  if (part < 0 || static_cast<size_t>(part) >= files_.size()) return damaged().found("part " + std::to_string(part));
  const Bytes data = files_[static_cast<size_t>(part)]->bytes();
  if (offset < 0 || size < 0 || static_cast<uint64_t>(offset) > data.size() ||
      static_cast<uint64_t>(size) > data.size() - static_cast<uint64_t>(offset))
    return invalid_model("the file of variables is too short").found(std::to_string(data.size()) + " bytes");
  entry.bytes = data.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  if (is_objects) return take_text(entry.bytes, objects_);
  ORKNN_TRY_ASSIGN(const auto dims, parse_shape(shape));
  const auto known = dims ? ir::to_dims(*dims) : std::nullopt;
  if (!known) return damaged().found("a variable without a shape");
  entry.dims = *known;
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(entry.dims));
  if (static_cast<uint64_t>(count) * dtype_bytes(to_dtype(entry.type)) != static_cast<uint64_t>(size))
    return damaged().found(std::to_string(size) + " bytes for " + ir::to_string(entry.dims));
  entries_.emplace(name, std::move(entry));
  return {};
}

const BundleEntry* VariableBundle::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace orknn::importer::tensorflow
