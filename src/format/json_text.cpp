#include "format/json_text.h"

#include <cstdio>

#include "base/utf8.h"

namespace orknn::format::json {

std::string text(std::string_view value) {
  std::string out = "\"";
  for (char c : to_utf8(value)) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<uint8_t>(c) >= 0x20) {
          out += c;
        } else {
          char escaped[8];
          std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
          out += escaped;
        }
    }
  }
  return out + '"';
}

std::string number(int64_t value) { return std::to_string(value); }

std::string array(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& v : values) out += (out.size() > 1 ? "," : "") + v;
  return out + ']';
}

std::string object(std::initializer_list<std::pair<std::string_view, std::string>> members) {
  std::string out = "{";
  for (const auto& [name, value] : members) out += (out.size() > 1 ? "," : "") + text(name) + ':' + value;
  return out + '}';
}

}  // namespace orknn::format::json
