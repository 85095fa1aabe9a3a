#include "import/wire/text_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace orknn::importer::wire {
namespace {
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
// What numbers and words are made of; a sign belongs to the exponent of a float and is looked at by the caller.
bool is_scalar(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The magnitude of an integer without sign.
bool to_magnitude(std::string_view text, uint64_t& value) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool take_sign(std::string_view& text) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  while (!text.empty() && is_blank(text[0])) text.remove_prefix(1);
  return true;
}

// One escape; `at` stands after the backslash and is moved to what follows the escape.
bool take_escape(std::string_view text, size_t& at, std::string& to) {
  if (at >= text.size()) return false;
  const char c = text[at++];
  const auto digits = [&](size_t least, size_t most, int base) -> int64_t {
    uint32_t value = 0;
    size_t count = 0;
    for (; count < most && at < text.size(); ++count, ++at) {
      const int digit = hex_digit(text[at]);
      if (digit < 0 || digit >= base) break;
      value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
    }
    return count >= least ? static_cast<int64_t>(value) : -1;
  };
  switch (c) {
    case 'n': to += '\n'; return true;
    case 't': to += '\t'; return true;
    case 'r': to += '\r'; return true;
    case 'a': to += '\a'; return true;
    case 'b': to += '\b'; return true;
    case 'f': to += '\f'; return true;
    case 'v': to += '\v'; return true;
    case 'x':
    case 'X': {
      const int64_t value = digits(1, 2, 16);
      to += static_cast<char>(value);
      return value >= 0;
    }
    case 'u':
    case 'U': {
      const size_t count = c == 'u' ? 4 : 8;
      const int64_t value = digits(count, count, 16);
      if (value < 0 || value > 0x10ffff) return false;
      append_utf8(to, static_cast<uint32_t>(value));
      return true;
    }
    default:
      if (c >= '0' && c <= '7') {
        --at;
        to += static_cast<char>(digits(1, 3, 8));
        return true;
      }
      to += c;  // quotes, the backslash, the question mark
      return true;
  }
}
}  // namespace

// --- values

bool TextField::get(uint64_t& value) const { return kind == Kind::Scalar && to_magnitude(text, value); }

bool TextField::get(int64_t& value) const {
  if (kind != Kind::Scalar) return false;
  std::string_view rest = text;
  const bool negative = take_sign(rest);
  uint64_t magnitude = 0;
  if (!to_magnitude(rest, magnitude)) return false;
  constexpr uint64_t kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (magnitude > kMost + (negative ? 1 : 0)) return false;
  value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

bool TextField::get(int32_t& value) const {
  int64_t wide = 0;
  if (!get(wide) || wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) return false;
  value = static_cast<int32_t>(wide);
  return true;
}

bool TextField::get(double& value) const {
  if (kind != Kind::Scalar) return false;
  std::string_view rest = text;
  const bool negative = take_sign(rest);
  std::string lower;
  for (char c : rest.substr(0, 9)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (lower == "inf" || lower == "inff" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan" || lower == "nanf") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (uint64_t whole = 0; lower.starts_with("0x") && to_magnitude(rest, whole)) {
    value = static_cast<double>(whole);
  } else {
    if (rest.ends_with('f') || rest.ends_with('F')) rest.remove_suffix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size() || rest.empty()) return false;
    if (error == std::errc::result_out_of_range) {
      // Too small for a double is zero, too large is infinity, as protobuf reads them.
      const size_t exponent = rest.find_first_of("eE");
      const bool small = exponent != std::string_view::npos ? rest.substr(exponent + 1).starts_with('-')
                                                            : rest.starts_with('0') || rest.starts_with('.');
      value = small ? 0.0 : std::numeric_limits<double>::infinity();
    } else if (error != std::errc()) {
      return false;
    }
  }
  if (negative) value = -value;
  return true;
}

bool TextField::get(float& value) const {
  double wide = 0;
  if (!get(wide)) return false;
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::isfinite(wide) && std::abs(wide) > kMost) wide = std::copysign(std::numeric_limits<double>::infinity(), wide);
  value = static_cast<float>(wide);
  return true;
}

bool TextField::get(bool& value) const {
  if (kind != Kind::Scalar) return false;
  value = text == "true" || text == "True" || text == "t" || text == "1";
  return value || text == "false" || text == "False" || text == "f" || text == "0";
}

