#include "import/wire/writer.h"

namespace orknn::importer::wire {
namespace {
constexpr uint64_t tag(uint32_t field, WireType type) { return (uint64_t{field} << 3) | static_cast<uint64_t>(type); }
constexpr uint64_t kEndOfGroup = 4;
// Shorter contents are copied: a reference takes as much memory.
constexpr size_t kCopiedContents = 256;
}  // namespace

void Writer::append(std::string_view bytes) {
  if (pieces_.empty() || !pieces_.back().elsewhere.empty()) pieces_.emplace_back();
  pieces_.back().own += bytes;
  size_ += bytes.size();
}

void Writer::append_varint(uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(value | 0x80);
  bytes[count++] = static_cast<char>(value);
  append({bytes, count});
}

void Writer::append_word(uint64_t bits, size_t bytes) {
  char word[8];
  for (size_t i = 0; i < bytes; ++i) word[i] = static_cast<char>(bits >> (8 * i));
  append({word, bytes});
}

void Writer::refer(Bytes bytes) {
  if (bytes.size() <= kCopiedContents) return append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  append({});
  pieces_.back().elsewhere = bytes;
  size_ += bytes.size();
}

Writer& Writer::number(uint32_t field, uint64_t value) {
  append_varint(tag(field, WireType::Varint));
  append_varint(value);
  return *this;
}

Writer& Writer::text(uint32_t field, std::string_view value) {
  append_varint(tag(field, WireType::Bytes));
  append_varint(value.size());
  append(value);
  return *this;
}

Writer& Writer::message(uint32_t field, const Writer& value) {
  append_varint(tag(field, WireType::Bytes));
  append_varint(value.size_);
  for (const Piece& piece : value.pieces_) {
    append(piece.own);
    refer(piece.elsewhere);
  }
  return *this;
}

Writer& Writer::field(const Field& field) {
  append_varint(tag(field.number, field.type));
  switch (field.type) {
    case WireType::Varint: append_varint(field.scalar); break;
    case WireType::Fixed64: append_word(field.scalar, 8); break;
    case WireType::Fixed32: append_word(field.scalar, 4); break;
    case WireType::Bytes:
      append_varint(field.bytes.size());
      refer(field.bytes);
      break;
    case WireType::Group:
      refer(field.bytes);
      append_varint((uint64_t{field.number} << 3) | kEndOfGroup);
      break;
  }
  return *this;
}

Status Writer::write(FileWriter& out) const {
  for (const Piece& piece : pieces_) {
    ORKNN_TRY(out.write(std::string_view(piece.own)));
    if (!piece.elsewhere.empty()) ORKNN_TRY(out.write(piece.elsewhere));
  }
  return {};
}

namespace {
class MemoryWriter : public FileWriter {
 public:
  Status write(std::span<const std::byte> piece) override {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }
  std::vector<std::byte> bytes;
};
}  // namespace

Result<std::vector<std::byte>> Writer::to_bytes() const {
  MemoryWriter out;
  ORKNN_TRY(write(out));
  return std::move(out.bytes);
}

}  // namespace orknn::importer::wire
