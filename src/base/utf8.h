// Names come from files and may hold any bytes; whoever prints them, or hands them to Python or JSON, needs valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orknn {

bool is_utf8(std::string_view text);
// Bytes that are not part of a valid character become "\xNN".
std::string to_utf8(std::string_view text);
// The same for text that goes to a terminal: control characters, which could move the cursor or change colours, become "\xNN"
// too. Line ends and tabs stay.
std::string printable(std::string_view text);
// Appends the character with this number, at most U+10FFFF.
void append_utf8(std::string& to, uint32_t code);

}  // namespace orknn
