#include "import/pytorch/lexer.h"

#include <charconv>
#include <limits>

namespace orknn::importer::pytorch {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (position_ < text_.size()) {
      if (at_line_start_ && brackets_ == 0) {
        ORKNN_TRY(indentation());
        if (position_ >= text_.size()) break;
        if (at_line_start_) continue;
      }
      ORKNN_TRY(token());
    }
    if (!at_line_start_) add(TokenKind::Newline);
    for (; indents_.size() > 1; indents_.pop_back()) add(TokenKind::Dedent);
    add(TokenKind::End);
    return std::move(tokens_);
  }

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  Status damaged(const std::string& what) const { return invalid_model("line " + std::to_string(line_) + ": " + what); }
  Token& add(TokenKind kind, std::string_view text = {}) {
    Token& t = tokens_.emplace_back();
    t.kind = kind;
    t.line = line_;
    t.text = text;
    return t;
  }

  // Empty lines and comments do not count. Leaves at_line_start_ set when the line held nothing else.
  Status indentation() {
    size_t width = 0;
    while (at(position_) == ' ' || at(position_) == '\t') ++width, ++position_;
    if (at(position_) == '\r' && at(position_ + 1) == '\n') ++position_;
    if (at(position_) == '#') skip_comment();
    if (position_ >= text_.size()) return {};
    if (text_[position_] == '\n') {
      ++position_;
      ++line_;
      return {};
    }
    at_line_start_ = false;
    if (width > indents_.back()) {
      indents_.push_back(width);
      add(TokenKind::Indent);
      return {};
    }
    for (; width < indents_.back(); indents_.pop_back()) add(TokenKind::Dedent);
    return width == indents_.back() ? Status() : damaged("the indentation fits no block");
  }

  void skip_comment() {
    while (position_ < text_.size() && text_[position_] != '\n') ++position_;
  }

  Status token() {
    const char c = text_[position_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
      return {};
    }
    if (c == '#') {
      skip_comment();
      return {};
    }
    if (c == '\n') {
      ++position_;
      if (brackets_ == 0) {
        add(TokenKind::Newline);
        at_line_start_ = true;
      }
      ++line_;
      return {};
    }
    if (is_letter(c)) {
      const size_t start = position_;
      while (is_letter(at(position_)) || is_digit(at(position_))) ++position_;
      add(TokenKind::Name, text_.substr(start, position_ - start));
      return {};
    }
    if (is_digit(c) || (c == '.' && is_digit(at(position_ + 1)))) return number();
    if (c == '"' || c == '\'') return string(c);
    if (c == '-' && at(position_ + 1) == '>') {
      add(TokenKind::Symbol, text_.substr(position_, 2));
      position_ += 2;
      return {};
    }
    if (std::string_view("()[]{},:=.-+*").find(c) == std::string_view::npos)
      return damaged(std::string("'") + c + "' is not part of TorchScript");
    if (c == '(' || c == '[' || c == '{') ++brackets_;
    if ((c == ')' || c == ']' || c == '}') && --brackets_ < 0) return damaged("a bracket closes that was not opened");
    add(TokenKind::Symbol, text_.substr(position_, 1));
    ++position_;
    return {};
  }

  Status number() {
    const size_t start = position_;
    bool is_real = false;
    while (true) {
      const char c = at(position_);
      if (c == '.' || c == 'e' || c == 'E')
        is_real = true;
      else if (!is_digit(c) && !((c == '-' || c == '+') && (at(position_ - 1) == 'e' || at(position_ - 1) == 'E')))
        break;
      ++position_;
    }
    const std::string_view digits = text_.substr(start, position_ - start);
    Token& t = add(is_real ? TokenKind::Float : TokenKind::Integer, digits);
    const char* end = digits.data() + digits.size();
    if (!is_real) {
      const auto [used, error] = std::from_chars(digits.data(), end, t.integer);
      // The most negative integer is printed as minus its absolute value, which does not fit.
      if (error == std::errc::result_out_of_range && digits == "9223372036854775808") {
        t.integer = INT64_MIN;
        return {};
      }
      return error == std::errc() && used == end ? Status() : damaged("'" + std::string(digits) + "' is not a 64-bit integer");
    }
    const auto [used, error] = std::from_chars(digits.data(), end, t.number);
    if (error == std::errc::result_out_of_range) {
      t.number = digits.find("e-") != std::string_view::npos ? 0.0 : std::numeric_limits<double>::infinity();
      return {};
    }
    return error == std::errc() && used == end ? Status() : damaged("'" + std::string(digits) + "' is not a number");
  }

  Status string(char quote) {
    const bool triple = at(position_ + 1) == quote && at(position_ + 2) == quote;
    position_ += triple ? 3 : 1;
    std::string value;
    while (true) {
      if (position_ >= text_.size() || (text_[position_] == '\n' && !triple)) return damaged("a string has no end");
      const char c = text_[position_++];
      if (c == quote && (!triple || (at(position_) == quote && at(position_ + 1) == quote))) break;
      if (c == '\n') ++line_;
      if (c != '\\') {
        value += c;
        continue;
      }
      value += escape();
    }
    if (triple) position_ += 2;
    add(TokenKind::String).string = std::move(value);
    return {};
  }

  char escape() {
    const char c = at(position_++);
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'a': return '\a';
      case 'b': return '\b';
      case 'f': return '\f';
      case 'v': return '\v';
      case 'x': return digits(2, 16);
      default: break;
    }
    if (c >= '0' && c <= '7') {
      --position_;
      return digits(3, 8);
    }
    return c;
  }
  char digits(size_t most, unsigned base) {
    unsigned value = 0;
    for (size_t i = 0; i < most; ++i) {
      const char c = at(position_);
      const unsigned digit = is_digit(c)            ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                    : 99;
      if (digit >= base) break;
      value = value * base + digit;
      ++position_;
    }
    return static_cast<char>(value);
  }

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1, brackets_ = 0;
  bool at_line_start_ = true;
  std::vector<size_t> indents_{0};
  std::vector<Token> tokens_;
};
}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace orknn::importer::pytorch
