#include "data/yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace orknn::data {
namespace {

constexpr int kMaxYamlDepth = 32;
constexpr std::string_view kYamlBlanks = " \t\r";

Status yaml_problem(size_t line, const std::string& message) {
  return invalid_argument(fmt::format("line {}: {}", line, message));
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kYamlBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kYamlBlanks) - first + 1);
}

// One line of the file, or several that a bracket joins, without its comment.
struct YamlLine {
  size_t indent = 0, number = 0;
  std::string text;
};

// Walks over text that may hold quotes: knows at each character whether it stands inside of one.
class QuoteTracker {
 public:
  // True when `c` is part of a quoted text, its quotes included.
  bool quoted(char c) {
    if (quote_ != '\0') {
      const bool escaped = quote_ == '"' && previous_ == '\\' && !escaped_;
      if (c == quote_ && !escaped) {
        quote_ = previous_ = '\0';  // a second quote right after it stands for itself
        return true;
      }
      escaped_ = escaped;
      previous_ = c;
      return true;
    }
    // Inside of a word it is an apostrophe.
    const bool opens =
        (c == '\'' || c == '"') && (previous_ == '\0' || std::string_view(" \t[{,:-").find(previous_) != std::string_view::npos);
    if (opens) quote_ = c, escaped_ = false;
    previous_ = opens ? '\0' : c;
    return opens;
  }
  bool is_open() const { return quote_ != '\0'; }

 private:
  char quote_ = '\0', previous_ = '\0';
  bool escaped_ = false;
};

// The part of a line ahead of its comment; `brackets` counts those that stay open.
std::string_view without_comment(std::string_view line, int& brackets, bool& open_quote) {
  QuoteTracker quotes;
  char previous = ' ';
  for (size_t i = 0; i < line.size(); previous = line[i++]) {
    const char c = line[i];
    if (quotes.quoted(c)) continue;
    if (c == '#' && (previous == ' ' || previous == '\t')) {
      line = line.substr(0, i);
      break;
    }
    // A bracket in the middle of a word belongs to the word, unless a bracket is open already.
    const bool begins = brackets > 0 || previous == ' ' || previous == '\t';
    if ((c == '[' || c == '{') && begins) ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
  }
  open_quote = quotes.is_open();
  return line;
}

Result<std::vector<YamlLine>> lines_of(std::string_view text) {
  std::vector<YamlLine> lines;
  size_t number = 0;
  int brackets = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    if (brackets == 0 && (line.starts_with("%") || without_blanks(line) == "---")) continue;
    if (brackets == 0 && without_blanks(line) == "...") break;
    const bool continues = brackets > 0;
    bool open_quote = false;
    line = without_comment(line, brackets, open_quote);
    if (open_quote) return yaml_problem(number, "a quote is not closed in its line");
    const std::string_view content = without_blanks(line);
    if (content.empty()) continue;
    if (continues) {
      lines.back().text += " ";
      lines.back().text += content;
      continue;
    }
    const size_t indent = line.find_first_not_of(' ');
    if (line[indent] == '\t') return yaml_problem(number, "a tab indents the line; expected blanks");
    lines.push_back({indent, number, std::string(content)});
  }
  if (brackets > 0) return yaml_problem(lines.back().number, "a bracket is not closed");
  return lines;
}

// Position of the colon that ends a key, npos when the line is no entry of a map.
size_t key_end(std::string_view line) {
  QuoteTracker quotes;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quotes.quoted(line[i])) continue;
    if (i == 0 && (line[0] == '[' || line[0] == '{')) return line.npos;
    if (line[i] == ':' && (i + 1 == line.size() || line[i + 1] == ' ' || line[i + 1] == '\t')) return i;
  }
  return line.npos;
}

bool is_list_item(std::string_view line) { return line == "-" || line.starts_with("- "); }

// A value that stands in one line: a scalar, or lists and maps in brackets.
class InlineParser {
 public:
  InlineParser(std::string_view text, size_t line) : text_(text), line_(line) {}