bool TextField::get(std::string& value) const {
  if (kind != Kind::String) return false;
  value.clear();
  // The reader has seen the quotes pair up; between strings there is only white space and comments.
  for (size_t at = 0; at < text.size();) {
    const char quote = text[at++];
    if (quote == '#') {
      const size_t end = text.find('\n', at);
      at = end == std::string_view::npos ? text.size() : end;
    } else if (quote == '"' || quote == '\'') {
      while (at < text.size() && text[at] != quote) {
        if (text[at] != '\\') {
          value += text[at++];
          continue;
        }
        ++at;
        if (!take_escape(text, at, value)) return false;
      }
      ++at;
    }
  }
  return true;
}

bool TextField::get_word(std::string_view& value) const {
  if (kind != Kind::Scalar || text.empty() || !is_letter(text[0])) return false;
  value = text;
  return true;
}

Status TextField::unsuitable(std::string_view expected) const {
  const std::string found = kind == Kind::Message ? "a message" : std::string(text.substr(0, 40));
  return invalid_model("line " + std::to_string(line) + ": the value of '" + std::string(name) + "' does not suit")
      .expected(std::string(expected))
      .found(found);
}

// --- the reader

bool TextReader::fail(std::string message) {
  status_ = invalid_model("line " + std::to_string(line_) + ": " + std::move(message))
                .hint("the text is damaged or not of this format");
  at_ = text_.size();
  list_name_ = {};
  return false;
}

void TextReader::skip_blank() {
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_end()) return;
    } else if (!is_blank(c)) {
      return;
    }
    if (text_[at_] == '\n') ++line_;
  }
}

void TextReader::skip_separator() {
  skip_blank();
  if (peek() == ',' || peek() == ';') ++at_;
  skip_blank();
}

bool TextReader::skip_string() {
  const char quote = text_[at_++];
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == quote) {
      ++at_;
      return true;
    }
    if (c == '\n') break;
    if (c == '\\') {
      ++at_;
      if (at_end()) break;
    }
  }
  return fail("a string does not end on its line");
}

bool TextReader::take_name(TextField& field) {
  const size_t start = at_;
  if (peek() == '[') {  // an extension or the type of an Any
    at_ = text_.find(']', at_);
    if (at_ == std::string_view::npos || text_.substr(start, at_ - start).find('\n') != std::string_view::npos) {
      at_ = start;
      return fail("a name in brackets does not end");
    }
    ++at_;
  } else {
    if (!is_letter(peek())) return fail(std::string("expected the name of a field, found '") + peek() + "'");
    while (is_letter(peek()) || is_digit(peek())) ++at_;
  }
  field.name = text_.substr(start, at_ - start);
  return true;
}

bool TextReader::take_message(TextField& field) {
  std::vector<char> closers;
  const size_t start = at_ + 1;
  field.kind = TextField::Kind::Message;
  field.line = line_;
  for (; !at_end(); ++at_) {
    skip_blank();
    if (at_end()) break;
    const char c = text_[at_];
    if (c == '{' || c == '<') {
      if (closers.size() >= static_cast<size_t>(kMaxDepth)) return fail("messages are nested too deeply");
      closers.push_back(c == '{' ? '}' : '>');
    } else if (c == '}' || c == '>') {
      if (closers.back() != c) return fail(std::string("expected '") + closers.back() + "', found '" + c + "'");
      closers.pop_back();
      if (closers.empty()) {
        field.text = text_.substr(start, at_ - start);
        ++at_;
        return true;
      }
    } else if (c == '"' || c == '\'') {
      if (!skip_string()) return false;
      --at_;
    }
  }
  return fail("the text ends inside '" + std::string(field.name) + "'");
}

bool TextReader::take_value(TextField& field) {
  field.line = line_;
  const size_t start = at_;
  if (peek() == '{' || peek() == '<') return take_message(field);
  if (peek() == '"' || peek() == '\'') {
    field.kind = TextField::Kind::String;
    size_t end = at_;
    while (peek() == '"' || peek() == '\'') {
      if (!skip_string()) return false;
      end = at_;
      skip_blank();
    }
    field.text = text_.substr(start, end - start);
    return true;
  }
  field.kind = TextField::Kind::Scalar;
  if (peek() == '-') {
    ++at_;
    skip_blank();
  }
  const size_t digits = at_;
  while (is_scalar(peek()) ||
         ((peek() == '-' || peek() == '+') && at_ > digits && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
          (is_digit(text_[digits]) || text_[digits] == '.')))
    ++at_;
  if (at_ == digits)
    return fail("expected a value of '" + std::string(field.name) + "'" +
                (at_end() ? "" : std::string(", found '") + peek() + "'"));
  field.text = text_.substr(start, at_ - start);
  return true;
}

