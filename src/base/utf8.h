// Names come from files and may hold any bytes; whoever prints them, or hands them to Python or JSON, needs valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace orknn {

bool is_utf8(std::string_view text);
// Bytes that are not part of a valid character become "\xNN".
std::string to_utf8(std::string_view text);

}  // namespace orknn