  Result<YamlValue> run(int depth) {
    ORKNN_TRY_ASSIGN(YamlValue value, this->value(depth, false));
    skip_blanks();
    if (at_ < text_.size()) return yaml_problem(line_, fmt::format("'{}' stands after a value", to_utf8(text_.substr(at_))));
    return value;
  }
  Result<std::string> key() {
    skip_blanks();
    if (peek() == '\'' || peek() == '"') return quoted();
    return std::string(without_blanks(text_));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && kYamlBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  Result<YamlValue> value(int depth, bool inside) {
    if (depth > kMaxYamlDepth) return yaml_problem(line_, "values are nested too deeply");
    skip_blanks();
    if (peek() == '[' || peek() == '{') return collection(depth);
    YamlValue scalar{YamlValue::Kind::Scalar};
    scalar.line = line_;
    if (peek() == '\'' || peek() == '"') {
      scalar.quoted = true;
      ORKNN_TRY_ASSIGN(scalar.text, quoted());
      return scalar;
    }
    constexpr std::string_view kRefused = "&*!|>%@`";
    if (at_ < text_.size() && kRefused.find(peek()) != std::string_view::npos)
      return yaml_problem(line_, fmt::format("values that begin with '{}' are not supported", peek()));
    scalar.text = plain(inside);
    if (scalar.text.empty() || scalar.text == "~" || scalar.text == "null") scalar.kind = YamlValue::Kind::Null;
    return scalar;
  }

  std::string plain(bool inside) {
    const size_t begin = at_;
    if (!inside)
      at_ = text_.size();
    else
      while (at_ < text_.size() && std::string_view(",]}").find(text_[at_]) == std::string_view::npos &&
             !(text_[at_] == ':' && (at_ + 1 == text_.size() || text_[at_ + 1] == ' ')))
        ++at_;
    return std::string(without_blanks(text_.substr(begin, at_ - begin)));
  }

  Result<std::string> quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote && quote == '\'' && at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
        out += c;
        ++at_;
      } else if (c == quote) {
        ++at_;
        return out;
      } else if (c == '\\' && quote == '"') {
        ORKNN_TRY(escape(out));
      } else {
        out += c;
      }
    }
    return yaml_problem(line_, "a quote is not closed");
  }

  // at_ is at the backslash and stays at the last character of the escape.
  Status escape(std::string& out) {
    constexpr std::string_view kNames = "nt\\\"'/0r", kValues("\n\t\\\"'/\0\r", 8);
    if (++at_ >= text_.size()) return yaml_problem(line_, "the text ends with a backslash");
    const size_t found = kNames.find(text_[at_]);
    if (found == kNames.npos)
      return yaml_problem(line_, fmt::format("the escape '\\{}' is not supported", to_utf8(text_.substr(at_, 1))));
    out += kValues[found];
    return {};
  }

  Result<YamlValue> collection(int depth) {
    const bool is_map = text_[at_++] == '{';
    const char closing = is_map ? '}' : ']';
    YamlValue result{is_map ? YamlValue::Kind::Map : YamlValue::Kind::List};
    result.line = line_;
    for (;;) {
      skip_blanks();
      if (peek() == closing) {
        ++at_;
        return result;
      }
      ORKNN_TRY_ASSIGN(YamlValue value, this->value(depth + 1, true));
      if (is_map) {
        skip_blanks();
        if (peek() != ':' || value.kind != YamlValue::Kind::Scalar)
          return yaml_problem(line_, "expected 'key: value' between braces");
        ++at_;
        ORKNN_TRY_ASSIGN(YamlValue of_key, this->value(depth + 1, true));
        if (result.find(value.text)) return yaml_problem(line_, fmt::format("the key '{}' is there twice", to_utf8(value.text)));
        result.entries.emplace_back(std::move(value.text), std::move(of_key));
      } else {
        result.items.push_back(std::move(value));
      }
      skip_blanks();
      if (peek() == ',')
        ++at_;
      else if (peek() != closing)
        return yaml_problem(line_, fmt::format("expected ',' or '{}'", closing));
    }
  }

  std::string_view text_;
  size_t line_, at_ = 0;
};