bool TextReader::next(TextField& field) {
  skip_blank();
  bool at_value = !list_name_.empty();
  while (!at_value) {
    if (at_end()) return false;
    if (!take_name(field)) return false;
    skip_blank();
    const bool colon = peek() == ':';
    if (colon) {
      ++at_;
      skip_blank();
    }
    at_value = true;
    if (peek() == '[') {
      ++at_;
      skip_blank();
      if (peek() == ']') {  // an empty list is no field at all
        ++at_;
        skip_separator();
        at_value = false;
      } else {
        list_name_ = field.name;
      }
    } else if (!colon && peek() != '{' && peek() != '<') {
      return fail("expected ':' or '{' after '" + std::string(field.name) + "'");
    }
  }
  const bool in_list = !list_name_.empty();
  if (in_list) field.name = list_name_;
  if (!take_value(field)) return false;
  skip_blank();
  if (in_list) {
    if (peek() == ',') {
      ++at_;
      return true;
    }
    if (peek() != ']') return fail("expected ',' or ']' in the list '" + std::string(list_name_) + "'");
    ++at_;
    list_name_ = {};
  }
  skip_separator();
  return true;
}

// --- text to bytes

namespace {
void put_varint(std::vector<std::byte>& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
  to.push_back(static_cast<std::byte>(value));
}
template <class Word>
void put_word(std::vector<std::byte>& to, Word value) {
  for (size_t i = 0; i < sizeof(Word); ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void put_tag(std::vector<std::byte>& to, const TextRow& row, WireType type) {
  put_varint(to, (static_cast<uint64_t>(row.number) << 3) | static_cast<uint64_t>(type));
}
void put_bytes(std::vector<std::byte>& to, const TextRow& row, Bytes bytes) {
  put_tag(to, row, WireType::Bytes);
  put_varint(to, bytes.size());
  to.insert(to.end(), bytes.begin(), bytes.end());
}

bool get_enumerator(const TextField& field, const TextRow& row, int32_t& value) {
  if (field.get(value)) return true;
  for (const TextEnumerator& e : row.enumerators)
    if (field.kind == TextField::Kind::Scalar && e.name == field.text) {
      value = e.value;
      return true;
    }
  return false;
}

Status encode_into(TextReader reader, const TextSchema& schema, int depth, std::vector<std::byte>& to) {
  if (depth > kMaxDepth) return invalid_model("messages are nested too deeply");
  const TextRow* row = nullptr;
  for (TextField field; reader.next(field);) {
    // Elements of a list follow each other: look the row up again only when the name changes.
    if (!row || row->name != field.name) {
      row = nullptr;
      for (const TextRow& r : schema.rows)
        if (r.name == field.name) row = &r;
      if (!row) continue;
    }
    switch (row->type) {
      case TextType::Int: {
        int64_t value = 0;
        uint64_t bits = 0;
        if (field.get(value))
          bits = static_cast<uint64_t>(value);
        else if (!field.get(bits))
          return field.unsuitable("an integer");
        put_tag(to, *row, WireType::Varint);
        put_varint(to, bits);
        break;
      }
      case TextType::Bool: {
        bool value = false;
        if (!field.get(value)) return field.unsuitable("true or false");
        put_tag(to, *row, WireType::Varint);
        put_varint(to, value ? 1 : 0);
        break;
      }
      case TextType::Enum: {
        int32_t value = 0;
        if (!get_enumerator(field, *row, value)) return field.unsuitable("a number or a name this field knows");
        put_tag(to, *row, WireType::Varint);
        put_varint(to, static_cast<uint64_t>(static_cast<int64_t>(value)));
        break;
      }
      case TextType::Float: {
        float value = 0;
        if (!field.get(value)) return field.unsuitable("a number");
        put_tag(to, *row, WireType::Fixed32);
        put_word(to, std::bit_cast<uint32_t>(value));
        break;
      }
      case TextType::Double: {
        double value = 0;
        if (!field.get(value)) return field.unsuitable("a number");
        put_tag(to, *row, WireType::Fixed64);
        put_word(to, std::bit_cast<uint64_t>(value));
        break;
      }
      case TextType::String: {
        std::string value;
        if (!field.get(value)) return field.unsuitable("a string in quotes");
        put_bytes(to, *row, std::as_bytes(std::span(value)));
        break;
      }
      case TextType::Message: {
        if (field.kind != TextField::Kind::Message) return field.unsuitable("a message in braces");
        std::vector<std::byte> inner;
        ORKNN_TRY(encode_into(TextReader(field), *row->message, depth + 1, inner));
        put_bytes(to, *row, inner);
        break;
      }
    }
  }
  return reader.status();
}
}  // namespace

Result<std::vector<std::byte>> encode_text(std::string_view text, const TextSchema& schema) {
  std::vector<std::byte> bytes;
  ORKNN_TRY(encode_into(TextReader(text), schema, 0, bytes));
  return bytes;
}

}  // namespace orknn::importer::wire
