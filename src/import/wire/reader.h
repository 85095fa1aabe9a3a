// Protocol Buffers wire format over bytes that stay where they are: nothing is copied, every length is checked against what is
// there, unknown fields are passed over. Knows no schema; the importers that read protobuf (ONNX, TensorFlow, Caffe) do.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orknn::importer::wire {

using Bytes = std::span<const std::byte>;

// Messages nested deeper than this are refused by the parsers built on this reader.
inline constexpr int kMaxDepth = 100;

enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Group = 3, Fixed32 = 5 };

// One field as it stands in the message. The get functions say whether the wire type suits; a field that does not is to be
// ignored, as an unknown one is.
struct Field {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  uint64_t scalar = 0;  // varint and fixed types, as bits
  Bytes bytes;          // contents of a length-delimited field or of a group

  bool get(int64_t& value) const;
  bool get(uint64_t& value) const;
  bool get(int32_t& value) const;  // the low 32 bits, as protobuf reads them
  bool get(bool& value) const;
  bool get(float& value) const;
  bool get(double& value) const;
  bool get(std::string_view& value) const;
  bool get(Bytes& value) const;
};

// Walks the fields of one message.
class Reader {
 public:
  explicit Reader(Bytes message) : rest_(message) {}
  // False at the end of the message, or where it is damaged: status() tells which.
  bool next(Field& field);
  const Status& status() const { return status_; }

 private:
  bool fail(std::string message);
  bool skip_group(uint32_t number, Bytes& contents);
  Bytes rest_;
  Status status_;
};

// Takes one varint off the front. False when the bytes end inside it or it is longer than ten bytes.
bool take_varint(Bytes& from, uint64_t& value);

namespace detail {
Status truncated_list();
}

// Calls f(uint64_t bits) for each element of a repeated varint field, packed or not.
template <class F>
Status for_each_varint(const Field& field, F&& f) {
  if (field.type == WireType::Varint) f(field.scalar);
  if (field.type != WireType::Bytes) return {};
  Bytes rest = field.bytes;
  for (uint64_t value = 0; !rest.empty();) {
    if (!take_varint(rest, value)) return detail::truncated_list();
    f(value);
  }
  return {};
}

// The same for fixed32 (Word = uint32_t) and fixed64 (Word = uint64_t) elements.
template <class Word, class F>
Status for_each_fixed(const Field& field, F&& f) {
  constexpr WireType kSingle = sizeof(Word) == 4 ? WireType::Fixed32 : WireType::Fixed64;
  if (field.type == kSingle) f(static_cast<Word>(field.scalar));
  if (field.type != WireType::Bytes) return {};
  if (field.bytes.size() % sizeof(Word) != 0) return detail::truncated_list();
  for (size_t at = 0; at < field.bytes.size(); at += sizeof(Word)) {
    Word value = 0;
    for (size_t i = 0; i < sizeof(Word); ++i) value |= static_cast<Word>(static_cast<uint8_t>(field.bytes[at + i])) << (8 * i);
    f(value);
  }
  return {};
}

Status append(const Field& field, std::vector<int64_t>& values);
Status append(const Field& field, std::vector<float>& values);

// Calls f(field) for each field of a message; f returns a Status.
template <class F>
Status for_each_field(Bytes message, F&& f) {
  Reader reader(message);
  for (Field field; reader.next(field);) ORKNN_TRY(f(field));
  return reader.status();
}

// A field of a message, by its number, and where its contents go: a number or a text replaces what was there, a list grows, a
// function is called with each message. A field of another wire type is ignored.
template <class T>
struct Slot {
  uint32_t number;
  T&& target;
};
template <class T>
Slot(uint32_t, T&&) -> Slot<T>;

template <class T>
Status read_field(const Field& field, T& target) {
  if constexpr (requires { field.get(target); }) {
    field.get(target);
  } else if constexpr (requires { append(field, target); }) {
    return append(field, target);
  } else if constexpr (requires { target(field.bytes); }) {
    if (field.type == WireType::Bytes) return target(field.bytes);
  } else if constexpr (requires { target = std::string_view(); }) {
    if (std::string_view text; field.get(text)) target = text;
  } else if constexpr (std::constructible_from<typename T::value_type, std::string_view>) {
    if (std::string_view text; field.get(text)) target.emplace_back(text);
  } else if (typename T::value_type value{}; field.get(value)) {
    if constexpr (requires { target.push_back(value); })
      target.push_back(value);
    else
      target = value;
  }
  return {};
}
template <class... T>
Status read_fields(Bytes message, const Slot<T>&... slots) {
  return for_each_field(message, [&](const Field& field) {
    Status status;
    static_cast<void>(((field.number == slots.number && (status = read_field(field, slots.target), true)) || ...));
    return status;
  });
}

// The messages in field `number` of a message.
Result<std::vector<Bytes>> messages_of(Bytes message, uint32_t number);

// An entry of a map whose keys are texts and whose values are messages.
struct MapEntry {
  std::string_view key;
  Bytes value;
};
Result<MapEntry> map_entry(Bytes message);

}  // namespace orknn::importer::wire
