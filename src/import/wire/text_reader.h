// Protocol Buffers text format (.prototxt, .pbtxt) over text that stays where it is, in the manner of wire/reader.h: a reader
// walks the fields of one message, a nested message is a stretch of the text with a reader of its own. Knows no schema.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/wire/reader.h"

namespace orknn::importer::wire {

// A file as text, without a byte order mark.
inline std::string_view text_of(Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// One field, or one element of a field written as a list. The get functions say whether the text suits the type asked for.
struct TextField {
  enum class Kind : uint8_t { Scalar, String, Message };  // Scalar: a number or a bare word
  std::string_view name;                                  // an extension keeps its brackets
  Kind kind = Kind::Scalar;
  std::string_view text;  // the scalar with its sign, the string(s) with their quotes, or what stands between the braces
  int64_t line = 0;       // where `text` begins, counted from 1

  bool get(int64_t& value) const;  // decimal, hexadecimal or octal
  bool get(uint64_t& value) const;
  bool get(int32_t& value) const;
  bool get(float& value) const;  // also integers, inf, nan, a trailing f
  bool get(double& value) const;
  bool get(bool& value) const;                   // true, false, True, False, t, f, 1, 0
  bool get(std::string& value) const;            // escapes resolved, adjacent strings joined
  bool get_word(std::string_view& value) const;  // a bare word: the name of an enumerator
  // "expected ..., found ..." with the line, for a value that does not suit.
  Status unsuitable(std::string_view expected) const;
};

// Walks the fields of one message.
class TextReader {
 public:
  explicit TextReader(std::string_view text, int64_t line = 1) : text_(text), line_(line) {}
  // The message a field holds.
  explicit TextReader(const TextField& message) : TextReader(message.text, message.line) {}
  // False at the end of the message, or where it is damaged: status() tells which. Contents of messages are looked at only as
  // far as finding their end needs.
  bool next(TextField& field);
  const Status& status() const { return status_; }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }
  void skip_blank();      // white space and comments
  void skip_separator();  // the comma or semicolon that may end a field, and white space
  bool skip_string();     // from quote to quote
  bool take_name(TextField& field);
  bool take_value(TextField& field);
  bool take_message(TextField& field);
  bool fail(std::string message);

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_;
  std::string_view list_name_;  // set while inside name: [...]
  Status status_;
};

// --- text to bytes, for parsers that know the wire format: a schema tells the numbers and types that text leaves out
enum class TextType : uint8_t { Int, Bool, Float, Double, String, Enum, Message };
struct TextEnumerator {
  std::string_view name;
  int32_t value;
};
struct TextSchema;
struct TextRow {
  std::string_view name;
  uint32_t number;
  TextType type;
  const TextSchema* message = nullptr;               // of a Message
  std::span<const TextEnumerator> enumerators = {};  // of an Enum; numbers are always accepted
};
struct TextSchema {
  std::span<const TextRow> rows;
};
// The message in wire format. Fields the schema does not name are left out, as a reader of the bytes would pass over them.
Result<std::vector<std::byte>> encode_text(std::string_view text, const TextSchema& schema);

}  // namespace orknn::importer::wire
