#include "base/utf8.h"

#include "base/printable_line.h"

namespace orknn {
namespace {

// Length of the valid character at the front, 0 when there is none: no overlong forms, no surrogates, nothing above U+10FFFF.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool legal = first == 0xe0 ? second >= 0xa0 : first == 0xed ? second < 0xa0 : true;
    return legal && continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool legal = first == 0xf0 ? second >= 0x90 : first == 0xf4 ? second < 0x90 : true;
    return legal && continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}
}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {
template <class IsKept>
std::string spell_out_unless(std::string_view text, IsKept&& is_kept) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const std::string_view character = text.substr(0, length > 0 ? length : 1);
    if (length > 0 && is_kept(character)) {
      out += character;
    } else {
      for (char c : character) out += {'\\', 'x', kDigits[static_cast<uint8_t>(c) >> 4], kDigits[static_cast<uint8_t>(c) & 15]};
    }
    text.remove_prefix(character.size());
  }
  return out;
}

uint32_t code_of(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

bool is_line_end_or_tab(std::string_view character) { return character == "\n" || character == "\t"; }

// Control characters, line and paragraph separators, and the marks, embeddings, overrides and isolates of bidirectional text.
bool is_control(std::string_view character) {
  const uint32_t code = code_of(character);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}
}  // namespace

std::string to_utf8(std::string_view text) {
  return spell_out_unless(text, [](std::string_view) { return true; });
}

std::string printable(std::string_view text) {
  return spell_out_unless(text,
                          [](std::string_view character) { return is_line_end_or_tab(character) || !is_control(character); });
}

std::string printable_line(std::string_view text) {
  return spell_out_unless(text, [](std::string_view character) { return !is_control(character); });
}

void append_utf8(std::string& to, uint32_t code) {
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    to += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    to += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    to += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    to += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    to += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    to += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace orknn