class BlockParser {
 public:
  explicit BlockParser(std::vector<YamlLine> lines) : lines_(std::move(lines)) {}

  Result<YamlValue> run() {
    if (lines_.empty()) return YamlValue{};
    ORKNN_TRY_ASSIGN(YamlValue value, block(0));
    if (at_ < lines_.size()) return yaml_problem(lines_[at_].number, "the line is indented less than what it belongs to");
    return value;
  }

 private:
  Result<YamlValue> block(int depth) {
    if (depth > kMaxYamlDepth) return yaml_problem(lines_[at_].number, "values are nested too deeply");
    const YamlLine& line = lines_[at_];
    if (is_list_item(line.text)) return list(depth, line.indent);
    if (key_end(line.text) != std::string::npos) return map(depth, line.indent);
    InlineParser parser(line.text, line.number);
    ++at_;
    return parser.run(depth);
  }

  bool is_deeper(size_t indent) const { return at_ < lines_.size() && lines_[at_].indent > indent; }

  Result<YamlValue> list(int depth, size_t indent) {
    YamlValue result{YamlValue::Kind::List};
    result.line = lines_[at_].number;
    while (at_ < lines_.size() && lines_[at_].indent == indent && is_list_item(lines_[at_].text)) {
      YamlLine& line = lines_[at_];
      const size_t content = std::min(line.text.find_first_not_of(kYamlBlanks, 1), line.text.size());
      if (content == line.text.size()) {
        ++at_;
        result.items.emplace_back();
        if (!is_deeper(indent)) continue;
      } else {  // what follows the dash begins a block of its own
        line.text.erase(0, content);
        line.indent += content;
        result.items.emplace_back();
      }
      ORKNN_TRY_ASSIGN(result.items.back(), block(depth + 1));
    }
    if (is_deeper(indent)) return yaml_problem(lines_[at_].number, "the line is indented more than what it belongs to");
    return result;
  }

  Result<YamlValue> map(int depth, size_t indent) {
    YamlValue result{YamlValue::Kind::Map};
    result.line = lines_[at_].number;
    while (at_ < lines_.size() && lines_[at_].indent == indent) {
      const YamlLine line = lines_[at_];
      const size_t colon = key_end(line.text);
      if (is_list_item(line.text) || colon == line.text.npos) return yaml_problem(line.number, "expected 'key: value'");
      ++at_;
      ORKNN_TRY_ASSIGN(std::string key, InlineParser(std::string_view(line.text).substr(0, colon), line.number).key());
      if (result.find(key)) return yaml_problem(line.number, fmt::format("the key '{}' is there twice", to_utf8(key)));
      ORKNN_TRY_ASSIGN(YamlValue value, value_of_key(depth, line, without_blanks(std::string_view(line.text).substr(colon + 1))));
      result.entries.emplace_back(std::move(key), std::move(value));
    }
    if (is_deeper(indent)) return yaml_problem(lines_[at_].number, "the line is indented more than what it belongs to");
    return result;
  }

  // `text`: what follows the colon; when that is nothing, the value stands in the lines below, a list without more indentation.
  Result<YamlValue> value_of_key(int depth, const YamlLine& line, std::string_view text) {
    if (!text.empty()) return InlineParser(text, line.number).run(depth);
    const bool has_list = at_ < lines_.size() && lines_[at_].indent == line.indent && is_list_item(lines_[at_].text);
    if (has_list) return list(depth + 1, line.indent);
    if (is_deeper(line.indent)) return block(depth + 1);
    YamlValue nothing;
    nothing.line = line.number;
    return nothing;
  }

  std::vector<YamlLine> lines_;
  size_t at_ = 0;
};

}  // namespace

YamlValue::YamlValue(Kind kind) : kind(kind) {}

const YamlValue* YamlValue::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Status YamlValue::problem(const std::string& message) const {
  if (line == 0) return invalid_argument(message);
  return yaml_problem(line, message);
}

Result<YamlValue> parse_yaml(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  ORKNN_TRY_ASSIGN(std::vector<YamlLine> lines, lines_of(text));
  return BlockParser(std::move(lines)).run();
}

}  // namespace orknn::data
