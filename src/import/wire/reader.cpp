#include "import/wire/reader.h"

namespace orknn::importer::wire {
namespace {
template <class Word>
Word little_endian(Bytes bytes) {
  Word value = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) value |= static_cast<Word>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}
constexpr uint64_t kEndGroup = 4;
}  // namespace

bool Field::get(int64_t& value) const {
  if (type == WireType::Varint) value = static_cast<int64_t>(scalar);
  return type == WireType::Varint;
}
bool Field::get(uint64_t& value) const {
  if (type == WireType::Varint) value = scalar;
  return type == WireType::Varint;
}
bool Field::get(int32_t& value) const {
  if (type == WireType::Varint) value = static_cast<int32_t>(static_cast<uint32_t>(scalar));
  return type == WireType::Varint;
}
bool Field::get(bool& value) const {
  if (type == WireType::Varint) value = scalar != 0;
  return type == WireType::Varint;
}
bool Field::get(float& value) const {
  if (type == WireType::Fixed32) value = std::bit_cast<float>(static_cast<uint32_t>(scalar));
  return type == WireType::Fixed32;
}
bool Field::get(double& value) const {
  if (type == WireType::Fixed64) value = std::bit_cast<double>(scalar);
  return type == WireType::Fixed64;
}
bool Field::get(std::string_view& value) const {
  if (type == WireType::Bytes) value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return type == WireType::Bytes;
}
bool Field::get(Bytes& value) const {
  if (type == WireType::Bytes) value = bytes;
  return type == WireType::Bytes;
}

bool take_varint(Bytes& from, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < from.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(from[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      from = from.subspan(i + 1);
      return true;
    }
  }
  return false;
}

bool Reader::fail(std::string message) {
  status_ = invalid_model(std::move(message)).hint("the file is damaged or not of this format");
  rest_ = {};
  return false;
}

bool Reader::next(Field& field) {
  if (rest_.empty()) return false;
  uint64_t tag = 0;
  if (!take_varint(rest_, tag)) return fail("the file ends inside a field");
  if (tag >> 3 == 0 || tag >> 32 != 0) return fail("a field has an impossible number");
  field.number = static_cast<uint32_t>(tag >> 3);
  field.scalar = 0;
  field.bytes = {};
  switch (tag & 7) {
    case 0: field.type = WireType::Varint; return take_varint(rest_, field.scalar) || fail("the file ends inside a number");
    case 1:
      field.type = WireType::Fixed64;
      if (rest_.size() < 8) return fail("the file ends inside a number");
      field.scalar = little_endian<uint64_t>(rest_);
      rest_ = rest_.subspan(8);
      return true;
    case 2: {
      field.type = WireType::Bytes;
      uint64_t length = 0;
      if (!take_varint(rest_, length)) return fail("the file ends inside a length");
      if (length > rest_.size()) return fail("a field claims more bytes than the file has");
      field.bytes = rest_.first(static_cast<size_t>(length));
      rest_ = rest_.subspan(static_cast<size_t>(length));
      return true;
    }
    case 3: field.type = WireType::Group; return skip_group(field.number, field.bytes);
    case 5:
      field.type = WireType::Fixed32;
      if (rest_.size() < 4) return fail("the file ends inside a number");
      field.scalar = little_endian<uint32_t>(rest_);
      rest_ = rest_.subspan(4);
      return true;
    default: return fail("a field has an impossible type");
  }
}

// Groups may hold groups: the open ones are kept on a list instead of the call stack.
bool Reader::skip_group(uint32_t number, Bytes& contents) {
  const Bytes start = rest_;
  std::vector<uint32_t> open{number};
  while (!open.empty()) {
    const size_t here = start.size() - rest_.size();
    Bytes peek = rest_;
    uint64_t tag = 0;
    if (!take_varint(peek, tag)) return fail("the file ends inside a group");
    const auto inner = static_cast<uint32_t>(tag >> 3);
    if ((tag & 7) == kEndGroup) {
      if (inner != open.back()) return fail("a group ends with the wrong number");
      open.pop_back();
      rest_ = peek;
      if (open.empty()) contents = start.first(here);
    } else if ((tag & 7) == static_cast<uint64_t>(WireType::Group)) {
      if (open.size() >= static_cast<size_t>(kMaxDepth)) return fail("groups are nested too deeply");
      open.push_back(inner);
      rest_ = peek;
    } else {
      Field ignored;
      if (!next(ignored)) return false;
    }
  }
  return true;
}

namespace detail {
Status truncated_list() {
  return invalid_model("a packed list ends inside an element").hint("the file is damaged or not of this format");
}
}  // namespace detail

Result<std::vector<Bytes>> messages_of(Bytes message, uint32_t number) {
  std::vector<Bytes> found;
  ORKNN_TRY(read_fields(message, Slot{number, found}));
  return found;
}

Result<MapEntry> map_entry(Bytes message) {
  MapEntry entry;
  ORKNN_TRY(read_fields(message, Slot{1, entry.key}, Slot{2, entry.value}));
  return entry;
}

Status append(const Field& field, std::vector<int64_t>& values) {
  return for_each_varint(field, [&](uint64_t v) { values.push_back(static_cast<int64_t>(v)); });
}
Status append(const Field& field, std::vector<float>& values) {
  return for_each_fixed<uint32_t>(field, [&](uint32_t v) { values.push_back(std::bit_cast<float>(v)); });
}

}  // namespace orknn::importer::wire
