// Names come from files and may hold any bytes; in a message each of them stays part of one line.
#pragma once

#include <string>
#include <string_view>

namespace orknn {

// As printable() (base/utf8.h), but line ends and tabs, which could make a name look like several lines, become "\xNN" too.
std::string printable_line(std::string_view text);

}  // namespace orknn
