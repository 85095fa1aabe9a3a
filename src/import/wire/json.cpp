#include "import/wire/json.h"

#include <charconv>

#include "base/utf8.h"

namespace orknn::importer::wire {

namespace {
// A symbol file nests five levels, and five more per subgraph.
constexpr int kMaxNesting = 64;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
}
}  // namespace

Status JsonReader::problem(std::string message) const {
  return invalid_model(std::move(message) + " at offset " + std::to_string(at_));
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
}

JsonReader::Kind JsonReader::peek() {
  skip_space();
  if (at_ >= text_.size()) return Kind::End;
  switch (const char c = text_[at_]) {
    case '{': return Kind::Object;
    case '[': return Kind::Array;
    case '"': return Kind::String;
    case 't':
    case 'f':
    case 'n': return Kind::Literal;
    default: return c == '-' || (c >= '0' && c <= '9') ? Kind::Number : Kind::End;
  }
}

Status JsonReader::expect(char c) {
  skip_space();
  if (at_ >= text_.size()) return problem("the text ends too early").expected(std::string("'") + c + "'");
  if (text_[at_] != c)
    return problem("unexpected character").expected(std::string("'") + c + "'").found(std::string("'") + text_[at_] + "'");
  ++at_;
  return {};
}

Status JsonReader::open(char bracket) {
  ORKNN_TRY(expect(bracket));
  if (++depth_ > kMaxNesting)
    return problem("the text is nested too deeply").expected("at most " + std::to_string(kMaxNesting) + " levels");
  return {};
}

Result<bool> JsonReader::next_element(char closing, bool first) {
  skip_space();
  if (at_ < text_.size() && text_[at_] == closing) {
    ++at_;
    --depth_;
    return false;
  }
  if (!first) ORKNN_TRY(expect(','));
  return true;
}

Result<uint32_t> JsonReader::hex_digits() {
  uint32_t value = 0;
  if (text_.size() - at_ < 4) return problem("the text ends too early");
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
  if (error != std::errc() || end != text_.data() + at_ + 4) return problem("a \\u escape needs four hexadecimal digits");
  at_ += 4;
  return value;
}

Status JsonReader::escape(std::string& to) {
  if (at_ >= text_.size()) return problem("the text ends too early");
  switch (text_[at_++]) {
    case 'b': to += '\b'; return {};
    case 'f': to += '\f'; return {};
    case 'n': to += '\n'; return {};
    case 'r': to += '\r'; return {};
    case 't': to += '\t'; return {};
    case '"': to += '"'; return {};
    case '\\': to += '\\'; return {};
    case '/': to += '/'; return {};
    case 'u': break;
    default: return problem("unknown escape in a string");
  }
  ORKNN_TRY_ASSIGN(uint32_t code, hex_digits());
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {  // the first half of a character beyond 16 bits
    at_ += 2;
    ORKNN_TRY_ASSIGN(const uint32_t low, hex_digits());
    if (low < 0xdc00 || low > 0xdfff) return problem("half of a surrogate pair in a string");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    return problem("half of a surrogate pair in a string");
  }
  append_utf8(to, code);
  return {};
}

Result<std::string> JsonReader::string() {
  ORKNN_TRY(expect('"'));
  std::string value;
  for (;;) {
    const size_t stop = text_.find_first_of("\"\\", at_);
    if (stop == std::string_view::npos) return problem("a string does not end");
    value.append(text_, at_, stop - at_);
    at_ = stop + 1;
    if (text_[stop] == '"') return value;
    ORKNN_TRY(escape(value));
  }
}

std::string_view JsonReader::number_or_literal() {
  skip_space();
  const size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<int64_t> JsonReader::integer() {
  if (peek() != Kind::Number) return problem("expected a number");
  const std::string_view word = number_or_literal();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return problem("expected a whole number before").found(std::string(word.substr(0, 40)));
  return value;
}

Result<std::string> JsonReader::scalar_text() {
  switch (peek()) {
    case Kind::String: return string();
    case Kind::Number:
    case Kind::Literal: return std::string(number_or_literal());
    default: return problem("expected a string or a number");
  }
}

Status JsonReader::skip() {
  switch (peek()) {
    case Kind::Object: return object([this](const std::string&) { return skip(); });
    case Kind::Array: return array([this](size_t) { return skip(); });
    case Kind::String: return string().status();
    case Kind::Number:
    case Kind::Literal: number_or_literal(); return {};
    case Kind::End: break;
  }
  return problem("expected a value");
}

Status JsonReader::finish() {
  skip_space();
  return at_ == text_.size() ? Status() : problem("text behind the end of the symbol");
}

}  // namespace orknn::importer::wire
